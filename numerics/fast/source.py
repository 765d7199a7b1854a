"""The source of an integrator for one flow: its functions, the coefficients of the method, and the driver behind them.

Source: arXiv 2608.06776, reduced dynamics; Hairer, Norsett, Wanner, Solving Ordinary Differential Equations I (DOP853).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

from numerics.backends import numba as numba_backend
from numerics.backends.printer import Body, Dialect, called, needed
from numerics.backends.python_module import indented
from numerics.charts import FAR
from numerics.ir import Program, Value
from numerics.kernels import lowered
from numerics.requests import flow_request
from theory.flow import ReducedFlow

__all__ = ["Generated", "generate"]

#: Runs that are integrated side by side: two vector registers of four numbers.
LANES = 8
_MARK = "# --- below this line"
_INLINED = "@inlined"

_HEADER = '''\
"""Integrator of the reduced gradient flow, {title}: generated, for Numba."""

from __future__ import annotations

import math

import numba
import numpy as np

OPTIONS = {{"nogil": True, "error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}}
compiled, inlined = numba.njit(**OPTIONS), numba.njit(forceinline=True, **OPTIONS)
fused = numba.njit(forceinline=True, fastmath={{"contract"}}, **OPTIONS)
entry = numba.njit(cache=True, nogil=True, error_model="numpy")

LANES = {lanes}
COUNT = {count}
NODES = {nodes}
WEIGHTS = {weights}
'''


def _dialect() -> Dialect:
    base = numba_backend.DIALECT
    inlined, fused = (numba_backend.COMPILED, _INLINED), (numba_backend.FUSED, "@fused")
    helpers = {name: text.replace(*inlined).replace(*fused) for name, text in base.helpers.items()}
    reserved = base.reserved | {"x", "y", "q", "given", "parameters"}
    return replace(base, name="fast", helpers=helpers, reserved=reserved)


def _split(program: Program, states: Sequence[str]) -> tuple[Program, Program]:
    """What depends on parameters only, and the rest, in which the results of the first are arguments."""
    moving: set[int] = set()
    for i, value in enumerate(program.values):
        if value.argument in states or any(j in moving for j in value.operands):
            moving.add(i)
    used = {j for i in moving for j in program.values[i].operands} | set(program.outputs)
    fixed = sorted(i for i in used - moving if program.values[i].op != "const")
    order = {i: position for position, i in enumerate(sorted(set(range(len(program.values))) - moving))}
    first = Program(
        tuple(a for a in program.arguments if a not in states),
        tuple(_renumbered(program.values[i], order) for i in order),
        {},
        tuple(order[i] for i in fixed),
    )
    constants = [i for i in used - moving if program.values[i].op == "const"]
    names = [f"given_{k}" for k in range(len(fixed))]
    values = [Value("arg", (), None, s) for s in states] + [Value("arg", (), None, name) for name in names]
    place = {i: len(states) + k for k, i in enumerate(fixed)}
    place |= {i: states.index(str(v.argument)) for i, v in enumerate(program.values) if v.argument in states}
    for i in sorted(moving.union(constants)):
        if i not in place:
            place[i] = len(values)
            values.append(_renumbered(program.values[i], place))
    named = {place[i]: name for i, name in program.names.items() if i in moving}
    return first, Program((*states, *names), tuple(values), named, tuple(place[i] for i in program.outputs))


@dataclass(frozen=True)
class Generated:
    """An integrator: ``source``, a module for Numba; ``numbers``, the program of what it is given of parameters."""

    source: str
    numbers: Program


def _renumbered(value: Value, order: dict[int, int]) -> Value:
    return replace(value, operands=tuple(order[i] for i in value.operands))


def _restricted(program: Program, output: int) -> Program:
    """The values that one output needs; arguments stay."""
    wanted, stack = set(), [program.outputs[output]]
    while stack:
        i = stack.pop()
        if i not in wanted:
            wanted.add(i)
            stack += program.values[i].operands
    kept = sorted(wanted | {i for i, v in enumerate(program.values) if v.op == "arg"})
    order = {i: position for position, i in enumerate(kept)}
    names = {order[i]: name for i, name in program.names.items() if i in order}
    values = tuple(_renumbered(program.values[i], order) for i in kept)
    return Program(program.arguments, values, names, (order[program.outputs[output]],))


def _inlined(head: str, lines: Sequence[str]) -> str:
    return "\n".join([_INLINED, f"def {head}:", *indented(lines), ""])


def _function(name: str, program: Program, dialect: Dialect, note: str) -> str:
    """A function of both coordinates and of ``q``, the numbers of the flow."""
    body = Body(program, dialect, program.arguments, frozenset())
    lines = body.print()
    given = [f"{a} = q[{i + 2}]" for i, a in enumerate(program.arguments[2:])]
    text = body.texts[program.outputs[0]][0]
    inner = [f'"""{note}"""', *given, *lines, f"return {text}"]
    return _inlined(f"{name}({', '.join(program.arguments[:2])}, q)", inner)


_CHARTS = {
    "collapsed": ["return y, 1.0"],
    "balanced": [f"mu = q[{{i}}] * _exp(min(max(y, {-FAR}), {FAR}))", "return mu, mu"],
    "imbalanced": [
        f"grown = _exp(min(max(y, {-FAR}), {FAR}))",
        "return q[{i}] * 0.5 * (grown - 1.0 / grown), q[{i}] * 0.5 * (grown + 1.0 / grown)",
    ],
}


def _chart(circuit: str, kind: str, index: int) -> str:
    lines = [line.format(i=index) for line in _CHARTS[kind]]
    note = '"""A value and its derivative by its coordinate."""'
    return _inlined(f"stretch_{circuit}(y, q)", [note, *lines])


_VIEWS = '''\
@inlined
def slope_at(x, y, q):
    """dy/dx along the curve."""
    mu_OV, stretch = stretch_OV(x, q)
    mu_QK, across = stretch_QK(y, q)
    return velocity_ratio(mu_OV, mu_QK, q) * stretch / across


@inlined
def pace_at(x, y, q):
    """dt/dx along the curve."""
    mu_OV, stretch = stretch_OV(x, q)
    mu_QK, across = stretch_QK(y, q)
    return stretch / velocity(mu_OV, mu_QK, q)


@inlined
def loss_at(x, y, q):
    """The loss."""
    mu_OV, stretch = stretch_OV(x, q)
    mu_QK, across = stretch_QK(y, q)
    return loss(mu_OV, mu_QK, q)


@inlined
def attention_at(x, y, q):
    """The attention."""
    mu_OV, stretch = stretch_OV(x, q)
    mu_QK, across = stretch_QK(y, q)
    return attention_mass(mu_OV, mu_QK, q)
'''


def _numbers(count: int) -> str:
    rows = [f"    work[GIVEN + {c} * LANES + lane]," for c in range(count)]
    return "\n".join([
        _INLINED, "def numbers(work, lane):", '    """The numbers of the flow in a lane."""',
        "    return (", *[f"    {row}" for row in rows], "    )", "",
    ])  # fmt: skip


def _sum(row: Any, count: int) -> str:
    return " + ".join(f"{float(row[j])!r} * k{j}" for j in range(count) if row[j] != 0)


def _rows(name: str, count: int) -> list[str]:
    return [f"work[{name} + {i} * LANES + lane]" if i else f"work[{name} + lane]" for i in range(count)]


def _try_steps(table: Any) -> str:
    stages = [
        f"k{s} = slope_at(x + {float(table.C[s])!r} * h, y + h * ({_sum(table.A[s], s)}), q)" for s in range(1, 12)
    ]
    kept = [f"{row} = k{5 + i}" for i, row in enumerate(_rows("STAGES", 7))]
    loop = [
        "q = numbers(work, lane)",
        "x, y, h, k0 = work[X + lane], work[Y + lane], work[H + lane], work[K + lane]",
        *stages,
        f"z = y + h * ({_sum(table.B, 12)})",
        "k12 = slope_at(x + h, z, q)",
        "scale = work[ATOL + lane] + work[RTOL + lane] * max(abs(y), abs(z))",
        f"fifth = (({_sum(table.E5, 13)}) / scale) ** 2",
        f"third = (({_sum(table.E3, 13)}) / scale) ** 2",
        "error = abs(h) * fifth / math.sqrt(fifth + 0.01 * third + 1e-300)",
        "work[Z + lane], work[KZ + lane] = z, k12",
        "work[FACTOR + lane] = 0.9 / math.sqrt(math.sqrt(math.sqrt(error + 1e-12)))",
        *kept,
    ]
    note = '"""A step of every lane: end, slope there, factor for the next step (below 0.9: rejected)."""'
    return _vector_loop("try_steps", note, loop)


def _measure_steps(table: Any) -> str:
    kept = [f"k{5 + i} = {row}" for i, row in enumerate(_rows("STAGES", 7))]
    extra = [
        f"k{s} = slope_at(x + {float(table.C[s])!r} * h, y + h * ({_sum(table.A[s], s)}), q)" for s in range(13, 16)
    ]
    shape = ["z - y", "h * k0 - f0", "2.0 * f0 - h * (k12 + k0)", *[f"h * ({_sum(row, 16)})" for row in table.D]]
    nodes, weights = _rule()
    parts = [f"p{i} = pace_at(x + {v!r} * h, interpolate({v!r}, y, f), q)" for i, v in enumerate(nodes)]
    loop = [
        "q = numbers(work, lane)",
        "x, y, h, z = work[X + lane], work[Y + lane], work[H + lane], work[Z + lane]",
        "k0, k12 = work[K + lane], work[KZ + lane]",
        *kept,
        *extra,
        *[f"f{i} = {text}" for i, text in enumerate(shape)],
        *[f"{row} = f{i}" for i, row in enumerate(_rows("SHAPE", 7))],
        "f = f0, f1, f2, f3, f4, f5, f6",
        *parts,
        f"work[TIME + lane] = h * ({' + '.join(f'{w!r} * p{i}' for i, w in enumerate(weights))})",
        "work[PACE + lane] = pace_at(x + h, z, q)",
        "work[LOSS + lane] = loss_at(x + h, z, q)",
    ]
    return _vector_loop("measure_steps", '"""Dense output, duration, pace and loss of the step of every lane."""', loop)


def _vector_loop(name: str, note: str, loop: Sequence[str]) -> str:
    return f"@compiled\ndef {name}(work):\n    {note}\n    for lane in range(LANES):\n" + "".join(
        f"        {line}\n" for line in loop
    )


def _rule() -> tuple[list[float], list[float]]:
    """Nodes and weights of Gauss quadrature from 0 to 1."""
    from numpy.polynomial.legendre import leggauss

    nodes, weights = leggauss(8)
    return [float(v + 1) / 2 for v in nodes], [float(w) / 2 for w in weights]


def _functions(flow: ReducedFlow, dialect: Dialect) -> tuple[Program, Program, list[str]]:
    """The program of a flow, that of its numbers, and the functions of both coordinates."""
    output, query = flow.states
    ratio = flow.velocity[query] / flow.velocity[output]
    request = flow_request(flow, "numba", None, None, None)
    request = replace(
        request,
        expressions=(ratio, flow.velocity[output], flow.loss, flow.attention),
        outputs=("velocity_ratio", "velocity", "loss", "attention_mass"),
    )
    program = lowered(request)
    first, rest = _split(program, tuple(s.name for s in flow.states))
    notes = "d mu_QK/d mu_OV.", "d mu_OV/dt.", "The loss.", "The attention."
    functions = [
        _function(name, _restricted(rest, i), dialect, note)
        for i, (name, note) in enumerate(zip(request.outputs, notes, strict=True))
    ]
    return program, first, functions


def generate(flow: ReducedFlow, kinds: tuple[str, str]) -> Generated:
    """Print the integrator of a flow.

    Parameters: ``flow``; ``kinds``, the charts of ``mu_OV`` and ``mu_QK`` (`numerics.charts`). Returns: a
    `Generated`. Raises: `UnsupportedError` naming what no kernel can print.
    """
    from scipy.integrate._ivp import dop853_coefficients

    dialect = _dialect()
    program, first, functions = _functions(flow, dialect)
    helpers = needed(["_exp", *called(program, dialect)], dialect.helpers)
    driver = files("numerics.fast").joinpath("driver.py").read_text(encoding="utf-8").split(_MARK, 1)[1]
    count = len(first.outputs) + 2
    nodes, weights = _rule()
    parts = [
        _HEADER.format(
            title=flow.model.parameterization, lanes=LANES, count=count, nodes=tuple(nodes), weights=tuple(weights)
        ),
        *helpers,
        *functions,
        _chart("OV", kinds[0], 0),
        _chart("QK", kinds[1], 1),
        _VIEWS,
        _numbers(count),
        driver.split("\n", 1)[1],
        _try_steps(dop853_coefficients),
        _measure_steps(dop853_coefficients),
    ]
    return Generated("\n\n".join(part.rstrip() + "\n" for part in parts), first)
