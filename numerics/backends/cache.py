"""The folder where compiled kernels are kept between processes; files there are written beside, then renamed."""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

__all__ = ["cache_folder", "fingerprint", "imported", "stored"]


def cache_folder() -> Path:
    """``$XDG_CACHE_HOME/gradline/kernels``, by default under ``~/.cache``; a temporary one if that can't be written."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    with suppress(OSError, RuntimeError):  # no home, or one that is read-only
        root = Path(base) if os.path.isabs(base) else Path.home() / ".cache"
        folder = root / "gradline" / "kernels"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            return folder
    return _temporary()


@lru_cache(maxsize=1)
def _temporary() -> Path:
    folder = tempfile.mkdtemp(prefix="gradline-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def fingerprint(*parts: str) -> str:
    """Sixteen hexadecimal digits that stand for some texts.

    >>> fingerprint("a", "b") == fingerprint("ab")
    False
    """
    return sha256("\0".join(parts).encode()).hexdigest()[:16]


def stored(name: str, write: Callable[[Path], None]) -> Path:
    """The cached file of this name; made by ``write`` if it is not there.

    Any number of processes may ask at once: each writes a file of its own, and renaming it is atomic.
    """
    path = cache_folder() / name
    if not path.exists():
        with tempfile.TemporaryDirectory(prefix=".writing-", dir=path.parent) as beside:
            new = Path(beside) / name
            write(new)
            new.replace(path)
    return path


def imported(name: str, source: str) -> Any:
    """The module of a source, imported from a file beside which Numba keeps its machine code."""
    module = f"{name}_{fingerprint(source)}"
    if module not in sys.modules:
        path = stored(f"{module}.py", lambda new: _write(new, source))
        spec = importlib.util.spec_from_file_location(module, path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{path} can't be imported; remove it")
        loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
        sys.modules[module] = loaded
    return sys.modules[module]


def _write(path: Path, source: str) -> None:
    path.write_text(source, encoding="utf-8")
