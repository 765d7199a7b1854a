"""Packages whose public names are loaded when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(
    package: str, homes: Mapping[str, str], present: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package whose public names live in its modules.

    Parameters: ``package``, its name; ``homes``, public name -> module of the package; an empty one means that the
    name is itself a module; ``present``, public names that the package defines itself.

    >>> load, listed = lazy_names("theory", {"TokenTask": "task", "symbols": ""})
    >>> load("TokenTask").__name__, listed()
    ('TokenTask', ['TokenTask', 'symbols'])
    """

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}; it has {', '.join([*homes, *present])}"
            )
        if not homes[name]:
            return import_module(f"{package}.{name}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return load, lambda: sorted([*homes, *present])
