"""The equations that a claim states, in the symbols that a paper uses, for every setting it covers.

A `Statement` is an equation solved for one quantity, or something that is constant along the flow; `definitions` says
what the named quantities of the theory stand for in its setting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from sympy import Ei, Equality, Gt, Integer, Lt, exp, log, sqrt

from theory.frozen import FrozenMap
from theory.latex.evaluate import NAMED
from theory.latex.names import SCALARS
from theory.latex.notation import Rate
from theory.latex.vocabulary import DENOMINATOR, start_symbol
from theory.paper.settings import ALPHA, NORM2_OV, SETTINGS, SIGMA_OV, D, Setting, has_line
from theory.registry import Claim
from theory.symbols import K, M, alpha, b, eta_OV, eta_QK, gamma, m, mu_OV, mu_QK, n, t
from theory.words import Words

__all__ = ["Statement", "statements"]

Kind = Literal["equation", "constant", "words", "constant words", "identity"]


@dataclass(frozen=True)
class Statement:
    """One thing that a claim states.

    ``kind`` "equation": ``quantity = value``, where ``quantity`` is a symbol or a `Rate`; "constant": ``value`` does
    not change in time; "words": the matrix equation ``quantity = value``; "constant words"; "identity": ``value`` is 0.
    ``relation`` is ``"~"`` for an asymptotic statement. ``setting`` names the setting, ``given`` are the relations that
    the statement needs, ``definitions`` what named quantities stand for, ``starts`` the symbols of values at time 0; with
    ``fixed_attention`` alpha is a parameter of its own.
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


_S = {name: SCALARS[name] for name in ("kappa", "r", "sigma_OV", "sigma_QK", "norm2_OV", "norm2_QK", "L", "ell", "A")}
_STARTS = FrozenMap({s: start_symbol(s) for s in (mu_OV, mu_QK)})


def definitions(setting: Setting | None, *, published: bool = False) -> Mapping[Any, Any]:
    """What the named quantities of the theory stand for; those that differ between settings only with a setting."""
    found: dict[Any, Any] = {
        DENOMINATOR: D,
        _S["r"]: eta_QK / eta_OV,
        _S["norm2_OV"]: NORM2_OV,
        _S["sigma_OV"]: SIGMA_OV,
        _S["ell"]: alpha * mu_OV,
    }
    if setting is not None:
        norm2 = setting.norm2_QK.xreplace({K: b}) if published else setting.norm2_QK
        found[_S["norm2_QK"]] = norm2
        found[_S["kappa"]] = (eta_QK / norm2) / (eta_OV / NORM2_OV)
        if setting.sigma_QK is not None:
            found[_S["sigma_QK"]] = setting.sigma_QK.xreplace({K: b}) if published else setting.sigma_QK
    if published:
        found |= {K: b, gamma: Integer(1)}
    return FrozenMap(found)


def function_definitions() -> Mapping[Any, Callable[[Any], Any]]:
    """The named functions of the theory by what they do to an argument."""
    return {
        NAMED["Phi"]: lambda q: m / (n * gamma) * exp(gamma * q) + q,
        NAMED["Psi"]: lambda q: m / n * Ei(gamma * q) + log(q),
    }


def statements(claim: Claim) -> tuple[Statement, ...]:
    """What a claim states; empty where it states no equation that a paper could write.

    >>> from theory.registry import find
    >>> [s.name for s in statements(find("attention-mass"))]
    ['alpha']
    """
    rule = _RULES.get(claim.id) if claim.source != "user" else None
    return tuple(rule(claim) if rule is not None else _relations(claim))


def _relations(claim: Claim) -> Iterator[Statement]:
    """A user's claim: relations ``Eq(quantity, formula)`` are equations, others identities."""
    given = tuple(a.relation for a in claim.assumptions() if a.relation is not None) if claim.source == "user" else ()
    for name, formula in claim.stated.items():
        if not isinstance(formula, Equality):
            continue
        left, right = formula.lhs, formula.rhs
        for quantity, value in ((left, right), (right, left)):
            if (quantity.is_Symbol or isinstance(quantity, Rate)) and not value.has(quantity):
                yield Statement(name, "equation", quantity, value, given=given, definitions=definitions(None))
                break
        else:
            yield Statement(name, "identity", None, left - right, given=given, definitions=definitions(None))


def _plain(quantities: Mapping[str, Any]) -> Callable[[Claim], Iterator[Statement]]:
    """Stated formulas that are quantities by themselves."""

    def build(claim: Claim) -> Iterator[Statement]:
        for key, quantity in quantities.items():
            about = {"definitions": definitions(None), "fixed_attention": quantity == alpha}
            yield Statement(key, "equation", quantity, claim.stated[key], **about)

    return build


