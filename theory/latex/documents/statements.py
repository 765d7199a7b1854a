r"""Statements of the claims in sentences: the words of ``prose.toml``, with every formula taken from the claim."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

from theory.latex.claims.displays import display, inline
from theory.latex.claims.equations import Equation, folded
from theory.latex.documents.steps import shown_steps
from theory.latex.notation import Notation
from theory.latex.printer import to_latex
from theory.latex.printer.linebreak import COLUMN
from theory.latex.printer.sentences import escape, paragraph
from theory.registry import Claim, find

__all__ = ["fill", "mentioned", "prose", "statement"]


@lru_cache(maxsize=1)
def prose() -> Mapping[str, Mapping[str, str]]:
    """What statements and proofs say in words, by claim."""
    return tomllib.loads((files("theory.latex.documents") / "prose.toml").read_text(encoding="utf-8"))


def _families(claim: Claim) -> dict[str, list[Equation]]:
    found: dict[str, list[Equation]] = {}
    for equation in folded(claim):
        names = {equation.family, equation.id}
        for name in sorted(names):
            found.setdefault(name.removeprefix(f"{claim.id}."), []).append(equation)
    return found


def _chosen(names: str, claim: Claim) -> list[Equation]:
    """Equations by the names of their families, or by how these begin; ``CLAIM/NAME`` is of another claim.

    Raises: ``ValueError`` for a name that is none.
    """
    owner, _, rest = names.rpartition("/")
    families = _families(find(owner) if owner else claim)
    chosen: dict[str, Equation] = {}
    for name in rest.split(","):
        matching = [name] if name in families else [f for f in families if f.startswith(name)]
        if not matching:
            raise ValueError(f"{claim.id}: no equation {name!r}; expected one of {', '.join(families)}")
        chosen |= {e.id: e for f in matching for e in families[f]}
    return list(chosen.values())


def _place(text: str, claim: Claim, notation: Notation, column: float) -> tuple[str, bool]:
    """The LaTeX of a place and whether it is displayed."""
    kind, _, names = text.partition(":")
    if kind == "ref":
        return f"\\{notation.prefix}ref{{{names}}}", False
    if kind == "all":
        return display(folded(claim), notation, column), True
    if kind == "steps":
        owner, _, wanted = names.partition("/")
        return shown_steps(wanted, {s.name: s for s in find(owner).trace()}, notation, column), True
    chosen = _chosen(names, claim)
    if kind == "show":
        return display(chosen, notation, column), True
    if kind not in ("inline", "right") or len(chosen) != 1:
        raise ValueError(f"{claim.id}: [[{text}]]: expected all, show, inline or right with one equation, or ref")
    value = inline(chosen[0], notation) if kind == "inline" else to_latex(chosen[0].right, notation)
    return f"${value}$", False


def fill(template: str, claim: Claim, notation: Notation, column: float = COLUMN) -> str:
    """Sentences with the equations of a claim in their places.

    Raises: ``ValueError`` for a place that names no equation.
    """
    return paragraph(template, lambda text: _place(text, claim, notation, column), notation)


def statement(claim: Claim, notation: Notation, column: float = COLUMN) -> str:
    """The statement of a claim without environment, number or label.

    Parameters: ``claim``, of the theory or a user's own; ``notation``; ``column``, the width of a column in units of
    the font size. Returns: LaTeX for the body of a theorem.
    """
    known = _words(claim)
    if "statement" in known:
        return fill(known["statement"], claim, notation, column)
    title = f"{escape(claim.title)}. " if claim.title else ""
    return title + fill("[[all]]", claim, notation, column).lstrip() + _given(claim, notation)


def _words(claim: Claim) -> Mapping[str, str]:
    return prose().get(claim.id, {}) if claim.source != "user" else {}


def mentioned(claim: Claim) -> tuple[str, ...]:
    """The claims that the sentences of a claim's statement and proof refer to or take a formula from.

    >>> mentioned(find("isometry-criterion"))
    ('balanced-root', 'product-flow')
    """
    found: dict[str, None] = {}
    for text in _words(claim).values():
        for kind, names in re.findall(r"\[\[(\w+):([^]]*)\]\]", text):
            owner = names if kind == "ref" else names.rpartition("/")[0]
            found |= {owner.partition("/")[0]: None} if owner else {}
    return tuple(found)


def _given(claim: Claim, notation: Notation) -> str:
    """The assumptions of a user's claim."""
    given: list[Any] = list(claim.assumptions())
    texts = [f"${to_latex(a.relation, notation)}$" if a.relation is not None else escape(a.text) for a in given]
    return "\nwhere " + ", ".join(texts) + "." if texts else ""
