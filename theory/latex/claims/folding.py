"""One formula for all settings: norms, singular values and the ratio of speeds by name.

A formula that is stated by setting is divided by powers of the named quantities; where what is left is the same in
every setting, the formula is that remainder times those powers. The normal form proves each setting anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, product
from operator import itemgetter
from typing import Any

from sympy import Basic, Integer, Mul, Symbol, sqrt

from theory.frozen import FrozenMap
from theory.identities import prove_zero
from theory.latex.names import SCALARS
from theory.paper.settings import SETTINGS, setting_flow
from theory.symbols import K, M, N, b, eta_OV, eta_QK

__all__ = ["Definitions", "Folded", "definitions_of", "expand", "fold", "primitive"]

#: Named quantities by setting: ``((label, {symbol: expression}), ...)``.
Definitions = tuple[tuple[str, Mapping[Symbol, Any]], ...]

_NAMED = tuple(SCALARS[name] for name in ("kappa", "norm2_QK", "sigma_QK", "sigma_OV"))
_POWERS = tuple(product((0, 1, -1), repeat=len(_NAMED)))
#: What a formula is rid of by naming; each of them left over counts as much as a name.
_SIZES = frozenset({eta_OV, eta_QK, K, M, b, N, *_NAMED})


_SIZE_OF = itemgetter(0, 1)


@dataclass(frozen=True)
class Folded:
    """A formula in named quantities with their values by setting."""

    value: Any
    definitions: Definitions


@lru_cache(maxsize=8)
def definitions_of(label: str) -> Mapping[Symbol, Any]:
    """The named quantities of a setting, from the derived flow.

    >>> definitions_of("shared, N = oo")[SCALARS["norm2_QK"]]
    K*M*b
    """
    setting = next(s for s in SETTINGS if s.label == label)
    flow = setting_flow(setting)
    return FrozenMap({s: flow.definitions[s.name] for s in _NAMED if s.name in flow.definitions})


def expand(value: Any, images: Mapping[Symbol, Any]) -> Any:
    """Put the values of named quantities into a formula; what is no SymPy expression stays."""
    return value.xreplace(dict(images)) if isinstance(value, Basic) else value


def _remainder(value: Any, powers: tuple[Any, ...], images: Mapping[Symbol, Any]) -> Any:
    """A formula over powers of named quantities."""
    for symbol, power in zip(_NAMED, powers, strict=True):
        if power != 0:
            value = value / images[symbol] ** power
    return value


def fold(values: Mapping[str, Any]) -> Folded | None:
    """Find one formula for all settings, that with the fewest names in it, or None.

    Parameters: ``values``, the formula by label of the setting.

    >>> from theory.registry import find
    >>> stated = find("flow-collapsed").stated
    >>> fold({s.label: stated[f"mu_QK [{s.label}]"] for s in SETTINGS}).value
    alpha*eta_QK*gamma*mu_OV*(1 - alpha)*(M - 1)/(norm2_QK*(M + exp(alpha*mu_OV) - 1))
    """
    if not all(isinstance(v, Basic) for v in values.values()):
        return None
    images = {label: definitions_of(label) for label in values}
    found = list(_candidates(values, images))
    if not found:  # a root of a quotient: divide its square
        squares = {label: value**2 for label, value in values.items()}
        found = [sqrt(value) for value in _candidates(squares, images)]
    for value in _fewest_names_first(found):
        checked = _checked(value, values, images)
        if checked is not None:
            return checked
    return None


def _fewest_names_first(found: Iterable[Any]) -> Iterator[Any]:
    """Formulas by the names and operations in them, then as they are printed: printing all of them takes longest."""
    sized = sorted(((len(v.free_symbols & _SIZES), v.count_ops(), v) for v in found), key=_SIZE_OF)
    for _, alike in groupby(sized, key=_SIZE_OF):
        values = [entry[2] for entry in alike]
        yield from values if len(values) == 1 else sorted(values, key=str)


def _candidates(values: Mapping[str, Any], images: Mapping[str, Mapping[Symbol, Any]]) -> Iterator[Any]:
    """Formulas with the same remainder in every setting."""
    known = [dict(images[label]) for label in values]
    formulas = list(values.values())
    for powers in _POWERS:
        if any(p != 0 and s not in found for s, p in zip(_NAMED, powers, strict=True) for found in known):
            continue
        first = _remainder(formulas[0], powers, known[0])
        if all(_remainder(v, powers, found) == first for v, found in zip(formulas[1:], known[1:], strict=True)):
            yield Mul(primitive(first), *(s**p for s, p in zip(_NAMED, powers, strict=True)))


def primitive(value: Any) -> Any:
    """A product whose sums have no common number: ``(2 m + 2 n)/k`` becomes ``2 (m + n)/k``.

    >>> from sympy.abc import k, m, n
    >>> primitive((2 * m + 2 * n) / k)
    2*(m + n)/k
    """
    if not value.is_Mul:
        return value
    parts = [f.as_content_primitive() if f.is_Add else (Integer(1), f) for f in value.args]
    return Mul(*(x for part in parts for x in part))


def _checked(value: Any, values: Mapping[str, Any], images: Mapping[str, Mapping[Symbol, Any]]) -> Folded | None:
    """The formula, where it is proved to be the stated one in every setting."""
    named = value.free_symbols & set(_NAMED)
    for label, stated in values.items():
        if prove_zero(expand(value, images[label]) - stated).answer != "equal":
            return None
    shown = ((label, FrozenMap({s: images[label][s] for s in _NAMED if s in named})) for label in values)
    return Folded(value, tuple(shown))
