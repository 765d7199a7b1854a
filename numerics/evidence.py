"""From claims to verdicts: exact proof first, then four kinds of numerical evidence.

*symbolic*: every obligation by its normal form; *enclosure*: the obligations in ball arithmetic; *instance*:
the model at small sizes, written out, in balls or fractions; *autograd*: derivatives of the full model in
torch; *trajectory*: runs of it.

``proved`` needs every obligation of a claim decided exactly; ``supported`` means undecided with numerical
evidence for it; ``refuted`` means an exact counterexample or a contradiction by the full model; everything else
stays ``undecided``. A claim that one kind of evidence supports and another contradicts is an error of its own
(`ContradictionError`), never a vote.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from numerics.checks.gather import KINDS, Evidence, all_evidence
from theory.errors import GradlineError
from theory.registry import Claim, Outcome, Verdict, claims, find, prove

__all__ = ["KINDS", "ClaimResult", "ContradictionError", "Evidence", "Report", "verify"]

Progress = Callable[[int, int, str], None]


class ContradictionError(GradlineError):
    """One kind of evidence supports a claim and another contradicts it."""


@dataclass(frozen=True)
class ClaimResult:
    """A claim with its verdict, the evidence for it and the time it took in seconds.

    ``obligations`` says how each was decided: an `Outcome`, or its plain data where another process decided it.
    """

    claim: Claim
    verdict: Verdict
    evidence: tuple[Evidence, ...]
    seconds: float
    obligations: tuple[Outcome | Mapping[str, Any], ...] = field(repr=False)

    @property
    def how(self) -> str:
        """The kinds of evidence and what they rest on, in one line."""
        return "; ".join(f"{e.kind}: {e.detail}" for e in self.evidence)


@dataclass(frozen=True)
class Report:
    """The results for a list of claims; ``seed`` is that of the random cases."""

    results: tuple[ClaimResult, ...]
    seed: int

    @property
    def exit_code(self) -> int:
        """0 all well, 1 a claim is refuted, 3 something is undecided (1 goes before 3)."""
        verdicts = {r.verdict for r in self.results}
        return 1 if "refuted" in verdicts else 3 if "undecided" in verdicts else 0

    def __getitem__(self, claim_id: str) -> ClaimResult:
        """The result for the claim with this id."""
        for result in self.results:
            if result.claim.id == claim_id:
                return result
        raise KeyError(f"{claim_id}: not among {', '.join(r.claim.id for r in self.results)}")

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data for JSON: statements, assumptions, verdicts, evidence and times."""
        return {"seed": self.seed, "claims": [_result_dict(r) for r in self.results]}


def _result_dict(result: ClaimResult) -> dict[str, Any]:
    claim = result.claim
    return {
        "id": claim.id,
        "title": claim.title,
        "text": claim.text,
        "source": claim.source,
        "stated": {name: str(formula) for name, formula in claim.stated.items()},
        "assumptions": [str(a) for a in claim.assumptions()],
        "verdict": result.verdict,
        "evidence": [
            {"kind": e.kind, "supports": e.supports, "detail": e.detail, "numbers": e.numbers} for e in result.evidence
        ],
        "seconds": round(result.seconds, 3),
    }


