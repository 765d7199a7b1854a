"""Polynomial laws: complete, exact, refused where they are wrong or too many; laws among given functions."""

from __future__ import annotations

from random import Random

import pytest
from sympy import Abs, Ei, Integer, Matrix, Rational, Symbol, cosh, exp, log, sqrt, symbols

from theory import AttentionModel, TokenTask, derive, first_integral
from theory.errors import GradlineError
from theory.identities import compare
from theory.laws import architecture, count_laws, decay_rate, gradient_fields, is_law, laws_in_basis, polynomial_laws
from theory.laws.program import compile_program
from theory.models import Block, Model, reduce_model
from theory.symbols import eta_OV, mu_OV, mu_QK


def test_the_quadratic_laws_of_a_two_layer_net_are_its_balances() -> None:
    fields = architecture("linear", [4, 3, 4])
    first = Matrix(3, 4, lambda i, j: Symbol(f"W1_{i + 1}_{j + 1}"))
    second = Matrix(4, 3, lambda i, j: Symbol(f"W2_{i + 1}_{j + 1}"))
    difference = (second.T * second - first * first.T).expand()
    balances = {difference[i, j] for i in range(3) for j in range(i, 3)}
    found = polynomial_laws(fields)
    assert {law.expand() for law in found} <= balances | {-b for b in balances}
    assert len(found) == len(balances) == 6


def test_a_wrong_balance_is_no_law() -> None:
    fields = architecture("linear", [2, 2, 2])
    law = polynomial_laws(fields)[0]
    assert is_law(law, fields)
    assert not is_law(law + Symbol("W1_1_1") ** 2, fields)
    assert not is_law(law.xreplace({Symbol("W1_1_1"): -2 * Symbol("W1_1_1")}), fields)


def test_progress_is_told_and_changes_nothing() -> None:
    fields, calls = architecture("linear", [2, 2, 2]), list[tuple[int, int, str]]()
    found = polynomial_laws(fields, progress=lambda *call: calls.append(call))
    assert found == polynomial_laws(fields)
    done, totals, labels = zip(*calls, strict=True)
    assert done == tuple(range(len(calls)))
    assert set(totals) == {len(calls)}
    assert set(labels) == {"equations for polynomial laws"}
    calls.clear()
    assert count_laws(fields, progress=lambda *call: calls.append(call)) == count_laws(fields)
    assert {label for *_, label in calls} >= {"brackets of 2 fields", "brackets of 3 fields"}
    assert all(0 < rank <= enough for rank, enough, _ in calls)


def test_programs_give_the_same_on_integers_and_on_constants_with_infinitesimals() -> None:
    x, y, z = symbols("x y z")
    p = 2**31 - 1
    program = compile_program(
        [x / (x + y) - 3, (x * y + z) ** -3, sqrt(2) * x + Rational(2, 3), x**5 * y, Integer(7), z, (x + y) ** 0 + x],
        [x, y, z],
    )
    random = Random(4)
    for _ in range(20):
        values = [random.randrange(1, p) for _ in range(3)]
        whole = program.run(values, p)
        pairs = program.run([(v, 0) for v in values], p)
        assert whole == [pair if isinstance(pair, int) else pair[0] for pair in pairs]
        assert all(isinstance(v, int) and 0 <= v < p for v in whole)
    assert program.run([p + 3, 5, 7], p) == program.run([3, 5, 7], p)
    for poles in ([3, -3, 7], [1, 2, -2]):
        with pytest.raises(ZeroDivisionError):
            program.run(poles, p)


def test_learning_rates_weigh_the_laws() -> None:
    u, v = symbols("u v")
    assert polynomial_laws(gradient_fields([u * v], [u, v], {u: 2, v: 3})) == (3 * u**2 - 2 * v**2,)


def test_higher_degrees_hold_the_powers() -> None:
    u, v = symbols("u v")
    fields = gradient_fields([u * v], [u, v])
    assert len(polynomial_laws(fields, 4)) == 2
    assert len(polynomial_laws(fields, 3)) == 1


def test_refusals() -> None:
    u, v, w = symbols("u v w")
    with pytest.raises(ValueError, match="degree=0"):
        polynomial_laws(gradient_fields([u], [u]), 0)
    with pytest.raises(GradlineError, match=r"more than 2500; degree 2 fits"):
        polynomial_laws(architecture("linear", [4, 4, 4]), 3)
    with pytest.raises(GradlineError, match="learning rate w: polynomial laws need numbers"):
        polynomial_laws(gradient_fields([u * v], [u, v], {u: w}))


