"""Whether an equation of a paper says what a claim states: the same set of solutions, or a point where they part.

An equation ``p = 0`` matches ``q = f`` where ``p`` vanishes at ``q = f`` and has one solution in ``q``: its derivative
in ``q`` is proved to vanish nowhere, on a domain without gaps. So equations that are solved for something else or
multiplied by what can't vanish match, and others never do. They differ where a point of the claim is proved not to
solve the paper's equation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import sympy
from flint import arb
from sympy import Basic, Dummy, Expr, Integer, S, Symbol, diff
from sympy.core.function import AppliedUndef

from theory.balls import enclose
from theory.errors import GradlineError
from theory.identities import Decision, prove_zero
from theory.inputs import conditions
from theory.latex.check.findings import Answer, Result
from theory.latex.check.leading import compare_leading
from theory.latex.check.preparing import BELOW_ONE, prepared, prepared_alpha, speaks_of_no_loss
from theory.latex.check.stated import Statement
from theory.latex.names import SCALARS
from theory.latex.notation import Rate
from theory.latex.parser.vocabulary import CONSTANT, FORMULA, MOVING
from theory.paper.settings import LOSS
from theory.positivity import nonzero, sign
from theory.symbols import PARAMETERS, STATES, alpha, mu_QK, t
from theory.witnesses import points
from theory.words import Words, matrix

__all__ = ["compare_with"]

_ENCLOSED_POINTS = 24
_TINY_BITS = 100


# ---- comparison ------------------------------------------------------------------------------------------------


def compare_with(
    left: Any, right: Any, statement: Statement, given: Sequence[Basic] = (), relation: str = "="
) -> Result:
    r"""Compare ``left = right``, as a paper writes it, with a statement.

    Parameters: ``left`` and ``right``, values of `theory.latex.parser.evaluate`; ``given``, relations that the paper
    assumes; ``relation``, ``"="``, ``"~"`` or ``"to"``. Returns: a `Result`; nothing that is not proved is a match.

    >>> from theory.latex.parser import parse_latex
    >>> from theory.latex.check.stated import statements
    >>> from theory.registry import find
    >>> (loss,) = statements(find("loss-on-line"))
    >>> left, right = parse_latex(r"e^{L} - 1"), parse_latex(r"(M-1) e^{-\alpha\mu_{OV}}")
    >>> compare_with(left, right, loss).answer, compare_with(left, -right, loss).answer
    ('exact', 'differs')
    """
    try:
        if isinstance(left, Words) or isinstance(right, Words):
            return _compare_words(left, right, statement)
        if statement.kind in ("words", "constant words"):
            return Result("undecided", statement, "an equation of scalars, where the claim is one of matrices")
        if statement.kind in ("sign", "inequality"):
            return Result("undecided", statement, "an equation, where the claim is an inequality")
        return _compare_scalars(left, right, statement, tuple(given), relation)
    except (GradlineError, ValueError, TypeError, RecursionError) as error:
        return Result("undecided", statement, " ".join(str(error).split()))


def _compare_scalars(left: Any, right: Any, statement: Statement, given: tuple[Basic, ...], relation: str) -> Result:
    found = _judged(left, right, statement, (*statement.given, *given), relation)
    if found.answer == "differs":
        strange = _strangers(left - right, statement)
        if strange:
            reason = f"it contains {', '.join(strange)}, about which the claim says nothing"
            return Result("undecided", statement, reason)
    return found


def _strangers(p: Expr, statement: Statement) -> list[str]:
    """What an equation contains beside parameters, coordinates and what the statement speaks of."""
    p = prepared(p, statement)
    names = statement.quantity if isinstance(statement.quantity, tuple) else (statement.quantity,)
    own = {*PARAMETERS, *STATES, alpha, t, SCALARS["L"], CONSTANT, *statement.starts.values(), *names}
    for value in (statement.value, statement.quantity, *statement.definitions.values()):
        own |= set(getattr(value, "free_symbols", ()))
    if statement.kind == "constant":
        rates = {r for r in p.atoms(Rate) if r.args[0] not in names}
    else:
        rates = {r for r in p.atoms(Rate) if r != statement.quantity and not _is_part(r, statement.quantity)}
        own -= {CONSTANT}
    found = {f"d{r.args[0]}/d{r.args[1]}" for r in rates}
    return sorted(found | {s.name for s in p.free_symbols - own if not isinstance(s, Dummy)})


def _is_part(rate: Rate, quantity: Any) -> bool:
    """Whether a rate in time belongs to a slope ``dx/dy``."""
    return isinstance(quantity, Rate) and rate.args[1] == t and rate.args[0] in quantity.args


def _judged(left: Any, right: Any, statement: Statement, given: tuple[Basic, ...], relation: str) -> Result:
    a, b = (prepared(side, statement) for side in (left, right))
    if statement.quantity == FORMULA and not a.has(FORMULA):
        return Result("undecided", statement, "the claim states a formula without a left side: write it alone")
    if statement.relation in ("~", "to"):
        return compare_leading(a, b, statement, given, relation)
    if relation == "to":
        return Result("undecided", statement, "a limit, where the claim is an equality")
    if relation == "~":
        found = _judged(left, right, statement, given, "=")
        if found.answer != "differs":
            return found
        return Result("undecided", statement, "an approximation, which can't be refuted")
    if statement.kind == "constant":
        return _compare_constant(a - b, statement, given)
    if statement.kind == "identity":
        return _compare_identity(a - b, statement, given)
    return _compare_equation(a - b, statement, given)


def _decide(value: Expr, given: tuple[Basic, ...], statement: Statement) -> Decision:
    """Whether a value is zero, with the attention written out where that is needed."""
    if value.has(S.NaN, S.ComplexInfinity, S.Infinity, S.NegativeInfinity):
        return Decision("undecided", "no finite value")
    if speaks_of_no_loss(statement):
        value = value.xreplace({SCALARS["L"]: LOSS})
    decision = prove_zero(value, given)
    if decision.answer == "equal" or statement.fixed_attention or not value.has(alpha) or not value.has(mu_QK):
        return decision
    written_out = value.xreplace({alpha: prepared_alpha(statement)})
    return prove_zero(written_out, given)


def _opened(p: Expr, quantity: Any) -> tuple[Expr, Symbol]:
    """``p`` with a symbol for the quantity, and that symbol; other derivatives become symbols too."""
    images: dict[Any, Any] = {}
    symbol = quantity
    if not quantity.is_Symbol:
        symbol = Dummy("q", real=True)
        images[quantity] = symbol
        if isinstance(quantity, Rate) and quantity.args[1] != t and p.has(Rate(quantity.args[0], t)):
            images[Rate(quantity.args[0], t)] = symbol * Rate(quantity.args[1], t)
    p = p.xreplace(images)
    others = {r: Symbol(f"d{r.args[0]}/d{r.args[1]}", real=True) for r in p.atoms(Rate)}
    return p.xreplace(others), symbol


def _compare_equation(p: Expr, statement: Statement, given: tuple[Basic, ...]) -> Result:
    quantity, value = statement.quantity, statement.value
    if isinstance(quantity, AppliedUndef):
        used = [n for n in p.atoms(AppliedUndef) if n.func == quantity.func and n.args[0].is_Symbol]
        if len(used) == 1:
            value = value.xreplace({quantity.args[0]: used[0].args[0]})
            quantity = used[0]
    p, symbol = _opened(p, quantity)
    at = p.xreplace({symbol: prepared(value, statement)})
    decision = _decide(at, given, statement)
    if decision.answer == "different":
        return Result("differs", statement, decision.reason, point=decision.witness, residual=at)
    answer: Answer = "exact"
    if decision.answer == "undecided":
        answer = _by_enclosure(at, given)
        if answer != "enclosed":
            return Result(answer, statement, decision.reason)
    if not p.has(symbol):
        return Result("identity", statement, "true, whatever the claim says")
    unique = _unique(p, symbol, given)
    if unique is not None:
        return Result("undecided", statement, unique)
    return Result(answer, statement, decision.reason, decision.assumptions)


def _unique(p: Expr, symbol: Symbol, given: tuple[Basic, ...]) -> str | None:
    """None where ``p = 0`` is proved to have one solution at most; otherwise what is missing."""
    given = (*given, BELOW_ONE)
    slope = diff(p, symbol)
    if slope.has(symbol) and _is_linear_above(p, symbol, given):
        return None
    if not slope.has(symbol):
        if nonzero(slope, given):
            return None
        return f"multiplied by {sympy.factor(slope)}, which is not proved to vanish nowhere"
    if not _is_connected(p, symbol, given):
        return f"solved in a way that may have further solutions in {symbol.name}"
    if sign(slope, given) in (1, -1):
        return None
    return f"it may have further solutions in {symbol.name}: {slope} is not proved to have one sign"


def _is_linear_above(p: Expr, symbol: Symbol, given: tuple[Basic, ...]) -> bool:
    """Whether ``p`` is a fraction whose numerator is linear in a symbol, so that it vanishes once at most."""
    slope = diff(sympy.fraction(sympy.together(p))[0], symbol)
    return not slope.has(symbol) and nonzero(slope, given)


def _is_connected(expr: Any, symbol: Symbol, given: tuple[Basic, ...]) -> bool:
    """Whether an expression is proved to be defined on an interval of a symbol, and smooth there."""
    if not expr.has(symbol) or expr.is_Symbol:
        return True
    if not all(_is_connected(arg, symbol, given) for arg in expr.args):
        return False
    if expr.is_Add or expr.is_Mul or isinstance(expr, sympy.exp | sympy.sinh | sympy.cosh | sympy.tanh | sympy.asinh):
        return True
    if expr.is_Pow and expr.base is S.Exp1:
        return True
    if expr.is_Pow and expr.exp.is_Integer:
        return bool(expr.exp > 0) or nonzero(expr.base, given)
    if (expr.is_Pow and expr.exp.is_Rational) or isinstance(expr, sympy.log):
        inner = expr.args[0]
        return diff(inner, symbol, 2) == 0 or sign(inner, given) == 1
    return False


def _by_enclosure(value: Expr, given: tuple[Basic, ...]) -> Answer:
    """Whether a value is enclosed within a tiny interval around 0 at many points, or has no value at any."""
    if value.has(S.NaN, S.ComplexInfinity, S.Infinity, S.NegativeInfinity):
        return "undefined"
    given_conditions = conditions(given)
    names = value.free_symbols.union(*(c.expr.free_symbols for c in given_conditions))
    found = 0
    for point in points(sorted(names, key=str), given_conditions, _ENCLOSED_POINTS):
        ball = enclose(value, point, 256)
        if not ball.is_finite():
            continue
        if not ball.contains(0) or not abs(ball) < arb(2) ** -_TINY_BITS:
            return "undecided"
        found += 1
    if not found:
        return "undefined"
    return "enclosed" if found >= _ENCLOSED_POINTS // 2 else "undecided"


def _compare_identity(p: Expr, statement: Statement, given: tuple[Basic, ...]) -> Result:
    """A claim without a quantity: ``p`` is its difference times what vanishes nowhere, or both are zero."""
    difference = prepared(statement.value, statement)
    whole = _decide(difference, given, statement)
    decision = _decide(p, given, statement)
    if whole.answer == "equal" and decision.answer == "equal":
        return Result("exact", statement, decision.reason, decision.assumptions)
    if whole.answer == "equal":
        answer: Answer = "differs" if decision.answer == "different" else "undecided"
        return Result(answer, statement, decision.reason, point=decision.witness, residual=p)
    unit = sympy.cancel(p / difference)
    if nonzero(unit, given) and not unit.has(S.ComplexInfinity) and nonzero(1 / unit, given):
        return Result("exact", statement, "the difference of the sides, times what vanishes nowhere")
    return Result("undecided", statement, "the claim is not solved for a quantity; state it as Eq(quantity, formula)")


# ---- constants of the motion -----------------------------------------------------------------------------------


def _compare_constant(p: Expr, statement: Statement, given: tuple[Basic, ...]) -> Result:
    """``p = 0`` says that a function of the statement's conserved quantity does not change in time."""
    names = statement.quantity
    law = prepared(statement.value, statement)
    if not statement.fixed_attention:
        p = p.xreplace({alpha: prepared_alpha(statement)})
    known = {*names, *([alpha] if statement.fixed_attention else [])}
    others = sorted(s.name for s in p.free_symbols - known if s.name in MOVING)
    if others:
        return Result("undecided", statement, f"{', '.join(others)} moves in time, and the claim does not say how")
    slopes = [diff(law, s) for s in names]
    rates = {Rate(s, t): Dummy(f"d{s}", real=True) for s in names if s != t}
    if p.has(Rate):
        p = p.xreplace(rates)
        found = [
            diff(p, rates[Rate(s, t)]) if s != t else p.xreplace(dict.fromkeys(rates.values(), Integer(0)))
            for s in names
        ]
        rest = Integer(0) if t in names else p.xreplace(dict.fromkeys(rates.values(), Integer(0)))
        return _parallel(found, slopes, [rest], statement, given)
    if p.has(CONSTANT):
        scale = diff(p, CONSTANT)
        if scale.free_symbols & set(names) or not nonzero(scale, given):
            return Result("undecided", statement, "the constant is multiplied by what may vanish or move")
        return _parallel([diff(p, s) for s in names], slopes, [], statement, given)
    put, notes = {}, []
    for s, start in statement.starts.items():
        if start.is_Symbol and p.has(start):
            put[start] = s
        else:
            told = statement.definitions.get(start)
            put[s] = start if start.is_Rational else Integer(0) if told is None else told
            notes += [f"{s} = 0 at the start"] if start.is_Symbol and told is None else []
    result = _parallel([diff(p, s) for s in names], slopes, [p.xreplace(put)], statement, given)
    return replace(result, assumptions=(*result.assumptions, *notes))


