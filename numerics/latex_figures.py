"""Vector figures for documents, from the theory alone: no training, no integration.

Stopping states close the reduced flow at a given loss; attention against loss shows what the ratio of the learning
rates does. Source: arXiv 2608.06776; claims `stopping-state`, `sharper-with-ratio`, `parameterization-order`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sympy import oo

from numerics.figures.style import MARKERS, figure_bytes, ordered_colors, styled
from theory.flow import derive
from theory.latex.documents import Figure
from theory.model import AttentionModel
from theory.task import TokenTask

__all__ = ["attention_figure"]

TASK = TokenTask(classes=20, block=50, queries=50, noise=oo, informative_slots=5, noise_slots=50)
RATIOS = (0.01, 0.1, 1.0, 10.0, 100.0)
LOSSES = np.geomspace(2.5, 1e-3, 80)
#: Both columns of a page, in inches.
_WIDTH = 6.75
_MODELS = (("CACO", "collapsed", 0.0), ("CAFO", "factorized", 0.05))


def attention_figure() -> Figure:
    """Attention on the informative slots against the loss, for five ratios, with collapsed and factorized output."""
    from matplotlib import figure as figures

    from numerics.stopping import stopping_state

    with styled():
        figure = figures.Figure(figsize=(_WIDTH, 2.3), layout="constrained")
        axes: Any = figure.subplots(1, len(_MODELS), sharey=True)
        for axis, (code, ov, start) in zip(axes, _MODELS, strict=True):
            flow = derive(AttentionModel(TASK, ov=ov))  # type: ignore[arg-type]
            for ratio, color, marker in zip(RATIOS, ordered_colors(len(RATIOS)), MARKERS, strict=False):
                rates = {"eta_OV": 1.0, "eta_QK": ratio}
                found = stopping_state(flow, rates, {"mu_OV": start, "mu_QK": 0.0}, loss=LOSSES)
                every = slice(len(MARKERS), None, 20)
                axis.plot(LOSSES, found.attention, color=color, linewidth=1.2)
                axis.plot(
                    LOSSES[every], found.attention[every], marker, color=color, markersize=3.2, label=f"{ratio:g}"
                )
            axis.set(title=code, xlabel="loss $L$", xscale="log")
            axis.invert_xaxis()
        axes[0].set_ylabel(r"attention $\alpha$")
        handles, labels = axes[0].get_legend_handles_labels()
        title = r"$\eta_{\mathrm{QK}}/\eta_{\mathrm{OV}}$"
        figure.legend(handles, labels, title=title, loc="outside right center", frameon=False, title_fontsize=8)
        content = figure_bytes(figure, Path("attention.pdf"))
    caption = (
        f"Attention on the informative slots as the loss falls, for ratios of the learning rates from {RATIOS[0]:g} to "
        f"{RATIOS[-1]:g}, from the first integrals: collapsed output-value circuit (CACO) and balanced factorized one "
        f"(CAFO), with {TASK.classes} classes, blocks of {TASK.block} tokens and $N=\\infty$."
    )
    return Figure("attention", caption, content)