def test_the_first_integral_is_found_among_functions() -> None:
    flow = derive(AttentionModel(TokenTask(), qk="collapsed", ov="collapsed"))
    (law,) = laws_in_basis(flow, [exp(mu_QK), mu_QK, mu_OV**2, mu_OV])
    integral = first_integral(flow).value
    found = law.expression.expand()
    assert compare(found / found.coeff(mu_QK), integral).answer == "equal"
    assert laws_in_basis(flow, [exp(2 * mu_QK), mu_QK, mu_OV**2]) == ()


def test_logarithms_and_special_functions() -> None:
    flow = derive(AttentionModel(TokenTask(), qk="factorized", ov="factorized"))
    functions = [Ei(mu_QK), log(mu_QK), mu_OV]
    (law,) = laws_in_basis(flow, functions, [mu_QK > 0, mu_OV > 0])
    assert law.decision.answer == "equal"
    assert law.expression.has(Ei)
    assert law.expression.has(mu_OV)


def test_bad_flows() -> None:
    with pytest.raises(TypeError, match="expected a ReducedFlow"):
        laws_in_basis([mu_OV], [mu_OV])  # type: ignore[arg-type]
    assert laws_in_basis({mu_OV: eta_OV}, [eta_OV]) == ()


def test_laws_in_odd_forms_and_wrong_ones() -> None:
    u, v, c = symbols("u v c", real=True)
    fields = gradient_fields([u * v], [u, v])
    balance = u**2 - v**2
    for law in (
        (u - v) * (u + v) + 1,
        (u**4 - v**4) / (u**2 + v**2),
        sqrt(balance),
        log(exp(u**2)) - v**2,
        exp(balance),
    ):
        assert is_law(law, fields)
    for law in (u**2 + v**2, 2 * u**2 - v**2, Abs(u) - Abs(v), log(u) - log(v), sqrt(balance) + u):
        assert not is_law(law, fields)
    plain = Symbol("u")
    with pytest.raises(ValueError, match="two different symbols are named 'u'"):
        is_law(plain**2, fields)
    # a parameter called _0 is no constant: c - _0 is not 0
    odd = Symbol("_0", real=True)
    assert not is_law(u, gradient_fields([u * (c - odd)], [u, odd]))
    assert is_law(v, gradient_fields([u * (c - odd)], [u, odd, v]))


def test_laws_of_a_flow_of_a_user() -> None:
    s = Symbol("s", real=True)
    a, b = Block("a", 2), Block("b", 2)
    (a_1, a_2), (b_1, b_2) = a.symbols, b.symbols
    swap = {"a": ([1, 0],), "b": ([1, 0],)}
    flow = reduce_model(Model([a, b], (a_1 * b_1 + a_2 * b_2 - s) ** 2 / 2, symmetry=[swap]))
    assert [law.expression for law in laws_in_basis(flow, [a_1**2, a_1 * b_1, b_1**2])] == [a_1**2 - b_1**2]
    assert laws_in_basis(flow, [a_1, b_1, a_1 * b_1]) == ()


def test_the_functions_of_a_basis_are_made_independent() -> None:
    u, v, c = symbols("u v c", real=True)
    found = laws_in_basis({u: v, v: u}, [u**2, u**2, v**2, 2 * v**2 + c, c * u**2])
    assert [law.expression for law in found] == [u**2 - v**2]
    # a coefficient that is the same constant in both states
    assert len(laws_in_basis({u: v, v: u}, [u**2 - v**2, c * u**2 - c * v**2])) == 1
    with pytest.raises(TypeError, match="expected a sequence of functions"):
        laws_in_basis({u: v, v: u}, u**2)
    with pytest.raises(ValueError, match="two different symbols are named 'u'"):
        laws_in_basis({u: v, v: u}, [Symbol("u") ** 2])


def test_two_slots_of_value_softmax() -> None:
    fields = architecture("value-softmax", [1, 2])
    a, b, v, w = symbols("a_1_1 a_2_1 V_1_1 V_1_2")
    assert is_law(cosh(a - b) - (v - w) ** 2 / 2, fields)
    assert not is_law(cosh(a - b) - (v - w) ** 2, fields)


def test_decay_of_laws() -> None:
    u, v, w, decay = symbols("u v w lambda")
    assert decay_rate(u**2 - v**2, [u, v], decay) == 2 * decay
    assert decay_rate(u + v, [u, v], decay, {u: eta_OV, v: eta_OV}) == eta_OV * decay
    assert decay_rate(u**2 - v, [u, v], decay) is None
    with pytest.raises(ValueError, match="two different symbols are named 'u'"):
        decay_rate(Symbol("u", real=True) ** 2, [u, v], decay)
    assert decay_rate(u**2 - v**2, [u, v], decay, {u: 2}) is None
    with pytest.raises(ValueError, match="expected a polynomial"):
        decay_rate(exp(u), [u], w)
