"""Figure ``fig2``: attention on the informative tokens against the probability of the right next token, after training.

Each panel is a parameterization or a ratio of the learning rates; a cell holds the percentage of fresh sequences of all
seeds. Source: arXiv 2608.06776, Fig. 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from numerics.figures.drawing import Drawing, Request
from numerics.figures.style import PAGE
from numerics.training.experiments import BINS, Heatmap, Setting, attention_heatmap
from numerics.training.processes import PROCESSES, Job, run_jobs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PANELS", "PUBLISHED", "draw"]

#: Percentages of the top row printed in the paper's notebooks.
PUBLISHED = {"FAFO": (0.1, 64.1, 35.7, 0.0, 0.0), "CACO ratio 5": (0.0, 0.0, 2.3, 76.8, 20.8)}
_TINY = 1e-6


@dataclass(frozen=True)
class _Panel:
    setting: Setting
    seeds: int


def _rates(ratio: float) -> _Panel:
    name = f"CACO ratio {ratio:g}"
    return _Panel(Setting(name, "collapsed", "collapsed", None, None, ratio, 128, 2000, 100, None), 5)


#: The panels: parameterizations at equal rates, then raised query-key rates.
PANELS = (
    _Panel(Setting("FAFO", "factorized", "factorized", start_ov=_TINY), 5),
    _Panel(Setting("FACO", "factorized", "collapsed", _TINY, _TINY), 1),
    _Panel(Setting("CAFO", "collapsed", "factorized"), 1),
    _rates(1.0),
    _rates(2.0),
    _rates(5.0),
)
#: The quick version takes rates this many times as large, and as much fewer epochs.
_FASTER = 40
_QUICK = ("FAFO", "CACO ratio 1", "CACO ratio 5")


def _jobs(request: Request) -> Iterator[Job[Heatmap]]:
    for panel in PANELS:
        if not request.quick:
            yield attention_heatmap, (panel.setting, range(request.seeds or panel.seeds)), {}
        elif panel.setting.name in _QUICK:
            yield attention_heatmap, (panel.setting.faster(_FASTER), range(request.seeds or 1)), {"fresh": 50}


def _panel(axis: Axes, name: str, found: Heatmap) -> Any:
    share = found.percent
    image = axis.imshow(share, origin="lower", cmap="Blues", vmin=0, vmax=100, extent=(0, 5, 0, 5), aspect="auto")
    for row, column in np.ndindex(*share.shape):
        value = share[row, column]
        if value >= 0.05:
            color = "white" if value > 55 else "black"
            axis.text(column + 0.5, row + 0.5, f"{value:.1f}", ha="center", va="center", fontsize=7, color=color)
    known = PUBLISHED.get(name)
    for column, printed in enumerate(known or ()):
        axis.text(column + 0.5, 3.82, f"({printed:g})", ha="center", va="center", fontsize=6.5, color="0.35")
    axis.set_title(name.replace("ratio", r"$\eta_{\mathrm{QK}}/\eta_{\mathrm{OV}} =$"))
    edges = [f"{b:g}" for b in BINS]
    axis.set_xticks(range(len(BINS)), edges)
    axis.set_yticks(range(len(BINS)), edges)
    axis.grid(False)
    axis.tick_params(length=2)
    return image


def _figure(names: list[str], maps: list[Heatmap]) -> Figure:
    from matplotlib.figure import Figure

    rows = (len(maps) + 2) // 3
    figure = Figure(figsize=(PAGE, 0.6 + 2.1 * rows), layout="constrained")
    axes = figure.subplots(rows, 3, sharex=True, sharey=True, squeeze=False)
    image: Any = None
    for axis, name, found in zip(axes.flat, names, maps, strict=True):
        image = _panel(axis, name, found)
    figure.supxlabel("attention on informative tokens (in brackets: published top row)", fontsize=9)
    figure.supylabel("probability of the next token", fontsize=9)
    figure.colorbar(image, ax=axes, label="percent of sequences", shrink=0.8, pad=0.02)
    return figure


def _table(names: list[str], maps: list[Heatmap]) -> dict[str, list[Any]]:
    table: dict[str, list[Any]] = {k: [] for k in ("panel", "attention_from", "probability_from", "percent")}
    for name, found in zip(names, maps, strict=True):
        for row, column in np.ndindex(*found.percent.shape):
            values = (name, BINS[column], BINS[row], float(found.percent[row, column]))
            for key, value in zip(table, values, strict=True):
                table[key].append(value)
    return table


def _words(name: str, found: Heatmap, compare: bool) -> str:
    top = "  ".join(f"{x:.1f}" for x in found.percent[-1])
    taken = f"{found.epochs.min()}" + (f"-{found.epochs.max()}" if np.ptp(found.epochs) else "")
    text = f"{name}: top row {top}; {taken} epochs, loss {found.loss.mean():.2g}"
    if len(found.seeds) > 1:
        text += f"; {len(found.seeds)} seeds within {np.ptp(found.seeds[:, -1], axis=0).max():.1f} points"
    if compare and name in PUBLISHED:
        text += f"; largest difference from the published row {difference(name, found):.1f} points"
    return text


def difference(name: str, found: Heatmap) -> float:
    """Largest difference from the published top row, in percentage points."""
    return float(np.abs(found.percent[-1] - np.array(PUBLISHED[name])).max())


def draw(request: Request) -> Drawing:
    """Draw the paper's heatmaps: four parameterizations and raised query-key rates.

    A quick version has three panels, one seed, rates 40 times as large and as much fewer epochs.
    """
    jobs = list(_jobs(request))
    names = [p.setting.name for p in PANELS if not request.quick or p.setting.name in _QUICK]
    tell = request.progress

    def report(done: int) -> None:
        if tell is not None:
            tell(done, len(jobs), names[min(done, len(names) - 1)])

    maps = run_jobs(jobs, 1 if request.quick else PROCESSES, report)
    found = dict(zip(names, maps, strict=True))
    facts = {
        "top_row_percent": {n: m.percent[-1].tolist() for n, m in found.items()},
        "top_row_of_every_seed": {n: m.seeds[:, -1].tolist() for n, m in found.items()},
        "epochs": {n: m.epochs.tolist() for n, m in found.items()},
        "largest_difference": {n: difference(n, m) for n, m in found.items() if n in PUBLISHED},
    }
    lines = tuple(_words(n, m, not request.quick) for n, m in found.items())
    return Drawing(_figure(names, maps), {"": _table(names, maps)}, facts, lines)
