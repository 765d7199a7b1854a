"""All evidence for a claim, kind by kind, and what each kind looked at.

A numerical kind sees the stated formulas through a mapping that notes which of them were read, so that evidence
says which parts of a claim it covers without anyone listing them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from typing import Any
from zlib import crc32

import numpy as np

from numerics.checks.comparison import Finding
from numerics.checks.enclosure import enclosure_findings
from theory.counterexamples import counterexample
from theory.errors import GradlineError
from theory.registry import Claim, Outcome, prove
from theory.symbols import PARAMETERS

__all__ = ["KINDS", "Evidence", "all_evidence", "numerical_evidence", "symbolic_evidence"]

#: The kinds of evidence, in the order of the report.
KINDS = ("symbolic", "enclosure", "instance", "autograd", "trajectory")


@dataclass(frozen=True)
class Evidence:
    """What one kind of check says about a claim.

    ``kind`` is one of `KINDS`; ``supports`` is True, False, or None where the check could not decide;
    ``detail`` says it in words; ``numbers`` holds the figures (counts, worst difference and its bound);
    ``parts`` names the stated formulas that were tested and ``broken`` those among them that the first failure
    rests on (empty: all of the claim).
    """

    kind: str
    supports: bool | None
    detail: str
    numbers: dict[str, Any] = field(default_factory=dict)
    parts: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()


class _Noted(Mapping[str, Any]):
    """Stated formulas that note which of them were read since the last call of ``taken``."""

    def __init__(self, stated: Mapping[str, Any]) -> None:
        self._stated = stated
        self._read: dict[str, None] = {}

    def __getitem__(self, name: str) -> Any:
        value = self._stated[name]
        self._read[name] = None
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._stated)

    def __len__(self) -> int:
        return len(self._stated)

    def __contains__(self, name: object) -> bool:
        return name in self._stated

    def taken(self) -> tuple[str, ...]:
        found = tuple(self._read)
        self._read = {}
        return found


def _counterexample(outcome: Outcome) -> str:
    """The simplest point at which an obligation fails, and what is left of it there."""
    found = counterexample(None, outcome)
    if found is None:
        return f"{outcome.obligation.name}: {outcome.how}"
    low, high = found.derived.low, found.derived.high
    value = f"in [{low}, {high}]" if low != high else low
    where = f" at {found.where}" if found.where else ""
    what = "must be positive and" if outcome.obligation.relation == "> 0" else "stated minus derived"
    return f"{found.obligation}: {what} is {value}{where}"


def symbolic_evidence(outcomes: tuple[Outcome, ...]) -> Evidence:
    """Summarize exact decisions."""
    counts = {answer: sum(o.answer == answer for o in outcomes) for answer in ("proved", "refuted", "undecided")}
    numbers: dict[str, Any] = {"obligations": len(outcomes), **counts}
    refuted = next((o for o in outcomes if o.answer == "refuted"), None)
    if refuted is not None:
        return Evidence("symbolic", False, _counterexample(refuted), numbers)
    if counts["undecided"] or not outcomes:
        names = ", ".join(o.obligation.name for o in outcomes if o.answer == "undecided") or "no obligation"
        return Evidence("symbolic", None, f"undecided: {names}", numbers)
    methods = ", ".join(dict.fromkeys(o.how for o in outcomes))
    used = sorted({a for o in outcomes if o.decision is not None for a in o.decision.assumptions})
    free = [o.decision for o in outcomes if o.decision is not None and not o.obligation.assumptions]
    domain = sorted({a for decision in free for a in decision.assumptions if _is_a_restriction(a)})
    where = f", where {', '.join(domain)}" if domain else ""
    text = f"{len(outcomes)} obligations by {methods}{where}"
    return Evidence("symbolic", True, text, numbers | {"assumptions_used": used})


def _is_a_restriction(assumption: str) -> bool:
    """Whether an assumption says more than the ranges of the parameters: it names a state or a symbol of the user."""
    names = set(re.findall(r"[A-Za-z_]\w*", assumption)) - {"exp", "log", "sqrt", "Abs"}
    return any(not name.startswith("_") for name in names - {p.name for p in PARAMETERS})


def summarize(kind: str, findings: Iterable[tuple[Finding, tuple[str, ...]]], what: str = "comparisons") -> Evidence:
    """Summarize findings, each with the parts it rests on: the one that comes closest to its bound, or the simplest
    that breaks it.
    """
    found = list(findings)
    parts = tuple(dict.fromkeys(name for _, names in found for name in names))
    if not found:
        return Evidence(kind, None, "no case", {"comparisons": 0})
    worst = max((f for f, _ in found), key=lambda f: f.error / f.bound)
    numbers: dict[str, Any] = {"comparisons": len(found), "bound": float(worst.bound), "case": worst.case}
    numbers["worst_difference"] = float(worst.error) if np.isfinite(worst.error) else str(worst.error)
    broken = [(f, names) for f, names in found if f.holds is not None and not f.holds]
    if broken:
        simplest, names = min(broken, key=lambda pair: len(pair[0].case))
        return Evidence(kind, False, simplest.says, numbers | {"broken": len(broken)}, parts, names)
    open_ = [f for f, _ in found if f.holds is None]
    if open_:
        text = f"{len(open_)} of {len(found)} {what} undecided: {open_[0].what} ({open_[0].case})"  # type: ignore[attr-defined]
        return Evidence(kind, None, text, numbers | {"undecided": len(open_)}, parts)
    text = f"{len(found)} {what}, worst {worst.error:.1e} of {worst.bound:.1e}"
    return Evidence(kind, True, text, numbers, parts)


def _enclosure(claim: Claim, outcomes: tuple[Outcome, ...], rng: np.random.Generator) -> Evidence | None:
    """The enclosures of all scalar obligations; None if there are none."""
    findings, figures = enclosure_findings(outcomes, rng)
    if not figures["scalar_obligations"]:
        return None
    every = tuple(claim.stated) if figures["scalar_obligations"] == len(outcomes) else ()
    found = summarize("enclosure", ((f, every) for f in findings), "enclosures")
    if figures["enclosed"] < figures["scalar_obligations"] and found.supports:
        left = figures["scalar_obligations"] - figures["enclosed"]
        found = replace(found, supports=None, detail=f"{left} obligations without an enclosure; {found.detail}")
    return replace(found, numbers=found.numbers | figures)


def _noted(findings: Iterator[Finding], stated: _Noted) -> Iterator[tuple[Finding, tuple[str, ...]]]:
    """Each finding with the formulas read for it; one that reads nothing new rests on those before."""
    last: tuple[str, ...] = ()
    for finding in findings:
        last = stated.taken() or last
        yield finding, last


Check = Callable[[Claim, np.random.Generator], Iterator[Finding]]


#: Where the checks of a numerical kind are, by subject.
_HOMES = {
    "instance": ("instance", "instance_algebra", "instance_solutions"),
    "autograd": ("autograd", "autograd_solutions"),
    "trajectory": ("trajectory", "runs", "descent", "late", "trials"),
}


@cache
def _checks(kind: str) -> Mapping[str, Check]:
    """The checks of a numerical kind, by subject."""
    found: dict[str, Check] = {}
    for home in _HOMES[kind]:
        found |= import_module(f"numerics.checks.{home}").CHECKS
    return found


def _generator(claim: Claim, kind: str, seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, crc32(claim.id.encode()), KINDS.index(kind)])


def _numerical(claim: Claim, kind: str, check: Check, seed: int) -> Evidence:
    from numerics.checks.tape import precision

    stated = _Noted(claim.stated)
    seen = replace(claim)
    object.__setattr__(seen, "stated", stated)
    try:
        with precision():
            return summarize(kind, _noted(check(seen, _generator(claim, kind, seed)), stated))
    except (GradlineError, ValueError, ArithmeticError) as error:
        # stated formulas with no value where a check needs one: nothing is decided
        return Evidence(kind, None, f"not evaluated: {error}", {"comparisons": 0})


def numerical_evidence(claim: Claim, seed: int) -> Iterator[Evidence]:
    """Gather what instances, autograd and trajectories say about a claim, without its obligations."""
    if claim.subject is None:
        return
    for kind in KINDS[2:]:
        known = _checks(kind)
        check = known.get(claim.subject[0]) or known.get(" ".join(map(str, claim.subject[:2])))
        if check is not None:
            yield _numerical(claim, kind, check, seed)


def all_evidence(claim: Claim, seed: int, outcomes: tuple[Outcome, ...] | None = None) -> tuple[Evidence, ...]:
    """Gather every kind of evidence that applies to a claim; ``outcomes``, those of `prove` if they are known."""
    outcomes = prove(claim) if outcomes is None else outcomes
    found = [symbolic_evidence(outcomes)]
    enclosure = _enclosure(claim, outcomes, _generator(claim, "enclosure", seed))
    if enclosure is not None:
        found.append(enclosure)
    return (*found, *numerical_evidence(claim, seed))
