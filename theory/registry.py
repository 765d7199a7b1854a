"""Claims: what a theory states, under which assumptions, and the obligations that prove it.

A claim holds stated formulas and a function that confronts them with the derivation: each `Obligation` it
returns must vanish (or be positive). The stated formulas are never an input of the derivation, so a wrong
formula gives an obligation that fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Literal

from sympy import Basic, Eq, Equality, StrictGreaterThan, StrictLessThan, Unequality, false, nan, oo, true, zoo
from sympy.core.relational import GreaterThan, LessThan

from theory.blocks import BlockMatrix
from theory.counterexamples import nonpositive
from theory.frozen import FrozenMap
from theory.identities import Decision, prove_zero
from theory.positivity import sign
from theory.trace import Assumption, Trace
from theory.word_instances import find_instance
from theory.words import Rule, Words

__all__ = ["Claim", "Obligation", "Outcome", "Verdict", "claims", "find", "prove", "published", "reference_claims"]

Verdict = Literal["proved", "supported", "refuted", "undecided"]
Stated = Mapping[str, Any]


@dataclass(frozen=True)
class Obligation:
    """Something to prove: ``value = 0`` or ``value > 0``.

    ``value`` is a SymPy expression, a `BlockMatrix` or `Words`; ``assumptions`` are SymPy relations,
    ``hypotheses`` the rules that were used on words: what is left then refutes only by matrices that satisfy
    them. Where ``decisive`` is false, a value that is not zero in normal form leaves the question open.
    """

    name: str
    value: Any
    relation: Literal["= 0", "> 0"] = "= 0"
    assumptions: tuple[Any, ...] = ()
    decisive: bool = True
    hypotheses: tuple[Rule, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """How an obligation ended: ``answer`` is ``"proved"``, ``"refuted"`` or ``"undecided"``."""

    obligation: Obligation
    answer: Literal["proved", "refuted", "undecided"]
    how: str
    decision: Decision | None = None


def _relations(stated: Stated) -> tuple[Obligation, ...]:
    """The obligations of formulas that are SymPy relations themselves: ``Eq``, ``>``, ``<``."""
    found = []
    for name, relation in stated.items():
        if relation in (true, false):
            found.append(Obligation(name, relation))
        elif isinstance(relation, Equality):
            found.append(Obligation(name, relation.lhs - relation.rhs))
        elif isinstance(relation, StrictGreaterThan | StrictLessThan):
            found.append(Obligation(name, relation.gts - relation.lts, "> 0"))
        elif isinstance(relation, GreaterThan | LessThan | Unequality):
            raise TypeError(
                f"{name}: {relation}: >=, <= and != are not decided; expected a > b, a < b or Eq(mine, derived)"
            )
        else:
            raise TypeError(
                f"{name}: {relation}: expected a SymPy relation of the form Eq(mine, derived), a > b or a < b"
            )
    return tuple(found)


@dataclass(frozen=True)
class Claim:
    """A statement of a theory with the means to check it.

    Parameters: ``id``, a short name; ``stated``, a SymPy relation (``Eq(mine, derived)``, ``a > b``) or
    formulas by name; ``obligations``, a function from the stated formulas to what must be proved, by default
    the relations themselves; ``title`` and ``text``, for people; ``source``, where it is published;
    ``assumptions``, SymPy relations, or a function of nothing that returns `Assumption`; ``trace``, a function
    of nothing, so that listing claims derives nothing; ``subject``, what numerical evidence can be compared
    with (see `numerics.evidence`).

    Raises: ``TypeError`` for formulas that are no relations where no ``obligations`` are given.

    >>> from sympy import Eq
    >>> from theory.symbols import M
    >>> [o.answer for o in prove(Claim("square", Eq((M - 1) ** 2, M**2 - 2 * M + 1)))]
    ['proved']
    """

    id: str
    stated: Stated
    obligations: Callable[[Stated], Iterable[Obligation]] = _relations
    title: str = ""
    text: str = ""
    source: str = "user"
    assumptions: Any = ()
    trace: Callable[[], Trace] = field(default=tuple)
    subject: Any = None

    def __post_init__(self) -> None:
        stated = self.stated if isinstance(self.stated, Mapping) else {self.id: self.stated}
        object.__setattr__(self, "stated", FrozenMap(dict(stated)))
        if self.obligations is _relations:
            _relations(self.stated)
        if not self.text:
            object.__setattr__(self, "text", "; ".join(str(s) for s in self.stated.values()))
        if not callable(self.assumptions):
            given = tuple(a if isinstance(a, Assumption) else Assumption(str(a), a) for a in self.assumptions)
            object.__setattr__(self, "assumptions", lambda: given)

    def __hash__(self) -> int:
        return hash(self.id)

    @staticmethod
    def equal(identity: str, mine: Any, derived: Any, assumptions: Iterable[Any] = (), **about: Any) -> Claim:
        """The claim ``mine = derived``, decided by the normal form alone (``Eq`` may evaluate itself before).

        >>> from theory.symbols import M
        >>> [o.how for o in prove(Claim.equal("square", M**2 - 1, (M - 1) * (M + 1)))]
        ['normal form']
        """
        return Claim(identity, Eq(mine, derived, evaluate=False), assumptions=tuple(assumptions), **about)

    def with_stated(self, **changes: Any) -> Claim:
        """The same claim with other stated formulas; names are those of ``stated``."""
        unknown = set(changes) - set(self.stated)
        if unknown:
            raise ValueError(f"{self.id}: no stated formula {sorted(unknown)}; it has {', '.join(self.stated)}")
        for name, formula in changes.items():
            if not isinstance(formula, Basic | Words):
                raise TypeError(f"{self.id}, {name}={formula!r}: expected a SymPy expression or Words")
        values = {f: getattr(self, f) for f in self.__dataclass_fields__}
        return Claim(**(values | {"stated": {**self.stated, **changes}}))


def _decide_exact(obligation: Obligation, vanishes: bool, what: str) -> Outcome:
    if vanishes:
        return Outcome(obligation, "proved", what)
    return Outcome(obligation, "refuted" if obligation.decisive else "undecided", f"{what}: {obligation.value} is left")


def _decide_sign(obligation: Obligation) -> Outcome:
    """``value > 0``: a proof of the sign, or a point where the value is not positive."""
    answer = sign(obligation.value, obligation.assumptions)
    if answer == 1:
        return Outcome(obligation, "proved", "sign")
    found = nonpositive(obligation.value, obligation.assumptions)
    if found is not None:
        return Outcome(obligation, "refuted", "sign", found)
    return Outcome(obligation, "undecided" if answer is None else "refuted", "sign")


def _decide_words(obligation: Obligation) -> Outcome:
    """Words left over refute an identity without hypotheses; with hypotheses only matrices that satisfy them do."""
    value, how = obligation.value, "words, any shapes"
    if value.is_zero() or not obligation.hypotheses:
        return _decide_exact(obligation, value.is_zero(), how)
    if find_instance(value, obligation.hypotheses) is None:
        return Outcome(obligation, "undecided", f"{how}: {value} is left")
    return Outcome(obligation, "refuted", f"{how}: {value} is left, and matrices for which it is not 0")


def _decide_blocks(obligation: Obligation) -> Outcome:
    """Every coefficient of a block matrix vanishes, or one of them does not at a point."""
    how, open_ = "block algebra, any sizes", False
    for coefficient in obligation.value.coefficients():
        decision = prove_zero(coefficient, obligation.assumptions)
        if decision.answer == "different":
            return Outcome(obligation, "refuted", f"{how}: {coefficient} is left", decision)
        open_ |= decision.answer == "undecided"
    return Outcome(obligation, "undecided" if open_ else "proved", how)


def _is_infinite(value: Any) -> bool:
    """Whether a value with infinities in it is infinite: one infinite term, times factors that are not zero.

    SymPy keeps a factor that vanishes without looking so beside an infinity; the product may be anything.
    """
    if value in (zoo, oo, -oo):
        return True
    if value.is_Add:
        infinite = [term for term in value.args if term.has(zoo, oo, -oo)]
        return len(infinite) == 1 and _is_infinite(infinite[0])
    if value.is_Mul:
        infinite = [factor for factor in value.args if factor.has(zoo, oo, -oo)]
        finite = [factor for factor in value.args if factor not in infinite]
        return all(map(_is_infinite, infinite)) and all(prove_zero(f).answer == "different" for f in finite)
    return False


def decide(obligation: Obligation) -> Outcome:
    """Decide one obligation exactly; what cannot be decided stays undecided."""
    value = obligation.value
    if value in (true, false):
        # Eq(a, b) decides itself where SymPy can; that is SymPy's word, not a normal form of this package
        return Outcome(obligation, "proved" if value == true else "refuted", "SymPy's own evaluation of the relation")
    if isinstance(value, Basic) and value.has(nan):
        # 0/0 by putting in a value: the limit may exist
        return Outcome(obligation, "undecided", f"no value: {value}")
    if isinstance(value, Basic) and value.has(zoo, oo, -oo):
        return Outcome(obligation, "refuted" if _is_infinite(value) else "undecided", f"no finite value: {value}")
    if obligation.relation == "> 0":
        return _decide_sign(obligation)
    if isinstance(value, Words):
        return _decide_words(obligation)
    if isinstance(value, BlockMatrix):
        return _decide_blocks(obligation)
    decision = prove_zero(value, obligation.assumptions)
    answers = {"equal": "proved", "different": "refuted", "undecided": "undecided"}
    return Outcome(obligation, answers[decision.answer], "normal form", decision)  # type: ignore[arg-type]


def prove(claim: Claim) -> tuple[Outcome, ...]:
    """Decide every obligation of a claim, from its derivation.

    >>> all(o.answer == "proved" for o in prove(find("flow-published")))
    True
    """
    given = tuple(a.relation for a in claim.assumptions() if a.relation is not None) if claim.source == "user" else ()
    obligations = claim.obligations(claim.stated)
    return tuple(decide(replace(o, assumptions=o.assumptions + given)) for o in obligations)


def published(
    identity: str,
    title: str,
    text: str,
    stated: Stated,
    obligations: Callable[[Stated], Iterable[Obligation]],
    source: str,
    assumptions: Callable[[], tuple[Assumption, ...]],
    trace: Callable[[], Trace] = tuple,
    subject: Any = None,
) -> Claim:
    """A claim of a paper; see `Claim`.

    >>> from theory.symbols import M
    >>> published("one", "", "", {"x": M}, lambda s: [Obligation("x", s["x"] - M)], "my paper", tuple).source
    'my paper'
    """
    return Claim(identity, stated, obligations, title, text, source, assumptions, trace, subject)


def claims() -> tuple[Claim, ...]:
    """The claims of the theory, in the order of the paper.

    >>> len(claims()), claims()[0].id
    (37, 'attention-mass')
    """
    from theory.paper import CLAIMS

    return CLAIMS


def reference_claims() -> tuple[Claim, ...]:
    """The known theories of the literature, see `theory.reference`.

    >>> reference_claims()[0].id
    'saxe-mode'
    """
    from theory.reference import CLAIMS

    return CLAIMS


def find(claim_id: str) -> Claim:
    """Return the claim with this id, of the theory or of the literature.

    Raises: ``ValueError`` naming the nearest id.

    >>> find("loss-on-line").stated["L"]
    log((M - 1)*exp(-alpha*mu_OV) + 1)
    """
    known = {c.id: c for c in (*claims(), *reference_claims())}
    if claim_id not in known:
        near = get_close_matches(claim_id, known, 1, 0.0)
        raise ValueError(
            f"unknown claim {claim_id!r}; did you mean {near[0]!r}? `gradline verify --list` shows them all"
        )
    return known[claim_id]
