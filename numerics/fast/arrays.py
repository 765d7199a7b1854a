"""A program evaluated on arrays, value by value: for the few numbers that a run needs of its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from numerics.ir import Program

__all__ = ["evaluate"]

_CALLS: dict[str, Any] = {
    "neg": np.negative, "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power,
    "sqrt": np.sqrt, "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "abs": np.abs,
}  # fmt: skip


def evaluate(program: Program, arguments: Mapping[str, Any]) -> list[Any]:
    """The outputs of a program at numbers or arrays in double precision.

    Parameters: ``program``; ``arguments``, by name. Raises: KeyError for an operation beyond plain arithmetic.

    >>> from sympy.abc import x
    >>> from numerics.ir import lower
    >>> evaluate(lower([x**2 + 1], [x]), {"x": np.array([1.0, 3.0])})[0].tolist()
    [2.0, 10.0]
    """
    done: list[Any] = []
    for value in program.values:
        if value.op == "arg":
            done.append(arguments[str(value.argument)])
        elif value.op == "const":
            done.append(float(value.constant or 0))
        else:
            done.append(_CALLS[value.op](*[done[i] for i in value.operands]))
    return [done[i] for i in program.outputs]
