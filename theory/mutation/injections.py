"""Errors put into the derivation on purpose: wrong orbit sizes, metrics, softmax gradients and rescalings.

An error is a replacement of one function of the derivation for the time of a ``with`` block. Derivations are cached;
the caches are emptied on both ends of the block, so that nothing wrong is left behind and nothing right is used inside.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

from sympy import Abs, Integer, cancel, factor, sqrt

from theory import attention, factorization, flow
from theory.paper import factors as paper_factors
from theory.symbols import alpha
from theory.words import Words

__all__ = ["INJECTIONS", "Injection", "injected"]


@dataclass(frozen=True)
class Injection:
    """An error of the derivation: ``kind``, ``description``, and how it is put in.

    ``places`` are the modules and names of the function it replaces; ``wrong`` makes the wrong function from the
    right one; ``witness`` says which comparison with the full model shows it.
    """

    name: str
    kind: str
    description: str
    places: tuple[tuple[ModuleType, str], ...]
    wrong: Callable[[Any], Any]
    witness: str = "velocity"


def _sizes(circuit: str, relation: str, column: str, change: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """Wrong sizes of the orbits of one kind."""

    def wrong(right: Any) -> Any:
        def orbits(task: Any, which: Any) -> Any:
            return tuple(
                replace(o, size=change(o.size, task))
                if (o.circuit, o.columns.name) == (circuit, column) and o.relation in (relation, "all")
                else o
                for o in right(task, which)
            )

        return orbits

    return wrong


def _metric(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The flow of an orbit value divided by another weight than the number of entries."""

    def wrong(right: Any) -> Any:
        return lambda orbit, rate, gradient: right(replace(orbit, size=change(orbit.size)), rate, gradient)

    return wrong


