"""Random expressions: every backend agrees with ball arithmetic, or the expression is refused with its name.

``GRADLINE_LONG=1`` draws 5000 expressions (with ``NUMBA_OPT=1``, which compiles faster, some forty minutes).
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from flint import arb, fmpq
from sympy import Rational

from numerics.ir import Program, lower
from numerics.kernels import BACKENDS, print_kernel, rewrite
from numerics.requests import expression_request
from numerics.rewrites import REWRITES
from theory.balls import enclose
from theory.errors import GradlineError

sys.path.insert(0, str(Path(__file__).parent))
from fuzzing import SYMBOLS, draw, enclosures, points

LONG = "GRADLINE_LONG" in os.environ
PARTS, COUNT, BATCH, POINTS = (20, 250, 50, 10) if LONG else (1, 24, 24, 8)


@dataclass
class Outcome:
    """What the fuzz found."""

    counts: Counter[str] = field(default_factory=Counter)
    disagreements: list[str] = field(default_factory=list)


def usable(random: Random, count: int, outcome: Outcome) -> list[tuple[Any, Any]]:
    """Expressions with their rewritten forms; those refused are counted."""
    found = []
    for _ in range(count):
        expr = draw(random)
        outcome.counts["expressions"] += 1
        if not expr.free_symbols or (not expr.is_finite and expr.is_number):
            outcome.counts["constant"] += 1
            continue
        try:
            lower([expr], SYMBOLS)
            found.append((expr, rewrite([expr], SYMBOLS, REWRITES)[0][0]))
        except GradlineError as error:
            outcome.counts["refused"] += 1
            if "changed" in str(error):
                outcome.disagreements.append(f"a rewrite of {expr} is wrong: {error}")
    return found


def outputs(program: Program, expressions: list[Any], states: list[dict[Any, float]], backends: Any) -> dict[str, Any]:
    """Values by backend: one array of states for each expression."""
    columns = [np.array([s[symbol] for s in states]) for symbol in SYMBOLS]
    found = {}
    for backend in backends:
        request = expression_request(expressions, backend, SYMBOLS, None, None)
        given = [torch.from_numpy(c) for c in columns] if backend == "torch" else columns
        with np.errstate(all="ignore"):
            found[backend] = [np.asarray(v) for v in print_kernel(program, request)(*given)]
    return found


def exact_value(expr: Any, state: dict[Any, float]) -> Any:
    try:
        return enclose(expr, {s: Rational(state[s]) for s in expr.free_symbols}, bits=256)
    except GradlineError:
        return arb("nan")


def examine(
    pairs: list[tuple[Any, Any]], random: Random, outcome: Outcome, backends: Any = tuple(BACKENDS), spoil: Any = None
) -> None:
    """Compare a batch at some states; ``spoil`` changes what the backends return."""
    expressions, rewritten = [list(c) for c in zip(*pairs, strict=True)]
    program = lower(rewritten, SYMBOLS)
    states = points(random, POINTS)
    values = outputs(program, expressions, states, backends)
    for i, state in enumerate(states):
        bounds = enclosures(program, {s.name: v for s, v in state.items()})
        for j, (expr, bound) in enumerate(zip(expressions, bounds, strict=True)):
            exact = exact_value(expr, state)
            if not exact.is_finite():
                outcome.counts["points without a value"] += 1
                continue
            if not bound.is_finite():
                outcome.counts["points without a bound (an intermediate out of range, or all digits lost)"] += 1
                continue
            outcome.counts["points compared"] += 1
            outcome.counts["of these to 1e-9"] += bool(bound.rad() < abs(exact) * 1e-9 + 1e-300)
            if not bound.overlaps(exact):
                outcome.disagreements.append(f"program of {expr} at {state}: {bound}, exactly {exact}")
            for backend, found in values.items():
                value = float(found[j][i])
                value = spoil(value) if spoil else value
                if not np.isfinite(value) or not bound.contains(arb(fmpq(*value.as_integer_ratio()))):
                    outcome.disagreements.append(f"{backend}: {expr} at {state}: {value!r}, exactly {exact}")


@pytest.mark.parametrize("part", range(PARTS))
def test_backends_agree_with_ball_arithmetic(part: int) -> None:
    outcome, random = Outcome(), Random(1000 + part)
    for _ in range(COUNT // BATCH):
        examine(usable(random, BATCH, outcome), random, outcome)
    print(dict(outcome.counts))
    assert not outcome.disagreements, "\n".join(outcome.disagreements[:20])
    assert outcome.counts["points compared"] > COUNT
    assert outcome.counts["of these to 1e-9"] > 0.8 * outcome.counts["points compared"]
    assert outcome.counts["refused"] < 0.2 * COUNT


def test_a_wrong_value_is_noticed() -> None:
    outcome, random = Outcome(), Random(5)
    examine(usable(random, 20, outcome), random, outcome, ("numpy",), lambda value: value * (1 + 1e-8))
    assert len(outcome.disagreements) > 0.8 * outcome.counts["of these to 1e-9"]


@pytest.mark.parametrize("wrong", ["sin", "max"])
def test_a_wrong_operation_is_noticed(wrong: str) -> None:
    from dataclasses import replace

    from sympy import Max, exp, sin

    x, y, _ = SYMBOLS
    expr = exp(x) + sin(y) * Max(x, y, 1)
    program = lower([expr], SYMBOLS)
    twin = {"sin": "cos", "max": "min"}
    values = tuple(replace(v, op=twin[wrong]) if v.op == wrong else v for v in program.values)
    changed = replace(program, values=values)
    state = {x: 0.5, y: 0.25, SYMBOLS[2]: 1.0}
    (bound,) = enclosures(changed, {s.name: v for s, v in state.items()})
    assert not bound.overlaps(exact_value(expr, state))
