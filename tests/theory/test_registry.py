"""Claims, obligations and their decisions."""

from __future__ import annotations

import pytest
from sympy import Add, Eq, Ge, Le, Mul, Ne, Symbol, erf, erfc, exp, sin, sqrt, zoo
from sympy.core.relational import Relational

from theory.blocks import BlockMatrix
from theory.identities import Decision
from theory.line import collapsed_line
from theory.registry import Claim, Obligation, claims, decide, find, prove
from theory.symbols import K, M, b, n
from theory.task import TokenTask
from theory.words import matrix

x = Symbol("x", real=True)


def claim(**stated: object) -> Claim:
    def obligations(formulas: object) -> list[Obligation]:
        return [Obligation(name, value - exp(x)) for name, value in formulas.items()]  # type: ignore[attr-defined]

    return Claim("mine", stated, obligations, title="A claim", text="y = e^x")


def test_unknown_id_names_the_nearest() -> None:
    with pytest.raises(ValueError, match="unknown claim 'flow-colapsed'; did you mean 'flow-collapsed'"):
        find("flow-colapsed")
    with pytest.raises(ValueError, match="did you mean"):
        find("zzz")


def test_find_returns_the_claim() -> None:
    assert find("flow-fafo") is next(c for c in claims() if c.id == "flow-fafo")


def test_stated_formulas_are_what_is_proved() -> None:
    right, other = claim(y=exp(x)), claim(y=exp(x) + x)
    assert [o.answer for o in prove(right)] == ["proved"]
    (outcome,) = prove(other)
    assert outcome.answer == "refuted"
    assert isinstance(outcome.decision, Decision)
    assert outcome.decision.witness is not None
    assert outcome.decision.witness[x] != 0


def test_with_stated_changes_one_formula_and_no_claim() -> None:
    first = claim(y=exp(x), z=exp(x))
    second = first.with_stated(z=x)
    assert dict(first.stated) == {"y": exp(x), "z": exp(x)}
    assert dict(second.stated) == {"y": exp(x), "z": x}
    assert (second.id, second.title, second.obligations) == (first.id, first.title, first.obligations)
    with pytest.raises(ValueError, match=r"mine: no stated formula \['w'\]; it has y, z"):
        first.with_stated(w=x)


def test_relations_are_obligations_of_their_own() -> None:
    stated = {"equal": Eq((x + 1) ** 2, x**2 + 2 * x + 1), "above": exp(x) + 1 > 1, "wrong": Eq(2 * x, x)}
    assert [o.answer for o in prove(Claim("mine", stated))] == ["proved", "proved", "refuted"]
    with pytest.raises(TypeError, match="expected a SymPy relation of the form Eq"):
        Claim("mine", x + 1)


def test_assumptions_of_a_claim_are_used() -> None:
    assert [o.answer for o in prove(Claim("mine", x > 0))] != ["proved"]
    assert [o.answer for o in prove(Claim("mine", x > 0, assumptions=(x > 1,)))] == ["proved"]


def test_stated_formulas_are_read_only() -> None:
    with pytest.raises(TypeError):
        claim(y=x).stated["y"] = 2 * x  # type: ignore[index]


def test_what_no_method_decides_stays_undecided() -> None:
    # true, and no rule knows it: enclosures hold 0 at every point and decide nothing
    assert decide(Obligation("error functions", erf(x) + erfc(x) - 1)).answer == "undecided"
    assert decide(Obligation("error functions", erf(x) + erfc(x) - 2)).answer == "refuted"


@pytest.mark.parametrize("value", [M, M - 1, M * b - 1])
def test_a_positive_value_is_proved(value: object) -> None:
    # M >= 2
    assert decide(Obligation("sign", value, "> 0")).answer == "proved"


@pytest.mark.parametrize("value", [1 - M, M - b, M - 2, x])
def test_a_value_that_may_not_be_positive_is_never_proved(value: object) -> None:
    assert decide(Obligation("sign", value, "> 0")).answer != "proved"
    assert decide(Obligation("sign", 1 - M, "> 0")).answer == "refuted"


def test_assumptions_of_an_obligation_are_used() -> None:
    assert decide(Obligation("sign", x, "> 0")).answer != "proved"
    assert decide(Obligation("sign", x, "> 0", (x > 0,))).answer == "proved"


def test_words_and_blocks_are_exact() -> None:
    U, V = matrix("U"), matrix("V")
    assert decide(Obligation("words", U @ V - U @ V)).answer == "proved"
    assert decide(Obligation("words", U @ V - V @ U)).answer == "refuted"
    assert decide(Obligation("words", U @ V - V @ U, decisive=False)).answer == "undecided"
    E = collapsed_line(TokenTask()).directions["OV"].matrix
    assert isinstance(E, BlockMatrix)
    assert decide(Obligation("blocks", E @ E.T @ E - b * E)).answer == "proved"
    assert decide(Obligation("blocks", E @ E.T @ E - 2 * b * E)).answer == "refuted"


def test_a_difference_is_never_proved_zero() -> None:
    assert decide(Obligation("not the double angle", sin(2 * x) - 2 * sin(x) * sin(x + 1))).answer == "refuted"


@pytest.mark.parametrize("relation", [Ge(M, b), Le(M, b), Ne(M, b)])
def test_weak_relations_are_refused_with_the_nearest_choice(relation: Relational) -> None:
    with pytest.raises(TypeError, match=r"^mine: .*: >=, <= and != are not decided; expected a > b, a < b or Eq\("):
        Claim("mine", relation)
    # twin: the strict ones are claims
    strict = b < M
    assert Claim("mine", strict).stated["mine"] == strict


def test_an_infinity_refutes_only_where_its_factors_are_not_zero() -> None:
    """A factor that vanishes in a form that SymPy doesn't see through may cancel the infinity."""
    hidden = sqrt(n**2 + 2 * n + 1) - n - 1
    for value, answer in (
        (zoo, "refuted"),
        (zoo * (n + 1) + n, "refuted"),
        (Mul(zoo, hidden, evaluate=False), "undecided"),
        (Add(zoo * n, zoo * K, evaluate=False), "undecided"),
        (Mul(exp(zoo, evaluate=False), n, evaluate=False), "undecided"),
    ):
        assert decide(Obligation("infinite", value)).answer == answer, value
