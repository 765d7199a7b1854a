"""Emitted source: stands alone, reads well, passes the linters, is the same bytes under every hash seed."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import subprocess
import sys
from ast import literal_eval
from pathlib import Path

import numpy as np
import pytest
from sympy import Ei, Integer, LambertW, Matrix, Max, Min, Symbol, exp, log, sign, sin, sqrt, symbols

from numerics.cli import run
from numerics.kernels import BACKENDS, compile_kernel
from theory import AttentionModel, TokenTask, derive

ROOT = Path(__file__).parents[2]
#: How many hash seeds to try, beside the one that Python chose; ten on all sources take some minutes.
SEEDS = 10 if "GRADLINE_LONG" in os.environ else 1
NEEDS_RUFF = pytest.mark.skipif(importlib.util.find_spec("ruff") is None, reason="ruff is not installed")
NEEDS_CC = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc on PATH")

x, y = symbols("x y", real=True)
MANY = [Symbol(f"a_long_name_{i}", real=True) for i in range(30)]
SAMPLES = {
    "special": (Ei(x) * LambertW(x) + LambertW(exp(x)) + exp(x) * Ei(-x), [x]),
    "piecewise smooth": (log(exp(x) + exp(y)) + Max(x, y) + Min(x, y, 1) + sign(x), [x, y]),
    "one": ([x], [x]),
    "matrix": (Matrix([[x, 1], [y, x * y * sqrt(x**2 + sin(x * y) ** 2 + exp(x + 3 * y) / (1 + x**2))]]), [x, y]),
    "large matrix": (Matrix(6, 6, lambda i, j: x**i * y**j), [x, y]),
    "many outputs": ([x**i * y for i in range(20)], [x, y]),
    "constants": ([Integer(3), sqrt(2)], []),
    "many arguments": (sum(i * s for i, s in enumerate(MANY)), MANY),
    "unused argument": (x, [x, y]),
}


def sources(backend: str) -> dict[str, str]:
    flows = [AttentionModel(TokenTask(), qk=qk, ov=ov) for qk in FORMS for ov in FORMS]
    found = {f"flow {m.parameterization}": compile_kernel(derive(m), backend).source for m in flows}
    return found | {n: compile_kernel(e, backend, args=a).source for n, (e, a) in SAMPLES.items()}


FORMS = ("collapsed", "factorized")


@NEEDS_RUFF
def test_python_passes_linter_and_formatter(tmp_path: Path) -> None:
    for backend in ("numpy", "torch", "numba"):
        for name, source in sources(backend).items():
            (tmp_path / f"{backend}_{name.replace(' ', '_')}.py").write_text(source)
    for command in (["check"], ["format", "--check"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--isolated", "--no-cache", str(tmp_path)],
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    (tmp_path / "numpy_one.py").write_text(sources("numpy")["one"] + "import os\n")  # the linter does look
    assert subprocess.run(
        [sys.executable, "-m", "ruff", "check", "-q", "--isolated", "--no-cache", str(tmp_path)],
        capture_output=True,
        check=False,
        timeout=100,
    ).returncode


@NEEDS_CC
def test_c_compiles_without_warnings(tmp_path: Path) -> None:
    for name, source in sources("c").items():
        path = tmp_path / f"{name.replace(' ', '_')}.c"
        path.write_text(source)
        flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"]
        done = subprocess.run(["gcc", *flags, str(path)], capture_output=True, text=True, check=False, timeout=100)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("backend", BACKENDS)
def test_command_prints_the_source(backend: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["derive", "--emit", backend]) == 0
    out = capsys.readouterr().out
    assert out == compile_kernel(derive(AttentionModel(TokenTask())), backend).source
    for part in (
        "claim flow-collapsed",
        "denominator = M + exp(attention*mu_OV) - 1",
        "d_mu_OV = attention*eta_OV/(b*denominator)",
        "loss = log((M - 1)*exp(-attention*mu_OV) + 1)",
        "attention = ",
        "margin = mu_OV * attention",
        "mu_OV: real, coordinate of the output-value circuit on its line",
    ):
        assert part in out
    for word in ("gradline", "numerics", "theory"):
        assert word not in out
    assert max(map(len, out.splitlines())) <= 90


def test_options_that_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    for args, message in (
        (["--emit", "fortran"], "--emit=fortran: expected one of numpy, torch, numba, c"),
        (["--emit", "c", "--json"], "--emit and --json are both given"),
        (["--emit", "c", "--trace"], "--emit and --trace are both given"),
    ):
        assert run(["derive", *args]) == 2
        assert message in capsys.readouterr().err


def test_emitting_needs_no_numba(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    assert run(["derive", "--emit", "numba", "-N", "oo"]) == 0
    assert "import numba" in capsys.readouterr().out


CODE = """
import sys
sys.path.insert(0, "tests/numerics")
from test_emission import emitted
sys.stdout.write(emitted())
"""


def emitted() -> str:
    """Sources of every backend: few of them in the suite, all if more seeds are asked for."""
    if SEEDS > 1:
        return "".join(s for backend in BACKENDS for s in sources(backend).values())
    flow = derive(AttentionModel(TokenTask(), ov="factorized"))
    expressions = [SAMPLES["piecewise smooth"], SAMPLES["matrix"]]
    kernels = [compile_kernel(e, b, args=a) for b in BACKENDS for e, a in expressions]
    return "".join(k.source for k in [*[compile_kernel(flow, b) for b in BACKENDS], *kernels])


def test_same_bytes_under_any_hash_seed() -> None:
    here = emitted()  # under a seed that Python chose
    assert len(here) > 10_000
    for seed in range(SEEDS):
        done = subprocess.run(
            [sys.executable, "-c", CODE],
            capture_output=True,
            text=True,
            timeout=500,
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": str(7919 * seed)},
            check=True,
        )
        assert done.stdout == here


@NEEDS_CC
def test_emitted_c_is_called_without_the_package(tmp_path: Path) -> None:
    (tmp_path / "k.c").write_text(compile_kernel(x * exp(y), "c", args=[x, y], name="growth").source)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", "k.so", "k.c", "-lm"], cwd=tmp_path, check=True, timeout=100)
    growth = ctypes.CDLL(str(tmp_path / "k.so")).growth_many
    a, b, out = np.array([1.0, 2.0, 3.0]), np.array([0.5]), np.empty(3)
    pointers = [ctypes.c_void_p(v.ctypes.data) for v in (a, b, out)]
    growth(ctypes.c_size_t(3), pointers[0], ctypes.c_size_t(1), pointers[1], ctypes.c_size_t(0), pointers[2])
    # a product of an exponential right to an ulp
    np.testing.assert_allclose(out, a * np.exp(0.5), rtol=4e-16)


def test_emitted_python_runs_without_the_package(tmp_path: Path) -> None:
    flow = derive(AttentionModel(TokenTask(3, 2, 2, 5, 2, 1)))
    wanted = compile_kernel(flow)(0.5, 0.25, 1.0, 2.0)
    backends = ("numpy", "numba")  # Torch's source is run in test_kernels
    for backend in backends:
        (tmp_path / f"my_{backend}.py").write_text(compile_kernel(flow, backend).source)
    calls = [f"[float(v).hex() for v in my_{b}.gradient_flow(0.5, 0.25, 1.0, 2.0)]" for b in backends]
    code = f"import {', '.join(f'my_{b}' for b in backends)}; print([{', '.join(calls)}])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True, timeout=200
    )
    for found in literal_eval(done.stdout):
        # the libraries' exponentials differ in the last place, and a few operations follow
        np.testing.assert_allclose([float.fromhex(h) for h in found], [float(v) for v in wanted], rtol=1e-14)
