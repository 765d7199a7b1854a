r"""LaTeX of expressions in an author's notation, unambiguous enough to be read back.

Sums put exponentials first and constants last; products keep the factors of one group of the `Notation` in one
fraction. A product is one product for whoever reads it back: signs, numerators and denominators belong together.

>>> from theory.symbols import M, alpha, b, eta_QK, mu_OV
>>> from sympy import exp
>>> print(to_latex(eta_QK * (M - 1) * alpha * (1 - alpha) * mu_OV / (M * b**2 * (exp(alpha * mu_OV) + M - 1))))
\frac{\eta_{\mathrm{QK}}(M-1)}{M b^2}\,\frac{\alpha(1-\alpha)\mu_{\mathrm{OV}}}{e^{\alpha\mu_{\mathrm{OV}}}+M-1}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sympy import Eq, Expr, Ge, Gt, Le, Lt, Ne

from theory.errors import GradlineError
from theory.flow import ReducedFlow
from theory.latex.notation import Notation, Rate
from theory.latex.printer.expressions import (
    Term,
    as_factor,
    beside,
    brackets,
    differential,
    expression_latex,
    is_negative,
    joined,
    plain_sum,
    summands,
)
from theory.models.flow import GradientFlow
from theory.symbols import t
from theory.words import Words

__all__ = ["DEFAULT", "RELATIONS", "MatrixForm", "MatrixRoot", "relation_terms", "sum_terms", "to_latex"]


@dataclass(frozen=True)
class MatrixForm:
    """A matrix on the left side: ``kind`` is ``"rate"`` (its time derivative) or ``"next"`` (after one step)."""

    letter: str
    kind: Literal["rate", "next"]


@dataclass(frozen=True)
class MatrixRoot:
    """The positive semidefinite square root of a product of matrices."""

    square: Words


DEFAULT = Notation()

RELATIONS: dict[Any, str] = {Eq: "=", Ne: r"\ne", Gt: ">", Ge: r"\ge", Lt: "<", Le: r"\le"}


def to_latex(value: Any, notation: Notation = DEFAULT) -> str:
    r"""LaTeX of a SymPy expression or relation, of matrix `Words`, of a flow, or of the equations of a claim.

    Parameters: ``value``; ``notation``, the names and the style.

    Returns: LaTeX on one line for math mode that needs amsmath, of a flow one row for each state in ``aligned``; for a
    claim, a display of its equations.

    Raises: ``GradlineError`` for a kind of expression that has no LaTeX here, naming it.

    >>> from theory.symbols import M, mu_OV, t
    >>> from theory.latex.notation import Rate
    >>> print(to_latex(Eq(Rate(mu_OV, t), 1 - 1 / M), Notation(derivative="dot")))
    \dot{\mu}_{\mathrm{OV}}=1-\frac{1}{M}
    """
    if isinstance(value, GradientFlow | ReducedFlow):
        rows = (to_latex(Eq(Rate(s, t), v, evaluate=False), notation) for s, v in value.velocity.items())
        body = r" \\ ".join(row.replace("=", "&=", 1) for row in rows)
        return rf"\begin{{aligned}}{body}\end{{aligned}}"
    if isinstance(value, Words | MatrixForm | MatrixRoot):
        return plain_sum(sum_terms(value, notation))
    if type(value) in RELATIONS:
        return f"{to_latex(value.lhs, notation)}{_spaced(RELATIONS[type(value)])}{to_latex(value.rhs, notation)}"
    if not isinstance(value, Expr):
        from theory.latex.claims.displays import display
        from theory.latex.claims.equations import folded
        from theory.registry import Claim

        if isinstance(value, Claim):
            return display(folded(value), notation)
        raise GradlineError(f"LaTeX of {value!r}: expected a SymPy expression, a relation, Words or a claim")
    return expression_latex(value, notation)


def _spaced(operator: str) -> str:
    return f"{operator} " if operator.startswith("\\") else operator


def relation_terms(value: Any, notation: Notation = DEFAULT) -> tuple[str, str, tuple[Term, ...]]:
    """The left side, the relation sign and the summands of the right side, where lines may break."""
    if type(value) not in RELATIONS:
        raise GradlineError(f"LaTeX of {value}: expected an equation or inequality, to break its lines")
    return to_latex(value.lhs, notation), RELATIONS[type(value)], sum_terms(value.rhs, notation)


def sum_terms(value: Any, notation: Notation = DEFAULT) -> tuple[Term, ...]:
    """The summands of an expression or of Words in the order they are written in."""
    if isinstance(value, MatrixForm):
        return (Term("+", _matrix_form(value, notation)),)
    if isinstance(value, MatrixRoot):
        return (Term("+", f"({to_latex(value.square, notation)})^{{1/2}}"),)
    return _word_terms(value, notation) if isinstance(value, Words) else summands(value, notation)


def _matrix_form(value: MatrixForm, notation: Notation) -> str:
    letter = notation.matrix(value.letter)
    if value.kind == "next":
        return f"{letter}^{{+}}"
    if notation.derivative == "dot":
        return rf"\dot{{{letter}}}"
    d = differential(notation)
    return rf"\frac{{{beside(d, letter)}}}{{{beside(d, 't')}}}"


def _word_terms(value: Words, notation: Notation) -> tuple[Term, ...]:
    """Sums of matrix products; a common coefficient stands in front."""
    if not value.terms:
        return (Term("+", "0"),)
    coefficients = set(value.terms.values())
    if len(coefficients) == 1 and len(value.terms) > 1 and (c := coefficients.pop()) != 1:
        terms = [Term("+", _word(word, notation)) for word in value.terms]
        sum_text = brackets(plain_sum(terms))
        negative = is_negative(c)
        front = -c if negative else c
        text = sum_text if front == 1 else "".join(joined([as_factor(front, notation), sum_text]))
        return (Term("-" if negative else "+", text),)
    found = []
    for word, c in value.terms.items():
        negative = is_negative(c)
        front = -c if negative else c
        letters = _word(word, notation)
        text = letters if front == 1 else "".join(joined([as_factor(front, notation), letters]))
        found.append(Term("-" if negative else "+", text))
    return tuple(sorted(found, key=lambda term: term.sign == "-"))


def _word(word: Any, notation: Notation) -> str:
    if not word:
        return notation.matrix("I")
    return " ".join(notation.matrix(letter) + r"^{\top}" * transposed for letter, transposed in word)