def _rates(velocity: Mapping[Any, Any], setting: Setting, **about: Any) -> Iterator[Statement]:
    """The velocities of a flow, and what follows for the attention and for the slope of the curve."""
    rates = {Rate(s, t): v for s, v in velocity.items()}
    rates[Rate(alpha, t)] = about.pop("scale", gamma) * alpha * (1 - alpha) * velocity[mu_QK]
    rates[Rate(mu_QK, mu_OV)] = velocity[mu_QK] / velocity[mu_OV]
    for rate, value in rates.items():
        name = f"d{rate.args[0]}/d{rate.args[1]}"
        yield Statement(name, "equation", rate, value, setting.label, **about)


def _flow(claim: Claim) -> Iterator[Statement]:
    code = claim.subject[1]
    for setting in SETTINGS:
        if has_line(setting, code):
            velocity = {mu_OV: claim.stated["mu_OV"], mu_QK: claim.stated[f"mu_QK [{setting.label}]"]}
            yield from _rates(velocity, setting, definitions=definitions(setting))


def _published(claim: Claim) -> Iterator[Statement]:
    note = ("K = b, N = oo, gamma = 1",)
    setting = SETTINGS[1]
    velocity = {s: claim.stated[s.name] for s in (mu_OV, mu_QK)}
    known = definitions(setting, published=True)
    yield from _rates(velocity, setting, definitions=known, notes=note, scale=Integer(1))


def _integral(code: str) -> Callable[[Claim], Iterator[Statement]]:
    def build(claim: Claim) -> Iterator[Statement]:
        for key in claim.stated:
            prefix = "" if code else key.split(":")[0] + ": "
            model = code or key.split(":")[0]
            name = key.removeprefix(prefix)
            if not name.startswith("y"):
                continue
            signs = name.removeprefix("y").strip()
            given = tuple(_sign_relation(text) for text in signs.split(", ") if text)
            for setting in SETTINGS:
                if not has_line(setting, model):
                    continue
                x = claim.stated[f"{prefix}{f'x {signs}'.strip()}"]
                value = claim.stated[key] - claim.stated[f"{prefix}slope [{setting.label}]"] * x
                label = f"{prefix}{setting.label}"
                yield Statement(
                    "first integral",
                    "constant",
                    (mu_QK, mu_OV),
                    value,
                    label,
                    given=given,
                    definitions=definitions(setting),
                    starts=_STARTS,
                )

    return build


def _sign_relation(text: str) -> Any:
    name, relation, _ = text.split()
    return (Gt if relation == ">" else Lt)(SCALARS[name], 0, evaluate=False)


def _fixed() -> dict[str, Any]:
    """What the claims at fixed attention share: ``mu`` is the output-value coordinate, ``mu_0`` its start."""
    names = {**definitions(None), start_symbol(mu_OV): SCALARS["mu_0"], SCALARS["mu"]: mu_OV}
    notes = ("the attention alpha is held fixed",)
    return {"definitions": FrozenMap(names), "notes": notes, "fixed_attention": True}


def _fixed_collapsed(claim: Claim) -> Iterator[Statement]:
    about = _fixed()
    yield Statement("alpha mu_OV", "equation", mu_OV, claim.stated["alpha mu_OV"] / alpha, **about)
    yield Statement("A", "equation", _S["A"], claim.stated["A"], **about)
    elapsed = FrozenMap({**about["definitions"], _S["A"]: claim.stated["A"]})
    written_out = claim.stated["alpha mu_OV"].xreplace({_S["A"]: claim.stated["A"]}) / alpha
    yield Statement("alpha mu_OV", "equation", mu_OV, written_out, **{**about, "definitions": elapsed})


def _fixed_factorized(claim: Claim) -> Iterator[Statement]:
    for name, kind in (("mu_0 > 0", Gt), ("mu_0 < 0", Lt)):
        yield Statement(
            f"constant for {name}",
            "constant",
            (mu_OV, t),
            claim.stated[name],
            given=(kind(mu_OV, 0, evaluate=False),),
            starts=FrozenMap({mu_OV: SCALARS["mu_0"], t: Integer(0)}),
            **_fixed(),
        )


def _sensitivity(claim: Claim) -> Iterator[Statement]:
    value = -claim.stated["-dL/dalpha"]
    about = {"definitions": definitions(None), "fixed_attention": True}
    yield Statement("dL/dalpha", "equation", Rate(_S["L"], alpha), value, **about)


def _stopping(claim: Claim) -> Iterator[Statement]:
    value = claim.stated["alpha mu_OV"] / alpha
    yield Statement("alpha mu_OV", "equation", mu_OV, value, definitions=definitions(None))


