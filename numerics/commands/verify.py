"""``gradline verify``: a verdict for each claim, with the evidence."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from numerics.commands.console import progress_bar, show, write
from numerics.commands.values import integer
from numerics.output import check_file, write_files

if TYPE_CHECKING:
    from numerics.evidence import Report
    from theory.registry import Claim

__all__ = ["verify"]

_STYLES = {"proved": "green", "supported": "cyan", "refuted": "bold red", "undecided": "yellow"}


def verify(
    claim: Annotated[
        list[str] | None, typer.Option("--claim", metavar="ID", help="Verify this claim only; may be repeated.")
    ] = None,
    reference: Annotated[
        bool, typer.Option("--reference", help="The known theories of the literature in place of the paper's.")
    ] = False,
    list_: Annotated[bool, typer.Option("--list", help="List the claims and stop.")] = False,
    seed: Annotated[str, typer.Option("--seed", metavar="INT", help="Seed of the random cases.")] = "0",
    json: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help="Write the evidence as JSON; - for standard output."),
    ] = None,
    mutants: Annotated[
        bool,
        typer.Option("--mutants", help="Try wrong versions of the claims: each must be caught. Takes minutes."),
    ] = False,
    recheck: Annotated[
        str | None,
        typer.Option("--recheck", metavar="FILE", help="Check a file of --json again, without deriving anything."),
    ] = None,
) -> int:
    """Verify the claims of the theory. Exit code: 0 all well, 1 a claim is refuted, 3 something is undecided."""
    if recheck is not None:
        if claim or reference or list_ or mutants or json is not None or seed != "0":
            raise ValueError("--recheck takes everything from its file; expected no other option with it")
        from numerics.commands.recheck import recheck_file

        return recheck_file(recheck)
    number = integer("--seed", seed, 0)
    path = None if json in (None, "-") else check_file("--json", str(json), (".json",))
    if list_ and (json is not None or claim or mutants):
        raise ValueError("--list lists all claims; expected no --claim, --mutants or --json with it")
    if list_:
        _show_list(reference)
        return 0
    if claim and reference:
        raise ValueError("--claim and --reference are both given; expected one of them")
    chosen = _chosen(claim, reference)
    if mutants:
        from numerics.commands.mutants import run_mutants

        return run_mutants(chosen, number, json)
    from numerics.evidence import verify as gather

    begin = time.perf_counter()
    with progress_bar("verifying") as update:
        report = gather(chosen, seed=number, progress=update, processes=2)
    if json is not None:
        from numerics.certificates import certificate, dump

        text = dump(certificate(report))
    if path is not None:
        write_files({path: text.encode()})
    if json == "-":
        write(text)
    else:
        _show_report(report, time.perf_counter() - begin)
    return report.exit_code


def _chosen(ids: Sequence[str] | None, reference: bool) -> tuple[Claim, ...]:
    from theory import registry

    if ids:
        return tuple(registry.find(name) for name in dict.fromkeys(ids))
    return registry.reference_claims() if reference else registry.claims()


def _table(*headers: str) -> Any:
    from rich import box
    from rich.table import Table

    return Table(*headers, box=box.SIMPLE_HEAD, pad_edge=False)


def _show_list(reference: bool) -> None:
    from theory import registry

    table = _table("claim", "states")
    for found in registry.reference_claims() if reference else registry.claims():
        table.add_row(found.id, found.title)
    show(table)


def _show_counterexample(claim: Claim) -> None:
    """Both sides at the simplest point, and code that shows it."""
    from theory.counterexamples import counterexample
    from theory.registry import prove

    refuted = next((o for o in prove(claim) if o.answer == "refuted"), None)
    found = counterexample(claim, refuted) if refuted is not None else None
    if found is not None:
        show(str(found), found.snippet)


def _show_report(report: Report, seconds: float) -> None:
    from rich.text import Text

    table = _table("claim", "verdict", "how")
    table.add_column("time", justify="right", no_wrap=True)
    for result in report.results:
        verdict = Text(result.verdict, style=_STYLES[result.verdict])
        table.add_row(result.claim.id, verdict, result.how, f"{result.seconds:.2f} s")
    show(table)
    for result in report.results:
        for evidence in result.evidence:
            if result.verdict == "refuted" and evidence.supports is False:
                show(f"refuted {result.claim.id}, {evidence.kind}: {evidence.detail}")
        if result.verdict == "refuted":
            _show_counterexample(result.claim)
    counts = Counter[str](r.verdict for r in report.results)
    said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in _STYLES if counts[verdict])
    show(f"{len(report.results)} claims: {said}; seed {report.seed}; {seconds:.1f} s")
