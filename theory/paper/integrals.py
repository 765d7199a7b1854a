"""Claims about first integrals: what is constant along the flow, and the straight line it gives.

Source: arXiv 2608.06776, conserved quantities.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from sympy import Ei, Gt, Integer, Lt, diff, exp, log, sqrt

from theory.flow import ReducedFlow
from theory.integrals import first_integral
from theory.paper.lines import SOURCE
from theory.paper.settings import NORM2_OV, SETTINGS, SIGMA_OV, Setting, has_line, setting_flow
from theory.registry import Claim, Obligation, Stated, published
from theory.symbols import c_OV, eta_OV, eta_QK, gamma, m, mu_OV, mu_QK, n

PHI = m / (n * gamma) * exp(gamma * mu_QK) + mu_QK


def psi(sign: int) -> Any:
    """``Psi`` on the branch of this sign of ``mu_QK``."""
    return sign * (m / n * Ei(gamma * mu_QK) + log(sign * mu_QK))


def kappa(setting: Setting) -> Any:
    """The ratio of the circuits' speeds."""
    return (eta_QK / setting.norm2_QK) / (eta_OV / NORM2_OV)


def _branches(code: str, imbalanced: bool = False) -> Iterator[dict[str, int]]:
    """The signs that a balanced circuit can keep."""
    for output, query in product(
        (1, -1) if code[2] == "F" and not imbalanced else (1,), (1, -1) if code[0] == "F" else (1,)
    ):
        yield {"mu_OV": output, "mu_QK": query}


def _text(signs: dict[str, int], code: str, imbalanced: bool) -> str:
    shown = [f"{s} {'>' if signs[s] > 0 else '<'} 0" for s, f in (("mu_OV", code[2]), ("mu_QK", code[0])) if f == "F"]
    return ", ".join(s for s in shown if not (imbalanced and s.startswith("mu_OV")))


def _relations(flow: ReducedFlow, signs: dict[str, int]) -> tuple[Any, ...]:
    found = []
    for circuit, state in (("OV", mu_OV), ("QK", mu_QK)):
        if flow.model.is_balanced(circuit):  # type: ignore[arg-type]
            found.append((Gt if signs[state.name] > 0 else Lt)(state, 0, evaluate=False))
    return tuple(found)


def stated_integral(code: str, imbalanced: bool = False) -> dict[str, Any]:
    """``x``, ``y`` and ``slope`` of the table for every setting and branch."""
    formulas: dict[str, Any] = {}
    for signs in _branches(code, imbalanced):
        text = _text(signs, code, imbalanced)
        formulas[f"y {text}".strip()] = psi(signs["mu_QK"]) if code[0] == "F" else PHI
        if imbalanced:
            formulas[f"x {text}".strip()] = sqrt(c_OV**2 + 4 * SIGMA_OV**2 * mu_OV**2) / (4 * SIGMA_OV**2)
        else:
            formulas[f"x {text}".strip()] = signs["mu_OV"] * mu_OV if code[2] == "F" else mu_OV**2 / 2
    for setting in SETTINGS:
        if has_line(setting, code):
            query = 2 * setting.sigma_QK if code[0] == "F" else Integer(1)
            output = 2 * SIGMA_OV if code[2] == "F" and not imbalanced else Integer(1)
            formulas[f"slope [{setting.label}]"] = kappa(setting) * gamma * query / output
    return formulas


def _obligations(code: str, imbalanced: bool) -> Any:
    options = {"imbalance_ov": c_OV} if imbalanced else {}

    def obligations(formulas: Stated) -> Iterator[Obligation]:
        stated = {key.removeprefix(f"{code}: "): formula for key, formula in formulas.items()}
        for setting in SETTINGS:
            if not has_line(setting, code):
                continue
            flow = setting_flow(setting, code, **options)
            for signs in _branches(code, imbalanced):
                text = _text(signs, code, imbalanced)
                x, y = stated[f"x {text}".strip()], stated[f"y {text}".strip()]
                value = y - stated[f"slope [{setting.label}]"] * x
                drift = sum((diff(value, s) * flow.velocity[s] for s in flow.states), Integer(0))
                where = "; ".join(w for w in (setting.label, text) if w)
                yield Obligation(f"d/dt(y - slope x) [{where}]", drift, assumptions=_relations(flow, signs))
                yield Obligation(f"y depends on mu_QK [{where}]", diff(y, mu_QK), "> 0", _relations(flow, signs))

    return obligations


def _claim(identity: str, code: str, title: str, text: str) -> Claim:
    flow = partial(setting_flow, SETTINGS[0], code)
    return published(
        identity,
        title,
        text,
        stated_integral(code),
        _obligations(code, False),
        SOURCE,
        lambda: first_integral(flow()).assumptions,
        lambda: first_integral(flow()).trace,
        ("integral", code),
    )


_IMBALANCED = ("CAFO", "FAFO")


def _imbalanced_obligations(stated: Stated) -> Iterator[Obligation]:
    for code in _IMBALANCED:
        part = {key: formula for key, formula in stated.items() if key.startswith(code)}
        for obligation in _obligations(code, True)(part):
            yield replace(obligation, name=f"{code}: {obligation.name}")


CLAIMS = (
    _claim(
        "integral-caco",
        "CACO",
        "First integral, both circuits collapsed",
        "Phi(mu_QK) - kappa gamma mu_OV^2/2 is constant, Phi(q) = m e^(gamma q)/(n gamma) + q",
    ),
    _claim(
        "integral-cafo",
        "CAFO",
        "First integral, output-value factorized",
        "Phi(mu_QK) - kappa gamma/(2 sigma_OV) |mu_OV| is constant",
    ),
    _claim(
        "integral-faco",
        "FACO",
        "First integral, query-key factorized",
        "Psi(mu_QK) - 2 kappa gamma sigma_QK mu_OV^2/2 is constant, Psi(q) = (m/n) Ei(gamma q) + log q",
    ),
    _claim(
        "integral-fafo",
        "FAFO",
        "First integral, both circuits factorized",
        "Psi(mu_QK) - kappa gamma (sigma_QK/sigma_OV) |mu_OV| is constant",
    ),
    published(
        "integral-imbalanced-ov",
        "First integral, output-value factorized with imbalance",
        "y - slope sqrt(c^2 + 4 sigma_OV^2 mu_OV^2)/(4 sigma_OV^2) is constant: y = Phi, slope = kappa gamma (CAFO); "
        "y = Psi, slope = 2 kappa gamma sigma_QK (FAFO, query-key balanced)",
        {f"{code}: {key}": formula for code in _IMBALANCED for key, formula in stated_integral(code, True).items()},
        _imbalanced_obligations,
        SOURCE,
        lambda: first_integral(setting_flow(SETTINGS[0], "CAFO", imbalance_ov=c_OV)).assumptions,
        lambda: first_integral(setting_flow(SETTINGS[0], "CAFO", imbalance_ov=c_OV)).trace,
        ("integral", "imbalanced-ov"),
    ),
)

__all__ = ["CLAIMS", "kappa", "stated_integral"]
