"""``gradline latex``: equations, statements, proofs, tables and figures for a paper, and a paper that stands alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from numerics.commands.console import dump_json, show, write
from numerics.commands.values import positive
from numerics.output import make_folder, write_files

if TYPE_CHECKING:
    from theory.latex.documents import Figure
    from theory.latex.notation import Notation
    from theory.registry import Claim

__all__ = ["latex"]

#: Room for an equation number, in points, and the size of the font.
_NUMBER, _SIZE = 29.0, 10.0
_CODES = {"refuted": 1, "undecided": 3}


def latex(
    out: Annotated[str, typer.Option("--out", metavar="DIR", help="Folder for the files.", show_default=False)],
    notation: Annotated[
        str | None, typer.Option("--notation", metavar="FILE", help="Names and style, as TOML.")
    ] = None,
    evidence: Annotated[
        str | None,
        typer.Option("--evidence", metavar="FILE", help="Take the verdicts from a file of gradline verify --json."),
    ] = None,
    column: Annotated[
        str, typer.Option("--column", metavar="PT", help="Width of a column; wider formulas are broken.")
    ] = "234",
    json: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
) -> int:
    """Write LaTeX for a paper. Exit code: 0 all well, 1 a claim is refuted, 3 something is undecided."""
    width = (positive("--column", column) - _NUMBER) / _SIZE
    if width <= 0:
        raise ValueError(f"--column={column}: expected a width in points above {_NUMBER:g}, such as 234")
    from theory.latex.documents.overrides import check_overrides
    from theory.latex.notation import Notation, load_notation
    from theory.registry import claims

    chosen = Notation() if notation is None else load_notation(notation)
    known = claims()
    check_overrides(known, chosen)
    folder = make_folder("--out", out)
    files, verdicts = _files(known, chosen, evidence, width)
    write_files({folder / name: content for name, content in files.items()})
    counts = {v: sum(w == v for w, _ in verdicts.values()) for v in ("proved", "supported", "refuted", "undecided")}
    if json:
        write(dump_json({"folder": str(folder), "files": sorted(files), "verdicts": dict(verdicts)}))
    else:
        said = ", ".join(f"{n} {verdict}" for verdict, n in counts.items() if n)
        show(f"{len(known)} claims: {said}; wrote {len(files)} files to {folder}, {chosen.prefix}-paper.tex among them")
    return next((code for verdict, code in _CODES.items() if counts[verdict]), 0)


def _files(
    known: Sequence[Claim], chosen: Notation, evidence: str | None, width: float
) -> tuple[dict[str, bytes], Mapping[str, tuple[str, str]]]:
    """Every file, with the verdicts; one process beside this one draws, another decides."""
    from numerics.latex_verdicts import recorded_verdicts, second_process, verdicts_by_id
    from theory.latex.documents import bodies

    if evidence is not None:
        verdicts: Mapping[str, tuple[str, str]] = recorded_verdicts(evidence, known)
        return _complete(known, chosen, verdicts, bodies(known, chosen, width), [_drawn()]), verdicts
    with second_process() as artist:
        drawing = artist.submit(_drawn)
        _derive_all()
        with second_process() as judge:
            deciding = judge.submit(verdicts_by_id, [c.id for c in known])
            texts = bodies(known, chosen, width)
            verdicts, figure = deciding.result(), drawing.result()
    return _complete(known, chosen, verdicts, texts, [figure]), verdicts


def _drawn() -> Figure:
    """The figure; what draws it is loaded where it is drawn."""
    from numerics.latex_figures import attention_figure

    return attention_figure()


def _derive_all() -> None:
    """Derive what this process and the one that decides need, once."""
    from theory.paper.settings import SETTINGS, setting_flow

    for setting in SETTINGS:
        setting_flow(setting)


def _complete(
    known: Sequence[Claim],
    chosen: Notation,
    verdicts: Mapping[str, Any],
    texts: Mapping[str, str],
    figures: Sequence[Figure],
) -> dict[str, bytes]:
    """The files with figures, the paper and the list of hashes."""
    from theory.latex.documents import manifest, verdict_files
    from theory.latex.documents.paper import paper

    every = {**texts, **verdict_files(known, verdicts, chosen)}
    files = {name: text.encode() for name, text in every.items()}
    files |= {f"{chosen.prefix}-figure-{f.name}.pdf": f.content for f in figures}
    files[f"{chosen.prefix}-paper.tex"] = paper(known, figures, chosen).encode()
    named = manifest(files, {"verdicts": {k: list(v) for k, v in sorted(verdicts.items())}})
    return files | {f"{chosen.prefix}-manifest.json": named.encode()}
