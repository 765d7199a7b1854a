"""Proofs of the claims: the steps of their derivations in sentences, numbered, with references to claims used."""

from __future__ import annotations

from collections.abc import Iterable

from theory.latex.documents.statements import fill, prose
from theory.latex.documents.steps import OWNERS, step_text
from theory.latex.notation import Notation
from theory.latex.printer.linebreak import COLUMN
from theory.registry import Claim
from theory.trace import Step

__all__ = ["proof", "references"]

#: Claims whose own proofs use all of the steps before them: a reference to these is enough.
_COVERED = {"gradient-parallel": ("attention-mass", "loss-on-line", "gradient-parallel")}


def _own(claim: Claim) -> tuple[Step, ...]:
    """The steps of a derivation that no other claim owns, each once."""
    seen: dict[tuple[str, str, str], Step] = {}
    if claim.id == "shift-conservation":
        return ()
    for step in claim.trace():
        owner = OWNERS.get(step.rule, claim.id)
        if owner == claim.id and (step.rule != "flow" or claim.id.startswith("flow-") or claim.source == "user"):
            seen.setdefault((step.rule, step.name, str(step.output)), step)
    return tuple(seen.values())


def references(claim: Claim) -> tuple[str, ...]:
    """The claims that own steps of a derivation, in their order; one that covers others stands for them.

    >>> from theory.registry import find
    >>> references(find("flow-cafo"))
    ('gradient-parallel', 'rescaling-balanced')
    """
    if claim.source == "user" or claim.id == "shift-conservation":
        return ()
    owners = list(dict.fromkeys(OWNERS[s.rule] for s in claim.trace() if s.rule in OWNERS))
    for covering, covered in _COVERED.items():
        if covering in owners and claim.id not in covered:
            owners = [o for o in owners if o == covering or o not in covered]
    order = list(prose())
    before = order.index(claim.id) if claim.id in order else len(order)
    return tuple(o for o in owners if o != claim.id and order.index(o) < before)


def _grouped(steps: Iterable[Step]) -> list[list[Step]]:
    """Consecutive steps by one rule that read better together."""
    groups: list[list[Step]] = []
    for step in steps:
        if groups and step.rule in ("chain rule", "spectrum") and groups[-1][0].rule == step.rule:
            groups[-1].append(step)
        else:
            groups.append([step])
    return groups


def _numbered(paragraphs: Iterable[str]) -> str:
    texts = list(paragraphs)
    if len(texts) == 1:
        return texts[0]
    return "\n\n".join(f"\\emph{{Step {i}.}} {text}" for i, text in enumerate(texts, 1))


def proof(claim: Claim, notation: Notation, column: float = COLUMN) -> str:
    """The proof of a claim without environment.

    Parameters: ``claim``; ``notation``; ``column``, the width of a column in units of the font size.
    Returns: LaTeX for the body of a proof, in numbered steps where there are several.
    """
    words = prose().get(claim.id, {}).get("proof", "") if claim.source != "user" else ""
    own = _own(claim)
    said = [fill(p, claim, notation, column) for p in words.split("\n\n") if p.strip()]
    steps = [step_text(group, notation, column) for group in _grouped(own)]
    used = [f"\\{notation.prefix}ref{{{o}}}" for o in references(claim) if f"[[ref:{o}]]" not in words]
    found = _numbered([*steps, *said]) or "Put in the definitions and compare."
    return f"We use {_listed(used)}.\n\n{found}" if used and (steps or not said) else found


def _listed(items: list[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
