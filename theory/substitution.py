"""Put values for symbols into whole results: expressions, mappings, tuples and dataclasses of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from sympy import Basic

from theory.frozen import FrozenMap

__all__ = ["substitute"]

T = TypeVar("T")


def substitute(value: T, images: Mapping[Any, Any]) -> T:
    """Return the value with every symbol replaced by its image, all at once and exactly.

    >>> from theory.symbols import M, b
    >>> substitute({"squares": (M**2, b)}["squares"], {M: b, b: M})
    (b**2, M)
    """
    result: Any = value
    if isinstance(value, Basic):
        result = value.xreplace(dict(images))
    elif isinstance(value, tuple):
        result = tuple(substitute(v, images) for v in value)
    elif isinstance(value, FrozenMap):
        result = value.map(lambda v: substitute(v, images))
    elif is_dataclass(value) and not isinstance(value, type):
        result = type(value)(**{f.name: substitute(getattr(value, f.name), images) for f in fields(value)})
    return result
