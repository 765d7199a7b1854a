"""What is to be compiled: a reduced flow, expressions or a matrix, checked and brought into one hashable form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from sympy import Basic, Expr, Float, MatrixBase, Rational, Symbol, exp

from theory.symbols import SYMBOLS

__all__ = ["Request", "expression_request", "flow_request"]

_CLAIMS = {"CACO": "flow-collapsed", "CAFO": "flow-cafo", "FACO": "flow-faco", "FAFO": "flow-fafo"}


@dataclass(frozen=True)
class Request:
    """Everything a kernel depends on: hashable, the key of the cache."""

    expressions: tuple[Any, ...]
    arguments: tuple[Symbol, ...]
    outputs: tuple[str, ...]
    backend: str
    name: str
    title: str
    formulas: tuple[str, ...] = ()
    shape: tuple[int, ...] | None = None
    single: bool = False
    uniform: tuple[Symbol, ...] = ()
    known: tuple[tuple[Any, str], ...] = ()
    assumptions: tuple[Any, ...] = ()


def flow_request(
    flow: Any, backend: str, args: Sequence[Symbol] | None, outputs: Sequence[str] | None, name: str | None
) -> Request:
    available = {f"d_{s.name}": flow.velocity[s] for s in flow.states}
    available |= {n: value for n in ("loss", "attention") if (value := getattr(flow, n, None)) is not None}
    chosen = tuple(available) if outputs is None else _names(outputs)
    for output in chosen:
        if output not in available:
            near = get_close_matches(output, available, 1, 0.0)[0]
            raise ValueError(f"output {output!r}: expected some of {', '.join(available)}; did you mean {near}?")
    symbols = (*flow.states, *flow.parameters)
    shared: dict[str, Any] = {
        "expressions": tuple(available[o] for o in chosen),
        "arguments": _arguments(args, symbols) if args is not None else symbols,
        "outputs": chosen,
        "backend": backend,
        "name": name or "gradient_flow",
        "uniform": tuple(flow.parameters),
        "assumptions": _usable(flow),
    }
    if "attention" not in available:
        known = tuple((expression, n) for n, expression in available.items())
        return Request(title=f"Gradient flow of {flow.name}.", known=known, **shared)
    return _attention_request(flow, chosen, shared)


def _attention_request(flow: Any, chosen: tuple[str, ...], shared: dict[str, Any]) -> Request:
    """A flow of the two coordinates, with the quantities that a reader knows by name."""
    kind = getattr(getattr(flow, "model", None), "parameterization", None)
    claim = _CLAIMS.get(str(kind))
    about = (
        f"Reduced gradient flow{f' of {kind}' if claim else ''}, arXiv 2608.06776{f', claim {claim}' if claim else ''}."
    )
    share, z = flow.attention, flow.attention * flow.states[0]
    classes = getattr(getattr(flow, "task", None), "classes", SYMBOLS["M"].symbol)
    known = (
        (share, "attention"),
        (1 - share, "noise_attention"),
        (z, "margin"),
        (classes - 1, "others"),
        ((classes - 1) / (exp(z) + classes - 1), "error"),
        (flow.loss, "loss"),
        *((flow.velocity[s], f"d_{s.name}") for s in flow.states),
    )
    return Request(title=about, formulas=_formulas(flow, classes, chosen), known=known, **shared)


def _formulas(flow: Any, classes: Any, outputs: Sequence[str]) -> tuple[str, ...]:
    """The equations in exact arithmetic, for the reader: in terms of the attention and of one denominator."""
    compact, line = getattr(flow, "compact", None), getattr(flow, "line", None)
    if compact is None or line is None:
        return ()
    alpha = SYMBOLS["alpha"].symbol
    attention, denominator = Symbol("attention", positive=True), Symbol("denominator", positive=True)
    below = exp(attention * flow.states[0]) + classes - 1
    known = [(f"d_{s.name}", compact[s], flow.velocity[s]) for s in flow.states] + [("loss", line.loss, flow.loss)]
    shown = {}
    for name, short, whole in known:
        same = short.xreplace({alpha: flow.attention}) == whole
        shown[name] = short.xreplace({alpha: attention}).xreplace({below: denominator}) if same else whole
    shown = {n: e for n, e in shown.items() if n in outputs}
    lines = [f"denominator = {below}"] if any(e.has(denominator) for e in shown.values()) else []
    return (f"attention = {flow.attention}", *lines, *[f"{n} = {e}" for n, e in shown.items()])


def _usable(flow: Any) -> tuple[Any, ...]:
    relations = [getattr(a, "relation", None) for a in getattr(flow, "assumptions", ())]
    return tuple(r for r in relations if r is not None)


def _names(outputs: Sequence[str]) -> tuple[str, ...]:
    if isinstance(outputs, str):
        raise TypeError(f"outputs {outputs!r}: expected a sequence of names such as [{outputs!r}]")
    chosen = tuple(outputs)
    if not chosen or len(set(chosen)) != len(chosen):
        raise ValueError(f"outputs {chosen}: expected distinct names, at least one")
    return chosen


def expression_request(
    target: Any, backend: str, args: Sequence[Symbol] | None, outputs: Sequence[str] | None, name: str | None
) -> Request:
    shape, single = None, False
    if isinstance(target, MatrixBase):
        expressions, shape = tuple(target), tuple(int(n) for n in target.shape)
    elif isinstance(target, (list, tuple)):
        expressions = tuple(target)
    else:
        expressions, single = (target,), True
    if not expressions:
        raise ValueError("nothing to compile: expected at least one expression")
    expressions = tuple(exact_form(e) for e in expressions)
    for e in expressions:
        if not isinstance(e, Expr) or getattr(e, "is_Matrix", False):
            raise TypeError(
                f"{e!r} of type {type(e).__name__}: expected a ReducedFlow, SymPy expressions or an explicit matrix"
            )
    symbols = sorted(set().union(*(e.free_symbols for e in expressions)), key=lambda s: s.name)
    if args is None:
        raise ValueError(
            f"args: expected the symbols in call order, some order of {', '.join(s.name for s in symbols)}"
        )
    named = tuple(f"y_{i}" for i in range(len(expressions))) if outputs is None else _names(outputs)
    if len(named) != len(expressions):
        raise ValueError(f"outputs: {len(named)} names for {len(expressions)} expressions")
    return Request(
        expressions=expressions,
        arguments=_arguments(args, symbols),
        outputs=named if outputs is not None or not single else ("value",),
        backend=backend,
        name=name or "kernel",
        title="Generated from a symbolic expression.",
        shape=shape,
        single=single,
    )


def exact_form(expr: Any) -> Any:
    """Python numbers become SymPy's; floats in an expression become the fractions they are."""
    if isinstance(expr, (int, float)):
        return Rational(expr) if math.isfinite(expr) else Float(expr)
    if isinstance(expr, Basic):
        return expr.xreplace({f: Rational(f) for f in expr.atoms(Float) if f.is_finite})
    return expr


def _arguments(args: Sequence[Symbol], symbols: Sequence[Symbol]) -> tuple[Symbol, ...]:
    found = tuple(args)
    for a in found:
        if not isinstance(a, Symbol):
            raise TypeError(f"args: {a!r} is no symbol")
    names = [a.name for a in found]
    for n in names:
        if names.count(n) > 1:
            raise ValueError(f"args: {n} is named twice")
    missing = [s.name for s in symbols if s not in found]
    if missing:
        twin = " (a symbol of that name with other assumptions is)" if missing[0] in names else ""
        raise ValueError(f"args: {', '.join(missing)} is not among {', '.join(names) or 'them'}{twin}")
    for twin in set(found) - set(symbols):
        if twin.name in {s.name for s in symbols}:
            raise ValueError(f"args: {twin.name} has other assumptions than the symbol of that name in the expression")
    return found
