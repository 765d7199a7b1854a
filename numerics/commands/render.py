"""The statement of a derivation as Unicode text, LaTeX and JSON data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import sympy
from sympy.printing.pretty.stringpict import prettyForm

from numerics.commands.statement import (
    Entry,
    Part,
    branch_condition,
    branches,
    describe_model,
    describe_task,
    statement,
)
from theory.flow import ReducedFlow
from theory.symbols import SYMBOLS
from theory.trace import Step

__all__ = ["as_data", "as_latex", "as_text"]

_GREEK = {"alpha": "α", "sigma": "σ", "kappa": "κ", "eta": "η", "mu": "μ", "gamma": "γ"}
_NAME = re.compile(rf"(?<![a-zA-Z_])(d?)({'|'.join(_GREEK)})(?![a-zA-Z])")
_LATEX_NAMES = {info.symbol: info.latex for info in SYMBOLS.values()}


class _Label(sympy.Symbol):
    """A name that is printed as it is."""

    def _pretty(self, printer: Any) -> Any:
        return prettyForm(self.name)


def _greek(text: str, unicode: bool) -> str:
    return _NAME.sub(lambda found: found[1] + _GREEK[found[2]], text) if unicode else text


def latex(expression: Any) -> str:
    """LaTeX of an expression with the names of `theory.symbols`; orbit values are ``W`` with their circuit and type.

    >>> from theory.symbols import eta_OV, mu_OV
    >>> latex(eta_OV * mu_OV)
    '\\\\eta_{\\\\mathrm{OV}} \\\\mu_{\\\\mathrm{OV}}'
    """
    names = dict(_LATEX_NAMES)
    for symbol in expression.atoms(sympy.Symbol):
        if symbol.name.startswith("W_"):
            _, circuit, label = symbol.name.split("_")
            names[symbol] = rf"W_{{\mathrm{{{circuit}}}}}[\text{{{label}}}]"
    return str(sympy.latex(expression, symbol_names=names))


def _equation(entry: Entry, unicode: bool, width: int | None) -> str:
    name = f"{entry.name} ({entry.note})" if entry.note else entry.name
    equation = sympy.Eq(_Label(_greek(name, unicode)), entry.value, evaluate=False)
    room = {"wrap_line": False} if width is None else {"wrap_line": True, "num_columns": max(width - 4, 40)}
    text = str(sympy.pretty(equation, use_unicode=unicode, **room))
    return "\n".join(f"  {line}".rstrip() for line in text.splitlines())


def _part(part: Part, unicode: bool, width: int | None) -> Iterator[str]:
    yield f"\n{_greek(part.title, unicode)}"
    tall = False
    for entry in part.entries:
        text = _equation(entry, unicode, width)
        yield f"\n{text}" if tall or "\n" in text else text
        tall = "\n" in text


def _steps(trace: tuple[Step, ...]) -> Iterator[str]:
    for number, step in enumerate(trace, 1):
        yield f"  {number:2}. {step}"
        if step.reason:
            yield f"      because {step.reason}"


def _whole_trace(flow: ReducedFlow) -> tuple[Step, ...]:
    return flow.trace + branches(flow)[0].trace


def as_text(flow: ReducedFlow, *, unicode: bool, width: int | None, trace: bool) -> str:
    """The derivation for people; ``width`` is that of the terminal, ``None`` for unlimited."""
    lines = [describe_model(flow), describe_task(flow)]
    for part in statement(flow):
        lines += _part(part, unicode, width)
    lines += ["\nAssumptions", *(f"  - {_greek(str(a), unicode)}" for a in flow.assumptions)]
    if trace:
        lines += ["\nDerivation", *_steps(_whole_trace(flow))]
    return "\n".join(lines) + "\n"


def as_latex(flow: ReducedFlow, *, trace: bool) -> str:
    """The derivation as LaTeX for amsmath: one ``align*`` for each part, words as comments."""
    lines = [f"% {describe_model(flow)}", f"% {describe_task(flow)}"]
    for part in statement(flow):
        lines += [f"% {part.title}", r"\begin{align*}"]
        rows = []
        for entry in part.entries:
            note = rf" && ({_latex_note(entry.note)})" if entry.note else ""
            rows.append(f"  {entry.latex} &= {latex(entry.value)}{note}")
        lines += [" \\\\\n".join(rows), r"\end{align*}"]
    lines += ["% Assumptions", *(f"% - {a}" for a in flow.assumptions)]
    if trace:
        lines += ["% Derivation", *(f"% {line.strip()}" for line in _steps(_whole_trace(flow)))]
    return "\n".join(lines) + "\n"


def _latex_note(note: str) -> str:
    if not note.startswith("mu_"):
        return rf"\text{{{note}}}" if "times" not in note else rf"{_count(note)}\text{{ times}}"
    for name in ("mu_OV", "mu_QK"):
        note = note.replace(name, SYMBOLS[name].latex)
    return note


def _count(note: str) -> str:
    return note.removesuffix(" times").replace("*", " ")


def _both(expression: Any) -> dict[str, str]:
    return {"str": str(expression), "latex": latex(expression)}


def as_data(flow: ReducedFlow, *, trace: bool) -> dict[str, Any]:
    """The derivation for programs: each expression as ``str`` and ``latex``."""
    task, model = flow.task, flow.model
    sizes = ("classes", "block", "queries", "noise", "informative_slots", "noise_slots", "query_kind", "score_scale")
    options = ("qk", "ov", "imbalance_qk", "imbalance_ov", "width_qk", "width_ov")
    laws = flow.line.laws.items()
    data: dict[str, Any] = {
        "parameterization": model.parameterization,
        "task": {name: str(getattr(task, name)) for name in sizes},
        "model": {name: str(getattr(model, name)) for name in options if getattr(model, name) is not None},
        "parameters": [s.name for s in flow.parameters],
        "velocity": {s.name: _both(v) for s, v in flow.compact.items()},
        "alpha": _both(flow.attention),
        "L": _both(flow.line.loss),
        "line": {circuit: _direction_data(d) for circuit, d in flow.line.directions.items()},
        "conservation_laws": {circuit: [_both(law.expression) for law in found] for circuit, found in laws},
        "first_integral": [
            {"condition": branch_condition(flow, law), "signs": dict(law.signs)}
            | {name: _both(getattr(law, name)) for name in ("x", "y", "slope")}
            for law in branches(flow)
        ],
        "definitions": {name: _both(value) for name, value in flow.definitions.items()},
        "assumptions": [str(a) for a in flow.assumptions],
    }
    if trace:
        data["trace"] = [_step_data(step) for step in _whole_trace(flow)]
    return data


def _direction_data(direction: Any) -> dict[str, Any]:
    return {
        "values": {orbit.name: _both(value) for orbit, value in direction.values.items()},
        "norm2": _both(direction.norm2),
        "rank": _both(direction.rank),
        "singular_values": [
            {"value": _both(sympy.sqrt(square)), "times": _both(times)} for square, times in direction.singular_values2
        ],
    }


def _step_data(step: Step) -> dict[str, str]:
    return {"rule": step.rule, "name": step.name, "output": str(step.output), "reason": step.reason}
