"""Figure ``fig3``: training under fixed attention, and the gradient flow of the orbit values over it.

Rows: the loss of every epoch; the difference quotient ``(L(alpha) - L(alpha + 0.005))/0.005``; the flow's distance from
the mean of the seeds. Bands and points are training, lines the flow, which knows no seed and no step.

Source: arXiv 2608.06776, Fig. 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from numerics.figures.drawing import Drawing, Request
from numerics.figures.style import PAGE, ordered_colors
from numerics.training.data import SequenceData
from numerics.training.experiments import ALPHAS, FixedCurves, fixed_curves, marked_epochs
from numerics.training.orbit_flow import OrbitRun, SampledLoss, orbit_training_flow
from numerics.training.processes import PROCESSES, Job, run_jobs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PUBLISHED", "draw"]

Array = NDArray[np.float64]
Kind = Literal["collapsed", "factorized"]

#: Final losses printed in the paper's notebooks, at the first three alphas.
PUBLISHED: dict[Kind, tuple[float, ...]] = {
    "collapsed": (0.5980, 0.15818, 0.064472),
    "factorized": (0.003792, 0.0014789, 0.00089229),
}
_SEEDS = 3
#: From this epoch on the flow is compared with training.
_FROM = 10
_SAMPLE_SEED = 0


@dataclass(frozen=True)
class _Size:
    epochs: int
    steps: int
    fresh: int
    sample: int


_FULL = _Size(500, 250, 1000, 16384)
_QUICK = _Size(40, 80, 20, 1024)


@dataclass(frozen=True)
class _Panel:
    """One parameterization: training (seeds, ...) and the flow of every ``alpha``.

    Training losses ``loss`` (seeds, epochs, A) are means over an epoch and compared with the flow in its middle.
    """

    ov: Kind
    loss: Array
    marks: NDArray[np.int64]
    quotient: Array
    final: Array
    flows: tuple[OrbitRun, ...]

    def flow(self, name: str, at: Any) -> Array:
        """A column of the flow (T, A) at epochs (T,)."""
        return np.stack([getattr(f, name)[np.searchsorted(f.epoch, at)] for f in self.flows], axis=1)

    @property
    def middles(self) -> Array:
        """Middles of the marked epochs."""
        return self.marks.astype(np.float64) - 0.5

    def distance(self) -> Array:
        """Flow over the mean of the seeds, minus 1, at the marked epochs (T, A)."""
        mean = self.loss.mean(0)[self.marks - 1]
        found: Array = self.flow("loss", self.middles) / mean - 1
        return found


def _jobs(size: _Size, seeds: int) -> Iterator[Job[Any]]:
    for seed in range(seeds):
        for ov in ("factorized", "collapsed"):
            yield fixed_curves, (ov, seed), {"epochs": size.epochs, "steps": size.steps, "fresh": size.fresh}


def _flow(ov: Kind, alpha: float, marks: Any, size: _Size) -> OrbitRun:
    loss = SampledLoss(SequenceData(swapped=True), alpha, size.sample, _SAMPLE_SEED, bias=ov == "collapsed")
    at = np.union1d(marks, marks - 0.5)
    return orbit_training_flow(loss, ov, at, steps=size.steps)


def _panels(request: Request, size: _Size) -> list[_Panel]:
    seeds = request.seeds or (1 if request.quick else _SEEDS)
    kinds: tuple[Kind, Kind] = ("collapsed", "factorized")
    marks = marked_epochs(size.epochs)
    training = list(_jobs(size, seeds))
    flows: list[Job[Any]] = [(_flow, (ov, alpha, marks, size), {}) for ov in kinds for alpha in ALPHAS]
    total, tell = len(training) + len(flows), request.progress

    def report(done: int) -> None:
        if tell is not None:
            tell(done, total, "training" if done < len(training) else "orbit flow")

    found: list[Any] = run_jobs([*training, *flows], PROCESSES, report)
    panels = []
    for place, ov in enumerate(kinds):
        own: list[FixedCurves] = [c for c, job in zip(found, training, strict=False) if job[1][0] == ov]
        first = len(training) + place * len(ALPHAS)
        loss, quotient, final = (np.stack([getattr(c, name) for c in own]) for name in ("loss", "quotient", "final"))
        panels.append(_Panel(ov, loss, marks, quotient, final, tuple(found[first : first + len(ALPHAS)])))
    return panels


def _column(axes: Any, panel: _Panel) -> None:
    from matplotlib.ticker import LogFormatter

    colors = ordered_colors(len(ALPHAS))
    epochs = np.arange(1, panel.loss.shape[1] + 1) - 0.5
    flow = {name: panel.flow(name, panel.middles if name == "loss" else panel.marks) for name in ("loss", "quotient")}
    distance = panel.distance()
    for i, (alpha, color) in enumerate(zip(ALPHAS, colors, strict=True)):
        axes[0].fill_between(epochs, panel.loss[..., i].min(0), panel.loss[..., i].max(0), color=color, alpha=0.3, lw=0)
        mean = panel.loss[..., i].mean(0)[panel.marks - 1]
        axes[0].plot(panel.middles, mean, "o", color=color, markersize=2.4, zorder=3)
        axes[0].plot(panel.middles, flow["loss"][:, i], color=color, linewidth=1.1, label=f"{alpha:g}")
        seen = panel.quotient[..., i]
        axes[1].fill_between(panel.marks, seen.min(0), seen.max(0), color=color, alpha=0.3, lw=0)
        axes[1].plot(panel.marks, seen.mean(0), "o", color=color, markersize=2.4, zorder=3)
        axes[1].plot(panel.marks, flow["quotient"][:, i], color=color, linewidth=1.1)
        axes[2].plot(panel.middles, 100 * distance[:, i], color=color, linewidth=1.1)
    axes[0].set(title=f"{panel.ov} output", yscale="log")
    axes[0].yaxis.set_major_formatter("{x:g}")
    axes[0].yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1.5, 0.5)))
    _signed_axis(axes[1], 0.01, [-0.1, -0.01, 0, 0.01, 0.1, 1], "{:g}")
    axes[2].set(xlabel="epoch", xscale="log")
    axes[2].xaxis.set_major_formatter("{x:g}")
    bound = 2 if panel.ov == "collapsed" else 3
    axes[2].axhspan(-bound, bound, color="0.5", alpha=0.15, lw=0)
    axes[2].set_ylim(-100, 100)
    _signed_axis(axes[2], bound, [-100, -10, -bound, 0, bound, 10, 100], "{:+g}%")


def _signed_axis(axis: Axes, linear: float, ticks: list[float], words: str) -> None:
    """Decades on both sides of 0, linear between."""
    axis.set_yscale("symlog", linthresh=linear, linscale=0.8)
    axis.margins(y=0.08)
    axis.axhline(0, color="0.4", linewidth=0.6)
    low, high = axis.get_ylim()
    shown = [t for t in ticks if low <= t <= high]
    axis.set_yticks(shown, [words.format(t) if t else "0" for t in shown])
    axis.minorticks_off()
    axis.set_ylim(low, high)


def _figure(panels: list[_Panel]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(PAGE, 6.2), layout="constrained")
    axes = figure.subplots(3, 2, sharex=True, height_ratios=(1.2, 1, 0.8))
    for column, panel in zip(axes.T, panels, strict=True):
        _column(column, panel)
    axes[0, 0].set_ylabel("loss")
    axes[1, 0].set_ylabel(r"$-\Delta L/\Delta\alpha$")
    axes[2, 0].set_ylabel("flow / training $-$ 1")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    seeds = panels[0].loss.shape[0]
    words = "1 seed" if seeds == 1 else f"mean and range of {seeds} seeds"
    title = rf"points: training, {words}; lines: gradient flow of the orbit values; attention $\alpha =$"
    options: dict[str, Any] = {"loc": "outside lower center", "ncols": len(handles), "frameon": False}
    figure.legend(handles, labels, title=title, title_fontsize=8, **options)
    return figure


def _curves_table(panels: list[_Panel]) -> dict[str, list[Any]]:
    table: dict[str, list[Any]] = {k: [] for k in ("output", "alpha", "epoch", "loss_mean", "loss_min", "loss_max")}
    table |= {k: [] for k in ("loss_flow", "quotient_mean", "quotient_min", "quotient_max", "quotient_flow")}
    for panel in panels:
        flow = panel.flow("loss", panel.middles), panel.flow("quotient", panel.marks)
        for i, alpha in enumerate(ALPHAS):
            loss, seen = panel.loss[:, panel.marks - 1, i], panel.quotient[..., i]
            table["output"] += [panel.ov] * panel.marks.size
            table["alpha"] += [alpha] * panel.marks.size
            table["epoch"] += panel.marks.tolist()
            for name, values in (("loss", loss), ("quotient", seen)):
                for word, reduce in (("mean", np.mean), ("min", np.min), ("max", np.max)):
                    table[f"{name}_{word}"] += reduce(values, axis=0).tolist()
            table["loss_flow"] += flow[0][:, i].tolist()
            table["quotient_flow"] += flow[1][:, i].tolist()
    return table


def _final_table(panels: list[_Panel], full: bool) -> dict[str, list[Any]]:
    names = ("output", "alpha", "seeds", "final", "spread", "flow", "flow_error", "published")
    table: dict[str, list[Any]] = {k: [] for k in names}
    for panel in panels:
        for i, (alpha, flow) in enumerate(zip(ALPHAS, panel.flows, strict=True)):
            known = full and i < len(PUBLISHED[panel.ov])
            published = PUBLISHED[panel.ov][i] if known else float("nan")
            own = panel.final[:, i]
            training = panel.ov, alpha, own.size, float(own.mean()), float(np.ptp(own))
            row = (*training, float(flow.loss[-1]), float(flow.error[-1]), published)
            for name, value in zip(names, row, strict=True):
                table[name].append(value)
    return table


def _words(panels: list[_Panel], final: dict[str, list[Any]]) -> Iterator[str]:
    for ov, alpha, mean, spread, flow, published in zip(
        *(final[k] for k in ("output", "alpha", "final", "spread", "flow", "published")), strict=True
    ):
        known = f", published {published:g} ({mean / published - 1:+.1%})" if not math.isnan(published) else ""
        yield f"{ov}, alpha {alpha:g}: final loss {mean:.5g} (range {spread:.1g}), flow {flow:.5g}{known}"
    for panel in panels:
        later = np.abs(panel.distance()[panel.marks >= _FROM])
        yield (
            f"{panel.ov}: the flow is within {later.max():.1%} of training from epoch {_FROM} on, "
            f"{later[-1].max():.1%} at the end"
        )


def draw(request: Request) -> Drawing:
    """Draw the paper's figure at its size, 500 epochs of 250 steps, with three seeds.

    A quick version has one seed and 40 epochs of 80 steps.
    """
    size = _QUICK if request.quick else _FULL
    panels = _panels(request, size)
    final = _final_table(panels, not request.quick)
    facts = {
        "final": final,
        "sample": size.sample,
        "largest_distance": {p.ov: float(np.abs(p.distance()[p.marks >= _FROM]).max()) for p in panels},
        "distance_at_the_end": {p.ov: float(np.abs(p.distance()[-1]).max()) for p in panels},
    }
    note = (
        f"flow: loss of a fixed sample of {size.sample} sequences, standard error of the final loss up to "
        f"{max(e / f for e, f in zip(final['flow_error'], final['flow'], strict=True)):.1%}; factorized from "
        "U U^T = V V^T = I/3, the mean over starts"
    )
    tables = {"": _curves_table(panels), "final": final}
    return Drawing(_figure(panels), tables, facts, (*_words(panels, final), note))
