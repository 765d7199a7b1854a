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
from theory.errors import GradlineError

if TYPE_CHECKING:
    from numerics.kernels import Kernel

__all__ = ["FLAGS", "build", "compiler", "load"]

#: No flag that lets the compiler reorder or approximate; functions of math.h need not set errno.
FLAGS = ("-std=c11", "-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-shared", "-fPIC")
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

    entry = getattr(ctypes.CDLL(str(build(kernel.name, kernel.source))), f"{kernel.name}_many")
    entry.restype = None
    double, size = ctypes.c_void_p, ctypes.c_size_t
    entry.argtypes = [size, *[double, size] * len(kernel.arguments), *[double] * len(kernel.outputs)]

    def function(*values: Any) -> Any:
        arrays, dtype, shape = _inputs(values)
        count = int(np.prod(shape, dtype=np.int64))
        given = [_flat(a, shape) for a in arrays]
        results = [np.empty(count) for _ in kernel.outputs]
        pairs = [n for a in given for n in (a.ctypes.data, int(a.ndim > 0))]
        entry(count, *pairs, *[r.ctypes.data for r in results])
        entries = [r.astype(dtype, copy=False).reshape(shape)[()] for r in results]
        if kernel.layout == "single":
            return entries[0]
        if kernel.layout is not None:
            return np.stack(entries, axis=-1).reshape(*shape, *kernel.layout)
        return tuple(entries)

    function.__name__ = kernel.name
    return function


def _inputs(values: tuple[Any, ...]) -> tuple[list[Any], Any, tuple[int, ...]]:
    """Arrays of double precision, the dtype of the results, and the common shape: as for the backend "numpy"."""
    import numpy as np

    plain = (bool, int, float)
    given = [float(v) if type(v) in plain else np.asarray(v) for v in values]
    dtype = np.result_type(*given) if given else np.dtype(float)
    if dtype.kind in "biu":
        dtype = np.dtype(float)
    if dtype.kind != "f":
        raise TypeError(f"expected real numbers or real arrays, got dtype {dtype}")
    arrays = [np.asarray(v, np.float64) for v in given]
    return arrays, dtype, np.broadcast_shapes(*{a.shape for a in arrays})


def _flat(array: Any, shape: tuple[int, ...]) -> Any:
    import numpy as np

    return array if array.ndim == 0 else np.ascontiguousarray(np.broadcast_to(array, shape).reshape(-1))
