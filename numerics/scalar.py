"""A NumPy kernel for plain numbers: the same formulas, with Python's `math` in place of NumPy's functions on scalars.

An integrator calls its right-hand side once for each stage, and on plain numbers NumPy spends its time on bookkeeping.
Where `math` has no counterpart NumPy's function is used; where it raises, the kernel itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from numerics.kernels import Kernel

__all__ = ["scalar_function"]

_MATH = {
    "exp": math.exp,
    "expm1": math.expm1,
    "log": math.log,
    "log1p": math.log1p,
    "sqrt": math.sqrt,
    "abs": abs,
    "sinh": math.sinh,
    "cosh": math.cosh,
    "tanh": math.tanh,
    "arcsinh": math.asinh,
    "arctan": math.atan,
    "maximum": max,
    "minimum": min,
}


class _Scalars:
    """Stands for the module ``numpy`` inside a kernel."""

    def __init__(self) -> None:
        for name, function in _MATH.items():
            setattr(self, name, function)

    @staticmethod
    def where(condition: bool, yes: float, no: float) -> float:
        return yes if condition else no

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


@lru_cache(maxsize=256)
def scalar_function(kernel: Kernel) -> Callable[..., Any]:
    """Return the function of a NumPy kernel for floats, several times faster than the kernel itself.

    Parameters: ``kernel``, of the backend "numpy". Returns: a function of the same arguments, floats
    only; falls back on the kernel where `math` raises (overflow, division by zero).

    >>> from numerics.kernels import compile_kernel
    >>> from theory import AttentionModel, TokenTask, derive
    >>> kernel = compile_kernel(derive(AttentionModel(TokenTask(3, 2, 2, 5, 2, 1))))
    >>> fast = scalar_function(kernel)(0.5, 0.1, 1.0, 2.0)
    >>> max(abs(a - float(b)) for a, b in zip(fast, kernel(0.5, 0.1, 1.0, 2.0))) < 1e-15
    True
    """
    if kernel.backend != "numpy":
        raise ValueError(f"backend {kernel.backend!r}: expected a kernel of the backend 'numpy'")
    space: dict[str, Any] = {"__name__": f"gradline_scalar_{kernel.name}"}
    exec(compile(kernel.source, f"<gradline scalar kernel {kernel.name}>", "exec"), space)
    space["np"] = _Scalars()
    fast: Callable[..., Any] = space[f"{kernel.name}_block"]

    def function(*values: float) -> Any:
        try:
            return fast(*values)
        except (OverflowError, ValueError, ZeroDivisionError):
            return kernel(*values)

    return function
