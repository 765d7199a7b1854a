"""Time along a curve in closed form, and why there is none."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sympy import Rational, Symbol, asinh, diff, log, sqrt, symbols

import theory
from theory.curve_time import time_along_curve
from theory.errors import GradlineError
from theory.identities import prove_zero
from theory.models import GradientFlow

u, v = symbols("u v", real=True)
p, q, s, k = (Symbol(name, positive=True) for name in ("p", "q", "s", "k"))
NET = GradientFlow({p: q * (s - p * q), q: p * (s - p * q)})


def test_the_logistic_curve_of_a_balanced_net() -> None:
    """``dp/dt = p (s - p^2)``: by hand ``t = log(p)/s - log(s - p^2)/(2 s)``."""
    found = time_along_curve(NET, theory.first_integral(NET), 0)
    assert prove_zero(found.other - p).answer == "equal"
    by_hand = log(p) / s - log(s - p**2) / (2 * s)
    assert prove_zero(diff(found.time - by_hand, p)).answer == "equal"
    assert prove_zero(diff(found.time - 2 * by_hand, p)).answer == "different"


def test_a_hyperbola() -> None:
    flow = GradientFlow({u: v, v: k**2 * u})
    found = time_along_curve(flow, theory.first_integral(flow), Rational(1, 2))
    # v = sqrt(1 + k^2 u^2)
    assert prove_zero(diff(found.time - asinh(k * u) / k, u)).answer == "equal"
    assert found.other == sqrt(k**2 * u**2 + 1)


def test_why_there_is_none() -> None:
    with pytest.raises(GradlineError, match="closed-form time: no primitive of 1/"):
        time_along_curve(NET, theory.first_integral(NET))
    predators = GradientFlow({p: p * (1 - q), q: q * (p - 1)})
    with pytest.raises(GradlineError, match=r"closed-form time: y = .* can't be solved for q"):
        time_along_curve(predators, theory.first_integral(predators))


def test_a_law_of_another_flow_gives_no_time() -> None:
    """The time would be wrong by a factor, with a derivative that fits the wrong curve."""
    u, v = symbols("u v", real=True)
    turn = GradientFlow({u: v, v: u})
    law = theory.first_integral(turn)
    assert time_along_curve(turn, law).state == u
    for flow, wrong in ((turn, replace(law, slope=2 * law.slope)), (GradientFlow({u: 2 * v, v: u}), law)):
        with pytest.raises(GradlineError, match="is not proved constant along flow; give its own law"):
            time_along_curve(flow, wrong)
    with pytest.raises(ValueError, match="constant u depends on the states"):
        time_along_curve(turn, law, u)
    with pytest.raises(ValueError, match="3 states; expected two"):
        time_along_curve(GradientFlow({u: v, v: u, Symbol("w"): u}), law)
