"""The interface of kernels: order of arguments, names, errors, cache, determinism, golden sources."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sympy import Matrix, Symbol, exp, log, oo, sin, symbols

import numerics
from numerics.kernels import BACKENDS, Kernel, compile_kernel
from theory import AttentionModel, TokenTask, derive
from theory.symbols import b, eta_OV, eta_QK, gamma, m, mu_OV, mu_QK, n

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"
#: Set to 1 to rewrite the golden files on purpose, then read the difference.
REWRITE = os.environ.get("GRADLINE_REWRITE_GOLDEN") == "1"

x, y = symbols("x y", real=True)


def published():
    return derive(AttentionModel(TokenTask(queries=b, noise=oo)))


@pytest.mark.parametrize("backend", BACKENDS)
def test_golden(backend):
    source = compile_kernel(published(), backend).source
    path = GOLDEN / f"published_{backend}.txt"
    if REWRITE:
        path.write_text(source, encoding="utf-8")
    assert source == path.read_text(encoding="utf-8"), "set GRADLINE_REWRITE_GOLDEN=1 to rewrite the golden files"


@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_source_stands_alone(backend):
    kernel = compile_kernel(published(), backend)
    assert "gradline" not in kernel.source.replace("gradline kernel", "")
    assert "numerics" not in kernel.source
    assert "theory" not in kernel.source
    assert max(map(len, kernel.source.splitlines())) <= 88
    space: dict[str, object] = {}
    exec(kernel.source, space)
    at = (1.5, 0.5, 20, 50, 5, 50, 1, 10)
    assert [float(v) for v in space["gradient_flow"](*at)] == [float(v) for v in kernel(*at)]


def test_source_is_readable():
    kernel = compile_kernel(published())
    for part in (
        "claim flow-collapsed",
        "attention = ",
        "margin = mu_OV * attention",
        "loss = ",
        "d_mu_QK = ",
        "Returns the tuple",
    ):
        assert part in kernel.source
    assert "x0" not in kernel.source


def test_backends_are_imported_when_used():
    code = "import sys, numerics.kernels; print('torch' in sys.modules, 'scipy' in sys.modules, 'numpy' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=100, cwd=ROOT, check=True
    )
    assert run.stdout.split() == ["False", "False", "False"]


def test_arguments_of_a_flow_and_subset_of_outputs():
    flow = published()
    kernel = numerics.compile_kernel(flow)
    assert kernel.arguments == ("mu_OV", "mu_QK", *(p.name for p in flow.parameters))
    assert kernel.outputs == ("d_mu_OV", "d_mu_QK", "loss", "attention")
    at = {"mu_OV": 1.0, "mu_QK": 0.5, "M": 20, "b": 50, "m": 5, "n": 50, "eta_OV": 1, "eta_QK": 10}
    whole = kernel(**at)
    loss, velocity = compile_kernel(flow, outputs=["loss", "d_mu_OV"])(**at)
    assert (velocity, loss) == (whole[0], whole[2])
    reordered = compile_kernel(flow, args=[*flow.parameters, *flow.states])
    assert reordered(*[at[a] for a in reordered.arguments]) == whole


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"outputs": ["los"]}, "output 'los': .* did you mean loss"),
        ({"outputs": []}, "at least one"),
        ({"outputs": ["loss", "loss"]}, "distinct"),
        ({"backend": "nympy"}, "backend 'nympy': expected one of numpy, torch, numba, c"),
        ({"args": [mu_OV, mu_QK]}, "args: .*M.* is not among"),
        ({"name": "a b"}, "name 'a b'"),
    ],
)
def test_bad_requests_for_a_flow(options, message):
    with pytest.raises(ValueError, match=message):
        compile_kernel(published(), **options)


@pytest.mark.parametrize(
    ("target", "args", "error", "message"),
    [
        (x + y, [x], ValueError, "y is not among x"),
        (x + y, [x, y, x], ValueError, "x is named twice"),
        (x + y, None, ValueError, "expected the symbols in call order, some order of x, y"),
        (x + y, [x, Symbol("y", positive=True)], ValueError, "y is not among .*other assumptions"),
        (x, [x, Symbol("x", positive=True)], ValueError, "x is named twice"),
        (x, ["x"], TypeError, "'x' is no symbol"),
        ("x", [x], TypeError, "of type str: expected a ReducedFlow"),
        ([], [x], ValueError, "nothing to compile"),
        ([x, None], [x], TypeError, "of type NoneType"),
    ],
)
def test_bad_requests_for_expressions(target, args, error, message):
    with pytest.raises(error, match=message):
        compile_kernel(target, args=args)


def test_calls_by_position_and_by_name():
    kernel = compile_kernel(x - 2 * y, args=[y, x])
    assert kernel(1.0, 5.0) == kernel(1.0, x=5.0) == kernel(x=5.0, y=1.0) == 3.0
    for args, keywords, message in (
        ((1.0,), {}, "missing x; expected y, x"),
        ((1.0, 2.0, 3.0), {}, "3 arguments given, expected 2: y, x"),
        ((1.0,), {"y": 2.0}, "y is given twice"),
        ((1.0, 2.0), {"xx": 2.0}, "no argument xx, expected y, x; did you mean x"),
    ):
        with pytest.raises(TypeError, match=message):
            kernel(*args, **keywords)


@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_names_of_keywords_and_libraries(backend):
    names = [
        "lambda",
        "np",
        "torch",
        "exp",
        "dtype",
        "shape",
        "values",
        "_inputs",
        "kernel",
        "float",
        "mu_{QK}",
        "x'",
        "2x",
    ]
    given = [Symbol(s, real=True) for s in names]
    kernel = compile_kernel(sum((i + 1) * s for i, s in enumerate(given)) + exp(given[0]), backend, args=given)
    assert kernel.arguments == tuple(names)
    assert kernel.parameters[0] == "lambda_"
    assert "lambda_ (the symbol lambda)" in kernel.source
    values = {s: 0.25 * i for i, s in enumerate(names)}
    expected = sum((i + 1) * 0.25 * i for i in range(len(names))) + 1.0
    assert float(kernel(**values)) == expected
    safe = dict(zip(kernel.parameters, values.values(), strict=True))
    assert float(kernel(**safe)) == expected


def test_locals_never_shadow_arguments():
    names = ["exponential_1", "total_1", "attention", "decay_1"]
    given = [Symbol(s, real=True) for s in names]
    a, t, c, d = given
    expr = exp(a + t) * (exp(a + t) + c) + d / (1 + exp(c)) + log(1 + exp(c))
    value = float(compile_kernel(expr, args=given)(0.1, 0.2, 0.3, 0.4))
    # twelve roundings of numbers of size at most 3
    assert abs(value - float(expr.xreplace(dict(zip(given, (0.1, 0.2, 0.3, 0.4), strict=True))))) < 1e-14


def test_cache_and_pickle():
    first = compile_kernel(x**2 + 1, args=[x])
    assert compile_kernel(x**2 + 1, args=[x]) is first
    assert compile_kernel(x**2 + 1, "torch", args=[x]) is not first
    assert compile_kernel(x**2 + 2, args=[x]) is not first
    again = pickle.loads(pickle.dumps(first))
    assert isinstance(again, Kernel)
    assert again == first
    assert again(3.0) == 10.0


def test_shapes_of_results():
    array = np.arange(6.0).reshape(2, 3)
    assert compile_kernel(sin(x), args=[x])(array).shape == (2, 3)
    (one,) = compile_kernel([x], args=[x])(array)
    assert one.shape == (2, 3)
    matrix = compile_kernel(Matrix([[x, 1, y]]), args=[x, y])(array, 2.0)
    assert matrix.shape == (2, 3, 1, 3)
    np.testing.assert_array_equal(matrix[1, 2, 0], [5.0, 1.0, 2.0])
    assert compile_kernel(Matrix([[x, 1], [0, x]]), args=[x])(3.0).tolist() == [[3.0, 1.0], [0.0, 3.0]]


FILLING = ["numpy", "numba", "c"]


@pytest.mark.parametrize("backend", FILLING)
def test_results_in_arrays_that_are_given(backend):
    array = np.linspace(-2, 2, 12).reshape(3, 4)
    for dtype in (np.float64, np.float32):
        given = array.astype(dtype)
        for target in (exp(x) + y, [exp(x), y, x * y], Matrix([[x, 1], [y, x * y]])):
            kernel = compile_kernel(target, backend, args=[x, y])
            fresh = kernel(given, 2.0)
            if isinstance(fresh, tuple):
                out = [np.full((3, 8), 7, dtype)[:, ::2] for _ in fresh]  # of any strides
                assert kernel(given, 2.0, out=out) is out
                assert all((a == b).all() and a.dtype == dtype for a, b in zip(out, fresh, strict=True))
            else:
                out = np.full(fresh.shape, 7, dtype)
                assert kernel(given, 2.0, out=out) is out
                assert (out == fresh).all()
                assert (kernel.function(given, 2.0, out=out) == fresh).all()
    single = np.empty(())
    assert compile_kernel(x + 1, backend, args=[x])(1.0, out=single) is single
    assert single == 2.0


@pytest.mark.parametrize("backend", FILLING)
def test_arrays_that_do_not_fit_are_refused(backend):
    kernel, states = compile_kernel([x + 1, x + 2], backend, args=[x]), np.ones(3)
    for out, message in (
        ([np.empty(3)], "out: 1 arrays, expected 2"),
        ([np.empty(3), np.empty(4)], r"out: float64 of shape \(4,\), expected float64 of shape \(3,\)"),
        ([np.empty(3), np.empty(3, np.float32)], r"out: float32 of shape \(3,\), expected float64"),
        ([np.empty(3), states], "out: memory of its own"),
        ([single := np.empty(3), single], "out: memory of its own"),
    ):
        with pytest.raises(ValueError, match=message):
            kernel(states, out=out)
    np.testing.assert_array_equal(states, np.ones(3))


def test_torch_takes_no_arrays_for_results():
    with pytest.raises(TypeError, match="the backend 'torch' takes no out, only numpy, numba, c do"):
        compile_kernel(x + 1, "torch", args=[x])(1.0, out=np.empty(()))


def test_an_argument_named_out():
    kernel = compile_kernel(2 * Symbol("out"), args=[Symbol("out")])
    assert kernel(out=3.0) == kernel(out_=3.0) == 6.0


@pytest.mark.parametrize(
    "shapes",
    [
        [(40_000,), ()],
        [(3, 17_000), (17_000,)],
        [(9000, 3), (9000, 1)],
        [(1, 20_000), (1, 1)],
        [(30, 1, 700), (2, 700)],
    ],
)
def test_blocks_change_no_bit(shapes):
    random = np.random.default_rng(1)
    kernel = compile_kernel([log(1 + exp(x)) * y, 1 / (1 + exp(-x)), sin(y), x - x + 2], args=[x, y])
    first, second = (random.uniform(-3, 3, s) for s in shapes)
    whole = kernel(first, second)
    space: dict[str, object] = {}
    exec(kernel.source.replace("16384", "10**9"), space)
    for found, wanted in zip(whole, space["kernel"](first, second), strict=True):
        assert found.shape == np.broadcast_shapes(*shapes)
        np.testing.assert_array_equal(found, wanted)


def test_results_never_alias_arguments():
    array = np.ones(3)
    first, second, third = compile_kernel([x, x, x + 1], args=[x])(array)
    first[:] = 7
    second[:] = 8
    third[:] = 9
    np.testing.assert_array_equal(array, np.ones(3))
    assert first[0] == 7
    double = compile_kernel([x + 1, x + 1], args=[x])(array)
    double[0][:] = 5
    np.testing.assert_array_equal(double[1], np.full(3, 2.0))


def test_every_parameterization_compiles():
    for qk in ("collapsed", "factorized"):
        for ov in ("collapsed", "factorized"):
            flow = derive(AttentionModel(TokenTask(score_scale=gamma), qk=qk, ov=ov))
            kernel = compile_kernel(flow)
            assert {eta_OV.name, eta_QK.name, m.name, n.name} <= set(kernel.arguments)
            rate = compile_kernel(
                flow.compact["mu_OV"], args=[*flow.states, Symbol("alpha", positive=True), *flow.parameters]
            )
            at = dict(zip(kernel.arguments, (1.2, 0.7, 4, 3, 2, 5, 2, 3, 0.5, 1.0, 2.0), strict=True))
            velocity, _, _, attention = kernel(**at)
            # both are right to a few eps
            assert abs(rate(**at, alpha=attention) / velocity - 1) < 1e-14
