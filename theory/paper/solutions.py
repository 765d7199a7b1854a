"""Claims about closed forms: fixed attention, sensitivity to attention, stopping states, time along the curve.

Source: arXiv 2608.06776, fixed attention and stopping loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sympy import Abs, Ei, Gt, Integer, LambertW, Lt, Ne, Symbol, diff, exp, log, sqrt

from theory.paper.integrals import PHI, kappa
from theory.paper.lines import SOURCE, assumptions_of, trace_of
from theory.paper.settings import SETTINGS, D, has_line, setting_flow
from theory.registry import Obligation, Stated, published
from theory.symbols import M, alpha, b, eta_OV, eta_QK, gamma, m, mu_OV, mu_QK, n, t
from theory.trace import Assumption

mu_0 = Symbol("mu_0", real=True)
loss = Symbol("L", positive=True)
A = Symbol("A", real=True)


def _elapsed(mu: Any) -> Any:
    """``A(t)`` up to the time term: ``e^(alpha mu) + (M-1) alpha mu``."""
    return exp(alpha * mu) + (M - 1) * alpha * mu


def _fixed_collapsed(stated: Stated) -> Iterator[Obligation]:
    """The stated ``z = alpha mu`` solves ``e^z + (M-1) z = A``, whose left side increases and moves with ``A``
    in time.
    """
    velocity = setting_flow(SETTINGS[0]).compact["mu_OV"]
    speed = diff(_elapsed(mu_OV), mu_OV) * velocity
    yield Obligation("d/dt (e^z + (M-1) z) - dA/dt", speed - diff(stated["A"], t))
    yield Obligation("A at the start", stated["A"].xreplace({t: Integer(0)}) - _elapsed(mu_0))
    z = stated["alpha mu_OV"]
    yield Obligation("e^z + (M-1) z - A", exp(z) + (M - 1) * z - A)
    root = Symbol("z", real=True)
    yield Obligation("only one root: e^z + (M-1) z increases", diff(exp(root) + (M - 1) * root, root), "> 0")


def _fixed_factorized(stated: Stated) -> Iterator[Obligation]:
    for name, side in (("mu_0 > 0", 1), ("mu_0 < 0", -1)):
        condition = (Gt if side > 0 else Lt)(mu_OV, 0, evaluate=False)
        for setting in SETTINGS:
            velocity = setting_flow(setting, "CAFO").compact["mu_OV"]
            conserved = stated[name]
            drift = diff(conserved, mu_OV) * velocity + diff(conserved, t)
            yield Obligation(f"d/dt [{name}; {setting.label}]", drift, assumptions=(condition,))
            rises = side * diff(conserved, mu_OV) * mu_OV
            yield Obligation(f"one root on the branch [{name}; {setting.label}]", rises * side, "> 0", (condition,))


def _sensitivity(stated: Stated) -> Iterator[Obligation]:
    for setting in SETTINGS:
        derived = -diff(setting_flow(setting).line.loss, alpha)
        yield Obligation(f"-dL/dalpha [{setting.label}]", stated["-dL/dalpha"] - derived)


def margin_speed(code: str, setting: Any) -> Any:
    """``d(alpha mu_OV)/dt`` along the derived flow."""
    flow = setting_flow(setting, code)
    margin = flow.attention * mu_OV
    return sum((diff(margin, s) * flow.velocity[s] for s in flow.states), Integer(0))


def moving(flow: Any) -> tuple[Any, ...]:
    """The relations ``mu != 0`` of the balanced circuits of a flow."""
    pairs = (("OV", mu_OV), ("QK", mu_QK))
    return tuple(Ne(mu, 0, evaluate=False) for circuit, mu in pairs if flow.model.is_balanced(circuit))


def _stopping_state(stated: Stated) -> Iterator[Obligation]:
    """At ``alpha mu_OV = ell`` the loss is ``L``; the margin increases along every flow, so it is reached once."""
    for setting in SETTINGS:
        at_stop = setting_flow(setting).line.loss.xreplace({mu_OV: stated["alpha mu_OV"] / alpha})
        yield Obligation(f"loss at the stopping margin [{setting.label}]", at_stop - loss)
    for code in ("CACO", "CAFO", "FACO", "FAFO"):
        for setting in SETTINGS:
            if has_line(setting, code):
                conditions = moving(setting_flow(setting, code))
                speed = margin_speed(code, setting)
                yield Obligation(f"d(alpha mu_OV)/dt [{code}; {setting.label}]", speed, "> 0", conditions)


def _time_on_curve(stated: Stated) -> Iterator[Obligation]:
    """``dt/dmu_QK`` on the curve times ``dmu_QK/dt`` is 1; ``mu_OV^2/mu_QK`` has a limit at the origin."""
    for setting in SETTINGS:
        flow = setting_flow(setting)
        key = f"[{setting.label}]"
        curve = stated[f"mu_OV {key}"]
        integrand = stated[f"dt/dmu_QK {key}"].xreplace({alpha: flow.attention})
        speed = flow.velocity[mu_QK]
        yield Obligation(f"dt/dmu_QK times dmu_QK/dt {key}", integrand * speed - 1, assumptions=(Gt(mu_OV, 0),))
        slope = diff(curve, mu_QK) * flow.velocity[mu_QK] - flow.velocity[mu_OV]
        on_curve = slope.xreplace({mu_OV: curve})
        yield Obligation(f"the curve from the origin {key}", on_curve, assumptions=(Gt(mu_QK, 0),))
        yield Obligation(f"the branch mu_OV > 0 {key}", curve, "> 0", (Gt(mu_QK, 0),))
        square = curve**2
        yield Obligation(f"the curve starts at the origin {key}", square.xreplace({mu_QK: Integer(0)}))
        at_zero = diff(square, mu_QK).xreplace({mu_QK: Integer(0)})
        yield Obligation(f"mu_OV^2/mu_QK at the origin {key}", stated[f"limit {key}"] - at_zero)
        yield Obligation(f"which is positive, so mu_QK = s^2 is smooth {key}", at_zero, "> 0")


def _time_formulas() -> dict[str, Any]:
    formulas: dict[str, Any] = {}
    for setting in SETTINGS:
        key = f"[{setting.label}]"
        speed = eta_QK * gamma * (M - 1) * alpha * (1 - alpha) * mu_OV / (setting.norm2_QK * D)
        rise = PHI - PHI.xreplace({mu_QK: Integer(0)})
        formulas[f"dt/dmu_QK {key}"] = 1 / speed
        formulas[f"mu_OV {key}"] = sqrt(2 * rise / (kappa(setting) * gamma))
        formulas[f"limit {key}"] = 2 * (m + n) / (n * kappa(setting) * gamma)
    return formulas


CLAIMS = (
    published(
        "fixed-attention-collapsed",
        "Fixed attention, collapsed output-value",
        "alpha mu_OV(t) = A/(M-1) - W_0(e^(A/(M-1))/(M-1)), A = alpha^2 eta_OV t/b + e^(alpha mu_0) + (M-1) alpha mu_0",
        {
            "alpha mu_OV": A / (M - 1) - LambertW(exp(A / (M - 1)) / (M - 1)),
            "A": alpha**2 * eta_OV * t / b + exp(alpha * mu_0) + (M - 1) * alpha * mu_0,
        },
        _fixed_collapsed,
        SOURCE,
        lambda: (*assumptions_of(), Assumption("the attention alpha is held fixed")),
        trace_of,
        ("fixed", "collapsed"),
    ),
    published(
        "fixed-attention-factorized",
        "Fixed attention, balanced factorized output-value",
        "Ei(alpha mu) + (M-1) log|mu| - 2 alpha eta_OV t/sqrt(b) is constant for mu_0 > 0; "
        "the sign of t flips for mu_0 < 0",
        {
            "mu_0 > 0": Ei(alpha * mu_OV) + (M - 1) * log(Abs(mu_OV)) - 2 * alpha * eta_OV * t / sqrt(b),
            "mu_0 < 0": Ei(alpha * mu_OV) + (M - 1) * log(Abs(mu_OV)) + 2 * alpha * eta_OV * t / sqrt(b),
        },
        _fixed_factorized,
        SOURCE,
        lambda: (*assumptions_of(SETTINGS[0], "CAFO"), Assumption("the attention alpha is held fixed")),
        lambda: trace_of(SETTINGS[0], "CAFO"),
        ("fixed", "factorized"),
    ),
    published(
        "attention-sensitivity",
        "Sensitivity of the loss to attention",
        "-dL/dalpha = (M-1) mu_OV/(e^(alpha mu_OV) + M - 1) at fixed mu_OV",
        {"-dL/dalpha": (M - 1) * mu_OV / (exp(alpha * mu_OV) + M - 1)},
        _sensitivity,
        SOURCE,
        assumptions_of,
        trace_of,
        ("sensitivity",),
    ),
    published(
        "stopping-state",
        "The state at a given loss",
        "loss L is reached where alpha mu_OV = log((M-1)/(e^L - 1)); alpha mu_OV increases along every flow, so once",
        {"alpha mu_OV": log((M - 1) / (exp(loss) - 1))},
        _stopping_state,
        SOURCE,
        lambda: (*assumptions_of(), Assumption("balanced circuits start away from 0")),
        trace_of,
        ("stopping",),
    ),
    published(
        "time-on-curve",
        "Time along the curve is a quadrature",
        "CACO from 0: t is the integral of ||E_QK||^2 D/(eta_QK gamma (M-1) alpha (1-alpha) mu_OV) over mu_QK, "
        "with mu_OV = sqrt(2 (Phi(mu_QK) - Phi(0))/(kappa gamma)); mu_QK = s^2 makes the integrand smooth",
        _time_formulas(),
        _time_on_curve,
        SOURCE,
        lambda: (*assumptions_of(), Assumption("start at the origin, both circuits collapsed")),
        trace_of,
        ("time",),
    ),
)

__all__ = ["CLAIMS", "margin_speed", "moving"]
