"""Verdicts for documents: decided here by exact procedures, or taken from a file of evidence.

Source of a verdict: every obligation of the claim decided by `theory.registry.decide`, or a certificate of
``gradline verify --json`` whose formulas are those of the claims.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_all_start_methods, get_context
from pathlib import Path
from typing import Any

from theory.errors import GradlineError
from theory.registry import Claim, Outcome, decide, find
from theory.serialize import write

__all__ = ["Verdicts", "exact_verdicts", "recorded_verdicts", "second_process", "verdicts_by_id"]

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


def verdicts_by_id(ids: Sequence[str]) -> dict[str, tuple[str, str]]:
    """`exact_verdicts` of claims of the theory, for another process: claims hold functions and do not travel."""
    return exact_verdicts([find(identity) for identity in ids])


def second_process() -> ProcessPoolExecutor:
    """A process beside this one, with what was derived so far where the system can fork."""
    method = "fork" if "fork" in get_all_start_methods() else "spawn"
    return ProcessPoolExecutor(1, get_context(method))


def recorded_verdicts(path: str | Path, claims: Sequence[Claim]) -> dict[str, tuple[str, str]]:
    """The verdicts of a file of evidence.

    Raises: ``ValueError`` where the file is no certificate, lacks a claim, or states other formulas.
    """
    from numerics.certificate_reader import load

    try:
        entries = {entry["id"]: entry for entry in load(path)["claims"]}
    except (ValueError, GradlineError) as error:
        raise ValueError(f"--evidence={path}: {error}") from None
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