def _softmax(change: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    def wrong(right: Any) -> Any:
        return lambda mass, value: factor(cancel(change(right(mass, value), mass)))

    return wrong


def _scaled(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def wrong(right: Any) -> Any:
        def rescaling(direction: Any, coordinate: Any, imbalance: Any = 0) -> Any:
            found = right(direction, coordinate, imbalance)
            if imbalance != 0:
                factor = sqrt(change(2 * found.sigma * Abs(coordinate)) ** 2 + imbalance**2)
            else:
                factor = change(found.factor)
            return replace(found, factor=factor)

        return rescaling

    return wrong


def _gradients(change: Callable[[Words, str], Words]) -> Callable[[Any], Any]:
    def wrong(right: Any) -> Any:
        return lambda product, cotangent, variable: change(right(product, cotangent, variable), variable)

    return wrong


def _no_scale(slope: Any, mass: Any) -> Any:
    """The softmax gradient without the score scale: that of attention at unit scale."""
    scale = next((f for f in slope.as_ordered_factors() if not f.has(alpha) and not f.is_number), Integer(1))
    return slope / scale


_ORBITS = ((attention, "orbits"),)
_VELOCITY = ((attention, "orbit_velocity"),)
_DERIVATIVE = ((attention, "attention_derivative"),)
_RESCALING = ((factorization, "rescaling"), (flow, "rescaling"), (paper_factors, "rescaling"))
_GRADIENT = ((factorization, "gradient"),)

INJECTIONS: tuple[Injection, ...] = (
    Injection(
        "size-own",
        "orbit size",
        "own-class entries of W_OV: M b -> b",
        _ORBITS,
        _sizes("OV", "same", "informative", lambda s, t: s / t.classes),
    ),
    Injection(
        "size-other",
        "orbit size",
        "other-class entries of W_OV: M (M-1) b -> M^2 b",
        _ORBITS,
        _sizes("OV", "other", "informative", lambda s, t: s * t.classes / (t.classes - 1)),
    ),
    Injection(
        "size-queries",
        "orbit size",
        "informative entries of W_QK: without the number of queries K",
        _ORBITS,
        _sizes("QK", "same", "informative", lambda s, t: s / t.queries),
    ),
    Injection(
        "size-noise",
        "orbit size",
        "noise entries of W_QK: once more for each class",
        _ORBITS,
        _sizes("QK", "all", "noise", lambda s, t: s * t.classes),
    ),
    Injection(
        "metric-values",
        "metric",
        "orbit values flow along dL/dv, not dL/dv over the number of entries",
        _VELOCITY,
        _metric(lambda s: Integer(1)),
    ),
    Injection(
        "metric-half",
        "metric",
        "half of the squared norm as metric: dL/dv over half the number of entries",
        _VELOCITY,
        _metric(lambda s: s / 2),
    ),
    Injection(
        "softmax-own",
        "softmax gradient",
        "d alpha = alpha instead of alpha (1 - alpha)",
        _DERIVATIVE,
        _softmax(lambda s, m: s / (1 - alpha)),
    ),
    Injection(
        "softmax-sign",
        "softmax gradient",
        "the sign of alpha (1 - alpha)",
        _DERIVATIVE,
        _softmax(lambda s, m: -s),
    ),
    Injection(
        "softmax-square",
        "softmax gradient",
        "alpha^2 (1 - alpha) instead of alpha (1 - alpha)",
        _DERIVATIVE,
        _softmax(lambda s, m: s * alpha),
    ),
    Injection(
        "softmax-scale",
        "softmax gradient",
        "without the score scale gamma",
        _DERIVATIVE,
        _softmax(_no_scale),
    ),
    Injection(
        "rescaling-half",
        "rescaling",
        "sigma |mu| instead of 2 sigma |mu|",
        _RESCALING,
        _scaled(lambda f: f / 2),
        "factor",
    ),
    Injection(
        "rescaling-square",
        "rescaling",
        "(2 sigma mu)^2 instead of 2 sigma |mu|",
        _RESCALING,
        _scaled(lambda f: f**2),
        "factor",
    ),
    Injection(
        "gradient-transposed",
        "product rule",
        "dL/dV = G U instead of G^T U",
        _GRADIENT,
        _gradients(lambda w, v: w if v == "U" else _untransposed(w)),
        "words",
    ),
    Injection(
        "gradient-sign",
        "product rule",
        "the sign of dL/dV",
        _GRADIENT,
        _gradients(lambda w, v: w if v == "U" else (-1) * w),
        "words",
    ),
    Injection(
        "gradient-double",
        "product rule",
        "dL/dU counted twice",
        _GRADIENT,
        _gradients(lambda w, v: 2 * w if v == "U" else w),
        "words",
    ),
)


def _untransposed(words: Words) -> Words:
    return Words.of({tuple((a, False) for a, _ in word): c for word, c in words.terms.items()})


def _clear() -> None:
    """Empty every cache of a derivation."""
    for name, module in list(sys.modules.items()):
        if name.startswith("theory."):
            for function in list(vars(module).values()):
                if hasattr(function, "cache_clear"):
                    function.cache_clear()


@contextmanager
def injected(name: str) -> Iterator[Injection]:
    """Derive with an error for the time of a ``with`` block; right again afterwards, also after an exception.

    Parameters: ``name``, of one of `INJECTIONS`. Yields: the `Injection`.
    Raises: ``ValueError`` for an unknown name.

    >>> from theory.flow import derive
    >>> from theory.model import AttentionModel
    >>> from theory.task import TokenTask
    >>> model = AttentionModel(TokenTask(noise=float("inf")))
    >>> with injected("softmax-sign"):
    ...     wrong = derive(model)
    >>> wrong.compact["mu_QK"] + derive(model).compact["mu_QK"]
    0
    """
    known = {i.name: i for i in INJECTIONS}
    if name not in known:
        raise ValueError(f"injection {name!r}: expected one of {', '.join(known)}")
    found = known[name]
    saved = [(module, attribute, getattr(module, attribute)) for module, attribute in found.places]
    _clear()
    try:
        for module, attribute, right in saved:
            setattr(module, attribute, found.wrong(right))
        yield found
    finally:
        for module, attribute, right in saved:
            setattr(module, attribute, right)
        _clear()
