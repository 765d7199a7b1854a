"""The README picture: in the coordinates x and y of the first integral each run of the full model is a straight line.

Run with `python docs/images/line.py`; it writes line.png beside itself.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import numerics
from numerics.kernels import compile_kernel
from theory import AttentionModel, TokenTask, derive, first_integral
from theory.model import PARAMETERIZATIONS

TASK = TokenTask(classes=3, block=2, queries=2, noise=2, informative_slots=2, noise_slots=2)
START = {"mu_OV": 0.2, "mu_QK": 0.2}
RATIOS = (0.3, 1.0, 3.0)
COLORS = ("#0072B2", "#D55E00", "#009E73")
MARKERS = ("o", "s", "^")


def main() -> None:
    """Draw the four parameterizations at three ratios of the learning rates."""
    plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
    figure, axes = plt.subplots(1, 4, figsize=(13, 3.6), layout="constrained")
    for axis, (code, (qk, ov)) in zip(axes, PARAMETERIZATIONS.items(), strict=True):
        flow = derive(AttentionModel(TASK, qk=qk, ov=ov))
        law = first_integral(flow)
        parameters = list(flow.parameters)
        at = compile_kernel([law.x, law.y, law.slope], args=[*flow.states, *parameters])
        for ratio, color, marker in zip(RATIOS, COLORS, MARKERS, strict=True):
            rates = {"eta_OV": 1.0, "eta_QK": ratio}
            end = numerics.simulate(flow, rates, start=START, until_loss=0.05).end.t
            run = numerics.MatrixModel(TASK, qk=qk, ov=ov, start=START).gradient_flow(rates, np.linspace(0, end, 12))
            values = [rates[p.name] for p in parameters]
            x, y, slope = (np.asarray(v) for v in at(run.mu_OV, run.mu_QK, *values))
            line = np.array([0, x[-1] - x[0]])
            axis.plot(line, slope.flat[0] * line, color=color, linewidth=1.4)
            axis.plot(x - x[0], y - y[0], marker, color=color, markersize=6, label=f"{ratio:g}")
        axis.set_title(code)
        axis.set_xlabel(r"$x(\mu_{\mathrm{OV}})$")
    axes[0].set_ylabel(r"$y(\mu_{\mathrm{QK}})$")
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        loc="outside right center",
        frameon=False,
        title=r"$\eta_{\mathrm{QK}}/\eta_{\mathrm{OV}}$",
    )
    figure.savefig(Path(__file__).with_name("line.png"), dpi=110)


if __name__ == "__main__":
    main()
