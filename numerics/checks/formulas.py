"""The stated formulas of a claim that apply to a case, and the cases that a claim is restricted to."""

from __future__ import annotations

from typing import Any

from sympy import Rational

from numerics.checks.cases import Case, with_attention
from theory.paper.settings import SETTINGS, Setting
from theory.registry import Claim
from theory.symbols import K, b, gamma, mu_OV, mu_QK

__all__ = ["integral_formula", "published_case", "setting_of", "stated_for", "velocity_formula"]


def setting_of(case: Case) -> Setting:
    """The setting of the theory that a case belongs to."""
    return next(s for s in SETTINGS if s.label == case.label)


def published_case(case: Case) -> Case:
    """The case with ``K = b``, infinite noise and unit score scale."""
    values = {**case.values, K: case.values[b], gamma: Rational(1)}
    return Case(case.query_kind, False, case.code, values)


def stated_for(claim: Claim, name: str, case: Case) -> Any:
    """The stated formula of this name, for all settings or for the one of the case."""
    return claim.stated[name] if name in claim.stated else claim.stated[f"{name} [{case.label}]"]


def velocity_formula(claim: Claim, state: str, case: Case) -> Any:
    """The stated velocity of a coordinate, in coordinates and parameters."""
    return with_attention(stated_for(claim, state, case))


def integral_formula(claim: Claim, case: Case, imbalanced: bool) -> Any:
    """The stated conserved value on the branch of the case's coordinates."""
    prefix = f"{case.code}: " if imbalanced else ""
    signs = []
    if case.code[2] == "F" and not imbalanced:
        signs.append(f"mu_OV {'>' if case.values[mu_OV] > 0 else '<'} 0")
    if case.code[0] == "F":
        signs.append(f"mu_QK {'>' if case.values[mu_QK] > 0 else '<'} 0")
    branch = ", ".join(signs)
    x, y = (claim.stated[f"{prefix}{name} {branch}".strip()] for name in ("x", "y"))
    return y - claim.stated[f"{prefix}slope [{case.label}]"] * x
