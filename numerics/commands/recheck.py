"""``gradline verify --recheck``: a certificate is checked again, without deriving anything."""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

from numerics.commands.console import progress_bar, show

if TYPE_CHECKING:
    from numerics.recheck import Recheck

__all__ = ["recheck_file"]

_STYLES = {"proved": "green", "supported": "cyan", "refuted": "bold red", "undecided": "yellow"}


def recheck_file(name: str) -> int:
    """Check a certificate again and print what was found; ``-`` reads standard input.

    Returns: 0 all well, 1 something does not match or a claim is refuted, 3 something is undecided.
    Raises: ``ValueError`` in one line for what is no certificate.
    """
    from numerics.certificate_reader import load, parse
    from numerics.recheck import recheck

    begin = time.perf_counter()
    shown = "standard input" if name == "-" else name
    try:
        document = parse(sys.stdin.buffer.read()) if name == "-" else load(name)
        with progress_bar("checking again") as update:
            found = recheck(document, update)
    except ValueError as error:
        raise ValueError(f"--recheck={shown}: {error}") from None
    _show(found, time.perf_counter() - begin)
    return found.exit_code


def _show(found: Recheck, seconds: float) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table("claim", "verdict", "checked again", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("time", justify="right", no_wrap=True)
    for result in found.results:
        matches = f"{result.obligations} obligations decided again"
        said = Text("does not match", style="bold red") if result.problems else Text(matches)
        verdict = Text(result.verdict, style=_STYLES[result.verdict])
        table.add_row(Text(result.id), verdict, said, f"{result.seconds:.2f} s")
    show(table)
    for result in found.results:
        for problem in result.problems:
            show(f"no match {result.id}: {problem}")
    for line in (*(f"no match: {problem}" for problem in found.problems), *found.notes):
        show(line)
    counts = Counter[str](r.verdict for r in found.results)
    said_counts = ", ".join(f"{counts[v]} {v}" for v in _STYLES if counts[v]) or "no verdict"
    end = "everything matches" if found.holds else "NOT as it was written"
    show(f"{len(found.results)} claims: {said_counts}; seed {found.seed}; {end}; {seconds:.1f} s")
