"""Standalone NumPy source: one ufunc expression per assignment, no warnings where the result is finite."""

from __future__ import annotations

from textwrap import indent

from numerics.backends.printer import Dialect, Signature, formulas, words
from numerics.backends.python_module import ARRAYS, display, header, indented, load, module, whole
from numerics.backends.series import LAMBERT
from numerics.ir import Program

__all__ = ["DIALECT", "emit", "load"]

_HELPERS = {
    **ARRAYS,
    "_rows": '''\
def _rows(value, part, dimensions):
    """Some rows of an array, or one that is the same for all."""
    if value.ndim < dimensions:
        return value
    if len(value) > 1:
        return value[part]
    return value if isinstance(part, slice) else value[0]
''',
    "_fill": '''\
def _fill(function, values, results):
    """Fill results with those of a function, in blocks that stay in the cache."""
    first, size = results[0], results[0].size
    if size <= 16384:
        found = function(*values)
        found = found if isinstance(found, tuple) else (found,)
        for result, value in zip(results, found):
            result[...] = value
        return
    step = max(1, 16384 * len(first) // size)
    for start in range(0, len(first), step):
        part = slice(start, start + step) if step > 1 else start
        some = [_rows(v, part, first.ndim) for v in values]
        _fill(function, some, [r[part] for r in results])
''',
    "_decay": '''\
def _decay(x):
    """exp(-|x|), which cannot overflow."""
    return np.exp(-np.abs(x))
''',
    "_sigmoid": '''\
def _sigmoid(x, decay):
    """1/(1 + exp(-x)) from decay = exp(-|x|): both tails keep their digits."""
    return np.maximum(decay, x >= 0) / (1.0 + decay)
''',
    "_sigmoid_minus": '''\
def _sigmoid_minus(x, decay):
    """1/(1 + exp(x)) from decay = exp(-|x|): both tails keep their digits."""
    return np.maximum(decay, x < 0) / (1.0 + decay)
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
    "_lambertw": f'''\
def _lambertw(x):
    """The real branch W_0; nan left of -1/e, by a series close to it."""
    x = np.asarray(x)
    double = x.astype(np.float64)
    gap = (double + 0.36787944117144233) - 1.2428753672788363e-17
    p = np.sqrt(5.43656365691809 * np.maximum(gap, 0.0))
{indent(LAMBERT, "    ")}
    near = 0.0 * p
    for coefficient in series:
        near = near * p + coefficient
    w = np.where(p < 0.1, near, special.lambertw(double).real)
    edge = np.asarray(-0.36787944117144233, x.dtype)
    return np.where(x < edge, np.nan, w).astype(x.dtype)[()]
''',
    "_far_ei": '''\
def _far_ei(x):
    """exp(-x)*Ei(x) beyond 40 by its asymptotic series, exact to rounding."""
    term = total = 1.0 / x
    for k in range(1, 41):
        term = term * k / x
        total = total + term
    return total
''',
    "_ei": '''\
def _ei(x):
    """The exponential integral Ei, real; near its zero by a series of its own."""
    x = np.asarray(x)
    near, far = np.abs(x - 0.5) < 0.4, np.abs(x) > 40.0
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
    y = np.where(far, np.minimum(x, 720.0), 40.0).astype(np.float64)
    half = np.exp(y / 2.0)
    y = half * _far_ei(y) * half
    value = np.where(far, y, special.expi(np.where(far, 1.0, x)))
    return np.where(near, series, value).astype(x.dtype)[()]
''',
    "_scaled_ei": '''\
def _scaled_ei(x):
    """exp(-x)*Ei(x)."""
    far = np.abs(x) > 40.0
    near = np.where(far, 1.0, x)
    return np.where(far, _far_ei(np.where(far, x, 40.0)), np.exp(-near) * _ei(near))
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

_TAKEN = words("np special float bool int range type len max slice list tuple isinstance zip dtype shape values")

DIALECT = Dialect(
    name="numpy",
    imports={"np.": "import numpy as np", "special.": "from scipy import special"},
    calls=_CALLS,
    helpers=_HELPERS,
    reserved=frozenset({*_TAKEN, "results", "entries", "out", *_HELPERS}),
)


def emit(program: Program, signature: Signature) -> str:
    """Print a program as a module: the formulas for a block of states, and the function of arrays."""
    block = f"{signature.name}_block"
    lines, texts = formulas(program, DIALECT, signature)
    last = [f"return {texts[0]}"] if signature.single else display("return ", texts)
    inner = ['"""The formulas, for numbers or arrays of one dtype."""', *lines, *last]
    functions = [[*header(block, signature.parameters), *indented(inner)], whole(signature, block)]
    return module(program, DIALECT, signature.title, ["_inputs", "_outputs", "_fill"], functions)
