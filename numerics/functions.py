"""Stable functions that kernels are written in, as inert SymPy functions with their definitions.

They appear only between the rewriting of an expression and its lowering. ``restore`` puts the definitions back,
which is how every rewrite is checked.

>>> from sympy.abc import x
>>> restore(softplus(x))
log(exp(x) + 1)
"""

from __future__ import annotations

from typing import Any

from sympy import Ei, Function, Integer, LambertW, exp, log

__all__ = ["STABLE", "expm1", "log1p", "logaddexp", "restore", "scaled_ei", "sigmoid", "softplus", "wrightomega"]


class _Stable(Function):
    """A function that stays as it is until its definition is asked for."""

    def definition(self) -> Any:
        """The function in SymPy's own terms."""
        raise NotImplementedError

    def _eval_evalf(self, prec: int) -> Any:
        return self.definition()._eval_evalf(prec)


class sigmoid(_Stable):  # noqa: N801 (functions are lower case in SymPy)
    """``1/(1 + e^-x)``: no overflow, and right to rounding in both tails."""

    nargs = 1
    is_positive = True
    is_real = True

    def definition(self) -> Any:
        """The function in SymPy's own terms."""
        return 1 / (1 + exp(-self.args[0]))


class softplus(_Stable):  # noqa: N801
    """``log(1 + e^x)``: ``x`` where the exponential would overflow."""

    nargs = 1
    is_positive = True
    is_real = True

    def definition(self) -> Any:
        """The function in SymPy's own terms."""
        return log(1 + exp(self.args[0]))


class logaddexp(_Stable):  # noqa: N801
    """``log(e^x + e^y)`` without overflow."""

    nargs = 2
    is_real = True

    def definition(self) -> Any:
        """The function in SymPy's own terms."""
        return log(exp(self.args[0]) + exp(self.args[1]))


class expm1(_Stable):  # noqa: N801
    """``e^x - 1`` without cancellation at 0."""

    nargs = 1
    is_real = True

    def definition(self) -> Any:
        """The function in SymPy's own terms."""
        return exp(self.args[0]) - 1


class log1p(_Stable):  # noqa: N801
    """``log(1 + x)`` without loss for small ``x``."""

    nargs = 1

    def definition(self) -> Any:
        """The function in SymPy's own terms."""
        return log(1 + self.args[0])


class wrightomega(_Stable):  # noqa: N801
    """``W_0(e^x)``: the exponential is never formed."""

    nargs = 1
    is_positive = True
    is_real = True

    def definition(self) -> Any:
        """The function in SymPy's own terms."""
        return LambertW(exp(self.args[0]))


class scaled_ei(_Stable):  # noqa: N801
    """``e^-x Ei(x)``: neither factor is formed where it would overflow or vanish."""

    nargs = 1
    is_real = True

    def definition(self) -> Any:
        """The function in SymPy's own terms."""
        return exp(-self.args[0]) * Ei(self.args[0])


STABLE = (sigmoid, softplus, logaddexp, expm1, log1p, wrightomega, scaled_ei)


def restore(expr: Any) -> Any:
    """Replace every stable function by its definition, innermost first.

    Parameters: ``expr``, a SymPy expression. Returns: the same value in SymPy's own functions.

    >>> from sympy.abc import x
    >>> restore(2*sigmoid(log1p(x)))
    2/(1 + 1/(x + 1))
    """
    memo: dict[Any, Any] = {}

    def visit(node: Any) -> Any:
        if node in memo:
            return memo[node]
        if not node.args:
            return node
        args = [visit(a) for a in node.args]
        new = node if all(a is b for a, b in zip(args, node.args, strict=True)) else node.func(*args)
        memo[node] = new.definition() if isinstance(new, STABLE) else new
        return memo[node]

    return visit(expr) if expr.args else expr + Integer(0)
