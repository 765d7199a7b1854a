"""An immutable mapping that can be hashed, pickled and looked up by symbol or by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

__all__ = ["FrozenMap"]


_MISSING = object()


class FrozenMap(Mapping[Any, Any]):
    """A read-only mapping; a key that is a symbol may also be given by its name.

    >>> from theory.symbols import mu_OV
    >>> FrozenMap({mu_OV: 1})["mu_OV"]
    1
    """

    _values: dict[Any, Any]

    def __init__(self, values: Mapping[Any, Any]) -> None:
        object.__setattr__(self, "_values", dict(values))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is read-only")

    def __reduce__(self) -> tuple[type[FrozenMap], tuple[dict[Any, Any]]]:
        return type(self), (self._values,)

    def _find(self, key: Any) -> Any:
        """The value of a key or of a symbol of this name; `_MISSING` where there is none."""
        if key in self._values:
            return self._values[key]
        return next((v for known, v in self._values.items() if getattr(known, "name", None) == key), _MISSING)

    def __contains__(self, key: Any) -> bool:
        return self._find(key) is not _MISSING

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of a key, or the default."""
        found = self._find(key)
        return default if found is _MISSING else found

    def __getitem__(self, key: Any) -> Any:
        found = self._find(key)
        if found is not _MISSING:
            return found
        names = [str(k) for k in self._values]
        near = get_close_matches(str(key), names, 1, 0.3)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise KeyError(f"{key}: expected one of {', '.join(names)}{hint}")

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._values})"

    def map(self, function: Any) -> FrozenMap:
        """Apply a function to every value."""
        return type(self)({k: function(v) for k, v in self._values.items()})
