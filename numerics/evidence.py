"""From claims to verdicts: exact proof first, then independent numerical evidence from the full model.

``proved`` needs every obligation of a claim decided exactly; ``supported`` means undecided with numerical
evidence for it; ``refuted`` means an exact counterexample or a contradiction by the full model; everything else
stays ``undecided``. A claim that one kind of evidence supports and another contradicts is an error of its own
(`ContradictionError`), never a vote.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np

from theory.errors import GradlineError
from theory.registry import Claim, Outcome, Verdict, claims, prove

__all__ = ["ClaimResult", "ContradictionError", "Evidence", "Report", "verify"]

Progress = Callable[[int, int, str], None]


class ContradictionError(GradlineError):
    """One kind of evidence supports a claim and another contradicts it."""


@dataclass(frozen=True)
class Evidence:
    """What one kind of check says about a claim.

    ``kind`` is ``"symbolic"``, ``"autograd"`` or ``"trajectory"``; ``supports`` is True, False, or None where
    the check could not decide; ``detail`` says it in words; ``numbers`` holds the figures (counts, worst
    difference and its bound).
    """

    kind: str
    supports: bool | None
    detail: str
    numbers: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ClaimResult:
    """A claim with its verdict, the evidence for it and the time it took in seconds."""

    claim: Claim
    verdict: Verdict
    evidence: tuple[Evidence, ...]
    seconds: float

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


def _counterexample(outcome: Outcome) -> str:
    decision = outcome.decision
    if decision is None or not decision.witness:
        return f"{outcome.obligation.name}: {outcome.how}"
    point = ", ".join(f"{s}={v}" for s, v in decision.witness.items())
    low, high = decision.enclosure or ("?", "?")
    return f"{outcome.obligation.name}: stated minus derived is in [{low}, {high}] at {point}"


def _symbolic(claim: Claim) -> Evidence:
    """Decide all obligations exactly."""
    outcomes = prove(claim)
    counts = {answer: sum(o.answer == answer for o in outcomes) for answer in ("proved", "refuted", "undecided")}
    numbers: dict[str, Any] = {"obligations": len(outcomes), **counts}
    refuted = next((o for o in outcomes if o.answer == "refuted"), None)
    if refuted is not None:
        return Evidence("symbolic", False, _counterexample(refuted), numbers)
    if counts["undecided"] or not outcomes:
        names = ", ".join(o.obligation.name for o in outcomes if o.answer == "undecided") or "no obligation"
        return Evidence("symbolic", None, f"undecided: {names}", numbers)
    methods = ", ".join(dict.fromkeys(o.how for o in outcomes))
    return Evidence("symbolic", True, f"{len(outcomes)} obligations by {methods}", numbers)


def _numerical(kind: str, comparisons: Iterator[Any]) -> Evidence:
    """Summarize comparisons with the full model: the one that comes closest to its bound, or the first that
    breaks it.
    """
    found = list(comparisons)
    if not found:
        return Evidence(kind, None, "no case", {"comparisons": 0})
    worst = max(found, key=lambda c: abs(c.stated - c.found) / c.bound)
    difference = abs(worst.stated - worst.found)
    numbers = {"comparisons": len(found), "worst_difference": difference, "bound": worst.bound, "case": worst.case}
    broken = [c for c in found if not c.holds]
    if broken:
        simplest = min(broken, key=lambda c: len(c.case))
        text = f"{simplest.what} is {simplest.found:.12g}, stated {simplest.stated:.12g} ({simplest.case})"
        return Evidence(kind, False, text, numbers | {"broken": len(broken)})
    return Evidence(kind, True, f"{len(found)} comparisons, worst {difference:.1e} of {worst.bound:.1e}", numbers)


def _numerical_evidence(claim: Claim, seed: int) -> Iterator[Evidence]:
    from numerics.checks.autograd import autograd_comparisons, has_autograd
    from numerics.checks.trajectory import has_trajectory, trajectory_comparisons

    if has_autograd(claim):
        rng = np.random.default_rng([seed, crc32(claim.id.encode()), 0])
        yield _numerical("autograd", autograd_comparisons(claim, rng))
    if has_trajectory(claim):
        rng = np.random.default_rng([seed, crc32(claim.id.encode()), 1])
        yield _numerical("trajectory", trajectory_comparisons(claim, rng))


def judge(claim: Claim, evidence: Sequence[Evidence]) -> Verdict:
    """The verdict that the evidence carries.

    Raises: `ContradictionError` when an exact proof and the full model disagree.
    """
    symbolic = [e for e in evidence if e.kind == "symbolic"]
    numerical = [e for e in evidence if e.kind != "symbolic"]
    proved = bool(symbolic) and all(e.supports is True for e in symbolic)
    against = [e for e in evidence if e.supports is False]
    if proved and against:
        raise ContradictionError(f"{claim.id}: proved, but {against[0].kind} contradicts it: {against[0].detail}")
    if proved:
        return "proved"
    if against:
        return "refuted"
    if any(e.supports for e in numerical) and all(e.supports is not None for e in numerical):
        return "supported"
    return "undecided"


def verify_claim(claim: Claim, seed: int = 0) -> ClaimResult:
    """Gather all evidence for one claim and judge it."""
    from numerics.gradient_flow import one_thread

    begin = time.perf_counter()
    with one_thread():
        evidence = (_symbolic(claim), *_numerical_evidence(claim, seed))
    return ClaimResult(claim, judge(claim, evidence), evidence, time.perf_counter() - begin)


def verify(claims_: Sequence[Claim] | None = None, *, seed: int = 0, progress: Progress | None = None) -> Report:
    """Verify claims: exact proof of every obligation, and comparison with the full model where it applies.

    Parameters: ``claims_``, the claims, by default all of `theory.claims`; ``seed`` of the random cases;
    ``progress``, called with the number done, the number in all and the id at hand.

    Returns: a `Report`. Raises: `ContradictionError` when kinds of evidence disagree.

    >>> from theory.registry import find
    >>> verify([find("noise-correction")])["noise-correction"].verdict
    'proved'
    """
    chosen = tuple(claims() if claims_ is None else claims_)
    results = []
    for done, claim in enumerate(chosen):
        if progress is not None:
            progress(done, len(chosen), claim.id)
        results.append(verify_claim(claim, seed))
    if progress is not None:
        progress(len(chosen), len(chosen), "")
    return Report(tuple(results), seed)
