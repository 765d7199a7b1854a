r"""LaTeX of one SymPy expression: sums, products, fractions, powers, functions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sympy import (
    Abs,
    Add,
    Ei,
    Integer,
    Integral,
    LambertW,
    Mul,
    Number,
    Pow,
    Rational,
    Symbol,
    acosh,
    asinh,
    atan,
    cos,
    cosh,
    exp,
    log,
    oo,
    pi,
    sign,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
)
from sympy.core.numbers import Exp1, NegativeInfinity

from theory.errors import GradlineError
from theory.latex.notation import Notation, Rate

__all__ = [
    "FUNCTIONS",
    "Term",
    "as_factor",
    "beside",
    "brackets",
    "differential",
    "expression_latex",
    "is_negative",
    "joined",
    "plain_sum",
    "summands",
]

#: Functions that are written as a command in front of parentheses; logarithms follow the notation.
FUNCTIONS: dict[Any, str] = {
    Ei: r"\operatorname{Ei}",
    LambertW: "W_0",
    sin: r"\sin",
    cos: r"\cos",
    tan: r"\tan",
    sinh: r"\sinh",
    cosh: r"\cosh",
    tanh: r"\tanh",
    atan: r"\arctan",
    asinh: r"\operatorname{arsinh}",
    acosh: r"\operatorname{arcosh}",
    sign: r"\operatorname{sign}",
}

_TALL = re.compile(r"\\(?:frac|sqrt|int|left|lVert)(?![A-Za-z])")
_OPENS = re.compile(r"[A-Za-z]")
_ENDS = re.compile(r"\\[A-Za-z]+$")
_HALF = Rational(1, 2)


@dataclass(frozen=True)
class Term:
    """A summand without its sign."""

    sign: str
    text: str


def expression_latex(value: Any, notation: Notation) -> str:
    """LaTeX of an expression on one line.

    Raises: ``GradlineError`` for a function or an object that has no LaTeX here, naming it.
    """
    return plain_sum(summands(value, notation))


def plain_sum(terms: Iterable[Term]) -> str:
    """Summands side by side."""
    first, *rest = terms
    start = "" if first.sign == "+" else "-"
    return start + first.text + "".join(t.sign + t.text for t in rest)


def summands(value: Any, notation: Notation) -> tuple[Term, ...]:
    """The summands of an expression in the order they are written in."""
    parts = sorted(Add.make_args(value), key=lambda term: _sum_key(term, notation))
    if len(parts) > 1 and parts[0].could_extract_minus_sign():
        front = next((p for p in parts if not p.could_extract_minus_sign()), parts[0])
        parts.remove(front)
        parts.insert(0, front)
    last = len(parts) - 1
    return tuple(_term(p, notation, i == last) for i, p in enumerate(parts))


def _term(value: Any, notation: Notation, is_last: bool) -> Term:
    """A summand with its sign in front; an integral must come last, or nobody knows where it ends."""
    negative = is_negative(value)
    text = _product(-value if negative else value, notation)
    if not is_last and any(isinstance(f, Integral) for f in Mul.make_args(value)):
        text = brackets(text)
    return Term("-" if negative else "+", text)


def is_negative(value: Any) -> bool:
    """Whether a minus sign is taken out of a summand: of its number only, so that it is put back unchanged."""
    coefficient = value.args[0] if value.is_Mul else value
    return bool(isinstance(coefficient, Number) and coefficient.is_negative)


def _sum_key(term: Any, notation: Notation) -> tuple[Any, ...]:
    """Exponentials, special functions, polynomials of falling degree, constants."""
    factors = Mul.make_args(term)
    if not term.free_symbols:
        kind = 3
    elif any(f.has(exp) and f.as_base_exp()[1] != -1 and isinstance(f, exp) for f in factors):
        kind = 0
    elif any(isinstance(f, (*FUNCTIONS, log, Integral)) for f in factors):
        kind = 1
    else:
        kind = 2
    last = 1 if any(isinstance(f, Integral) for f in factors) else 0
    ranks = sorted(notation.rank(s) for s in term.free_symbols)
    powers = [f.as_base_exp()[1] for f in factors if f.free_symbols]
    degree = sum(p for p in powers if p.is_Rational)
    special = sum(isinstance(f, log) for f in factors)
    return last, kind, special, len(factors) if kind == 1 else -degree, ranks, str(term)


def _product(value: Any, notation: Notation) -> str:
    """A product without a sign of its own, or any single expression; integrals come last."""
    single = value.is_Integer or not (value.is_Mul or _in_denominator(value) or isinstance(value, Rational))
    if single:
        return _power(value, notation)
    integrals = [f for f in Mul.make_args(value) if isinstance(f, Integral)]
    *inner, last = (_integral(f, notation) for f in integrals) if integrals else ("",)
    # unevaluated: a number would be distributed over a sum that is alone with it
    others = Mul(*(f for f in Mul.make_args(value) if f not in integrals), evaluate=False)
    texts = [] if integrals and others == 1 else [_fraction(*group, notation) for group in _groups(others, notation)]
    if integrals and len(texts) == 1 and others.is_Add:
        texts = [brackets(texts[0])]
    return "".join(joined([*texts, *map(brackets, inner), *([last] if last else [])]))


Factors = tuple[list[Any], list[Any]]


def _in_denominator(factor: Any) -> bool:
    return bool(factor.is_Pow and factor.exp.is_Rational and factor.exp.is_negative)


def _groups(value: Any, notation: Notation) -> list[Factors]:
    """Numerator and denominator of each group; a group that is no whole fraction, or that only monomials follow,
    joins the next.
    """
    groups: list[Factors] = [([], []) for _ in notation.groups]
    for factor in Mul.make_args(value):
        where = _group_of(factor, notation)
        if isinstance(factor, Rational):
            groups[where][0].append(Integer(factor.p)) if factor.p != 1 else None
            groups[where][1].append(Integer(factor.q)) if factor.q != 1 else None
        elif _in_denominator(factor):
            groups[where][1].append(1 / factor)
        else:
            groups[where][0].append(factor)
    joined: list[Factors] = []
    waiting: Factors = ([], [])
    for i, (above, below) in enumerate(groups):
        waiting = (waiting[0] + above, waiting[1] + below)
        rest = [f for group in groups[i + 1 :] for part in group for f in part]
        if waiting[0] and waiting[1] and any(b for _, b in groups[i + 1 :]) and any(map(_is_sum, rest)):
            joined.append(waiting)
            waiting = ([], [])
    return [*joined, waiting] if waiting[0] or waiting[1] or not joined else joined


def _is_sum(factor: Any) -> bool:
    return bool((factor.base if factor.is_Pow else factor).is_Add)


def _group_of(factor: Any, notation: Notation) -> int:
    return max((notation.group(s) for s in factor.free_symbols), default=0)


def _fraction(numerator: list[Any], denominator: list[Any], notation: Notation) -> str:
    """A fraction; special functions beside others stand behind it."""
    if not denominator:
        return _factors(numerator, notation)
    behind = [f for f in numerator if isinstance(f, (*FUNCTIONS, log))]
    above = [f for f in numerator if f not in behind]
    if not above:
        above, behind = behind, []
    text = rf"\frac{{{_factors(above, notation) if above else 1}}}{{{_factors(denominator, notation)}}}"
    return "".join(joined([text, _factors(behind, notation)])) if behind else text


def _factor_key(factor: Any, notation: Notation) -> tuple[Any, ...]:
    """Numbers, symbols and sums by the last of their symbols, roots, exponentials, functions."""
    base = factor.as_base_exp()[0] if factor.is_Pow else factor
    kind = 3 if isinstance(factor, (*FUNCTIONS, log)) else 2 if isinstance(factor, exp) else 0
    kind = 1 if factor.is_Pow and not factor.exp.is_Integer else kind
    if not factor.free_symbols:
        return -1 if factor.is_Integer else 0, kind, (), 0, str(factor)
    ranks = sorted((notation.rank(s) for s in factor.free_symbols), reverse=True)
    return 1, kind, ranks[:1], 0 if isinstance(base, Symbol) else 1, str(factor)


def _factors(factors: list[Any], notation: Notation) -> str:
    ordered = sorted(_merge_roots(factors), key=lambda f: _factor_key(f, notation))
    alone = len(ordered) == 1
    return "".join(joined([_power(f, notation) if alone else as_factor(f, notation) for f in ordered]))


def _merge_roots(factors: list[Any]) -> list[Any]:
    """Square roots of a product under one root, where that is the same expression."""
    roots = [f for f in factors if f.is_Pow and f.exp == _HALF]
    roots = [f for f in roots if not _has_fraction(f.base)]
    if len(roots) < 2:
        return factors
    inside = Mul(*(f.base for f in roots))
    if sqrt(inside) != Mul(*roots):
        return factors
    return [f for f in factors if f not in roots] + [Pow(inside, _HALF, evaluate=False)]


def _has_fraction(value: Any) -> bool:
    return any(_in_denominator(p) for p in value.atoms(Pow)) or any(not r.is_Integer for r in value.atoms(Rational))


def as_factor(value: Any, notation: Notation) -> str:
    """A factor among others: sums in parentheses, and so is what begins with a sign or ends in a differential."""
    text = _power(value, notation)
    if value.is_Add or is_negative(value) or isinstance(value, Integral):
        return brackets(text)
    return text


def joined(texts: list[str]) -> Iterable[str]:
    """Put factors side by side so that they are read as a product."""
    before = ""
    for text in texts:
        if before:
            yield _between(before, text)
        yield text
        before = text


def _between(before: str, text: str) -> str:
    if text[0].isdigit() or (before[-1].isdigit() and _CONSTANT_E.match(text)):
        return r"\cdot "
    if text.startswith(r"\int") or (before.startswith(r"\frac") and text.startswith(_AFTER_FRACTION)):
        return r"\,"
    if not _OPENS.match(text):
        return ""
    return " " if _ENDS.search(before) or (before[-1].isalnum() and not before.isdigit()) else ""


#: The constant behind a number would read like a power of ten.
_CONSTANT_E = re.compile(r"e(?!\^)")
_AFTER_FRACTION = (r"\frac", r"\operatorname", r"\l", r"\sqrt", "e^", "W_0")


def brackets(text: str, left: str = "(", right: str = ")") -> str:
    """Delimiters around a text, that grow where it is tall."""
    apart = " " if left.startswith("\\") and _OPENS.match(text) else ""
    if _TALL.search(text):
        return rf"\left{left}{apart}{text}\right{right}"
    return f"{left}{apart}{text}{right}"


def _power(value: Any, notation: Notation) -> str:
    """Anything but a product or a sum of several terms: powers, functions, symbols, numbers."""
    if isinstance(value, exp):
        return _exponential(value, notation)
    if not value.is_Pow:
        return _atom(value, notation)
    base, exponent = value.args
    if _in_denominator(value):
        return _product(value, notation)
    if exponent.is_Rational and exponent.p == 1:
        index = "" if exponent.q == 2 else f"[{exponent.q}]"
        return rf"\sqrt{index}{{{expression_latex(base, notation)}}}"
    text = expression_latex(base, notation)
    if isinstance(base, Symbol) and text.endswith("^2") and exponent.is_Integer:
        return f"{text.removesuffix('^2')}^{_script(str(2 * exponent))}"
    simple = (isinstance(base, Symbol) and "^" not in text) or (base.is_Integer and base.is_nonnegative)
    above = f"{exponent.p}/{exponent.q}" if isinstance(exponent, Rational) else expression_latex(exponent, notation)
    above = str(exponent) if exponent.is_Integer else above
    return f"{text if simple else brackets(text)}^{_script(above)}"


def _script(text: str) -> str:
    """A superscript or subscript; one in parentheses would read like an index without a second pair of braces."""
    if text.startswith("(") and text.endswith(")"):
        return f"{{{{{text}}}}}"
    return text if len(text) == 1 else f"{{{text}}}"


def _exponential(value: Any, notation: Notation) -> str:
    argument = expression_latex(value.args[0], notation)
    return rf"\exp{brackets(argument)}" if notation.exponential == "exp" else f"e^{_script(argument)}"


def _atom(value: Any, notation: Notation) -> str:
    if isinstance(value, Symbol):
        return notation.latex(value)
    if value.is_Add or value.is_Mul:
        return expression_latex(value, notation)
    if isinstance(value, Rational):
        return str(value) if value.is_Integer else rf"{'-' if value.p < 0 else ''}\frac{{{abs(value.p)}}}{{{value.q}}}"
    if isinstance(value, Abs):
        return brackets(expression_latex(value.args[0], notation), r"\lvert", r"\rvert")
    if isinstance(value, log):
        inside = value.args[0]
        return f"\\{notation.log}" + (_atom(inside, notation) if isinstance(inside, Abs) else _inside(inside, notation))
    if type(value) in FUNCTIONS and len(value.args) == 1:
        return FUNCTIONS[type(value)] + _inside(value.args[0], notation)
    if isinstance(value, Rate):
        return _rate(value.args[0], value.args[1], notation)
    if isinstance(value, Integral):
        return _integral(value, notation)
    for constant, text in _CONSTANTS.items():
        if value == constant:
            return text
    raise GradlineError(f"LaTeX of {value}: no notation for {type(value).__name__}; rewrite it in {_vocabulary()}")


def _inside(value: Any, notation: Notation) -> str:
    return brackets(expression_latex(value, notation))


_CONSTANTS: dict[Any, str] = {Exp1(): "e", pi: r"\pi", oo: r"\infty", NegativeInfinity(): r"-\infty"}


def _vocabulary() -> str:
    return ", ".join(["exp", "log", "sqrt", "Abs", *(f.__name__ for f in FUNCTIONS), "Integral", "Rate"])


def differential(notation: Notation) -> str:
    """The differential sign of a notation."""
    return r"\mathrm{d}" if notation.differential == "upright" else "d"


def _rate(quantity: Any, variable: Any, notation: Notation) -> str:
    d, name = differential(notation), notation.latex(variable)
    if not isinstance(quantity, Symbol):
        return rf"\frac{{{d}}}{{{beside(d, name)}}}{_inside(quantity, notation)}"
    text = notation.latex(quantity)
    if notation.derivative == "dot" and variable.name == "t":
        found = re.fullmatch(r"(\\?[A-Za-z]+)(_.*)?", text)
        if found and (len(found[1]) == 1 or found[1].startswith("\\")):
            return rf"\dot{{{found[1]}}}{found[2] or ''}"
        return rf"\dot{{{text}}}"
    return rf"\frac{{{beside(d, text)}}}{{{beside(d, name)}}}"


def beside(d: str, text: str) -> str:
    """A differential sign and what follows it."""
    return f"{d}{text}" if d.endswith("}") or text.startswith("\\") else f"{d} {text}"


def _integral(value: Any, notation: Notation) -> str:
    if len(value.limits) != 1 or len(value.limits[0]) != 3:
        raise GradlineError(f"LaTeX of {value}: expected an integral over one variable between two limits")
    variable, low, high = value.limits[0]
    inside = expression_latex(value.function, notation)
    if len(Add.make_args(value.function)) > 1:
        inside = brackets(inside)
    limits = f"_{_script(expression_latex(low, notation))}^{_script(expression_latex(high, notation))}"
    return rf"\int{limits} {inside}\,{beside(differential(notation), notation.latex(variable))}"