def _time(claim: Claim) -> Iterator[Statement]:
    given = (Gt(mu_QK, 0, evaluate=False), Gt(mu_OV, 0, evaluate=False))
    for setting in SETTINGS:
        key = f"[{setting.label}]"
        about: dict[str, Any] = {"given": given, "definitions": definitions(setting), "setting": setting.label}
        yield Statement("dt/dmu_QK", "equation", Rate(t, mu_QK), claim.stated[f"dt/dmu_QK {key}"], **about)
        yield Statement("mu_OV", "equation", mu_OV, claim.stated[f"mu_OV {key}"], **about)


def _asymptotic(quantities: Mapping[str, Any], note: str) -> Callable[[Claim], Iterator[Statement]]:
    def build(claim: Claim) -> Iterator[Statement]:
        for key, value in claim.stated.items():
            name, _, rest = key.partition(" [")
            setting = next((s for s in SETTINGS if s.label == rest.rstrip("]")), None)
            known = FrozenMap({**definitions(setting), SCALARS["alpha_0"]: m / (m + n)})
            about = {"relation": "~", "definitions": known, "notes": (note,)}
            yield Statement(name, "equation", quantities[name], value, setting.label if setting else "", **about)

    return build


def _isometry(claim: Claim) -> Iterator[Statement]:
    for setting in SETTINGS:
        for circuit in ("OV", "QK"):
            value = claim.stated.get(f"sigma2_{circuit} [{setting.label}]")
            if value is not None:
                symbol = SCALARS[f"sigma_{circuit}"]
                names = FrozenMap({k: v for k, v in definitions(setting).items() if k != symbol})
                yield Statement(symbol.name, "equation", symbol, sqrt(value), setting.label, definitions=names)


def _directions(claim: Claim) -> Iterator[Statement]:
    for setting in SETTINGS:
        for name in ("a", "c"):
            value = claim.stated[f"{name} [{setting.query_kind}]"]
            if setting.finite:
                about = {"definitions": definitions(setting)}
                yield Statement(name, "equation", SCALARS[name], value, setting.label, **about)


def _laws(claim: Claim) -> Iterator[Statement]:
    for name, law in claim.stated.items():
        if isinstance(law, Words):
            yield Statement(name, "constant words", None, law)
        else:
            symbols = tuple(sorted(law.free_symbols - {M, b, SCALARS["N"]}, key=str))
            yield Statement(name, "constant", symbols, law, definitions=definitions(None))


def _words(quantity: str) -> Callable[[Claim], Iterator[Statement]]:
    def build(claim: Claim) -> Iterator[Statement]:
        for name, value in claim.stated.items():
            kind: Kind = "words" if quantity else "constant words"
            yield Statement(name, kind, quantity or None, value)

    return build


def definition_statements(given: Statement) -> Iterator[Statement]:
    """The definitions of a statement's setting as statements of their own."""
    for symbol, value in given.definitions.items():
        if symbol in (K, gamma, SCALARS["mu"]) or value in (SCALARS["mu_0"],):
            continue
        others = FrozenMap({k: v for k, v in given.definitions.items() if k != symbol})
        yield Statement(f"definition of {symbol}", "equation", symbol, value, given.setting, definitions=others)
    names = FrozenMap({k: v for k, v in given.definitions.items() if k not in (_S["A"],)})
    about = {"definitions": names, "fixed_attention": True}
    yield Statement("definition of alpha", "equation", alpha, ALPHA, given.setting, **about)


_CACO: Any = ("velocity", "CACO")

_RULES: dict[str, Callable[[Claim], Iterator[Statement]]] = {
    "attention-mass": _plain({"alpha": alpha}),
    "loss-on-line": _plain({"L": _S["L"]}),
    "shift-conservation": _laws,
    "gradient-parallel": _directions,
    "flow-collapsed": _flow,
    "flow-published": _published,
    "product-flow": _words("dW/dt"),
    "balancedness": _words(""),
    "isometry-criterion": _isometry,
    "flow-cafo": _flow,
    "flow-faco": _flow,
    "flow-fafo": _flow,
    "integral-caco": _integral("CACO"),
    "integral-cafo": _integral("CAFO"),
    "integral-faco": _integral("FACO"),
    "integral-fafo": _integral("FAFO"),
    "integral-imbalanced-ov": _integral(""),
    "fixed-attention-collapsed": _fixed_collapsed,
    "fixed-attention-factorized": _fixed_factorized,
    "attention-sensitivity": _sensitivity,
    "stopping-state": _stopping,
    "time-on-curve": _time,
    "early-time": _asymptotic({"mu_OV": mu_OV, "mu_QK": mu_QK}, "both circuits collapsed, from the origin, t -> 0"),
    "loss-rate": _asymptotic({"L": _S["L"]}, "both circuits collapsed, t -> oo"),
    "attention-limit": _asymptotic({"1 - alpha": 1 - alpha}, "both circuits collapsed, t -> oo"),
}
