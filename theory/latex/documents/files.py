r"""What a paper takes from the theory, as files: macros, equations, statements, proofs, tables, a list of hashes.

Every file but the paper is a body to ``\input``: it has no environment of theorems, no label, no number and no name
outside the prefix of the notation.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from theory.frozen import FrozenMap
from theory.latex.claims.displays import body
from theory.latex.claims.equations import Equation, equations, folded
from theory.latex.documents.paper_macros import Verdicts, macros
from theory.latex.documents.proofs import proof
from theory.latex.documents.statements import statement
from theory.latex.documents.tables import integrals_table, settings_table, symbols_table, verdicts_table
from theory.latex.notation import Notation
from theory.latex.printer.linebreak import COLUMN
from theory.registry import Claim

__all__ = ["Figure", "bodies", "claim_files", "manifest", "verdict_files"]

_MADE = "% Made by gradline from the theory; change the notation, not this file."


@dataclass(frozen=True)
class Figure:
    """A vector figure: its name, its caption in LaTeX, and the content of the PDF file."""

    name: str
    caption: str
    content: bytes


def _file_name(prefix: str, kind: str, identity: str = "") -> str:
    text = re.sub(r"[^A-Za-z0-9-]+", "-", identity)
    return f"{prefix}-{kind}-{text}.tex" if text else f"{prefix}-{kind}.tex"


def _note(claim: str = "") -> str:
    return f"% gradline: {claim}\n{_MADE}" if claim else _MADE


def _equation_file(equation: Equation, notation: Notation, column: float) -> str:
    return f"{_note(equation.claim)}\n{body(equation, notation, column)}%\n"


def claim_files(claim: Claim, notation: Notation, column: float = COLUMN) -> dict[str, str]:
    """The files of one claim: statement, proof and each equation.

    Parameters: ``claim``; ``notation``; ``column``, the width of a column in units of the font size.
    Returns: content by file name.

    >>> from theory.registry import find
    >>> list(claim_files(find("attention-mass"), Notation()))
    ['gl-statement-attention-mass.tex', 'gl-proof-attention-mass.tex', 'gl-eq-attention-mass-alpha.tex']
    """
    p = notation.prefix
    said = f"{_note()}\n{statement(claim, notation, column)}\n\\{p}check{{{claim.id}}}%\n"
    files = {
        _file_name(p, "statement", claim.id): said,
        _file_name(p, "proof", claim.id): f"{_note()}\n{proof(claim, notation, column)}%\n",
    }
    for equation in {e.id: e for e in (*folded(claim), *equations(claim))}.values():
        files[_file_name(p, "eq", equation.id)] = _equation_file(equation, notation, column)
    return files


def bodies(claims: Sequence[Claim], notation: Notation, column: float = COLUMN) -> dict[str, str]:
    """The files to ``\\input`` that hold no verdicts: statements, proofs, equations and tables, by file name."""
    files = {name: text for claim in claims for name, text in claim_files(claim, notation, column).items()}
    tables = {
        "symbols": symbols_table(notation),
        "settings": settings_table(notation),
        "integrals": integrals_table(notation),
    }
    return files | {_file_name(notation.prefix, "table", n): f"{_note()}\n{text}%\n" for n, text in tables.items()}


def verdict_files(claims: Sequence[Claim], verdicts: Verdicts, notation: Notation) -> dict[str, str]:
    """The files that hold verdicts: the macros and the table of all claims."""
    p = notation.prefix
    table = verdicts_table(claims, verdicts, notation)
    return {
        _file_name(p, "macros"): f"{_note()}\n{macros(claims, verdicts, notation)}\n",
        _file_name(p, "table", "verdicts"): f"{_note()}\n{table}%\n",
    }


def manifest(files: Mapping[str, bytes], more: Mapping[str, Any] = FrozenMap({})) -> str:
    """The list of files with their SHA-256, and ``more`` that is known, as JSON.

    >>> print(manifest({"a.tex": b""})[:44])
    {
     "files": {
      "a.tex": "e3b0c44298fc1c149a
    """
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    data = {"format": "gradline latex", "version": 1, "files": hashes, **more}
    return json.dumps(data, indent=1, sort_keys=True, ensure_ascii=True) + "\n"
