"""Closed forms derived from the flow: time at fixed attention, its inverse, the stopping margin, the quadrature."""

from __future__ import annotations

from typing import Any

import pytest
from sympy import Ei, Integral, LambertW, Rational, diff, exp, log, sqrt
from sympy.core.function import AppliedUndef

from theory.flow import derive
from theory.identities import is_zero
from theory.model import AttentionModel
from theory.solutions import fixed_attention, loss, mu_0, stopping_margin, time_on_curve
from theory.symbols import M, alpha, b, c_OV, eta_OV, mu_OV, t
from theory.task import TokenTask


def flow(**forms: Any) -> Any:
    return derive(AttentionModel(TokenTask(), **forms))


def test_collapsed_is_the_published_form() -> None:
    law = fixed_attention(flow())
    A = alpha**2 * eta_OV * t / b + exp(alpha * mu_0) + (M - 1) * alpha * mu_0
    published = A / (M - 1) - LambertW(exp(A / (M - 1)) / (M - 1))
    point = {M: 5, b: 3, alpha: Rational(2, 3), eta_OV: Rational(1, 7), mu_0: Rational(-4, 5), t: 11}
    ours = (alpha * law.mu_OV).xreplace(point)
    assert abs((ours - published.xreplace(point)).evalf(40)) < 1e-35
    wrong = published.xreplace(point | {M: 6})
    assert abs((ours - wrong).evalf(20)) > 1e-3  # twin: another number of classes differs
    assert ours.xreplace({t: 11}).evalf(30) != published.xreplace(point | {t: 12}).evalf(30)


@pytest.mark.parametrize("sign", [1, -1])
def test_balanced_is_the_published_relation(sign: int) -> None:
    law = fixed_attention(flow(ov="factorized"), sign)
    stated = Ei(alpha * mu_OV) + (M - 1) * log(sign * mu_OV)
    assert is_zero(diff(law.elapsed - sign * sqrt(b) / (2 * alpha * eta_OV) * stated, mu_OV))
    assert law.mu_OV is None
    assert law.assumptions[-2].text.startswith("mu_OV >" if sign > 0 else "mu_OV <")


def test_imbalanced_keeps_an_integral() -> None:
    law = fixed_attention(flow(ov="factorized", imbalance_ov=c_OV))
    assert law.elapsed.has(Integral)
    assert is_zero(diff(law.elapsed, mu_OV) * flow(ov="factorized", imbalance_ov=c_OV).compact["mu_OV"] - 1)


def test_margin_and_time() -> None:
    assert is_zero(stopping_margin(flow()) - log((M - 1) / (exp(loss) - 1)))
    integrand, limits = time_on_curve(flow()).args
    assert limits[1:] == (mu_0, mu_OV)
    share = next(iter(integrand.atoms(AppliedUndef)))
    back = integrand.xreplace({share: alpha}).xreplace({limits[0]: mu_OV})
    assert is_zero(back * flow().compact["mu_OV"] - 1)


@pytest.mark.parametrize(("wrong", "words"), [(0, "expected 1 or -1"), (True, "expected 1 or -1")])
def test_refusals(wrong: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        fixed_attention(flow(), wrong)
    with pytest.raises(TypeError, match="expected a ReducedFlow"):
        fixed_attention(AttentionModel(TokenTask()))
