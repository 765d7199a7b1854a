"""What ``gradline derive`` says about a model: named expressions in parts, ready for text, LaTeX or JSON.

Source: arXiv 2608.06776, reduced dynamics and conserved quantities.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from sympy import sqrt

from theory.flow import ReducedFlow
from theory.integrals import FirstIntegral, first_integral
from theory.line import COORDINATES, Direction
from theory.symbols import SYMBOLS

__all__ = ["Entry", "Part", "branches", "describe_model", "describe_task", "statement"]

_CIRCUITS = {"OV": "output-value", "QK": "query-key"}


@dataclass(frozen=True)
class Entry:
    """A named expression: ``name`` for text, ``latex``, ``value`` a SymPy expression; ``note`` says when it holds."""

    name: str
    latex: str
    value: Any
    note: str = ""


@dataclass(frozen=True)
class Part:
    """Entries under a title."""

    key: str
    title: str
    entries: tuple[Entry, ...]


def describe_task(flow: ReducedFlow) -> str:
    """The task in one line."""
    task = flow.task
    noise = f"{_size('N', task.noise)} noise tokens{'' if task.noise_is_finite else ' (zero embedding)'}"
    kind = "shared by all classes" if task.query_kind == "shared" else "for each class"
    parts = (
        f"{_size('M', task.classes)} classes",
        f"{_size('b', task.block)} informative tokens each",
        f"{_size('K', task.queries)} query tokens {kind}",
        noise,
        f"{_size('m', task.informative_slots)} informative and {_size('n', task.noise_slots)} noise slots",
        f"score scale {_size('gamma', task.score_scale)}",
    )
    return ", ".join(parts)


def _size(letter: str, value: Any) -> str:
    return letter if str(value) == letter else f"{letter} = {value}"


def describe_model(flow: ReducedFlow) -> str:
    """The model in one line."""
    said = []
    for circuit in ("QK", "OV"):
        form: str = flow.model.form(circuit)
        if form == "factorized":
            imbalance = flow.model.imbalance(circuit)
            form += ", balanced" if imbalance == 0 else f", imbalance {imbalance}"
        said.append(f"{_CIRCUITS[circuit]} {form}")
    return f"{flow.model.parameterization}: {'; '.join(said)}"


def _tex(circuit: str) -> str:
    return rf"\mathrm{{{circuit}}}"


def _dynamics(flow: ReducedFlow) -> Part:
    entries = [
        Entry(f"d{s}/dt", rf"\frac{{\mathrm{{d}}{SYMBOLS[s.name].latex}}}{{\mathrm{{d}}t}}", v)
        for s, v in flow.compact.items()
    ]
    entries += [Entry("alpha", r"\alpha", flow.attention), Entry("L", "L", flow.line.loss)]
    return Part("flow", "Gradient flow on the line", tuple(entries))


def _direction(circuit: str, direction: Direction) -> Iterator[Entry]:
    for orbit, value in direction.values.items():
        label = orbit.name.removeprefix(f"W_{circuit}_")
        yield Entry(f"E_{circuit}[{label}]", rf"E_{{{_tex(circuit)}}}[\text{{{label}}}]", value)
    yield Entry(f"|E_{circuit}|^2", rf"\lVert E_{{{_tex(circuit)}}}\rVert^2", direction.norm2)
    for square, times in direction.singular_values2:
        yield Entry(f"sigma_{circuit}", rf"\sigma_{{{_tex(circuit)}}}", sqrt(square), _times(times))


def _times(times: Any) -> str:
    return "once" if times == 1 else f"{times} times"


def _line(flow: ReducedFlow) -> Part:
    entries = (e for c, d in flow.line.directions.items() for e in _direction(c, d))
    return Part("line", "Line: W_OV = mu_OV E_OV, W_QK = mu_QK E_QK", tuple(entries))


def _laws(flow: ReducedFlow) -> Part:
    entries = [
        Entry(f"constant ({circuit})", rf"\text{{constant ({circuit})}}", law.expression)
        for circuit, laws in flow.line.laws.items()
        for law in laws
    ]
    return Part("conservation_laws", "Linear conservation laws of the values of W", tuple(entries))


def branches(flow: ReducedFlow) -> tuple[FirstIntegral, ...]:
    """The first integral for each choice of signs that balanced circuits keep, the positive one first."""
    choices = [(1, -1) if flow.model.is_balanced(c) else (1,) for c in COORDINATES]
    return tuple(first_integral(flow, {"mu_OV": v, "mu_QK": q}) for v, q in product(*choices))


def branch_condition(flow: ReducedFlow, law: FirstIntegral) -> str:
    """The signs for which a branch holds, such as ``mu_QK > 0``; empty if for all."""
    kept = [s.name for c, s in COORDINATES.items() if flow.model.is_balanced(c)]
    return ", ".join(f"{name} {'>' if law.signs[name] > 0 else '<'} 0" for name in kept)


def _integral(flow: ReducedFlow) -> Part:
    laws, entries = branches(flow), []
    for name in ("x", "y", "slope"):
        label = r"\text{slope}" if name == "slope" else name
        for value in dict.fromkeys(getattr(law, name) for law in laws):
            having = [law for law in laws if getattr(law, name) == value]
            note = "" if len(having) == len(laws) else _common_condition(flow, having, laws)
            entries.append(Entry(name, label, value, note))
    return Part("first_integral", "First integral: y - slope x is constant", tuple(entries))


def _common_condition(flow: ReducedFlow, having: list[FirstIntegral], laws: tuple[FirstIntegral, ...]) -> str:
    """The condition on signs that holds for some of the branches and for no other."""
    for names in (("mu_OV",), ("mu_QK",), ("mu_OV", "mu_QK")):
        for sign in (1, -1):
            if [law for law in laws if prod(law.signs[n] for n in names) == sign] == having:
                return f"{' '.join(names)} {'>' if sign > 0 else '<'} 0"
    return " or ".join(branch_condition(flow, law) for law in having)


def statement(flow: ReducedFlow) -> tuple[Part, ...]:
    """The parts of a derivation: flow, line, conservation laws, first integral."""
    return _dynamics(flow), _line(flow), _laws(flow), _integral(flow)
