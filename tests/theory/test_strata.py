"""Places that a proof left out: which they are, and what an expression is there."""

from __future__ import annotations

from typing import Any

import pytest
import sympy
from sympy import Abs, Function, Integer, Integral, Ne, Rational, Symbol, diff, exp, log, sign, sqrt, symbols

from theory.algebra import OutsideDomainError
from theory.errors import GradlineError
from theory.identities import normal_form, prove_zero
from theory.inputs import SignCondition
from theory.normal_form import convert
from theory.strata import at_place, own_conditions, places
from theory.symbols import M, alpha, n

x, y, z, s = symbols("x y z s", real=True)
p = Symbol("p", positive=True)
w = Symbol("w", nonnegative=True)
f = Function("f", real=True)
beside = sign(x + 7)
inside = beside**2 * x + beside**2 * x**3
root = sqrt(inside)  # says x >= 0, except at x = -7


def zeros(argument: Any, *given: Any) -> list[tuple[Any, Any]] | None:
    converter, value = convert(argument, given)
    return places(converter, value)


# where it vanishes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "given", "found"),
    [
        (x - 7, (), [(x, 7)]),
        (3 - 2 * x, (), [(x, Rational(3, 2))]),
        (2 * x - 3 * y + 1, (), [(x, 3 * y / 2 - Rational(1, 2))]),
        (x * (y - 2), (), [(x, 0), (y, 2)]),
        (x * (y - 2), (Ne(x, 0),), [(y, 2)]),
        (x / (y - 2), (), [(x, 0)]),
        (Abs(x - 1), (), [(x, 1)]),
        (sqrt(Abs(x - 1)), (), [(x, 1)]),
        (x * (1 + x**2), (), [(x, 0)]),
        (M * x - y, (), [(x, y / M)]),
        ((M - 1) * x + exp(y), (), [(x, -exp(y) / (M - 1))]),
        (x + exp(x) + y, (), [(y, -x - exp(x))]),
        (x * y - 1, (), None),
        ((M - 1) * x * y + 1, (), None),
        ((x - 1) * p, (), [(x, 1)]),
        (M - x, (), [(M, x)]),
        (exp(x) - 2, (), None),
        (x**2 - 2, (), None),
        (x**2 - y, (), [(y, x**2)]),
        (x * (exp(x) - 2), (), None),
        (1 + exp(x), (), []),
        (p, (), []),
        (w, (), [(w, 0)]),
    ],
)
def test_where_it_vanishes(argument: Any, given: tuple[Any, ...], found: list[tuple[Any, Any]] | None) -> None:
    here = zeros(argument, *given)
    assert here == found or (found is not None and here == found[::-1])
    for symbol, value in here or ():
        assert sympy.expand(argument.xreplace({symbol: value})) in (0, sympy.zoo, sympy.nan)


def test_an_argument_inside_an_integral_vanishes_at_points_of_the_variable_only_or_is_not_known() -> None:
    for body, answer in (
        (sign(s), "equal"),
        (sign(s**2 - x), "equal"),
        (sign(2 * s - exp(x)), "equal"),
        (sign(p * s + x), "equal"),
        (sign(s * x), "equal"),
        (sign(s * x + s * y), "equal"),
        (sign(s * x + y), "undecided"),
        (sign(s + exp(s) + x), "undecided"),
        (sign(exp(s) - 2), "undecided"),
    ):
        argument = body.args[0]
        whole = Integral(body, (s, 0, 1)) - Integral(Abs(argument) / argument, (s, 0, 1))
        assert prove_zero(whole).answer == answer, body
        assert len(normal_form(whole).strata) == 1
    # twin: the same outside of the integral is looked at
    assert prove_zero(sign(x) ** 2 - 1).answer == "different"


# assumptions of the symbol ----------------------------------------------------------------------------------------


def test_the_value_of_a_symbol_satisfies_its_assumptions() -> None:
    assert own_conditions(x, y) == []
    assert own_conditions(p, y) == [SignCondition(y, ">")]
    assert own_conditions(w, y) == [SignCondition(y, ">=")]
    assert own_conditions(M, y) == [SignCondition(y - 2, ">=")]
    assert own_conditions(n, y) == [SignCondition(y - 1, ">=")]
    assert own_conditions(alpha, y) == [SignCondition(y, ">"), SignCondition(1 - y, ">=")]
    assert own_conditions(Symbol("k", negative=True), y) == [SignCondition(-y, ">")]
    assert own_conditions(Symbol("k", nonpositive=True), y) == [SignCondition(-y, ">=")]
    assert own_conditions(Symbol("k", real=True, nonzero=True), y) == [SignCondition(y, "!=")]


# the expression there ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expr", "value", "found"),
    [
        (x**2 + y, Integer(3), 9 + y),
        (sign(x) * y, Integer(0), Integer(0)),
        (x / (x + 1), y, y / (y + 1)),
        (Integral(exp(x * s), (s, 0, x)), Integer(2), Integral(exp(2 * s), (s, 0, 2))),
        (Integral(exp(x * y), (x, 0, x)), Integer(2), Integral(exp(x * y), (x, 0, 2))),
        (Integral(exp(s * z), (s, 0, x), (z, 0, 1)), Integer(2), Integral(exp(s * z), (s, 0, 2), (z, 0, 1))),
        (diff(f(x), x), Integer(2), sympy.Subs(diff(f(x), x), x, 2)),
        (exp(-y) + 1, Integer(2), exp(-y) + 1),
    ],
)
def test_the_expression_there(expr: Any, value: Any, found: Any) -> None:
    assert at_place(expr, x, value) == found


