"""``gradline check``: the equations of a LaTeX paper against the claims of a theory."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from numerics.commands.console import dump_json, show, write

if TYPE_CHECKING:
    from theory.latex.check import Checked, Report
    from theory.registry import Claim

__all__ = ["check"]

_STYLES = {
    "match": "green",
    "enclosed": "cyan",
    "differs": "bold red",
    "undecided": "yellow",
    "unparsed": "yellow",
    "unlinked": "dim",
    "skipped": "dim",
}
_SAID = {"match": "match (exact)", "enclosed": "match (enclosed numerically)"}


def check(
    paper: Annotated[str, typer.Argument(metavar="PAPER.TEX", help="The main LaTeX file; inputs are followed.")],
    json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    theory: Annotated[
        str | None,
        typer.Option("--theory", metavar="MODULE:NAME", help="Claims of your own: a list of theory.Claim in a module."),
    ] = None,
    notation: Annotated[
        str | None, typer.Option("--notation", metavar="FILE.toml", help="The symbols of the paper.")
    ] = None,
) -> int:
    """Check the equations of a paper. Exit code: 0 all well, 1 an equation differs, 3 something is open."""
    from theory.latex.check import check_paper
    from theory.latex.notation import load_notation

    claims = None if theory is None else _claims(theory)
    report = check_paper(paper, claims, None if notation is None else load_notation(notation))
    if json:
        write(dump_json(_data(report)))
    else:
        _show(report)
    return report.exit_code


def _claims(name: str) -> Sequence[Claim]:
    """The claims that ``module:name`` holds, a list or a function that gives one."""
    from importlib import import_module

    from theory.registry import Claim

    module, colon, attribute = name.partition(":")
    if not colon or not module or not attribute:
        raise ValueError(f"--theory={name}: expected module:name, such as mytheory:claims")
    sys.path.insert(0, "")
    try:
        found: Any = import_module(module)
    except ModuleNotFoundError as error:
        raise ValueError(f"--theory={name}: no module {error.name!r}; expected one that Python can import") from None
    except Exception as error:
        raise ValueError(f"--theory={name}: {module} can't be imported: {_said(error)}") from error
    finally:
        sys.path.remove("")
    if not hasattr(found, attribute):
        from difflib import get_close_matches

        public = [n for n in vars(found) if not n.startswith("_")]
        near = get_close_matches(attribute, public, 1, 0.0)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"--theory={name}: module {module} has no {attribute!r}{hint}")
    value = getattr(found, attribute)
    try:
        value = value() if callable(value) else value
    except Exception as error:
        raise ValueError(f"--theory={name}: {attribute}() failed: {_said(error)}") from error
    claims = tuple(value) if isinstance(value, (list, tuple)) else ()
    if not claims or not all(isinstance(claim, Claim) for claim in claims):
        raise ValueError(f"--theory={name}: expected a list of theory.Claim, or a function that returns one")
    return claims


def _said(error: Exception) -> str:
    """What an exception says, in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def _show(report: Report) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table("place", "claim", "verdict", "what", box=box.SIMPLE_HEAD, pad_edge=False)
    for equation in report.equations:
        verdict = Text(_SAID.get(equation.status, equation.status), style=_STYLES[equation.status])
        claim = ", ".join(equation.claims) or ", ".join(equation.labels)
        table.add_row(Text(str(equation.place)), Text(claim), verdict, Text(_what(equation)))
    show(table)
    for equation in report.equations:
        for line in _details(equation):
            show(line)
    for remark in (*report.edited, *report.remarks):
        show(remark)
    show(_coverage(report))


def _what(equation: Checked) -> str:
    found = equation.finding
    if equation.status == "unlinked":
        return f"perhaps {' or '.join(equation.suggestions)}" if equation.suggestions else ""
    if found is None:
        return equation.reason
    where = f" [{'; '.join(found.settings)}]" if found.settings else ""
    if equation.status in ("match", "enclosed"):
        return f"{found.statement}{where}"
    return f"{found.statement}{where}" if equation.status == "differs" else equation.reason


def _details(equation: Checked) -> Iterator[str]:
    found = equation.finding
    if found is None:
        return
    if equation.status in ("match", "enclosed"):
        if found.assumptions:
            yield f"{equation.place}: needs {'; '.join(found.assumptions)}"
        return
    if equation.status != "differs":
        return
    if found.reason:
        yield f"{equation.place}: {found.reason}"
    if found.point:
        point = ", ".join(f"{k}={v}" for k, v in found.point.items())
        values = ", ".join(f"{k} {v}" for k, v in found.values.items())
        yield f"{equation.place}: differs at {point}{': ' if values else ''}{values}"
    if found.repair is not None:
        yield f"{found.repair.place}: right with {found.repair.text}"
    elif found.factor:
        yield f"{equation.place}: right with a factor {found.factor}"


def _coverage(report: Report) -> str:
    counts = Counter[str](e.status for e in report.equations)
    said = ", ".join(f"{counts[s]} {_SAID.get(s, s)}" for s in _STYLES if counts[s]) or "none"
    covered = {c for e in report.equations if _states_claim(e) for c in e.claims}
    files = len(report.files)
    return (
        f"{len(report.equations)} equations in {files} file{'s' * (files != 1)}: {said}; {len(covered)} claims matched"
    )


def _states_claim(equation: Checked) -> bool:
    """Whether an equation matches what a claim states, not just a definition."""
    found = equation.finding
    if found is None or equation.status not in ("match", "enclosed"):
        return False
    return not all(name.startswith("definition of") for name in found.statement.split(", "))


def _data(report: Report) -> dict[str, Any]:
    return {
        "paper": report.paper,
        "files": list(report.files),
        "exit_code": report.exit_code,
        "counts": dict(report.counts),
        "equations": [_equation_data(e) for e in report.equations],
        "edited": list(report.edited),
        "remarks": list(report.remarks),
    }


def _equation_data(equation: Checked) -> dict[str, Any]:
    place = equation.place
    data: dict[str, Any] = {
        "file": place.file,
        "line": place.line,
        "column": place.column,
        "labels": list(equation.labels),
        "claims": list(equation.claims),
        "status": equation.status,
        "reason": equation.reason,
        "latex": equation.latex,
        "suggestions": list(equation.suggestions),
    }
    found = equation.finding
    if found is not None:
        change = found.repair
        data |= {
            "statement": found.statement,
            "settings": list(found.settings),
            "assumptions": list(found.assumptions),
            "point": dict(found.point),
            "values": dict(found.values),
            "factor": found.factor,
            "change": None if change is None else {"text": change.text, "place": str(change.place)},
        }
    return data
