"""Verdicts for documents: decided here by exact procedures, or taken from a file of evidence.

Source of a verdict: every obligation of the claim decided by `theory.registry.decide`, or a certificate of
``gradline verify --json`` whose formulas are those of the claims.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_all_start_methods, get_context
from pathlib import Path
from typing import Any

from theory.registry import Claim, Outcome, decide, find
from theory.serialize import write

__all__ = ["Verdicts", "exact_verdicts", "recorded_verdicts", "start_verdicts"]

#: By claim id: the verdict and how it was reached.
Verdicts = Mapping[str, tuple[str, str]]


def exact_verdicts(claims: Sequence[Claim]) -> dict[str, tuple[str, str]]:
    """Decide every obligation of claims exactly, equal ones once.

    Returns: by id ``proved``, ``refuted`` or ``undecided``, and the procedures with the number of obligations.

    >>> exact_verdicts([find("flow-published")])["flow-published"]
    ('proved', '4 obligations by normal form')
    """
    known: dict[Any, Outcome] = {}
    found = {}
    for claim in claims:
        outcomes = []
        for obligation in claim.obligations(claim.stated):
            key = (
                obligation.value,
                obligation.relation,
                obligation.assumptions,
                obligation.decisive,
                *obligation.hypotheses,
            )
            if key not in known:
                known[key] = decide(obligation)
            outcomes.append(known[key])
        found[claim.id] = _verdict(outcomes), _how(outcomes)
    return found


def _verdict(outcomes: Sequence[Outcome]) -> str:
    answers = {o.answer for o in outcomes}
    if "refuted" in answers:
        return "refuted"
    return "proved" if answers == {"proved"} else "undecided"


def _how(outcomes: Sequence[Outcome]) -> str:
    """The procedures that decided the obligations, without what is said of single ones."""
    counts = Counter(o.how.partition(":")[0].partition(",")[0] for o in outcomes)
    if len(counts) == 1:
        return f"{_obligations(len(outcomes))} by {next(iter(counts))}"
    return f"{_obligations(len(outcomes))}: " + ", ".join(f"{counts[how]} by {how}" for how in sorted(counts))


def _obligations(count: int) -> str:
    return f"{count} obligation{'s' * (count != 1)}"


def _exact_by_id(ids: Sequence[str]) -> dict[str, tuple[str, str]]:
    return exact_verdicts([find(identity) for identity in ids])


def start_verdicts(claims: Sequence[Claim]) -> tuple[Future[dict[str, tuple[str, str]]], ProcessPoolExecutor]:
    """Decide the claims of the theory in a second process, while this one does other work.

    Returns: the future verdicts, and the pool to shut down.
    """
    method = "fork" if "fork" in get_all_start_methods() else "spawn"
    pool = ProcessPoolExecutor(1, get_context(method))
    return pool.submit(_exact_by_id, [c.id for c in claims]), pool


def recorded_verdicts(path: str | Path, claims: Sequence[Claim]) -> dict[str, tuple[str, str]]:
    """The verdicts of a file of evidence.

    Raises: ``ValueError`` where the file is no certificate, lacks a claim, or states other formulas.
    """
    from numerics.certificate_reader import load

    entries = {entry["id"]: entry for entry in load(path)["claims"]}
    found = {}
    for claim in claims:
        entry = entries.get(claim.id)
        if entry is None:
            raise ValueError(f"--evidence={path}: nothing about {claim.id}; make it anew with gradline verify --json")
        dummies: dict[Any, int] = {}
        stated = {name: write(formula, dummies) for name, formula in claim.stated.items()}
        if {f["name"]: f["srepr"] for f in entry["statement"]} != stated:
            raise ValueError(f"--evidence={path}: {claim.id} states other formulas there; make it anew")
        kinds = [e["kind"] for e in entry["evidence"] if e["supports"] is not None]
        found[claim.id] = entry["verdict"], f"{_obligations(len(entry['obligations']))}: {', '.join(kinds)}"
    return found
