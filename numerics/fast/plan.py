"""What an integrator needs to know of a model: its kind, which it shares with many, and the numbers that it does not.

An integrator is generated for the flow with symbolic sizes, so that all tasks share it; sizes are numbers of a run.
It is kept on disk with the names of its numbers, so that a new process need not derive it again.

Source: arXiv 2608.06776, reduced dynamics.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from sympy import Integer, Symbol

from numerics.backends.cache import fingerprint, stored
from numerics.charts import ChartKind, chart_kinds
from numerics.fast.arrays import evaluate
from numerics.ir import Program, Value
from theory import symbols
from theory.model import AttentionModel
from theory.orbits import Circuit
from theory.task import TokenTask

__all__ = ["Kind", "Plan", "general_model", "kind_of", "known_parameters", "model_values", "plan_of"]

_FIELDS = {
    "classes": "M", "block": "b", "queries": "K", "noise": "N", "informative_slots": "m", "noise_slots": "n",
    "score_scale": "gamma",
}  # fmt: skip
_PACKAGES = "theory", "numerics"


@dataclass(frozen=True)
class Kind:
    """What models with the same integrator have in common: charts of both circuits, noise, query kind."""

    charts: tuple[ChartKind, ChartKind]
    finite_noise: bool
    query_kind: str


@dataclass(frozen=True)
class Plan:
    """An integrator and the programs of its numbers: ``source``; ``numbers``; ``widths`` of both charts."""

    source: str
    numbers: Program
    widths: Program

    def given(self, values: Mapping[str, Any], signs: tuple[Any, Any], runs: int) -> tuple[Any, Any]:
        """The numbers of ``runs`` runs (runs, COUNT) and the widths of their charts (2, runs)."""
        widths = np.ones((2, runs))
        for k, (width, sign) in enumerate(zip(evaluate(self.widths, values), signs, strict=True)):
            widths[k] = width * sign
        found = evaluate(self.numbers, values)
        table = np.empty((runs, 2 + len(found)))
        table[:, 0], table[:, 1] = widths
        for k, column in enumerate(found):
            table[:, 2 + k] = column
        return table, widths


def kind_of(model: AttentionModel) -> Kind:
    """The kind of a model."""
    return Kind(chart_kinds(model), model.task.noise_is_finite, model.task.query_kind)


def general_model(kind: Kind) -> AttentionModel:
    """The model of a kind with a symbol for every number."""
    noise = symbols.N if kind.finite_noise else float("inf")
    task = TokenTask(noise=noise, query_kind=kind.query_kind, score_scale=symbols.gamma)  # type: ignore[arg-type]
    output, query = kind.charts
    return AttentionModel(
        task,
        qk="collapsed" if query == "collapsed" else "factorized",
        ov="collapsed" if output == "collapsed" else "factorized",
        imbalance_qk=symbols.c_QK if query == "imbalanced" else 0,
        imbalance_ov=symbols.c_OV if output == "imbalanced" else 0,
    )


def model_values(model: AttentionModel, parameters: Mapping[str, Any]) -> dict[str, Any] | None:
    """The numbers of a model by the names they have in the general one; None if one is neither number nor symbol."""
    fields = {name: getattr(model.task, field) for field, name in _FIELDS.items()}
    fields |= {"c_QK": model.imbalance("QK"), "c_OV": model.imbalance("OV")}
    fields |= {"eta_OV": symbols.eta_OV, "eta_QK": symbols.eta_QK}
    found: dict[str, Any] = {}
    for name, value in fields.items():
        if isinstance(value, Symbol):
            if value.name in parameters:
                found[name] = parameters[value.name]
            continue
        if not value.is_number:
            return None
        found[name] = float(value)
    return found


@lru_cache(maxsize=1)
def _version() -> str:
    """A fingerprint of both packages and of SymPy: what is derived depends on them."""
    import sympy

    texts = [sympy.__version__]
    for package in _PACKAGES:
        for path in sorted(Path(str(files(package))).rglob("*.py")):
            texts.append(path.read_text(encoding="utf-8"))
    return fingerprint(*texts)


def _to_json(program: Program) -> dict[str, Any]:
    values = [[v.op, list(v.operands), _text(v.constant), v.argument] for v in program.values]
    return {"arguments": list(program.arguments), "values": values, "outputs": list(program.outputs)}


def _text(constant: Fraction | Decimal | None) -> str | None:
    return None if constant is None else str(constant)


def _from_json(data: Any) -> Program:
    values = tuple(
        Value(op, tuple(operands), None if text is None else _number(text), argument)
        for op, operands, text, argument in data["values"]
    )
    return Program(tuple(data["arguments"]), values, {}, tuple(data["outputs"]))


def _number(text: str) -> Fraction | Decimal:
    return Fraction(text) if "/" in text or text.lstrip("-").isdigit() else Decimal(text)


def _make(kind: Kind) -> dict[str, Any]:
    from numerics.fast.source import generate
    from numerics.ir import lower
    from theory.flow import derive

    flow = derive(general_model(kind))
    made = generate(flow, kind.charts)

    def width(circuit: Circuit, chart: str) -> Any:
        if chart != "imbalanced":
            return Integer(1)
        return abs(flow.model.imbalance(circuit)) / (2 * flow.definitions[f"sigma_{circuit}"])

    widths = [width("OV", kind.charts[0]), width("QK", kind.charts[1])]
    numbers = replace(made.numbers, names={})
    return {"source": made.source, "numbers": _to_json(numbers), "widths": _to_json(lower(widths, flow.parameters))}


@lru_cache(maxsize=32)
def plan_of(kind: Kind) -> Plan:
    """The integrator of a kind, from disk if it has been made before by the same version.

    Raises: `GradlineError` where there is no line, or where something can't be printed.
    """
    key = fingerprint(_version(), repr(kind))
    path = stored(f"plan_{key}.json", lambda new: _save(new, _make(kind)))
    data = json.loads(path.read_text(encoding="utf-8"))
    return Plan(data["source"], _from_json(data["numbers"]), _from_json(data["widths"]))


def _save(path: Path, data: Any) -> None:
    path.write_text(json.dumps(data), encoding="utf-8")


def known_parameters(model: AttentionModel) -> tuple[Any, ...]:
    """The parameters of the flow of a model, from disk if it has been derived before by the same version."""
    from theory.flow import derive

    named = {info.symbol for info in symbols.SYMBOLS.values()}
    fields = [getattr(model.task, field) for field in _FIELDS] + [model.imbalance("QK"), model.imbalance("OV")]
    if any(not value.free_symbols <= named for value in fields):
        return derive(model).parameters
    key = fingerprint(_version(), repr(model))
    path = stored(f"parameters_{key}.json", lambda new: _save(new, [s.name for s in derive(model).parameters]))
    return tuple(symbols.SYMBOLS[name].symbol for name in json.loads(path.read_text(encoding="utf-8")))
