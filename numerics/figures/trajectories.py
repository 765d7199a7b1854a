"""Figures of trajectories: coordinates, attention and loss against log time.

Source: the time courses of arXiv 2608.06776.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from numerics.figures.style import PAGE, ordered_colors, styled
from numerics.trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["trajectory_figure"]

_PANELS = (
    ("mu_OV", r"$\mu_{\mathrm{OV}}$", "linear"),
    ("mu_QK", r"$\mu_{\mathrm{QK}}$", "linear"),
    ("attention", r"attention $\alpha$", "linear"),
    ("loss", "loss", "log"),
)
_DECADES = 6.0


def _window(runs: Sequence[Trajectory], time: str) -> tuple[float, float]:
    """Limits of the time axis: up to the last end, from where the first run begins to move."""
    last = max(float(getattr(r.end, time)) for r in runs)
    moves = []
    for run in runs:
        change = np.maximum(
            np.abs(run.attention - run.attention[0]) / max(float(np.ptp(run.attention)), 1e-300),
            np.abs(run.loss - run.loss[0]) / max(float(np.ptp(run.loss)), 1e-300),
        )
        at = np.flatnonzero((change > 1e-3) & (getattr(run, time) > 0))
        moves.append(float(getattr(run, time)[at[0]]) if at.size else last)
    return max(min(moves) / 2, last * 10 ** (-2 * _DECADES)), last


def trajectory_figure(
    runs: Sequence[Trajectory], labels: Sequence[str], *, time: Literal["t", "tau"] = "t", title: str = ""
) -> Figure:
    """Draw both coordinates, the attention and the loss of several runs against log time.

    Parameters: ``runs``; ``labels``, one for each run, shown in a legend beside the panels; ``time``, ``"t"`` or
    ``"tau"``; ``title`` of the legend. Later curves are thinner, so that those they cover stay visible.

    Returns: a matplotlib figure, which belongs to no window.

    Source: arXiv 2608.06776, reduced dynamics.

    >>> from theory import AttentionModel, TokenTask
    >>> from numerics import simulate
    >>> task = TokenTask(classes=3, block=2, queries=2, noise=2, informative_slots=1, noise_slots=1)
    >>> run = simulate(AttentionModel(task), {"eta_OV": 1, "eta_QK": 1}, until_loss=0.1)
    >>> len(trajectory_figure([run], ["1"]).axes)
    4
    """
    if not runs or len(runs) != len(labels):
        raise ValueError(f"{len(runs)} runs with {len(labels)} labels: expected at least one run and a label for each")
    from matplotlib.figure import Figure

    low, high = _window(runs, time)
    with styled():
        figure = Figure(figsize=(PAGE, 4.6), layout="constrained")
        axes = figure.subplots(2, 2, sharex=True).ravel()
        widths = np.linspace(2.4, 1.2, len(runs)) if len(runs) > 1 else [1.8]
        handles = []
        for run, color, width in zip(runs, ordered_colors(len(runs)), widths, strict=True):
            x = np.where(getattr(run, time) == 0, low, getattr(run, time))
            for axis, (name, _, _) in zip(axes, _PANELS, strict=True):
                (curve,) = axis.plot(x[x >= low], getattr(run, name)[x >= low], color=color, linewidth=width)
                axis.plot(x[-1:], getattr(run, name)[-1:], "o", color=color, markersize=3)
            handles.append(curve)
        for axis, (_, label, scale) in zip(axes, _PANELS, strict=True):
            axis.set(ylabel=label, yscale=scale, xscale="log", xlim=(low, 1.3 * high))
        for axis in axes[2:]:
            axis.set_xlabel(r"$\tau = t\,\min(\eta_{\mathrm{OV}}, \eta_{\mathrm{QK}})$" if time == "tau" else "$t$")
        if len(runs) > 1:
            figure.legend(
                handles, labels, title=title, loc="outside right center", frameon=False, ncols=1 + len(runs) // 20
            )
    return figure
