"""JavaScript kernels, run with Node.js: the same values as NumPy, and every operation of the table."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sympy import Abs, Ei, LambertW, Matrix, Max, Min, Rational, Symbol, asinh, exp, log, oo, sign, sin, sqrt, tanh

from numerics.backends.javascript import DIALECT
from numerics.backends.table import OPERATIONS
from numerics.kernels import compile_kernel
from theory import AttentionModel, GradlineError, TokenTask, derive
from theory.symbols import gamma

x, y = Symbol("x", real=True), Symbol("y", real=True)
with_node = pytest.mark.skipif(
    not (shutil.which("node") or shutil.which("nodejs")), reason="Node.js is not installed: apt install nodejs"
)
#: The two backends round differently in each operation; about 30 operations, with exponents up to 100.
CLOSE = 1e-12
POINTS = 10_000
FUNCTIONS = [
    Ei(x), exp(x) * Ei(-x), LambertW(exp(x)), LambertW(exp(-(x**2))), log(1 + exp(x)), log(1 + exp(-x)),
    exp(x) / (1 + exp(x)), exp(-(x**2)) - 1, log(1 + x**2), log(exp(x) + exp(y)), asinh(x), x**5 + sqrt(1 + y**2) ** 3,
    Max(x, y), Min(x, y), Abs(x) * sign(y), sin(x), tanh(x), (1 + x**2) ** y, sqrt(2) * x + Rational(1, 3),
]  # fmt: skip


def worst(first: Any, second: Any) -> float:
    """The largest relative difference; equal values, zeros among them, differ by 0."""
    first, second = np.asarray(first), np.asarray(second)
    assert first.shape == second.shape
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.max(np.where(first == second, 0.0, np.abs(first - second) / np.abs(second))))


def flow(model: str, noise: Any) -> Any:
    forms = {"C": "collapsed", "F": "factorized"}
    task = TokenTask(noise=noise, score_scale=gamma)
    return derive(AttentionModel(task, qk=forms[model[0]], ov=forms[model[2]]))


def sample(name: str, generator: np.random.Generator) -> Any:
    if name.startswith("mu_"):
        return generator.uniform(-8, 8, POINTS)
    if name.startswith(("eta_", "gamma")):
        return 10 ** generator.uniform(-1, 1, POINTS)
    return generator.integers(2, 60, POINTS).astype(float)


def test_every_operation_is_printed() -> None:
    assert set(DIALECT.calls) == set(OPERATIONS) - {"neg", "add", "sub", "mul", "div"}


@with_node
@pytest.mark.parametrize(("model", "noise"), [("CACO", Symbol("N", integer=True, positive=True)), ("FAFO", oo)])
def test_flows_agree_with_numpy(model: str, noise: Any) -> None:
    found = flow(model, noise)
    generator = np.random.default_rng(0)
    script, array = (compile_kernel(found, backend) for backend in ("javascript", "numpy"))
    assert script.arguments == array.arguments
    values = [sample(name, generator) for name in script.arguments]
    for ours, right in zip(script(*values), array(*values), strict=True):
        assert worst(ours, right) < CLOSE


@with_node
def test_a_changed_source_is_noticed() -> None:
    kernel = compile_kernel(flow("CACO", oo), "javascript")
    values = [sample(name, np.random.default_rng(0)) for name in kernel.arguments]
    assert "1 + decay" in kernel.source
    wrong = replace(kernel, source=kernel.source.replace("1 + decay", "1 - 1e-9 + decay"))
    assert worst(wrong(*values)[2], kernel(*values)[2]) > CLOSE


@with_node
def test_functions_agree_with_numpy() -> None:
    generator = np.random.default_rng(1)
    at, beside = generator.uniform(-30, 30, (2, 500))
    ours = compile_kernel(FUNCTIONS, "javascript", args=[x, y])(at, beside)
    right = compile_kernel(FUNCTIONS, "numpy", args=[x, y])(at, beside)
    for expression, mine, theirs in zip(FUNCTIONS, ours, right, strict=True):
        # the exponential integral loses up to |x| roundings, and more at its zero: 500 points come within 1e-2 of it
        assert worst(mine, theirs) < CLOSE, expression


@with_node
def test_shapes_and_special_values() -> None:
    matrix = compile_kernel(Matrix([[x, 1], [x * y, 0]]), "javascript", args=[x, y])
    assert matrix(np.ones((3, 1)), np.arange(2.0)).shape == (3, 2, 2, 2)
    scalar = compile_kernel(log(x), "javascript", args=[x])
    assert scalar(0.0) == -np.inf
    assert np.isnan(scalar(-1.0))
    assert compile_kernel(sqrt(2) + 0 * x, "javascript", args=[])() == np.sqrt(2)


def test_source_is_plain_and_names_are_free() -> None:
    kernel = compile_kernel(2 * Symbol("let", real=True) + Symbol("Math", real=True), "javascript", name="total",
                            args=[Symbol("let", real=True), Symbol("Math", real=True)])  # fmt: skip
    assert "function total(let_, Math_) {\n  return Math_ + 2.0 * let_;\n}" in kernel.source
    assert "*/" not in kernel.source.split("/**")[1].split("\n */")[0]


def test_without_node_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(GradlineError, match=r"needs Node\.js.*install it.*'numpy'"):
        compile_kernel(x + 1, "javascript", args=[x])(1.0)