def test_a_variable_of_integration_is_not_caught() -> None:
    there = at_place(Integral(exp(x * y), (y, 0, 1)), x, y)
    assert there.free_symbols == {y}
    (variable, low, high), *_ = there.limits
    assert (low, high) == (0, 1)
    assert variable != y
    assert there.function == exp(variable * y)
    with pytest.raises(GradlineError, match="rename its variables"):
        at_place(Integral(x * y * s, (y, 0, s), (s, 0, 1)), x, y)
    with pytest.raises(GradlineError, match="rename its variables"):
        at_place(Integral(x * y * z, (x, 0, y), (y, 0, x)), x, Integer(1))


def test_a_part_without_a_value_has_none_anywhere_there() -> None:
    for part in (1 / x, log(x), sympy.Ei(x), sqrt(x - 1), exp(1 / x), sympy.Max(1 / x, 1), sympy.atan(1 / x), y / x):
        with pytest.raises(OutsideDomainError, match=r"no real value where x = 0"):
            at_place(part + y, x, Integer(0))
        at_place(part + y, x, Integer(2))


def test_a_root_that_is_real_at_some_points_there_remains() -> None:
    there = at_place(sqrt(x - y**2), x, Integer(0))
    assert not there.has(sympy.I)
    assert there.xreplace({y: Integer(0)}) == 0
    kept = sympy.Pow(sympy.Mul(w, x - y, evaluate=False), Rational(1, 2), evaluate=False)
    for value in (kept, sympy.Mul(y, kept, evaluate=False), sympy.Add(1, kept, evaluate=False), exp(kept)):
        there = at_place(value, x, Integer(0))
        bases = {power.base for power in there.atoms(sympy.Pow) if power.exp == Rational(1, 2)}
        assert bases == {-w * y}, "split, it would not be real for w = 0 and y > 0"


# decisions --------------------------------------------------------------------------------------------------------


def test_what_a_rewritten_part_says_does_not_hold_where_it_was_left_out() -> None:
    for expr, given in (
        ((Abs(x) - x) * (1 + root), ()),
        (Abs(x) - x, (inside >= 0,)),
    ):
        decision = prove_zero(expr, given)
        assert (decision.answer, dict(decision.witness)) == ("different", {x: -7})
        # twin: with that place left out it is so
        assert prove_zero(expr, (*given, x > -7)).answer == "equal"
    assert prove_zero((Abs(x) - x) * (1 + root) * sign(beside) ** 2).answer == "equal"
    # where nothing was left out such a part does say it
    assert prove_zero((Abs(x) - x) * (1 + log(inside))).answer == "equal"


def test_a_proof_beside_a_place_inside_an_integral_is_undecided() -> None:
    whole = (Abs(x) - x) * (1 + root) * beside + Integral(sign(s), (s, 0, y)) - Integral(Abs(s) / s, (s, 0, y))
    decision = prove_zero(whole)
    assert (decision.answer, decision.reason.startswith("the proof needs")) == ("undecided", True)


def test_limits_of_the_method_are_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    double = Integral(x * y * s, (y, 0, s), (s, 0, 1))
    decision = prove_zero(sign(x - y) ** 2 * double - double)
    assert (decision.answer, "rename its variables" in decision.reason) == ("undecided", True)

    def refuse(*_: Any) -> Any:
        raise GradlineError("too hard")

    monkeypatch.setattr("theory.identities.places", refuse)
    decision = prove_zero((Abs(x) - x) * (1 + root))
    assert (decision.answer, "x + 7 != 0" in decision.reason) == ("undecided", True)


def test_an_assumption_that_is_false_there_is_named() -> None:
    decision = prove_zero(sign(p - x) ** 2 - 1, [p * y - x * y > 0])
    assert (decision.answer, decision.assumptions) == ("equal", ("p*y - x*y > 0",))
    assert prove_zero(sign(p - x) ** 2 - 1, [p * y - x * y >= 0]).answer == "different"


def test_a_contradiction_among_the_assumptions_is_said() -> None:
    for given in ([exp(x) + y < 0, y > 0], [x > 1, x < 0], [p + x < 0, x > 0], [sign(x) * p > 0, x < 0]):
        assert prove_zero(x - x**2, given).answer == "undecided"
    for given, text in (
        ([M < 2], "2 - M > 0"),
        ([sympy.Ge(Rational(3, 2) - M - w, 0)], "-M - w + 3/2 >= 0"),
        ([Ne((x + 1) ** 2, x**2 + 2 * x + 1)], "-x**2 - 2*x + (x + 1)**2 - 1 != 0"),
        ([x > 1, x < 0], "-x > 0"),
    ):
        decision = prove_zero(y, given)
        assert (decision.answer, f"assumption {text} is false everywhere" in decision.reason) == ("undecided", True), (
            given
        )
    # twins: they can hold
    for given in ([M <= 2], [Ne(x, y)], [sympy.Ge(2 - M - w, 0)], [x > 1, x < 2]):
        assert prove_zero(y, given).answer == "different"


def test_a_witness_at_a_place_satisfies_what_vanished_from_the_assumptions_there() -> None:
    """``x*log(-y)`` is 0 where ``x = 0``, but it needs ``y < 0`` all the same."""
    decision = prove_zero(sign(x) ** 2 - 1, [x * log(-y) >= 0])
    assert (decision.answer, decision.witness[x]) == ("different", 0)
    assert decision.witness[y] < 0
    decision = prove_zero(sign(x) ** 2 - 1 + x * log(-y) * 0, [x * log(y - 3) >= 0])
    assert decision.answer == "different"
    assert decision.witness[y] > 3
