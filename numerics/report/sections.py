"""A claim as a section of the report: statement, assumptions, evidence, obligations, derivation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from numerics.report.prose import formula_html, prose
from theory.errors import GradlineError
from theory.latex import to_latex
from theory.reader import read

__all__ = ["VERDICTS", "claim_section"]

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
_SUPPORTS = {True: "supports", False: "contradicts", None: "decides nothing"}


def _latex(formula: Mapping[str, str]) -> str:
    """A stated formula in the notation of the paper, or as the file has it."""
    try:
        return to_latex(read(formula["srepr"]))
    except (GradlineError, ValueError, TypeError, AttributeError):
        return str(formula["latex"])


def _details(title: str, inside: str, extra: str = "") -> str:
    return f"<details{extra}><summary>{title}</summary>{inside}</details>"


def _statement(claim: Mapping[str, Any]) -> str:
    rows = []
    for formula in claim["statement"]:
        shown = formula_html(_latex(formula), block=True)
        rows.append(
            f'<div class="formula"><span class="name">{escape(formula["name"])}</span>'
            f'<div class="display" tabindex="0">{shown}</div></div>'
        )
    shown = "".join(rows[:4])
    if len(rows) > 4:
        rest = len(rows) - 4
        more = f"{rest} more {'formula' if rest == 1 else 'formulas'}"
        shown += _details(more, "".join(rows[4:]), ' class="plain"')
    return shown


def _items(texts: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{t}</li>' for t in texts)}</ul>" if texts else "<p>None.</p>"


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{escape(str(k))} = {_number(v)}" for k, v in value.items())
    if isinstance(value, list):
        return ", ".join(_number(v) for v in value)
    return escape(str(value))


def _evidence(claim: Mapping[str, Any]) -> str:
    rows = []
    for found in claim["evidence"]:
        numbers = "; ".join(
            f"{escape(key)}: {_number(v)}" for key, v in found["numbers"].items() if v not in ("", [], {})
        )
        tone = {True: "for", False: "against", None: "open"}[found["supports"]]
        rows.append(
            f'<tr><th scope="row" title="{_KINDS[found["kind"]]}">{found["kind"]}</th>'
            f'<td class="{tone}">{_SUPPORTS[found["supports"]]}</td>'
            f'<td>{escape(found["detail"])}<div class="numbers">{numbers}</div></td></tr>'
        )
    head = '<thead><tr><th scope="col">kind</th><th scope="col">it</th><th scope="col">figures</th></tr></thead>'
    return f'<div class="wide" tabindex="0"><table>{head}<tbody>{"".join(rows)}</tbody></table></div>'


def _counterexamples(claim: Mapping[str, Any]) -> str:
    found = next((o for o in claim["obligations"] if o["counterexample"]), None)
    if found is None:
        return ""
    point = _number(found["counterexample"]["point"])
    enclosure = " to ".join(_number(v) for v in found["counterexample"].get("enclosure", ()))
    value = f", where it is {enclosure} and not {found['relation']}" if enclosure else ""
    return f'<p class="against"><strong>Counterexample</strong> to {escape(found["name"])}: {point}{value}.</p>'


def _obligations(claim: Mapping[str, Any]) -> str:
    answers = Counter(o["answer"] for o in claim["obligations"])
    said = ", ".join(f"{count} {answer}" for answer, count in answers.items()) or "none"
    rows = [
        f'<li><span class="{o["answer"]}">{o["answer"]}</span> {escape(o["name"])} '
        f"<code>{escape(o['relation'])}</code>, by {escape('; '.join(filter(None, (o['how'], o['reason']))))}</li>"
        for o in claim["obligations"]
    ]
    return _details(f"What had to be proved: {said}", f"<ol>{''.join(rows)}</ol>")


def _mutants(found: Mapping[str, Any] | None) -> str:
    """How many wrong versions of a claim were caught."""
    if found is None:
        return ""
    answers = Counter(m["answer"] for m in found["mutants"])
    said = ", ".join(f"{count} {answer}" for answer, count in sorted(answers.items()))
    rows = [
        f"{escape(m['name'])}: {escape(m['description'])}, <em>{escape(m['answer'])}</em>" for m in found["mutants"]
    ]
    return _details(f"Mutants: {said}", _items(rows))


def claim_section(
    claim: Mapping[str, Any], steps: Sequence[Mapping[str, str]], mutants: Mapping[str, Any] | None = None
) -> str:
    """The section of a claim.

    Parameters: ``claim``, its entry in the evidence file; ``steps``, those of the file; ``mutants``, its entry in a
    file of ``gradline verify --mutants --json``.
    """
    name, verdict = escape(claim["id"]), claim["verdict"]
    words = escape(" ".join([claim["id"], claim["title"], claim["text"], claim["source"]]).lower())
    derivation = "".join(f'<li class="step">{prose(steps[number]["latex"])}</li>' for number in claim["derivation"])
    uses = ", ".join(f'<a href="#claim-{escape(u)}">{escape(u)}</a>' for u in claim["uses"])
    count = len(claim["derivation"])
    plural = "step" if count == 1 else "steps"
    parts = [
        f'<article class="claim" id="claim-{name}" data-verdict="{verdict}" data-words="{words}" '
        f'aria-labelledby="title-{name}" tabindex="-1">',
        f'<header><h3 id="title-{name}">{escape(claim["title"] or claim["id"])}</h3>'
        f'<span class="badge {verdict}">{verdict}</span></header>',
        f'<p class="where"><a href="#claim-{name}"><code>{name}</code></a> · {escape(claim["source"])}'
        + (f" · uses {uses}" if uses else "")
        + "</p>",
        f'<p class="text">{escape(claim["text"])}</p>',
        _statement(claim),
        _counterexamples(claim),
        _details(
            "Assumptions",
            _items([escape(a["text"]) for a in claim["assumptions"]]),
        ),
        _details("Evidence: " + ", ".join(e["kind"] for e in claim["evidence"]), _evidence(claim)),
        _obligations(claim),
        _details(f"Derivation: {count} {plural}", f'<ol class="steps">{derivation}</ol>') if count else "",
        _mutants(mutants),
        f'<p class="again">Again: <code>gradline verify --claim {name}</code></p>' if claim["source"] != "user" else "",
        "</article>",
    ]
    return "\n".join(p for p in parts if p)
