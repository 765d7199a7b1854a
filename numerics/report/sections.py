"""A claim as a section of the report: statement, assumptions, evidence, obligations, derivation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape, unescape
from typing import Any

from numerics.report.plain import anchor, plain
from numerics.report.prose import formula_html, prose
from theory.errors import GradlineError
from theory.latex import to_latex
from theory.reader import read

__all__ = ["VERDICTS", "claim_section", "shared_steps"]

#: What each verdict means, in a few words.
VERDICTS: Mapping[str, str] = {
    "proved": "every obligation decided exactly",
    "supported": "undecided, with numerical evidence for it",
    "refuted": "an exact counterexample, or contradicted by the full model",
    "undecided": "neither proved nor refuted",
}
_KINDS: Mapping[str, str] = {
    "symbolic": "exact decision of every obligation",
    "enclosure": "the obligations in ball arithmetic",
    "instance": "the model at small sizes, written out exactly",
    "autograd": "derivatives of the full model in torch",
    "trajectory": "runs of the full model",
}
_UNREADABLE = (GradlineError, ValueError, TypeError, AttributeError)
_OBLIGATIONS = (
    "Each line names a difference between what is stated and what is derived, or a quantity with a sign, and the "
    "relation to 0 that it must have."
)
_SUPPORTS = {True: "supports", False: "contradicts", None: "decides nothing"}


def _latex(formula: Mapping[str, str]) -> str:
    """A stated formula in the notation of the paper, or as the file has it."""
    try:
        return to_latex(read(formula["srepr"]))
    except _UNREADABLE:
        return str(formula["latex"])


def _repeats(claim: Mapping[str, Any]) -> bool:
    """Whether the text of a claim is but its formula, as Python writes it."""
    try:
        return not claim["text"] or any(str(read(f["srepr"])) == claim["text"] for f in claim["statement"])
    except _UNREADABLE:
        return False


def _details(title: str, inside: str, extra: str = "") -> str:
    return f"<details{extra}><summary>{title}</summary>{inside}</details>"


def _statement(claim: Mapping[str, Any]) -> str:
    rows = []
    for formula in claim["statement"]:
        shown = formula_html(_latex(formula), block=True)
        rows.append(
            f'<div class="formula"><span class="name">{plain(formula["name"])}</span>'
            f'<div class="display">{shown}</div></div>'
        )
    shown = "".join(rows[:4])
    if len(rows) > 4:
        rest = len(rows) - 4
        more = f"{rest} more {'formula' if rest == 1 else 'formulas'}"
        shown += _details(more, "".join(rows[4:]), ' class="plain"')
    return shown


def _items(texts: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{t}</li>' for t in texts)}</ul>" if texts else "<p>None.</p>"


def _number(value: Any, depth: int = 6) -> str:
    """A figure, or several; what is nested deeper than figures are is not shown."""
    if depth == 0:
        return "…"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{plain(str(k))} = {_number(v, depth - 1)}" for k, v in value.items())
    if isinstance(value, list):
        return ", ".join(_number(v, depth - 1) for v in value)
    return escape(str(value))


def _evidence(claim: Mapping[str, Any]) -> str:
    rows = []
    for found in claim["evidence"]:
        numbers = "; ".join(
            f"{escape(key.replace('_', ' '))}: {_number(v)}"
            for key, v in found["numbers"].items()
            if v not in ("", [], {})
        )
        tone = {True: "for", False: "against", None: "open"}[found["supports"]]
        rows.append(
            f'<tr><th scope="row">{found["kind"]}</th>'
            f'<td class="{tone}">{_SUPPORTS[found["supports"]]}</td>'
            f"<td>{_KINDS[found['kind']].capitalize()}: {escape(found['detail'])}"
            f'<div class="numbers">{numbers}</div></td></tr>'
        )
    head = '<thead><tr><th scope="col">kind</th><th scope="col">finding</th><th scope="col">figures</th></tr></thead>'
    return f'<div class="wide"><table>{head}<tbody>{"".join(rows)}</tbody></table></div>'


def _counterexamples(claim: Mapping[str, Any]) -> str:
    found = next((o for o in claim["obligations"] if o["counterexample"]), None)
    if found is None:
        return ""
    counterexample = found["counterexample"]
    told = counterexample if isinstance(counterexample, Mapping) else {"point": counterexample}
    point = _number(told.get("point", ""))
    ends = told.get("enclosure", ())
    enclosure = " and ".join(_number(v) for v in ends) if isinstance(ends, list) else ""
    value = f", where it lies between {enclosure}; it must be {escape(found['relation'])}" if enclosure else ""
    return f'<p class="against"><strong>Counterexample</strong> to {plain(found["name"])}: {point}{value}.</p>'


def _obligations(claim: Mapping[str, Any]) -> str:
    answers = Counter(o["answer"] for o in claim["obligations"])
    said = ", ".join(f"{count} {answer}" for answer, count in answers.items()) or "none"
    rows = [
        f'<li><span class="{o["answer"]}">{o["answer"]}</span> {plain(o["name"])} '
        f"<code>{escape(o['relation'])}</code>, by {escape('; '.join(filter(None, (o['how'], o['reason']))))}</li>"
        for o in claim["obligations"]
    ]
    folded = ' class="folded"' if set(answers) <= {"proved"} else ""
    return _details(f"What had to be proved: {said}", f"<p>{_OBLIGATIONS}</p><ol>{''.join(rows)}</ol>", folded)


def _mutants(found: Mapping[str, Any] | None) -> str:
    """How many wrong versions of a claim were caught."""
    if found is None:
        return ""
    answers = Counter(m["answer"] for m in found["mutants"])
    said = ", ".join(f"{count} {answer}" for answer, count in sorted(answers.items()))
    rows = [
        f"{escape(m['name'])}: {escape(m['description'])}, <em>{escape(m['answer'])}</em>" for m in found["mutants"]
    ]
    return _details(f"Mutants: {said}", _items(rows), ' class="folded"')


def _assumptions(claim: Mapping[str, Any]) -> str:
    texts = [plain(a["text"]) for a in claim["assumptions"]]
    return f'<p class="assumes"><strong>Assumes</strong> {"; ".join(texts) or "nothing beyond its symbols"}.</p>'


def _words(claim: Mapping[str, Any]) -> str:
    """What a search finds: the texts of a claim as they are written, with ``alpha``, and as they are shown, with α."""
    texts = [claim["id"], claim["verdict"], claim["source"], claim["title"], claim["text"]]
    texts += [f["name"] for f in claim["statement"]] + [a["text"] for a in claim["assumptions"]]
    shown = (unescape(re.sub("<[^>]*>", "", plain(text))) for text in texts)
    return escape(" ".join(dict.fromkeys(" ".join([*texts, *shown]).lower().split())))


def shared_steps(claims: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, int]]:
    """For claims whose derivations begin with that of a claim they use: its id and the number of its steps.

    >>> first = {"id": "a", "uses": [], "derivation": [0, 1]}
    >>> shared_steps([first, {"id": "b", "uses": ["a"], "derivation": [0, 1, 2]}])
    {'b': ('a', 2)}
    """
    known = {c["id"]: c for c in claims}
    found = {}
    for claim in claims:
        behind: dict[str, None] = {}
        waiting = list(claim["uses"])
        while waiting:
            name = waiting.pop()
            if name in known and name not in behind and name != claim["id"]:
                behind[name] = None
                waiting += known[name]["uses"]
        begun = [c for c in claims if c["id"] in behind and len(c["derivation"]) > 1]
        begun = [c for c in begun if claim["derivation"][: len(c["derivation"])] == c["derivation"]]
        if begun:
            most = max(reversed(begun), key=lambda c: len(c["derivation"]))
            found[claim["id"]] = (most["id"], len(most["derivation"]))
    return found


def _derivation(claim: Mapping[str, Any], steps: Sequence[Mapping[str, str]], shared: tuple[str, int] | None) -> str:
    """The steps; those that another claim has shown stay folded."""
    rows = [f'<li class="step">{prose(steps[number]["latex"])}</li>' for number in claim["derivation"]]
    if not rows:
        return ""
    title = f"Derivation: {len(rows)} {'step' if len(rows) == 1 else 'steps'}"
    if shared is None:
        return _details(title, f'<ol class="steps">{"".join(rows)}</ol>')
    name, count = shared
    link = f'<a href="#{anchor(name)}">{escape(name)}</a>'
    which = f"Steps 1 to {count} are" if count < len(rows) else "The derivation consists of"
    before = _details(f"Show these {count}", f'<ol class="steps">{"".join(rows[:count])}</ol>', ' class="plain folded"')
    rest = f'<ol class="steps" start="{count + 1}">{"".join(rows[count:])}</ol>' if count < len(rows) else ""
    return _details(title, f"<p>{which} the steps of {link}.</p>{before}{rest}")


def claim_section(
    claim: Mapping[str, Any],
    steps: Sequence[Mapping[str, str]],
    mutants: Mapping[str, Any] | None = None,
    shared: tuple[str, int] | None = None,
) -> str:
    """The section of a claim.

    Parameters: ``claim``, its entry in the evidence file; ``steps``, those of the file; ``mutants``, its entry in a
    file of ``gradline verify --mutants --json``; ``shared``, its entry in `shared_steps`.
    """
    name, place, verdict = escape(claim["id"]), anchor(claim["id"]), claim["verdict"]
    uses = ", ".join(f'<a href="#{anchor(u)}">{escape(u)}</a>' for u in claim["uses"])
    parts = [
        f'<article class="claim" id="{place}" data-verdict="{verdict}" data-words="{_words(claim)}" '
        f'aria-labelledby="title-{place}" tabindex="-1">',
        f'<header><h3 id="title-{place}">{plain(claim["title"] or claim["id"])}</h3>'
        f'<span class="badge {verdict}">{verdict}</span></header>',
        f'<p class="where"><a href="#{place}"><code>{name}</code></a> · {escape(claim["source"])}'
        + (f" · uses {uses}" if uses else "")
        + "</p>",
        "" if _repeats(claim) else f'<p class="text">{plain(claim["text"])}</p>',
        _statement(claim),
        _counterexamples(claim),
        _assumptions(claim),
        _details("Evidence: " + ", ".join(e["kind"] for e in claim["evidence"]), _evidence(claim)),
        _obligations(claim),
        _derivation(claim, steps, shared),
        _mutants(mutants),
        f'<p class="again">Again: <code>gradline verify --claim {name}</code></p>' if claim["source"] != "user" else "",
        "</article>",
    ]
    return "\n".join(p for p in parts if p)
