"""Numba and C: missing tools are named, the cache folder, many processes at once."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sympy import Symbol, exp, symbols

from numerics.backends import c_library, numba
from numerics.backends.cache import cache_folder, stored
from numerics.backends.printer import identifiers
from numerics.kernels import compile_kernel
from theory.errors import GradlineError

ROOT = Path(__file__).parents[2]
x, y = symbols("x y", real=True)


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "gradline" / "kernels"


def test_missing_numba_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.importlib.util, "find_spec", lambda name: None)
    kernel = compile_kernel(x + 17, "numba", args=[x], name="without")
    assert "import numba" in kernel.source  # printing needs no Numba
    with pytest.raises(GradlineError, match=r"needs Numba.*pip install 'gradline\[fast\]'"):
        kernel(1.0)


def test_missing_compiler_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = compile_kernel(x + 18, "c", args=[x])
    with monkeypatch.context() as patch:
        patch.setenv("CC", "no-such-compiler -O9")
        with pytest.raises(GradlineError, match=r"CC=no-such-compiler -O9 is not there.*set CC.*'numpy'"):
            kernel(1.0)
        patch.delenv("CC")
        patch.setenv("PATH", str(cache))
        with pytest.raises(GradlineError, match="none of cc, gcc, clang is on PATH"):
            kernel(1.0)
    assert kernel(1.0) == 19.0
    assert len(list(cache.iterdir())) == 1


def test_a_failing_compiler_leaves_nothing(cache: Path) -> None:
    with pytest.raises(GradlineError, match=r"compiling broken: .*error"):
        c_library.build("broken", "int broken_many(void) { return 1 }")
    assert list(cache.iterdir()) == []


def test_compiled_once_for_all_processes(cache: Path) -> None:
    code = "\n".join(
        [
            "from sympy import Symbol, exp",
            "from numerics.kernels import compile_kernel",
            "x = Symbol('x', real=True)",
            "print(float(compile_kernel(exp(x), 'c', args=[x])(1.0)).hex())",
        ]
    )

    def run(_: int) -> str:
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=200, cwd=ROOT
        )
        return done.stdout

    with ThreadPoolExecutor(2) as threads:
        assert len(set(threads.map(run, range(3)))) == 1
    assert len(list(cache.iterdir())) == 1  # one library, nothing half written


def test_threads_write_beside_and_rename(cache: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        paths = list(threads.map(lambda i: stored("file", lambda new: new.write_text("whole" * 1000)), range(32)))
    assert set(paths) == {cache / "file"}
    assert paths[0].read_text() == "whole" * 1000
    assert [p.name for p in cache.iterdir()] == ["file"]


def test_an_unusable_folder_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    folder = cache_folder()
    assert folder.is_dir()
    assert tmp_path not in folder.parents
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # the specification says: ignore it
    assert cache_folder() != Path("relative") / "gradline" / "kernels"


def test_names_that_letters_spoil() -> None:
    assert identifiers(["x²", "ℓ", "l", "α", "x", "x^2"], frozenset()) == ("x2", "l", "l_", "α", "x", "x_2")
    names = ["double", "gamma", "exp", "NAN", "i", "count", "y0", "restrict", "decay", "a*/b", "x\\n", '"""']
    given = [Symbol(n, real=True) for n in names]
    total = sum((k + 1) * s for k, s in enumerate(given)) + exp(-exp(given[0]))
    for backend in ("c", "numpy"):
        kernel = compile_kernel(total, backend, args=given)
        assert float(kernel(*[0.0] * len(given))) == float(compile_kernel(exp(-exp(x)), backend, args=[x])(0.0))
