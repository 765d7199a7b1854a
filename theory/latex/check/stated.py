"""The equations of a claim, each solved for what it determines, with what named quantities stand for in its setting.

Built on `theory.latex.claims.equations`; a paper's equation is compared with these by `theory.latex.check.comparison`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from sympy import Ei, Expr, Gt, Integer, exp, log, oo, sqrt

from theory.frozen import FrozenMap
from theory.latex.claims.equations import Equation, equations
from theory.latex.names import SCALARS
from theory.latex.notation import Rate
from theory.latex.parser.evaluate import NAMED, form_read
from theory.latex.parser.vocabulary import DENOMINATOR, FORMULA, start_symbol
from theory.latex.printer import MatrixForm, MatrixRoot
from theory.paper.settings import ALPHA, NORM2_OV, SETTINGS, SIGMA_OV, D, Setting
from theory.registry import Claim
from theory.symbols import K, alpha, b, eta_OV, eta_QK, gamma, m, mu_OV, mu_QK, n, t
from theory.words import Words

__all__ = ["FUNCTION_DEFINITIONS", "Statement", "definition_statements", "statements"]

Kind = Literal["equation", "constant", "words", "constant words", "identity", "sign", "inequality"]


@dataclass(frozen=True)
class Statement:
    """One thing that a claim states.

    ``kind`` "equation": ``quantity = value``, where ``quantity`` is a symbol or a `Rate`, or `FORMULA` for a value
    that stands alone; "constant": ``value`` does not change in time, as a function of the symbols ``quantity``;
    "words": the matrix equation ``quantity = value``; "constant words"; "identity": ``value`` is 0; "sign":
    ``quantity`` has the sign of ``value``; "inequality": ``value`` is positive. ``relation`` is ``"~"`` for an
    asymptotic statement, ``"to"`` for a limit; ``limits`` are the symbols with the values they tend to then, any of
    which says it. ``setting`` names the setting, ``given`` are the relations that the statement needs, ``definitions``
    what named quantities stand for, ``starts`` the symbols of values at time 0; with ``fixed_attention`` alpha is a
    parameter of its own.
    """

    name: str
    kind: Kind
    quantity: Any
    value: Any
    setting: str = ""
    relation: str = "="
    given: tuple[Any, ...] = ()
    definitions: Mapping[Any, Any] = field(default_factory=lambda: FrozenMap({}))
    starts: Mapping[Any, Any] = field(default_factory=lambda: FrozenMap({}))
    notes: tuple[str, ...] = ()
    fixed_attention: bool = False
    limits: tuple[tuple[Any, Any], ...] = ()


_L, _mu, _mu_0 = (SCALARS[name] for name in ("L", "mu", "mu_0"))
_STARTS = FrozenMap({s: start_symbol(s) for s in (mu_OV, mu_QK)})
_FIXED = ("fixed-attention-collapsed", "fixed-attention-factorized")
#: Assumptions that the claims of the theory share; a paper makes them once.
_STANDING = re.compile(
    r"\w+ is an integer >= \d|gamma > 0|eta_\w\w > 0|noise tokens are finite in number.*|N = oo: .*"
    r"|the start is on the line: .*"
)
_EARLY = ((t, Integer(0)), (mu_QK, Integer(0)), (mu_OV, Integer(0)))
_LATE = ((t, oo), (mu_OV, oo), (mu_QK, oo), (alpha, Integer(1)), (_L, Integer(0)))
#: Where the asymptotic statements hold; on their curves any of these says the same.
_LIMITS = {"early-time": _EARLY, "time-on-curve": _EARLY, "loss-rate": _LATE, "attention-limit": _LATE}
_POSITIVE_CURVE = (Gt(mu_QK, 0, evaluate=False), Gt(mu_OV, 0, evaluate=False))

#: The named functions of the theory by what they do to an argument.
FUNCTION_DEFINITIONS: Mapping[Any, Callable[[Any], Any]] = FrozenMap(
    {
        NAMED["Phi"]: lambda q: m / (n * gamma) * exp(gamma * q) + q,
        NAMED["Psi"]: lambda q: m / n * Ei(gamma * q) + log(q),
    }
)


def _definitions(label: str, claim: str) -> Mapping[Any, Any]:
    """What named quantities stand for; those that differ between settings only with a setting."""
    published = claim == "flow-published"
    setting: Setting | None = next((s for s in SETTINGS if s.label == label), SETTINGS[1] if published else None)
    found: dict[Any, Any] = {
        DENOMINATOR: D,
        SCALARS["r"]: eta_QK / eta_OV,
        SCALARS["norm2_OV"]: NORM2_OV,
        SCALARS["sigma_OV"]: SIGMA_OV,
        SCALARS["ell"]: alpha * mu_OV,
        SCALARS["alpha_0"]: m / (m + n),
    }
    if setting is not None:
        put = {K: b} if published else {}
        norm2 = setting.norm2_QK.xreplace(put)
        found[SCALARS["norm2_QK"]] = norm2
        found[SCALARS["kappa"]] = (eta_QK / norm2) / (eta_OV / NORM2_OV)
        if setting.sigma_QK is not None:
            found[SCALARS["sigma_QK"]] = setting.sigma_QK.xreplace(put)
    if published:
        found |= {K: b, gamma: Integer(1)}
    if claim in _FIXED:
        found |= {start_symbol(mu_OV): _mu_0, _mu: mu_OV}
    return FrozenMap(found)


def statements(claim: Claim) -> tuple[Statement, ...]:
    """What a claim states; empty where it states no equation that a paper could write.

    >>> from theory.registry import find
    >>> [(s.name, s.quantity) for s in statements(find("stopping-state"))]
    [('alpha mu_OV', mu_OV)]
    """
    known = claim.source != "user"
    identity = claim.id if known else ""
    needs = _needs(claim) if known else ()
    found = [s for e in equations(claim) for s in _statement(e, identity, needs)]
    if not known:
        given = tuple(a.relation for a in claim.assumptions() if a.relation is not None)
        found = [replace(s, given=(*s.given, *given)) for s in found]
    return (*found, *_consequences(found))


def _needs(claim: Claim) -> tuple[str, ...]:
    """What a claim of the theory assumes in words beyond what all of them do; relations are `Statement.given`."""
    said = (a for a in claim.assumptions() if a.relation is None or a.text != str(a.relation))
    return tuple(a.text for a in said if not _STANDING.fullmatch(a.text))


def _statement(equation: Equation, claim: str, needs: tuple[str, ...]) -> Iterator[Statement]:
    names = _definitions(equation.setting, claim)
    about: dict[str, Any] = {
        "setting": equation.setting,
        "definitions": names,
        "given": equation.branch,
        "notes": needs,
        "fixed_attention": claim in (*_FIXED, "attention-sensitivity"),
        "limits": _LIMITS.get(claim, ()) if equation.relation in ("~", "to") else (),
    }
    left, right, name = equation.left, equation.right, equation.name.partition(" [")[0]
    if claim == "time-on-curve":
        about["given"] = _POSITIVE_CURVE
    if equation.relation == "const":
        yield from _constant(name, left, claim, about)
    elif isinstance(left, MatrixForm | Words):
        yield from _words(name, left, right, about)
    elif left is None and isinstance(right, Expr):
        yield Statement(name, "equation", FORMULA, right, **about)
    elif not isinstance(left, Expr) or not isinstance(right, Expr):
        return
    elif equation.relation in (">", "<") and right == 0 and isinstance(left, Rate):
        about["definitions"] = FrozenMap({k: v for k, v in names.items() if k not in left.free_symbols})
        yield Statement(name, "sign", left, Integer(1 if equation.relation == ">" else -1), **about)
    elif equation.relation in (">", "<"):
        value = left - right if equation.relation == ">" else right - left
        yield Statement(name, "inequality", None, value, relation=">", **about)
    elif equation.relation in ("=", "~", "to"):
        yield from _equation(name, left, right, equation.relation, about)


def _words(name: str, left: MatrixForm | Words, right: Any, about: dict[str, Any]) -> Iterator[Statement]:
    """An equation of matrices; a root also by its square."""
    quantity = form_read(left)
    yield Statement(name, "words", quantity, form_read(right), **about)
    if isinstance(right, MatrixRoot):
        yield Statement(f"{name} squared", "words", quantity @ quantity, right.square, **about)


def _constant(name: str, value: Any, claim: str, about: dict[str, Any]) -> Iterator[Statement]:
    if isinstance(value, Words):
        yield Statement(name, "constant words", None, value, **about)
    elif claim == "fixed-attention-factorized":
        side = Gt(mu_OV, 0, evaluate=False) if ">" in name else mu_OV < 0
        about |= {"given": (side,), "starts": FrozenMap({mu_OV: _mu_0, t: Integer(0)})}
        yield Statement(name, "constant", (mu_OV, t), value, **about)
    elif mu_QK in value.free_symbols:
        yield Statement("first integral", "constant", (mu_QK, mu_OV), value, **{**about, "starts": _STARTS})
    else:
        symbols = tuple(s for s in sorted(value.free_symbols, key=str) if s.name.startswith("W_"))
        yield Statement(name, "constant", symbols, value, **about)


def _equation(name: str, left: Any, right: Any, relation: str, about: dict[str, Any]) -> Iterator[Statement]:
    """An equation, solved for its quantity."""
    solved = _solved(left, right) or _solved(right, left)
    if relation in ("~", "to"):
        yield Statement(name, "equation", left, right, relation=relation, **about)
    elif solved is None:
        yield Statement(name, "identity", None, left - right, **about)
    else:
        quantity, value = solved
        names = FrozenMap({k: v for k, v in about["definitions"].items() if k != quantity})
        about = {**about, "definitions": names}
        about["fixed_attention"] = about["fixed_attention"] or quantity == alpha
        yield Statement(name, "equation", quantity, value, **about)


def _solved(left: Any, right: Any) -> tuple[Any, Any] | None:
    """The quantity that a left side determines, and its value; None for a left side of another form."""
    if (left.is_Symbol or isinstance(left, Rate)) and not right.has(left):
        return left, right
    if isinstance(-left, Rate):
        return -left, -right
    if left == alpha * mu_OV:
        return mu_OV, right / alpha
    if left.is_Pow and left.exp == 2 and left.base.is_positive and left.base.is_Symbol:
        return left.base, sqrt(right)
    return None


def _consequences(found: list[Statement]) -> Iterator[Statement]:
    """What the velocities of a flow say about the attention and about the slope of the curve."""
    velocity = {(s.quantity, s.setting): s for s in found if isinstance(s.quantity, Rate)}
    output = next((s for (q, _), s in velocity.items() if q == Rate(mu_OV, t)), None)
    for (quantity, _), statement in velocity.items():
        if quantity == Rate(mu_QK, t):
            speed = statement.value
            rise = statement.definitions.get(gamma, gamma) * alpha * (1 - alpha) * speed
            yield replace(statement, name="dalpha/dt", quantity=Rate(alpha, t), value=rise)
            if output is not None:
                yield replace(statement, name="dmu_QK/dmu_OV", quantity=Rate(mu_QK, mu_OV), value=speed / output.value)
    elapsed = next((s for s in found if s.quantity == SCALARS["A"]), None)
    for statement in found:
        if elapsed is not None and statement.value.has(SCALARS["A"]):
            put = {SCALARS["A"]: elapsed.value}
            names = FrozenMap({**statement.definitions, **put})
            yield replace(statement, value=statement.value.xreplace(put), definitions=names)


def definition_statements(given: Statement) -> Iterator[Statement]:
    """The definitions of a statement's setting as statements of their own."""
    for symbol, value in given.definitions.items():
        if symbol in (K, gamma, _mu) or value == _mu_0:
            continue
        others = FrozenMap({k: v for k, v in given.definitions.items() if k != symbol})
        yield Statement(f"definition of {symbol}", "equation", symbol, value, given.setting, definitions=others)
    about: dict[str, Any] = {"definitions": given.definitions, "fixed_attention": True}
    yield Statement("definition of alpha", "equation", alpha, ALPHA, given.setting, **about)
    fresh = SCALARS["q"]
    for function, meaning in FUNCTION_DEFINITIONS.items():
        yield Statement(f"definition of {function}", "equation", function(fresh), meaning(fresh), given.setting)
