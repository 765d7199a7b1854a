"""Compiling C source with the system's compiler, once per machine, and calling it on arrays."""

from __future__ import annotations

import ctypes
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numerics.backends.cache import fingerprint, stored
from numerics.backends.numba import DIALECT as NUMBA
from numerics.backends.numba import LOOPS
from numerics.backends.printer import needed
from theory.errors import GradlineError

if TYPE_CHECKING:
    from numerics.kernels import Kernel

__all__ = ["FLAGS", "build", "compiler", "load"]

#: No flag that lets the compiler reorder, fuse or approximate; functions of math.h need not set errno.
FLAGS = (
    "-std=c11", "-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math",
    "-shared", "-fPIC",
)  # fmt: skip
_LONGEST = 600.0


def compiler() -> tuple[str, ...]:
    """The command of the C compiler: ``$CC``, or the first of cc, gcc and clang.

    Raises: `GradlineError` if there is none.
    """
    chosen = shlex.split(os.environ.get("CC", ""))
    for command in [chosen] if chosen else [["cc"], ["gcc"], ["clang"]]:
        path = shutil.which(command[0])
        if path is not None:
            return (path, *command[1:])
    wanted = f"CC={shlex.join(chosen)} is not there" if chosen else "none of cc, gcc, clang is on PATH"
    raise GradlineError(
        f"compiling C: no compiler ({wanted}); install one (Debian: apt install gcc), set CC, "
        "or choose the backend 'numpy' or 'numba'"
    )


@lru_cache(maxsize=8)
def _machine(command: tuple[str, ...]) -> str:
    """What machine code depends on: compiler, its version, processor."""
    version = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False, timeout=60).stdout
    processor = platform.processor()
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        processor += next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return fingerprint(*command, version, platform.machine(), processor, sys.platform)


def build(name: str, source: str) -> Path:
    """The shared library of a source, compiled if the cache does not hold it.

    Raises: `GradlineError` without a compiler, or with the first message of one that fails.
    """
    command = compiler()
    key = fingerprint(source, *FLAGS, _machine(command))

    def write(path: Path) -> None:
        unit = path.with_suffix(".c")
        unit.write_text(source, encoding="utf-8")
        done = subprocess.run(
            [*command, *FLAGS, "-o", str(path), str(unit), "-lm"],
            capture_output=True, text=True, check=False, timeout=_LONGEST,
        )  # fmt: skip
        if done.returncode != 0:
            first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[:200])
            raise GradlineError(f"compiling {name}: {shlex.join(command)} failed: {first}; report the expression")

    return stored(f"{name}_{key}.so", write)


def load(kernel: Kernel) -> Callable[..., Any]:
    """The function of arrays of a C kernel."""
    import numpy as np

    many, layout, loops = _loop(kernel), kernel.layout, _loops()

    def function(*values: Any, out: Any = None) -> Any:
        arrays, dtype, shape = loops["_inputs"](*values)
        if isinstance(layout, tuple):
            results = loops["_outputs"](out, 1, dtype, (*shape, *layout), arrays)
            loops["_fill"](many, arrays, [results[0][..., i, j] for i, j in np.ndindex(layout)])
        else:
            results = loops["_outputs"](out, len(kernel.outputs), dtype, shape, arrays)
            loops["_fill"](many, arrays, results)
        if out is not None:
            return out
        return tuple([r[()] for r in results]) if layout is None else results[0][()]

    function.__name__ = kernel.name
    return function


def _loop(kernel: Kernel) -> Callable[..., None]:
    """The compiled loop: numbers or contiguous arrays of doubles, then arrays of results."""
    import numpy as np

    entry = getattr(ctypes.CDLL(str(build(kernel.name, kernel.source))), f"{kernel.name}_many")
    pointer, size, count = ctypes.c_void_p, ctypes.c_size_t, len(kernel.arguments)
    entry.restype = None
    entry.argtypes = [size, *[pointer, size] * count, *[pointer] * len(kernel.outputs)]

    def many(*values: Any) -> None:
        given, results = values[:count], values[count:]
        numbers = np.array([v if type(v) is float else 0.0 for v in given])
        at = numbers.ctypes.data  # numbers lie side by side: an address for each array would take longer than the loop
        pairs = [(at + 8 * k, 0) if type(v) is float else (v.ctypes.data, 1) for k, v in enumerate(given)]
        entry(results[0].size, *[n for pair in pairs for n in pair], *[r.ctypes.data for r in results])

    return many


@lru_cache(maxsize=1)
def _loops() -> dict[str, Any]:
    """The helpers that the backend "numba" prints: arrays brought to a compiled loop, and its results back."""
    import numpy as np

    space: dict[str, Any] = {"np": np}
    exec("\n".join(needed(LOOPS, NUMBA.helpers)), space)
    return space
