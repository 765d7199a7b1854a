"""Whether a function is conserved along all gradient fields of a model, decided exactly."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sympy import Add, Dummy, Expr, Symbol, diff

from theory.errors import GradlineError
from theory.identities import prove_zero
from theory.inputs import exact
from theory.laws.coordinates import rational_form
from theory.laws.fields import GradientFields, as_fields
from theory.normal_form import convert

__all__ = ["is_law"]


def is_law(law: Any, fields: GradientFields) -> bool:
    """Whether a function is conserved for every loss, decided exactly.

    Parameters: ``law``, an expression in the parameters; ``fields`` of the model.

    Raises: ``TypeError`` or ``ValueError`` for wrong input; `GradlineError` where it can't be decided.

    >>> from sympy.abc import u, v
    >>> from theory.laws.fields import gradient_fields
    >>> is_law(u**2 + v**2, gradient_fields([u * v], [u, v]))
    False
    """
    return _is_law(exact(law), as_fields(fields))


# the same law is asked for when it is found and when it is counted
@lru_cache(maxsize=1024)
def _is_law(law: Expr, fields: GradientFields) -> bool:
    fields.check_names([law])
    slopes = {x: diff(law, x) for x in fields.parameters if law.has(x)}
    derivatives = [Add(*(slope * g[x] for x, slope in slopes.items() if x in g)) for g in fields.gradients]
    constants: list[Symbol] = []
    distinct = {_with_common_names(d, fields, constants): d for d in derivatives if d != 0}
    return all(_vanishes(form, d, fields) for form, d in distinct.items())


def _with_common_names(expr: Expr, fields: GradientFields, names: list[Symbol]) -> Expr:
    """Number the constants, so that the same output at another symbolic input is the same expression."""
    constants = sorted(expr.free_symbols - set(fields.parameters), key=lambda s: (s.name, s.sort_key()))
    names += [Dummy(f"k{i}") for i in range(len(names), len(constants))]
    return expr.xreplace(dict(zip(constants, names, strict=False)))


def _vanishes(renamed: Expr, expr: Expr, fields: GradientFields) -> bool:
    """Whether the expression is the zero fraction over independent coordinates, or proved to be zero otherwise."""
    form = rational_form([renamed], fields.parameters).expressions[0]
    converter, value = convert(form)
    if value.num.is_zero() and not converter.left_out:
        return True
    if form.is_rational_function():
        return False
    decision = prove_zero(expr)
    if decision.answer == "undecided":
        raise GradlineError(f"law: it is undecided whether {expr} is 0; write the law without roots, or give it signs")
    return decision.answer == "equal"
