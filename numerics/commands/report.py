"""``gradline report``: the evidence as one HTML file for a browser."""

from __future__ import annotations

import json as json_module
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from numerics.commands.console import dump_json, progress_bar, show, write
from numerics.output import make_folder, write_files

__all__ = ["report"]

_NAME = "report.html"


def report(
    evidence: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE]",
            help="A file of verify --json; - for standard input. Without it, verify first.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[str, typer.Option("--out", metavar="DIR", help="Folder for report.html.")] = ".",
    mutants: Annotated[
        str | None,
        typer.Option("--mutants", metavar="FILE", help="A file of verify --mutants --json, to show what was caught."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the file and the counts of verdicts as JSON.")] = False,
) -> int:
    """Write the evidence as one HTML file that needs no network. Exit code as of verify."""
    found = None if mutants is None else _mutants(mutants)
    document = None if evidence is None else _read(evidence)
    folder = make_folder("--out", out)
    if document is None:
        document = _verified()
    from numerics.report import report_page

    content = report_page(document, found).encode()
    path = folder / _NAME
    write_files({path: content})
    verdicts = [c["verdict"] for c in document["claims"]]
    counts = {v: verdicts.count(v) for v in ("proved", "supported", "refuted", "undecided") if v in verdicts}
    if json:
        write(dump_json({"file": str(path), "bytes": len(content), "claims": len(verdicts), "verdicts": counts}))
    else:
        said = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        show(f"{len(verdicts)} claims: {said or 'no verdict'}; wrote {path} ({len(content) / 1e6:.2f} MB)")
    return 1 if "refuted" in counts else 3 if "undecided" in counts else 0


def _read(name: str) -> dict[str, Any]:
    from numerics.certificate_reader import load, parse

    try:
        return parse(sys.stdin.buffer.read()) if name == "-" else load(name)
    except ValueError as error:
        raise ValueError(f"{'standard input' if name == '-' else name}: {error}") from None


def _mutants(name: str) -> dict[str, Any]:
    """The data of a file of ``verify --mutants --json``."""
    wrong = f"--mutants={name}: expected a file written by gradline verify --mutants --json"
    try:
        data = json_module.loads(Path(name).read_bytes())
        for claim in data["claims"]:
            for mutant in claim["mutants"]:
                if not all(isinstance(mutant[key], str) for key in ("name", "description", "answer")):
                    raise ValueError(wrong)
            if not isinstance(claim["id"], str):
                raise ValueError(wrong)
    except OSError as error:
        raise ValueError(f"--mutants={name}: {error.strerror}; {wrong.partition(': ')[2]}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError(wrong) from None
    return dict(data)


def _verified() -> dict[str, Any]:
    """The evidence for every claim of the theory, gathered now."""
    from numerics.certificates import certificate
    from numerics.evidence import verify

    with progress_bar("verifying") as update:
        return certificate(verify(progress=update, processes=2))
