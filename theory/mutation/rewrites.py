"""Other ways to write a formula with the same value: what no check may ever refute."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from types import MappingProxyType
from typing import Any

from sympy import Expr, Symbol, cosh, expand, expand_log, factor, log, sinh, sqrt, tanh, together
from sympy import exp as exponential
from sympy.core.exprtools import factor_terms

from theory.mutation.formulas import places, rebuilt
from theory.mutation.statements import Mutant
from theory.registry import Claim

__all__ = ["rewritten", "rewritten_claim"]


def _positive(formula: Expr, random: Random) -> Any:
    """A positive expression in the symbols of a formula."""
    symbols = sorted(formula.free_symbols, key=lambda s: str(s.name)) or [Symbol("M", integer=True, positive=True)]
    symbol = random.choice(symbols)
    return symbol + random.randint(1, 3) if symbol.is_positive else symbol**2 + random.randint(1, 3)


def _multiplied(formula: Expr, random: Random) -> Any:
    scale = _positive(formula, random)
    return expand(formula * scale) / scale


def _shifted(formula: Expr, random: Random) -> Any:
    shift = _positive(formula, random)
    return (formula * shift + shift**2) / shift - shift


def _polarized(formula: Expr, random: Random) -> Any:
    return ((formula + 1) ** 2 - (formula - 1) ** 2) / 4


def _cubed(formula: Expr, random: Random) -> Any:
    return sqrt(1 + formula**2) ** 2 * formula / (1 + formula**2)


#: Rewritings of a whole formula.
_WHOLE: tuple[Callable[[Expr, Random], Any], ...] = (
    lambda f, r: expand(f),
    lambda f, r: factor(f),
    lambda f, r: together(f),
    lambda f, r: factor_terms(expand(f)),
    lambda f, r: expand_log(f, force=False),
    _multiplied,
    _shifted,
    _polarized,
    _cubed,
)


def _exponential(node: Any, random: Random) -> Any:
    x = node.args[0]
    half = tanh(x / 2)
    forms = (
        cosh(x) + sinh(x),
        (1 + half) / (1 - half),
        exponential(x + log(2), evaluate=False) / 2,
        exponential(log(exponential(x), evaluate=False), evaluate=False),
    )
    return random.choice(forms)


def _logarithm(node: Any, random: Random) -> Any:
    x = node.args[0]
    forms = (log(3 * x) - log(3), 2 * log(sqrt(x)), -log(1 / x, evaluate=False), log(exponential(node)))
    return random.choice(forms)


def _place(formula: Expr, random: Random) -> Any:
    """Rewrite one exponential, logarithm or symbol inside."""
    found = [(path, node) for path, node, _ in places(formula) if node.func in (exponential, log) or node.is_Symbol]
    if not found:
        return formula
    path, node = random.choice(found)
    if node.is_Symbol:
        new = log(exponential(node, evaluate=False), evaluate=False)
        if node.is_positive and random.random() < 0.5:
            new = sqrt(node**2 + 2 * node + 1) - 1
    else:
        new = _exponential(node, random) if node.func is exponential else _logarithm(node, random)
    return rebuilt(formula, path, new)


def rewritten(formula: Expr, random: Random) -> Expr:
    """A formula written in another way, with the same value wherever it has one.

    Expanding, factoring, one denominator, multiplying and dividing, identities of exponentials and logarithms;
    one to three of them.

    Parameters: ``formula``; ``random``, the source of the choices. Returns: an expression.

    >>> from theory.symbols import M
    >>> rewritten((M - 1) ** 2, Random(3)).equals((M - 1) ** 2)
    True
    """
    for _ in range(random.randint(1, 3)):
        whole = random.random() < 0.6
        formula = random.choice(_WHOLE)(formula, random) if whole else _place(formula, random)
    return formula


def rewritten_claim(claim: Claim, seed: int) -> Mutant | None:
    """A claim with one of its formulas written in another way; None if it has no scalar formula.

    Parameters: ``claim``; ``seed`` of the choices. Returns: a `Mutant` that must not be refuted.
    """
    random = Random(f"{seed} {claim.id}")
    names = [name for name, formula in claim.stated.items() if isinstance(formula, Expr)]
    if not names:
        return None
    name = random.choice(names)
    changed = rewritten(claim.stated[name], random)
    return Mutant(claim, name, "rewritten", f"{name} as {changed}", MappingProxyType({name: changed}))
