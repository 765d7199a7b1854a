"""The phase portrait of the report: closed forms of the flows as JavaScript, and the controls that feed them.

For each parameterization and noise, three kernels: the flow ``(mu_OV, mu_QK) -> velocities, loss, attention``; the
first integral ``(mu_OV, mu_QK) -> x, y, slope``, constant ``y - slope x``; and ``mu_OV`` at a loss and ``mu_QK``. For
each form of output-value one more: ``mu_OV`` from ``x``.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from sympy import Symbol, oo, solve

from numerics.kernels import Kernel, compile_kernel
from numerics.report.plain import plain
from theory.flow import ReducedFlow, derive
from theory.integrals import first_integral
from theory.model import PARAMETERIZATIONS, AttentionModel
from theory.registry import find
from theory.symbols import K, M, N, b, eta_OV, eta_QK, gamma, m, mu_OV, mu_QK, n
from theory.task import TokenTask

__all__ = ["NOISE", "flow_of", "kernels", "portrait_section"]

#: Choices of noise: name in the page, size of the noise vocabulary.
NOISE = {"finite": N, "infinite": oo}
_LOSS, _X = Symbol("L", positive=True), Symbol("x", positive=True)
_PARAMETERS = (M, b, K, N, m, n, gamma, eta_OV, eta_QK)

#: Sliders: name, label, least, largest, step, start, and whether the scale is logarithmic.
_SLIDERS = (
    ("ratio", "ratio of the rates r = eta_QK/eta_OV", -1, 4, 0.05, 1, True),
    ("M", "classes M", 2, 50, 1, 5, False),
    ("b", "tokens per class b", 1, 20, 1, 2, False),
    ("K", "query tokens K", 1, 20, 1, 2, False),
    ("N", "noise tokens N", 1, 200, 1, 20, False),
    ("m", "informative slots m", 1, 20, 1, 1, False),
    ("n", "noise slots n", 1, 50, 1, 9, False),
    ("gamma", "score scale gamma", -1, 0.5, 0.05, 0, True),
    ("L", "stopping loss L", -3, 0.3, 0.05, -1, True),
    ("v_0", "start of mu_OV, in % of the width", 0, 95, 1, 2, False),
    ("q_0", "start of mu_QK, in % of the height", 0, 95, 1, 2, False),
)
_MODELS = {
    "CACO": "both circuits collapsed",
    "CAFO": "output-value factorized",
    "FACO": "query-key factorized",
    "FAFO": "both circuits factorized",
}


@lru_cache(maxsize=8)
def flow_of(model: str, noise: str) -> ReducedFlow:
    """The derived flow of a parameterization, shared queries, symbolic sizes."""
    qk, ov = PARAMETERIZATIONS[model]
    return derive(AttentionModel(TokenTask(noise=NOISE[noise], score_scale=gamma), qk=qk, ov=ov))


def _stop(flow: ReducedFlow) -> Any:
    """``mu_OV`` where the loss is ``L``: the stated margin of the claim `stopping-state` over the attention."""
    margin = find("stopping-state").stated["alpha mu_OV"]
    return margin / flow.attention


def _inverse(x: Any) -> Any:
    """``mu_OV > 0`` from the coordinate ``x`` of the first integral."""
    positive = Symbol("v", positive=True)
    return next(s for s in solve(x.xreplace({mu_OV: positive}) - _X, positive) if s.is_positive)


@lru_cache(maxsize=2)
def kernels(backend: str = "javascript") -> dict[str, Kernel]:
    """The kernels of the portrait by name, such as ``CACO_finite_flow``.

    Source: claims `flow-collapsed`, `integral-caco` and those of the other parameterizations, `stopping-state`.
    """
    found = {}
    for model in PARAMETERIZATIONS:
        for noise in NOISE:
            flow = flow_of(model, noise)
            law = first_integral(flow, {"mu_OV": 1, "mu_QK": 1})
            name = f"{model}_{noise}"
            given = tuple(s for s in _PARAMETERS if s is not N or noise == "finite")
            states = (mu_OV, mu_QK, *given)
            found[f"{name}_flow"] = compile_kernel(flow, backend, args=states, name=f"{name}_flow")
            integral, names = [law.x, law.y, law.slope], ["x", "y", "slope"]
            found[f"{name}_integral"] = compile_kernel(integral, backend, states, names, f"{name}_integral")
            stop = (_LOSS, mu_QK, *given)
            found[f"{name}_stop"] = compile_kernel(_stop(flow), backend, args=stop, name=f"{name}_stop")
        found[f"{model}_inverse"] = compile_kernel(_inverse(law.x), backend, args=[_X], name=f"{model}_inverse")
    return found


def _script() -> str:
    """All kernels as one object of functions, each with the names of its arguments."""
    parts = [
        f"{json.dumps(name)}: [(() => {{\n{kernel.source}return {kernel.name};\n}})(), {json.dumps(kernel.arguments)}]"
        for name, kernel in kernels().items()
    ]
    return "const gradlineKernels = {\n" + ",\n".join(parts) + "\n};"


def _slider(name: str, label: str, least: float, largest: float, step: float, start: float, log: bool) -> str:
    return (
        f'<label for="set-{name}">{plain(label)}</label><input type="range" id="set-{name}" name="{name}" '
        f'min="{least:g}" max="{largest:g}" step="{step:g}" value="{start:g}" data-log="{int(log)}">'
        f'<output for="set-{name}" id="value-{name}"></output>'
    )


def portrait_section() -> str:
    """The section with picture, controls and kernels."""
    models = "".join(f'<option value="{k}">{k}: {v}</option>' for k, v in _MODELS.items())
    sliders = "".join(f'<div class="slider">{_slider(*s)}</div>' for s in _SLIDERS)
    return (
        '<section id="portrait" aria-labelledby="portrait-title">\n<h2 id="portrait-title">Phase portrait</h2>\n'
        "<p>Trajectories are level sets of the first integral, dashed lines the states of equal loss, arrows the "
        "direction of the velocity. They are drawn from the closed forms of the theory, in JavaScript generated "
        "from the same intermediate form as the NumPy kernels. Shared queries; the rate of output-value is 1. Tap or "
        "click the picture to choose a start.</p>\n"
        '<div class="portrait"><div class="picture"><svg id="portrait-picture" viewBox="0 0 640 480" role="img" '
        'aria-labelledby="portrait-title portrait-said"></svg>\n'
        '<p id="portrait-said" role="status" aria-live="polite"></p></div>\n'
        '<form id="portrait-controls" aria-label="Settings">'
        '<div class="slider"><label for="set-model">parameterization</label>'
        f'<select id="set-model">{models}</select></div>'
        '<div class="slider"><label for="set-noise">noise vocabulary</label><select id="set-noise">'
        '<option value="infinite">infinite, N = ∞</option><option value="finite">finite, N</option></select></div>'
        f'{sliders}<button type="reset" id="portrait-reset">Reset</button></form></div>\n'
        f"<script>\n{_script()}\n</script>\n</section>"
    )
