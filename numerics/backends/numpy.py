"""Standalone NumPy source: one ufunc expression per assignment, no warnings where the result is finite."""

from __future__ import annotations

from numerics.backends import python_module
from numerics.backends.printer import Dialect, Signature
from numerics.ir import Program

__all__ = ["DIALECT", "emit", "load"]

_HELPERS = {
    "_inputs": '''\
def _inputs(*values):
    """Arrays of one floating-point dtype, that dtype, and their common shape.

    Integers become float64; plain numbers adapt to the arrays.
    """
    plain = (bool, int, float)
    values = [float(v) if type(v) in plain else np.asarray(v) for v in values]
    dtype = np.result_type(*values)
    if dtype.kind in "biu":
        dtype = np.dtype(float)
    if dtype.kind != "f":
        raise TypeError(f"expected real numbers or real arrays, got dtype {dtype}")
    arrays = [np.asarray(v, dtype)[()] for v in values]
    return arrays, dtype, np.broadcast_shapes(*{a.shape for a in arrays})
''',
    "_shaped": '''\
def _shaped(value, dtype, shape):
    """A new array of the full shape; a scalar if the shape is ()."""
    value = np.asarray(value, dtype)
    if value.shape != shape:
        value = np.broadcast_to(value, shape).copy()
    return value[()]
''',
    "_stacked": '''\
def _stacked(entries, dtype, shape, matrix):
    """A new array of shape (*shape, *matrix)."""
    stack = [np.broadcast_to(np.asarray(e, dtype), shape) for e in entries]
    return np.stack(stack, axis=-1).reshape(*shape, *matrix)
''',
    "_decay": '''\
def _decay(x):
    """exp(-|x|), which cannot overflow."""
    return np.exp(-np.abs(x))
''',
    "_sigmoid": '''\
def _sigmoid(x, decay):
    """1/(1 + exp(-x)) from decay = exp(-|x|): both tails keep their digits."""
    return np.where(x < 0, decay, 1.0) / (1.0 + decay)
''',
    "_sigmoid_minus": '''\
def _sigmoid_minus(x, decay):
    """1/(1 + exp(x)) from decay = exp(-|x|): both tails keep their digits."""
    return np.where(x < 0, 1.0, decay) / (1.0 + decay)
''',
    "_softplus_minus": '''\
def _softplus_minus(x, decay):
    """log(1 + exp(-x)) from decay = exp(-|x|)."""
    return np.maximum(-x, 0.0) + np.log1p(decay)
''',
    "_softplus": '''\
def _softplus(x, decay):
    """log(1 + exp(x)) from decay = exp(-|x|)."""
    return np.maximum(x, 0.0) + np.log1p(decay)
''',
    "_lambertw": '''\
def _lambertw(x):
    """The real branch W_0; nan left of -1/e, by a series close to it."""
    x = np.asarray(x)
    double = x.astype(np.float64)
    gap = (double + 0.36787944117144233) - 1.2428753672788363e-17
    p = np.sqrt(5.43656365691809 * np.maximum(gap, 0.0))
    series = (
        -0.0015769303446867841,
        0.0024408779911439826,
        -0.0038112980348919993,
        0.006014543252956118,
        -0.009616892024299432,
        0.01563563253233392,
        -0.02598471487360376,
        0.044502314814814814,
        -0.07962962962962963,
        0.1527777777777778,
        -0.3333333333333333,
        1.0,
        -1.0,
    )
    near = 0.0 * p
    for coefficient in series:
        near = near * p + coefficient
    w = np.where(p < 0.1, near, special.lambertw(double).real)
    edge = np.asarray(-0.36787944117144233, x.dtype)
    return np.where(x < edge, np.nan, w).astype(x.dtype)[()]
''',
    "_ei": '''\
def _ei(x):
    """The exponential integral Ei, real; near its zero by a series of its own."""
    x = np.asarray(x)
    near = np.abs(x - 0.5) < 0.4
    y = np.where(near, x, 0.5).astype(np.float64)
    zero = 0.3725074107813666
    gap = (y - zero) - 1.3140183414386028e-17
    total = difference = np.ones_like(y)
    power = factorial = 1.0
    for k in range(2, 25):
        power, factorial = power * zero, factorial * k
        difference = y * difference + power
        total = total + difference / (k * factorial)
    series = np.log1p(gap / zero) + gap * total
    return np.where(near, series, special.expi(x)).astype(x.dtype)[()]
''',
    "_scaled_ei": '''\
def _scaled_ei(x):
    """exp(-x)*Ei(x); beyond 50 by its asymptotic series, then exact to rounding."""
    far = np.abs(x) > 50.0
    near = np.where(far, 1.0, x)
    term = total = 1.0 / np.where(far, x, 50.0)
    for k in range(1, 26):
        term = term * k / np.where(far, x, 50.0)
        total = total + term
    return np.where(far, total, np.exp(-near) * _ei(near))
''',
}

_CALLS = {
    "pow": "np.power",
    "sqrt": "np.sqrt",
    "exp": "np.exp",
    "expm1": "np.expm1",
    "log": "np.log",
    "log1p": "np.log1p",
    "decay": "_decay",
    "sigmoid": "_sigmoid",
    "softplus": "_softplus",
    "sigmoid_minus": "_sigmoid_minus",
    "softplus_minus": "_softplus_minus",
    "logaddexp": "np.logaddexp",
    "abs": "np.abs",
    "sign": "np.sign",
    "sin": "np.sin",
    "cos": "np.cos",
    "tan": "np.tan",
    "atan": "np.arctan",
    "sinh": "np.sinh",
    "cosh": "np.cosh",
    "tanh": "np.tanh",
    "asinh": "np.arcsinh",
    "max": "np.maximum",
    "min": "np.minimum",
    "ei": "_ei",
    "scaled_ei": "_scaled_ei",
    "lambertw": "_lambertw",
    "wrightomega": "special.wrightomega",
}

DIALECT = Dialect(
    name="numpy",
    imports={"np.": "import numpy as np", "special.": "from scipy import special"},
    calls=_CALLS,
    helpers=_HELPERS,
    copy="{}.copy()",
    defaults="dtype, shape = np.dtype(float), ()",
    reserved=frozenset(
        {"np", "special", "float", "bool", "int", "range", "type", "dtype", "shape", "entries", "values", *_HELPERS}
    ),
)


def emit(program: Program, signature: Signature) -> str:
    """Standalone source of a program."""
    return python_module.module(program, DIALECT, signature)


load = python_module.load