def _parallel(
    found: list[Any], slopes: list[Any], zeros: list[Any], statement: Statement, given: tuple[Basic, ...]
) -> Result:
    """Whether two gradients are parallel, the ratio vanishes nowhere, and further values are 0."""
    enclosed = False
    used: set[str] = set()
    minors = [found[i] * slopes[j] - found[j] * slopes[i] for i, j in combinations(range(len(slopes)), 2)]
    for value in (*minors, *zeros):
        decision = _decide(value, given, statement)
        if decision.answer == "different":
            return Result("differs", statement, decision.reason, point=decision.witness, residual=value)
        if decision.answer == "undecided":
            answer = _by_enclosure(value, given)
            if answer != "enclosed":
                return Result(answer, statement, decision.reason)
            enclosed = True
        used |= set(decision.assumptions)
    ratio = found[0] / slopes[0]
    if not nonzero(ratio, (*given, BELOW_ONE)):
        if prove_zero(ratio, given).answer == "equal":
            return Result("identity", statement, "true, whatever the claim says")
        return Result("undecided", statement, f"multiplied by {ratio}, which is not proved to vanish nowhere")
    return Result("enclosed" if enclosed else "exact", statement, "a function of it", tuple(sorted(used)))


# ---- matrices --------------------------------------------------------------------------------------------------


