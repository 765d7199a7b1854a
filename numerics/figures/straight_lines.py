"""Figure ``line``: in the coordinates of the first integral every run of the full model is a straight line.

    y(mu_QK) - y(q_0) = slope (x(mu_OV) - x(v_0))

Lines are the first integral, drawn from the start with the derived slope; points are the full model, every entry of it
trained. Source: arXiv 2608.06776, conserved quantities; claims `integral-caco`, `integral-cafo`, `integral-faco`,
`integral-fafo`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from numerics.figures.drawing import Drawing, Request
from numerics.figures.style import CATEGORIES, MARKERS, PAGE
from numerics.kernels import compile_kernel
from theory.flow import derive
from theory.integrals import first_integral
from theory.model import PARAMETERIZATIONS, AttentionModel
from theory.task import TokenTask

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["RATIOS", "START", "TASK", "draw"]

Array = NDArray[np.float64]

TASK = TokenTask(classes=3, block=2, queries=2, noise=2, informative_slots=2, noise_slots=2)
START = {"mu_OV": 0.2, "mu_QK": 0.2}
RATIOS = (0.3, 1.0, 3.0)
_LOSS = 0.05
_POINTS = 12


@dataclass(frozen=True)
class _Run:
    """Points of the full model in the straightened coordinates, from the start, and the slope of the theory."""

    code: str
    ratio: float
    x: Array
    y: Array
    slope: float
    distance: float

    @property
    def deviation(self) -> float:
        """Largest distance from the line in ``y``, as a share of the rise."""
        return float(np.abs(self.y - self.slope * self.x).max() / self.y[-1])


def _end(flow: Any, rates: dict[str, float]) -> float:
    from numerics.stopping import stopping_state

    found = stopping_state(flow, rates, START, loss=_LOSS, time=True).t
    return float(found) if found is not None else 0.0


def _runs(code: str, ratios: tuple[float, ...]) -> Iterator[_Run]:
    from numerics.matrix_model import MatrixModel

    qk, ov = PARAMETERIZATIONS[code]
    flow = derive(AttentionModel(TASK, qk=qk, ov=ov))
    law = first_integral(flow)
    at = compile_kernel([law.x, law.y, law.slope], args=[*flow.states, *flow.parameters])
    for ratio in ratios:
        rates = {"eta_OV": 1.0, "eta_QK": ratio}
        run = MatrixModel(TASK, qk=qk, ov=ov, start=START).gradient_flow(
            rates, np.linspace(0, _end(flow, rates), _POINTS)
        )
        found = at(run.mu_OV, run.mu_QK, *(rates[p.name] for p in flow.parameters))
        x, y, slope = (np.asarray(v, dtype=np.float64) for v in found)
        off = max(float(np.max(run.distance_OV)), float(np.max(run.distance_QK)))
        yield _Run(code, ratio, x - x[0], y - y[0], float(slope.flat[0]), off)


def _panel(axis: Axes, runs: list[_Run]) -> None:
    for run, color, marker in zip(runs, CATEGORIES, MARKERS, strict=False):
        line = np.array([0.0, run.x[-1]])
        axis.plot(line, run.slope * line, color=color, linewidth=1.3)
        axis.plot(run.x, run.y, marker, color=color, markersize=3.6, label=f"{run.ratio:g}", clip_on=False, zorder=3)
    axis.set(title=runs[0].code, xlabel=r"$x(\mu_{\mathrm{OV}}) - x_0$")
    axis.set_xlim(left=0)
    axis.set_ylim(bottom=0)
    axis.locator_params(nbins=4)


def _all_runs(ratios: tuple[float, ...], progress: Callable[..., None] | None) -> list[list[_Run]]:
    found = []
    for i, code in enumerate(PARAMETERIZATIONS):
        if progress is not None:
            progress(i, len(PARAMETERIZATIONS), code)
        found.append(list(_runs(code, ratios)))
    return found


def draw(request: Request) -> Drawing:
    """Draw the four parameterizations at three ratios of the learning rates; a quick version has two ratios."""
    from matplotlib.figure import Figure

    panels = _all_runs(RATIOS[::2] if request.quick else RATIOS, request.progress)
    figure = Figure(figsize=(PAGE, 2.2), layout="constrained")
    axes = figure.subplots(1, len(panels))
    for axis, runs in zip(axes, panels, strict=True):
        _panel(axis, runs)
    axes[0].set_ylabel(r"$y(\mu_{\mathrm{QK}}) - y_0$")
    title = r"points: full model; lines: first integral; $\eta_{\mathrm{QK}}/\eta_{\mathrm{OV}} =$"
    handles, labels = axes[0].get_legend_handles_labels()
    first = figure.legend(
        handles, labels, title=title, loc="outside lower center", ncols=len(handles), frameon=False, title_fontsize=8
    )
    first.set_in_layout(True)
    every = [run for runs in panels for run in runs]
    worst = max(run.deviation for run in every)
    table = {
        "model": [r.code for r in every for _ in r.x],
        "ratio": [r.ratio for r in every for _ in r.x],
        "x": np.concatenate([r.x for r in every]),
        "y": np.concatenate([r.y for r in every]),
        "y_line": np.concatenate([r.slope * r.x for r in every]),
    }
    facts = {"largest_deviation_of_rise": worst, "distance_from_line": max(r.distance for r in every)}
    return Drawing(figure, {"": table}, facts, (f"largest distance from a line: {worst:.1e} of its rise",))
