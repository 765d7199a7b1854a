"""What recorded numerical evidence says of itself: figures, words and parts of a claim must fit together.

Internal to :mod:`numerics.recheck`. The evidence is not gathered again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from numerics.checks.gather import KINDS

__all__ = ["evidence_problems", "uses_problems"]

Entry = Mapping[str, Any]


def evidence_problems(entry: Entry, scalars: int) -> Iterator[str]:
    """What does not fit in the evidence of a claim.

    Parameters: ``entry``, a claim of a certificate; ``scalars``, how many of its obligations are scalar.
    """
    kinds = [e["kind"] for e in entry["evidence"]]
    if kinds != [kind for kind in KINDS if kind in kinds]:
        yield f"the kinds of evidence are {', '.join(kinds)}; expected the order {', '.join(KINDS)}"
    names = [f["name"] for f in entry["statement"]]
    for evidence in entry["evidence"]:
        kind, parts = evidence["kind"], evidence["parts"]
        for what, found, whole in (("parts", parts, names), ("broken", evidence["broken"], parts)):
            if len(set(found)) < len(found) or not set(found) <= set(whole):
                yield f"{kind} evidence: {what} {', '.join(found)}; expected some of {', '.join(whole) or 'none'}"
        if kind != "symbolic" and evidence["supports"] is True:
            yield from _figures(evidence, scalars)


def _figures(evidence: Entry, scalars: int) -> Iterator[str]:
    """Evidence that supports: every case was within its bound, and the words say so."""
    kind, numbers = evidence["kind"], evidence["numbers"]
    count, worst, bound = (numbers.get(key) for key in ("comparisons", "worst_difference", "bound"))
    if type(count) is not int or type(worst) is not float or type(bound) is not float:
        yield f"{kind} evidence: without comparisons, worst_difference or bound"
        return
    if count < 1 or not worst <= bound:
        yield f"{kind} evidence: {count} comparisons, worst {worst:.1e} of {bound:.1e}, support nothing"
    what = "enclosures" if kind == "enclosure" else "comparisons"
    said = f"{count} {what}, worst {worst:.1e} of {bound:.1e}"
    if evidence["detail"] != said:
        yield f"{kind} evidence: the words are {evidence['detail']!r}, the figures {said!r}"
    if kind == "enclosure" and not (numbers.get("scalar_obligations") == numbers.get("enclosed") == scalars):
        yield f"enclosure evidence: for {numbers.get('enclosed')} obligations; {scalars} are scalar"


def uses_problems(entry: Entry, known: Collection[str]) -> Iterator[str]:
    """A claim uses other claims, each named once, that are in the file or of the theory."""
    uses = entry["uses"]
    wrong = [name for name in dict.fromkeys(uses) if name == entry["id"] or name not in known or uses.count(name) > 1]
    if wrong:
        yield f"uses {', '.join(wrong)}: expected other claims, each once"
