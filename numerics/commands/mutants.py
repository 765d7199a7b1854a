"""``gradline verify --mutants``: what becomes of wrong versions of the claims."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numerics.commands.console import dump_json, progress_bar, show, write
from numerics.output import check_file, write_files

if TYPE_CHECKING:
    from numerics.mutation import MutationReport
    from theory.registry import Claim

__all__ = ["run_mutants"]


def run_mutants(chosen: Sequence[Claim], seed: int, json: str | None) -> int:
    """Try the mutants of claims, print the table or JSON, and return the exit code: 1 if one survives."""
    path = None if json in (None, "-") else check_file("--json", str(json), (".json",))
    from numerics.mutation import try_mutants

    begin = time.perf_counter()
    with progress_bar("mutants") as update:
        report = try_mutants(chosen, seed=seed, progress=update)
    if path is not None:
        write_files({path: dump_json(report.to_dict()).encode()})
    if json == "-":
        write(dump_json(report.to_dict()))
    else:
        _show(report, time.perf_counter() - begin)
    return report.exit_code


def _table(*headers: str) -> Any:
    from rich import box
    from rich.table import Table

    return Table(*headers, box=box.SIMPLE_HEAD, pad_edge=False)


def _show(report: MutationReport, seconds: float) -> None:
    counts = _table("claim", "mutants", "refuted", "equivalent", "true variants", "survivors", "time")
    answers = ("refuted", "equivalent", "proved", "survivor")
    for found in report.claims:
        row = (str(found.count(a)) for a in answers)  # type: ignore[arg-type]
        counts.add_row(found.claim_id, str(len(found.results)), *row, f"{found.seconds:.1f} s")
    show(counts)
    errors = _table("error in the derivation", "of", "caught", "by")
    for error in report.injections:
        errors.add_row(error.description, error.kind, "yes" if error.caught else "NO", error.detail)
    show(errors)
    for claim_id, mutant in report.survivors:
        show(f"survivor of {claim_id}, {mutant.name}: {mutant.description}; {mutant.detail}")
    total = sum(len(c.results) for c in report.claims)
    caught = sum(e.caught for e in report.injections)
    show(
        f"{total} mutants of {len(report.claims)} claims: {len(report.survivors)} survivors; {caught} of "
        f"{len(report.injections)} errors in the derivation caught; seed {report.seed}; {seconds:.1f} s"
    )
