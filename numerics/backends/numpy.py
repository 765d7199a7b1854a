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
    "_softplus": '''\
def _softplus(x, decay):
    """log(1 + exp(x)) from decay = exp(-|x|)."""
    return np.maximum(x, 0.0) + np.log1p(decay)
''',
    "_lambertw": '''\
def _lambertw(x):
    """The real branch W_0; nan left of -1/e."""
    w = special.lambertw(x).real.astype(np.asarray(x).dtype)
    return np.where(x < -np.exp(-1.0), np.nan, w)
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
    return np.where(far, total, np.exp(-near) * special.expi(near))
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
    "ei": "special.expi",
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