def confront(evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """Take back support that says nothing about what another kind refutes.

    A counterexample refutes a statement for all cases, and kinds that sample cases need not meet it: they keep their
    figures and decide nothing. Enclosures are taken at the counterexample itself and keep their support. Where
    a numerical kind breaks, the others keep their support if they tested the stated formulas that it rests on.
    """
    exact = any(e.kind == "symbolic" and e.supports is False for e in evidence)
    broken = [e.broken for e in evidence if e.supports is False and e.kind != "symbolic"]
    if not exact and not broken:
        return tuple(evidence)

    def meets(e: Evidence) -> bool:
        if e.kind == "symbolic" or (exact and e.numbers.get("counterexamples")):
            return True
        return not exact and any(set(names) <= set(e.parts) for names in broken)

    return tuple(
        e
        if e.supports is not True or meets(e)
        else replace(e, supports=None, detail=f"its cases do not meet it: {e.detail}")
        for e in evidence
    )


def judge(claim: Claim, evidence: Sequence[Evidence]) -> Verdict:
    """The verdict that the evidence carries.

    Raises: `ContradictionError` when one kind of evidence supports the claim and another contradicts it.
    """
    supporting = [e for e in evidence if e.supports is True]
    against = [e for e in evidence if e.supports is False]
    if supporting and against:
        said = "proved" if supporting[0].kind == "symbolic" else f"supported by {supporting[0].kind}"
        raise ContradictionError(f"{claim.id}: {said}, but {against[0].kind} contradicts it: {against[0].detail}")
    if any(e.kind == "symbolic" for e in supporting):
        return "proved"
    if against:
        return "refuted"
    if supporting and all(e.supports is not None for e in evidence if e.kind != "symbolic"):
        return "supported"
    return "undecided"


def verify_claim(claim: Claim, seed: int = 0) -> ClaimResult:
    """Gather all evidence for one claim and judge it."""
    from numerics.gradient_flow import one_thread

    begin = time.perf_counter()
    with one_thread():
        outcomes = prove(claim)
        evidence = confront(all_evidence(claim, seed, outcomes))
    return ClaimResult(claim, judge(claim, evidence), evidence, time.perf_counter() - begin, outcomes)


#: Claims from which on a second process, which takes seconds to start, saves time.
_WORTHWHILE = 6


_Parts = tuple[Verdict, tuple[Evidence, ...], float, tuple[Outcome | Mapping[str, Any], ...]]


def _parts(claim: Claim, seed: int) -> _Parts:
    """The result for a claim without the claim, which holds functions."""
    result = verify_claim(claim, seed)
    return result.verdict, result.evidence, result.seconds, result.obligations


def _plain_parts(claim: Claim, seed: int) -> _Parts:
    """The same for another process: outcomes hold expressions that would be evaluated anew on arrival."""
    from numerics.obligations import obligation_entry

    verdict, evidence, seconds, outcomes = _parts(claim, seed)
    return verdict, evidence, seconds, tuple(obligation_entry(o) for o in outcomes if isinstance(o, Outcome))


def _results(chosen: Sequence[Claim], seed: int, progress: Progress, processes: int) -> Iterator[ClaimResult]:
    if processes == 1 or len(chosen) < _WORTHWHILE:
        for done, claim in enumerate(chosen):
            progress(done, len(chosen), claim.id)
            yield verify_claim(claim, seed)
        return
    from numerics.checks.parallel import shared

    found = shared(_parts, _plain_parts, chosen, seed, lambda done, name: progress(done, len(chosen), name))
    yield from (ClaimResult(claim, *parts) for claim, parts in zip(chosen, found, strict=True))


def verify(
    claims_: Sequence[Claim | str] | Claim | str | None = None,
    *,
    seed: int = 0,
    progress: Progress | None = None,
    processes: int = 1,
) -> Report:
    """Verify claims: exact proof of every obligation, and every kind of numerical evidence that applies.

    Parameters: ``claims_``, claims or their ids, by default all of `theory.claims`; ``seed`` of the random cases;
    ``progress``, called with the number done, the number in all and the id at hand; ``processes``, 1, or 2 to
    share the claims with a second process (a script then needs the guard ``if __name__ == "__main__"``). The
    report is the same, apart from times.

    Returns: a `Report`. Raises: `ContradictionError` when kinds of evidence disagree.

    >>> from theory.registry import find
    >>> verify([find("noise-correction")])["noise-correction"].verdict
    'proved'
    """
    given = [claims_] if isinstance(claims_, str | Claim) else claims() if claims_ is None else claims_
    chosen = tuple(find(c) if isinstance(c, str) else c for c in given)
    for claim in chosen:
        if not isinstance(claim, Claim):
            raise TypeError(f"verify: {claim!r}: expected claims, or ids such as 'flow-collapsed'")
    if processes not in (1, 2):
        raise ValueError(f"processes={processes!r}: expected 1 or 2")
    report = progress or (lambda done, total, name: None)
    results = tuple(_results(chosen, seed, report, processes))
    report(len(chosen), len(chosen), "")
    return Report(results, seed)
