"""Claims about what the theory says: sharper attention with the ratio, monotone attention, early and late
times, parameterizations.

Inequalities are proved by the sign of exact expressions, limits by two-sided bounds whose ratio tends to 1.

Source: arXiv 2608.06776, consequences of the reduced dynamics.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sympy import Dummy, Gt, Integer, Lt, Symbol, diff, exp, log, sqrt

from theory.integrals import first_integral
from theory.paper.integrals import PHI, kappa
from theory.paper.lines import SOURCE, assumptions_of, trace_of
from theory.paper.settings import SETTINGS, SIGMA_OV, has_line, setting_flow
from theory.paper.solutions import moving
from theory.registry import Obligation, Stated, published
from theory.symbols import M, alpha, b, eta_OV, eta_QK, gamma, m, mu_OV, mu_QK, n, t
from theory.trace import Assumption

CODES = ("CACO", "CAFO", "FACO", "FAFO")
v_0 = Symbol("v_0", positive=True)
_OUTPUT_AHEAD = Gt(mu_OV, 0, evaluate=False)


def _along(value: Any, flow: Any) -> Any:
    """Time derivative along a flow."""
    return sum((diff(value, s) * flow.velocity[s] for s in flow.states), Integer(0))


def _flows() -> Iterator[tuple[str, Any, Any, tuple[Any, ...]]]:
    for code in CODES:
        for setting in SETTINGS:
            if has_line(setting, code):
                flow = setting_flow(setting, code)
                yield f"{code}; {setting.label}", flow, setting, (_OUTPUT_AHEAD, *moving(flow))


def _attention_monotone(stated: Stated) -> Iterator[Obligation]:
    for label, flow, _setting, conditions in _flows():
        yield Obligation(
            f"dalpha/dt [{label}]", stated["sign dalpha/dt"] * _along(flow.attention, flow), "> 0", conditions
        )
        yield Obligation(f"dL/dt [{label}]", stated["sign dL/dt"] * _along(flow.loss, flow), "> 0", conditions)


def _sharper(stated: Stated) -> Iterator[Obligation]:
    """Implicit function theorem on ``y(q) - y(q_0) = slope (x(v) - x(v_0))``, ``alpha(q) v = ell`` fixed.

    ``dq/dslope = (x(v) - x(v_0))/(y' + slope x' v alpha'/alpha)``. The signs needed: ``slope x'`` and ``y'``
    have the sign ``s`` of ``mu_QK`` on a balanced branch (1 otherwise), ``alpha' > 0``, ``x' > 0``, ``v``
    increases in time so ``v > v_0``, the slope is proportional to ``r``. Then ``q`` and ``alpha(q)`` increase
    with ``r`` and ``v = ell/alpha`` falls.
    """
    for label, flow, _setting, conditions in _flows():
        for side in (1, -1) if flow.model.is_balanced("QK") else (1,):
            law = first_integral(flow, {"mu_QK": side})
            branch = conditions
            if flow.model.is_balanced("QK"):
                branch = (_OUTPUT_AHEAD, (Gt if side > 0 else Lt)(mu_QK, 0, evaluate=False))
            where = f"[{label}{'; mu_QK < 0' if side < 0 else ''}]"
            direction = stated["sign dmu_QK/dr"]
            yield Obligation(f"y' {where}", side * diff(law.y, mu_QK), "> 0", branch)
            yield Obligation(f"x' {where}", diff(law.x, mu_OV), "> 0", branch)
            yield Obligation(f"alpha' {where}", stated["sign dalpha/dr"] * diff(flow.attention, mu_QK), "> 0", branch)
            yield Obligation(f"mu_OV moves away from its start {where}", flow.velocity[mu_OV], "> 0", branch)
            ratio = law.slope * eta_OV / eta_QK
            yield Obligation(f"slope over r {where}", direction * side * ratio, "> 0", branch)
            yield Obligation(f"slope is proportional to r {where}", diff(ratio, eta_QK), assumptions=branch)
            stays = diff(alpha * mu_OV, mu_OV) * -stated["sign dmu_OV/dr"]
            yield Obligation(f"mu_OV = ell/alpha falls as alpha grows {where}", stays, "> 0", branch)


def _early_time(stated: Stated) -> Iterator[Obligation]:
    """Taylor coefficients at the origin: first of ``mu_OV``, first and second of ``mu_QK``."""
    origin = {mu_OV: Integer(0), mu_QK: Integer(0)}
    for setting in SETTINGS:
        flow = setting_flow(setting)
        first = flow.velocity[mu_OV].xreplace(origin)
        yield Obligation(f"mu_OV to first order [{setting.label}]", stated["mu_OV"] - first * t)
        yield Obligation(f"mu_QK to first order [{setting.label}]", flow.velocity[mu_QK].xreplace(origin))
        second = _along(flow.velocity[mu_QK], flow).xreplace(origin)
        leading = second * mu_OV**2 / (2 * first**2)
        yield Obligation(f"mu_QK to second order [{setting.label}]", stated[f"mu_QK [{setting.label}]"] - leading)


def _attention_limit(stated: Stated) -> Iterator[Obligation]:
    """``1/(1-alpha) = 1 + gamma Phi_0 + X - gamma q`` on the curve; with ``e^(gamma q) <= (n/m)(X + gamma
    Phi_0)`` from ``q >= 0``.

    ``0 <= gamma q <= log(...) <= 2 sqrt(...)``, so ``(1-alpha) X`` lies between two bounds that tend to 1 as
    ``X`` grows, and ``X`` grows without end: ``mu_OV`` increases, and a bounded ``mu_OV`` would keep its
    velocity above a positive number.
    """
    for setting in SETTINGS:
        flow = setting_flow(setting)
        law = first_integral(flow)
        level = law.value * gamma
        inverse = 1 + level + gamma * law.slope * law.x - gamma * mu_QK
        yield Obligation(f"1/(1-alpha) on the curve [{setting.label}]", inverse * (1 - flow.attention) - 1)
        leading = stated[f"1 - alpha [{setting.label}]"] * gamma * law.slope * law.x
        yield Obligation(f"leading term [{setting.label}]", leading - 1)
        yield Obligation(f"mu_OV increases [{setting.label}]", flow.velocity[mu_OV], "> 0")
    yield from _bounds_tend_to_one()


def _bounds_tend_to_one() -> Iterator[Obligation]:
    """With ``s = 1/sqrt(X)`` both bounds are continuous at ``s = 0``, where they are 1."""
    s, start = Dummy("s", positive=True), Dummy("p", positive=True)
    for name, grown in (("lower", Integer(0)), ("upper", 2 * sqrt(n / m * (1 + start * s**2)))):
        # (1 - alpha) X with gamma q replaced by 0 or by its bound 2 sqrt((n/m)(X + gamma Phi_0)); start stands
        # for gamma Phi_0
        inverse = s**2 * (1 + start) + 1 - s * grown
        yield Obligation(f"{name} bound of (1-alpha) X at X = oo", 1 / inverse.xreplace({s: Integer(0)}) - 1)
    u = Dummy("u", positive=True)
    # log u <= 2 (sqrt u - 1): equality at 1, and the derivative of the difference has the sign of u - 1
    gap = 2 * (sqrt(u) - 1) - log(u)
    yield Obligation("2 (sqrt u - 1) - log u at u = 1", gap.xreplace({u: Integer(1)}))
    yield Obligation("its derivative over (sqrt u - 1)", diff(gap, u) * u - (sqrt(u) - 1))


def _loss_rate(stated: Stated) -> Iterator[Obligation]:
    """``d e^z/dt = (eta_OV/b) R`` with ``z = alpha mu_OV`` and ``R = e^z/(e^z + M - 1) alpha^2 (1 + kappa
    gamma^2 (1-alpha)^2 mu_OV^2)``.

    ``R`` tends to 1 by `attention-limit`: ``alpha -> 1`` and ``(1-alpha) mu_OV -> 0``. So ``e^z ~ eta_OV t/b``, and
    ``(M-1) e^-z/(1 + (M-1) e^-z) <= L <= (M-1) e^-z`` gives ``L ~ (M-1) b/(eta_OV t)``, whatever ``r`` is.
    """
    for setting in SETTINGS:
        flow = setting_flow(setting)
        weight = flow.attention
        grown = exp(weight * mu_OV)
        gain = grown / (grown + M - 1) * weight**2 * (1 + kappa(setting) * gamma**2 * (1 - weight) ** 2 * mu_OV**2)
        rate = (M - 1) / stated["L"] / t
        yield Obligation(f"d e^z/dt [{setting.label}]", _along(grown, flow) - rate * gain)
    small = Dummy("x", positive=True)
    yield Obligation("log(1+x) <= x: equality at 0", log(1 + small).xreplace({small: Integer(0)}))
    yield Obligation("log(1+x) <= x: derivative of x - log(1+x)", diff(small - log(1 + small), small), "> 0")
    yield Obligation("log(1+x) >= x/(1+x): derivative", diff(log(1 + small) - small / (1 + small), small), "> 0")
    yield from _attention_limit({f"1 - alpha [{s.label}]": 2 / (kappa(s) * gamma**2 * mu_OV**2) for s in SETTINGS})


def _parameterization_order(stated: Stated) -> Iterator[Obligation]:
    """Both curves in the plane of ``v`` and ``Y = (Phi(q) - Phi(q_0))/(kappa gamma)``; a level set of the loss
    falls there.
    """
    for setting in SETTINGS:
        gap: Any = Integer(0)
        for code, side in (("CAFO", 1), ("CACO", -1)):
            law = first_integral(setting_flow(setting, code))
            height = law.slope * (law.x - law.x.xreplace({mu_OV: v_0})) / (kappa(setting) * gamma)
            gap = gap + side * height
        formula = (mu_OV - v_0) * (1 - stated["sigma_OV (mu_OV + v_0)"]) / (2 * SIGMA_OV)
        yield Obligation(f"CAFO above CACO [{setting.label}]", gap - formula)
        flow = setting_flow(setting)
        yield Obligation(f"alpha grows with Y [{setting.label}]", diff(flow.attention, mu_QK) / diff(PHI, mu_QK), "> 0")
    yield Obligation("a level set alpha v = ell falls: dv/dalpha", diff(1 / alpha, alpha) * -1, "> 0")
    late = (stated["sigma_OV (mu_OV + v_0)"] - 1).xreplace(
        {v_0: 1 / (2 * SIGMA_OV) + v_0, mu_OV: mu_OV + 1 / (2 * SIGMA_OV)}
    )
    yield Obligation("sigma_OV v_0 >= 1/2 and mu_OV > v_0: CACO sharper", late, "> 0", (_OUTPUT_AHEAD,))


CLAIMS = (
    published(
        "sharper-with-ratio",
        "Faster query-key learning gives sharper attention at the same loss",
        "from a fixed start with mu_OV(0) >= 0, at fixed loss, a larger r gives larger mu_QK, larger alpha, "
        "smaller mu_OV",
        {"sign dmu_QK/dr": Integer(1), "sign dalpha/dr": Integer(1), "sign dmu_OV/dr": Integer(-1)},
        _sharper,
        SOURCE,
        lambda: (*assumptions_of(), Assumption("mu_OV(0) >= 0, above 0 if balanced; mu_QK(0) not 0 if balanced")),
        trace_of,
        ("sharper",),
    ),
    published(
        "attention-monotone",
        "Attention rises and the loss falls",
        "mu_OV > 0 (mu_QK not 0 if balanced): dalpha/dt > 0 and dL/dt < 0",
        {"sign dalpha/dt": Integer(1), "sign dL/dt": Integer(-1)},
        _attention_monotone,
        SOURCE,
        lambda: (*assumptions_of(), Assumption("mu_OV > 0; mu_QK not 0 if query-key is balanced")),
        trace_of,
        ("monotone",),
    ),
    published(
        "early-time",
        "Output-value leads at early times",
        "CACO from the origin: mu_OV ~ eta_OV alpha_0 t/(b M), mu_QK ~ kappa gamma (1-alpha_0) mu_OV^2/2, "
        "alpha_0 = m/(m+n)",
        {
            "mu_OV": eta_OV * (m / (m + n)) * t / (b * M),
            **{f"mu_QK [{s.label}]": kappa(s) * gamma * (n / (m + n)) * mu_OV**2 / 2 for s in SETTINGS},
        },
        _early_time,
        SOURCE,
        lambda: (*assumptions_of(), Assumption("CACO from the origin, t -> 0")),
        trace_of,
        ("early",),
    ),
    published(
        "loss-rate",
        "The loss falls as 1/t, whatever the ratio",
        "CACO: L ~ (M-1) b/(eta_OV t) as t grows",
        {"L": (M - 1) * b / (eta_OV * t)},
        _loss_rate,
        SOURCE,
        lambda: (*assumptions_of(), Assumption("CACO, mu_OV(0) >= 0, t -> oo")),
        trace_of,
        ("rate",),
    ),
    published(
        "attention-limit",
        "Attention saturates with the square of the output",
        "CACO: 1 - alpha ~ 2/(kappa gamma^2 mu_OV^2) as t grows",
        {f"1 - alpha [{s.label}]": 2 / (kappa(s) * gamma**2 * mu_OV**2) for s in SETTINGS},
        _attention_limit,
        SOURCE,
        lambda: (*assumptions_of(), Assumption("CACO, mu_OV(0) >= 0, t -> oo")),
        trace_of,
        ("limit",),
    ),
    published(
        "parameterization-order",
        "When a factorized output is sharper",
        "common start v_0 > 0, same loss: CAFO is sharper than CACO exactly while sigma_OV (mu_OV + v_0) < 1; "
        "never if sigma_OV v_0 >= 1/2",
        {"sigma_OV (mu_OV + v_0)": SIGMA_OV * (mu_OV + v_0)},
        _parameterization_order,
        SOURCE,
        lambda: (*assumptions_of(), Assumption("v_0 > 0, both models from the same start")),
        trace_of,
        ("order",),
    ),
)

__all__ = ["CLAIMS"]