def _compare_words(left: Any, right: Any, statement: Statement) -> Result:
    """Matrix equations are compared as sums of words, up to a scalar factor and transposition."""
    if statement.kind == "words":
        target = statement.quantity - statement.value
        paper = _difference(left, right)
    elif statement.kind == "constant words":
        target = statement.value
        left, right = (matrix(CONSTANT.name) if side == CONSTANT else side for side in (left, right))
        paper = _difference(left, right)
        constant = paper is not None and ((CONSTANT.name, False),) in paper.terms
        if paper is not None and constant:
            paper = Words.of({word: c for word, c in paper.terms.items() if word != ((CONSTANT.name, False),)})
        else:
            letters = {name for word in target.terms for name, _ in word} - {"1"}
            target = target.derivative({name: matrix(f"d{name}/dt") for name in letters})
    else:
        return Result("undecided", statement, "an equation of matrices, where the claim is one of scalars")
    if paper is None:
        return Result("undecided", statement, "a matrix equal to a scalar")
    first = next(iter(target.terms))
    for candidate in (paper, paper.T):
        scale = candidate.terms.get(first, Integer(0)) / target.terms[first]
        if scale != 0 and (candidate - scale * target).is_zero() and nonzero(scale):
            return Result("exact", statement, "the same words")
    return Result("differs", statement, f"{paper} = 0 in the paper, {target} = 0 in the theory")


def _difference(left: Any, right: Any) -> Words | None:
    sides = [side if isinstance(side, Words) else Words.of({}) if side == 0 else None for side in (left, right)]
    if None in sides:
        return None
    return sides[0] - sides[1]  # type: ignore[operator]
