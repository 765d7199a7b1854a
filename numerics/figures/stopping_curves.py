"""Figure ``fig4``: the two scalar equations for five ratios of the rates, against log time and against the stopping
loss.

Nothing is integrated: states come from the first integral, times from a quadrature (`numerics.stopping`). Source: arXiv
2608.06776, figure 4 (``m, n, b, M = 5, 50, 50, 20``, from zero to loss 1e-4); claims `stopping-state`, `time-on-curve`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from numerics.figures.drawing import Drawing, Request
from numerics.figures.style import PAGE, ordered_colors
from numerics.stop_solver import margin_at
from numerics.stopping import StoppingState, stopping_state
from theory.flow import ReducedFlow, derive
from theory.model import AttentionModel
from theory.task import TokenTask

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["RATIOS", "courses", "curves", "draw", "halfway"]

Array = NDArray[np.float64]

CLASSES = 20
RATIOS = (0.01, 0.1, 1.0, 10.0, 100.0)
_LAST, _THRESHOLDS, _POINTS = 1e-4, 50, 160
_OV, _QK = r"$\mu_{\mathrm{OV}}$", r"$\mu_{\mathrm{QK}}$"
_TAU = r"$\tau = t\,\min(\eta_{\mathrm{OV}}, \eta_{\mathrm{QK}})$"
_PANELS = (("mu_OV", _OV, "linear"), ("mu_QK", _QK, "linear"), ("attention", r"attention $\alpha$", "linear"))


def published_flow() -> ReducedFlow:
    """The two scalar equations of the figure."""
    task = TokenTask(classes=CLASSES, block=50, queries=50, noise=float("inf"), informative_slots=5, noise_slots=50)
    return derive(AttentionModel(task))


def _states(ratios: tuple[float, ...], losses: Array) -> StoppingState:
    rates = {"eta_OV": 1.0, "eta_QK": np.array(ratios)[:, None]}
    return stopping_state(published_flow(), rates, loss=losses, time=True)


def _columns(ratios: tuple[float, ...], found: StoppingState) -> dict[str, Array]:
    """The states as arrays (ratios, losses), with ``tau``."""
    column = np.array(ratios)[:, None]
    t = np.zeros(found.loss.shape) if found.t is None else found.t
    late = np.zeros(found.loss.shape) if found.t_error_estimate is None else found.t_error_estimate
    return {
        "ratio": np.broadcast_to(column, t.shape),
        "loss": found.loss,
        "mu_OV": found.mu_OV,
        "mu_QK": found.mu_QK,
        "attention": found.attention,
        "t": t,
        "tau": t * np.minimum(1.0, column),
        "error_estimate": found.error_estimate,
        "t_error_estimate": late,
    }


def _loss(margin: Array) -> Array:
    return np.log1p((CLASSES - 1) * np.exp(-margin))


def curves(ratios: tuple[float, ...] = RATIOS, thresholds: int = _THRESHOLDS) -> dict[str, Array]:
    """States and times at stopping losses from 1 to 1e-4: arrays (ratios, thresholds)."""
    return _columns(ratios, _states(ratios, np.geomspace(1.0, _LAST, thresholds)))


def courses(ratios: tuple[float, ...] = RATIOS, points: int = _POINTS) -> dict[str, Array]:
    """States along time, to loss 1e-4: arrays (ratios, points), even in the margin late and in its logarithm early."""
    last = margin_at(_LAST, CLASSES)
    margins = np.unique(np.concatenate([np.geomspace(5e-5, last, points // 2), np.linspace(0.1, last, points // 2)]))
    losses = np.minimum(_loss(margins), np.nextafter(np.log(CLASSES), 0.0))
    losses[-1] = _LAST
    return _columns(ratios, _states(ratios, losses))


def halfway(course: Mapping[str, Array]) -> dict[str, Array]:
    """States at half of the final time, by secants in the plane of the margin and log time: arrays (ratios,)."""
    ratios = tuple(float(x) for x in course["ratio"][:, 0])
    wanted = np.log(course["t"][:, -1] / 2)
    grid = margin_at(course["loss"][0], CLASSES)
    x = np.array([np.interp(w, np.log(t), grid) for w, t in zip(wanted, course["t"], strict=True)])
    before, level = x - 1e-3, np.zeros_like(x)
    known = np.log(_at(ratios, before)["t"])
    for _ in range(4):
        level = np.log(_at(ratios, x)["t"])
        flat = level == known
        step = np.where(flat, 0.0, (level - wanted) * (x - before) / np.where(flat, 1.0, level - known))
        before, known, x = x, level, x - step
    return _at(ratios, x)


def _at(ratios: tuple[float, ...], margins: Array) -> dict[str, Array]:
    """The state of each ratio at a margin of its own."""
    found = _columns(ratios, _states(ratios, _loss(margins)[:, None]))
    return {name: values[:, 0] for name, values in found.items()}


def _draw_row(axes: Any, data: Mapping[str, Array], x: str, last: tuple[str, str, str]) -> list[Any]:
    handles = []
    count = len(data["ratio"])
    widths = np.linspace(2.4, 1.2, count)
    for i, color in enumerate(ordered_colors(count)):
        for axis, (name, _, _) in zip(axes, (*_PANELS, last), strict=True):
            (curve,) = axis.plot(data[x][i], data[name][i], color=color, linewidth=widths[i])
        handles.append(curve)
    for axis, (_, label, scale) in zip(axes, (*_PANELS, last), strict=True):
        axis.set(xscale="log", yscale=scale)
        axis.set_title(label, fontsize=9)
        _decades(axis, scale)
    return handles


def _decades(axis: Axes, scale: str) -> None:
    """Few labels on small panels."""
    from matplotlib.ticker import LogLocator, NullLocator

    axis.xaxis.set_major_locator(LogLocator(numticks=4))
    axis.xaxis.set_minor_locator(NullLocator())
    if scale == "log":
        axis.yaxis.set_major_locator(LogLocator(numticks=5))
        axis.yaxis.set_minor_locator(NullLocator())
    else:
        axis.locator_params(axis="y", nbins=4)


def _picture(stops: Mapping[str, Array], runs: Mapping[str, Array]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(PAGE, 3.7), layout="constrained")
    axes = figure.subplots(2, 4)
    handles = _draw_row(axes[0], runs, "tau", ("loss", "loss", "log"))
    _draw_row(axes[1], stops, "loss", ("tau", r"$\tau$ to reach the loss", "log"))
    for axis in axes[0]:
        axis.set(xlabel=_TAU, xlim=(10.0, 1.5 * float(runs["tau"].max())))
        axis.xaxis.label.set_fontsize(8)
    for axis in axes[1]:
        axis.set(xlabel="stopping loss", xlim=(1.3, _LAST / 1.3))
        axis.xaxis.label.set_fontsize(8)
    labels = [f"{r:g}" for r in stops["ratio"][:, 0]]
    title = r"ratio of the rates $\eta_{\mathrm{QK}}/\eta_{\mathrm{OV}}$"
    figure.legend(
        handles, labels, title=title, title_fontsize=8, loc="outside lower center", ncols=len(labels), frameon=False
    )
    return figure


def _row(data: Mapping[str, Array], i: int) -> dict[str, float]:
    return {name: float(data[name][i]) for name in ("t", "tau", "mu_OV", "mu_QK", "attention", "loss")}


def draw(request: Request) -> Drawing:
    """Draw time courses above stopping curves; a quick version has three ratios and fewer points."""
    ratios = RATIOS[::2] if request.quick else RATIOS
    stops = curves(ratios, 12 if request.quick else _THRESHOLDS)
    runs = courses(ratios, 40 if request.quick else _POINTS)
    half = halfway(runs)
    end = {name: values[:, -1] for name, values in runs.items()}
    rows: list[dict[str, Any]] = [
        {"ratio": r, "end": _row(end, i), "halfway": _row(half, i)} for i, r in enumerate(ratios)
    ]
    errors = {name: float(max(stops[name].max(), runs[name].max())) for name in ("error_estimate", "t_error_estimate")}
    lines = tuple(
        f"ratio {row['ratio']:g}: tau {row['end']['tau']:.4g}, mu_OV {row['end']['mu_OV']:.3f}, "
        f"mu_QK {row['end']['mu_QK']:.3f}, attention {row['end']['attention']:.3f} at loss {_LAST:g}"
        for row in rows
    )
    tables = {"": _flat(stops), "courses": _flat(runs)}
    return Drawing(_picture(stops, runs), tables, {"rows": rows, **errors}, lines)


def _flat(data: Mapping[str, Array]) -> dict[str, Array]:
    return {name: values.ravel() for name, values in data.items()}
