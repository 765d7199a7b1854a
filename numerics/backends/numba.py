"""Standalone Numba source: one function of plain numbers, compiled, and a loop over arrays around it."""

from __future__ import annotations

import importlib.util
from textwrap import indent
from typing import TYPE_CHECKING, Any

from numerics.backends.cache import imported
from numerics.backends.printer import Dialect, Signature, formulas, identifiers, words
from numerics.backends.python_module import ARRAYS, call, display, header, indented, module, whole
from numerics.backends.series import UNIT_LOG1P
from numerics.backends.special_numba import HELPERS as SPECIAL
from numerics.backends.table import written
from numerics.ir import Program
from theory.errors import GradlineError

if TYPE_CHECKING:
    from numerics.kernels import Kernel

__all__ = ["COMPILED", "DIALECT", "FUSED", "LOOPS", "emit", "load"]

COMPILED = '@numba.njit(error_model="numpy", forceinline=True)'
#: With one rounding for a product and a sum where the processor has it, which these series only gain from.
FUSED = '@numba.njit(error_model="numpy", forceinline=True, fastmath={"contract"})'
_CACHED = '@numba.njit(cache=True, error_model="numpy")'
_ONE = '@numba.njit(cache=True, error_model="numpy", forceinline=True)'

_SCALAR = {
    "_shifted_exp": '''\
def _shifted_exp(x, power):
    """exp(x)*2**power to a unit in the last place, in arithmetic that vectorizes.

    A polynomial meets (exp(r) - 1 - r)/r**2 at the Chebyshev points of |r| <= log(2)/2.
    """
    shifted = x * 1.4426950408889634 + 6755399441055744.0
    whole = shifted - 6755399441055744.0
    r = (x - whole * 0.6931471803691238) - whole * 1.9082149292705877e-10
    r2 = r * r
    r4 = r2 * r2
    a = 0.5000000000000001 + r * 0.16666666666666669
    b = 0.041666666666624164 + r * 0.008333333333330065
    c = 0.0013888888917196719 + r * 0.00019841269863040545
    d = 2.4801521322368692e-05 + r * 2.7557268480310024e-06
    e = 2.7620075879983367e-07 + r * 2.5100375832561234e-08
    series = ((a + r2 * b) + r4 * (c + r2 * d)) + (r4 * r4) * e
    bits = np.float64(shifted).view(np.int64) + (1023 + power)
    scale = np.int64(bits << 52).view(np.float64)
    return scale + (r + r2 * series) * scale
''',
    "_unit_exp": '''\
def _unit_exp(x):
    """exp(x) for x <= 0."""
    return 0.0 if x < -745.2 else _shifted_exp(x, 64) * 5.421010862427522e-20
''',
    "_exp": '''\
def _exp(x):
    """exp(x), by way of a number that is neither subnormal nor too large."""
    small = x < 0.0
    value = _shifted_exp(x, 64 if small else -64)
    value = value * (5.421010862427522e-20 if small else 18446744073709551616.0)
    return 0.0 if x < -745.2 else math.inf if x > 709.8 else value
''',
    "_unit_log1p": f'''\
def _unit_log1p(x):
    """log(1 + x) for x from 0 to 1: the series of 2 atanh(s).

    Beyond sqrt(2) - 1 for half of 1 + x.
    """
    far = 1.0 if x > 0.41421356237309503 else 0.0
{indent(UNIT_LOG1P, "    ")}
''',
    "_decay": '''\
def _decay(x):
    """exp(-|x|), which cannot overflow."""
    return _unit_exp(-abs(x))
''',
    "_sigmoid": '''\
def _sigmoid(x, decay):
    """1/(1 + exp(-x)) from decay = exp(-|x|): both tails keep their digits."""
    return (decay if x < 0 else 1.0) / (1.0 + decay)
''',
    "_sigmoid_minus": '''\
def _sigmoid_minus(x, decay):
    """1/(1 + exp(x)) from decay = exp(-|x|): both tails keep their digits."""
    return (1.0 if x < 0 else decay) / (1.0 + decay)
''',
    "_softplus_minus": '''\
def _softplus_minus(x, decay):
    """log(1 + exp(-x)) from decay = exp(-|x|)."""
    return (-x if x < 0 else 0.0) + _unit_log1p(decay)
''',
    "_softplus": '''\
def _softplus(x, decay):
    """log(1 + exp(x)) from decay = exp(-|x|)."""
    return (0.0 if x < 0 else x) + _unit_log1p(decay)
''',
    "_logaddexp": '''\
def _logaddexp(x, y):
    """log(exp(x) + exp(y)) without overflow."""
    return _max(x, y) + _unit_log1p(_decay(x - y))
''',
    "_max": '''\
def _max(x, y):
    """The larger number; nan if one is."""
    return x if x >= y or math.isnan(x) else y
''',
    "_min": '''\
def _min(x, y):
    """The smaller number; nan if one is."""
    return x if x <= y or math.isnan(x) else y
''',
    "_sign": '''\
def _sign(x):
    """-1, 0 or 1."""
    return x if x == 0 or math.isnan(x) else math.copysign(1.0, x)
''',
}

_LOOPS = {
    "_flat": '''\
def _flat(value, shape):
    """A plain number, or a contiguous array of doubles, one for each state."""
    if value.ndim == 0:
        return float(value)
    whole = np.broadcast_to(value, shape).reshape(-1)
    return np.ascontiguousarray(whole, np.float64)
''',
    "_fill": '''\
def _fill(function, values, results):
    """Fill results by a loop over contiguous arrays of doubles."""
    size, shape = results[0].size, results[0].shape
    plain = [r.dtype == np.float64 and r.flags.c_contiguous for r in results]
    filled = [r.reshape(-1) if p else np.empty(size) for r, p in zip(results, plain)]
    function(*[_flat(v, shape) for v in values], *filled)
    for result, array, p in zip(results, filled, plain):
        if not p:
            result[...] = array.reshape(shape)
''',
    "_at": '''\
def _at(value, index):
    """An entry of an array; a plain number is every entry."""
    return value[index] if isinstance(value, np.ndarray) else value


@numba.extending.overload(_at)
def _overload_at(value, index):
    if isinstance(value, numba.types.Array):
        return lambda value, index: value[index]
    return lambda value, index: value
''',
}
_HELPERS = {
    **{
        n: f"{FUSED if n in ('_shifted_exp', '_unit_log1p') else COMPILED}\n{s}" for n, s in (_SCALAR | SPECIAL).items()
    },
    **ARRAYS,
    **_LOOPS,
}
#: The helpers that bring arrays to a compiled loop, and its results back.
LOOPS = ("_inputs", "_outputs", "_fill")

_MATH = ("sqrt", "exp", "expm1", "log", "log1p", "sin", "cos", "tan", "atan", "sinh", "cosh", "tanh", "asinh")
_TAKEN = words(
    "math numba np abs float bool int len list range type zip isinstance tuple dtype shape values results entries out "
    "i v r _overload_at"
)

DIALECT = Dialect(
    name="numba",
    imports={"math.": "import math", "numba.": "\nimport numba", "np.": "import numpy as np"},
    calls={"pow": "math.pow", "abs": "abs", **{n: f"math.{n}" for n in _MATH}, **written(_HELPERS, "_")},
    helpers=_HELPERS,
    reserved=frozenset({*_TAKEN, *_HELPERS}),
    constant_operand=lambda text, other: _real(text),
)


def _real(text: str) -> str:
    """An integer as a real number: a power by an integer would be computed as a product, with more roundings."""
    return f"{text}.0" if text.lstrip("-").isdigit() else text


def _one(program: Program, signature: Signature) -> list[str]:
    """The function of plain numbers."""
    lines, texts = formulas(program, DIALECT, signature)
    texts = [_real(t) for t in texts]
    last = [f"return {texts[0]}"] if len(texts) == 1 else display("return ", texts)
    inner = ['"""One state: plain numbers in, plain numbers out."""', *lines, *last]
    return [_ONE, *header(f"{signature.name}_one", signature.parameters), *indented(inner)]


def _many(signature: Signature, results: tuple[str, ...]) -> list[str]:
    """The loop over arrays."""
    entries = [f"_at({p}, i)" for p in signature.parameters]
    if len(results) == 1:
        loop = call(f"{results[0]}[i] = ", f"{signature.name}_one(", entries, ")", 8)
    else:
        loop = call("values = ", f"{signature.name}_one(", entries, ")", 8)
        loop += display("", [f"{r}[i]" for r in results], " = values", indent=8)
    inner = [
        '"""All states: arrays or plain numbers in, arrays of results filled."""',
        f"for i in range({results[0]}.size):",
        *indented(loop),
    ]
    return [_CACHED, *header(f"{signature.name}_many", (*signature.parameters, *results)), *indented(inner)]


def emit(program: Program, signature: Signature) -> str:
    """Print a program as a module: the function of arrays, and the compiled ones it calls."""
    name = signature.name
    results = identifiers(signature.outputs, DIALECT.reserved | {*signature.parameters, name, f"{name}_one"})
    functions = [_one(program, signature), _many(signature, results), whole(signature, f"{name}_many")]
    return module(program, DIALECT, signature.title, [*LOOPS, "_at"], functions)


def load(kernel: Kernel) -> Any:
    """The function of arrays of a Numba kernel.

    Raises: `GradlineError` if Numba is not installed.
    """
    if importlib.util.find_spec("numba") is None:
        raise GradlineError(
            f"compiling {kernel.name}: the backend 'numba' needs Numba, which is not installed: "
            "pip install 'gradline[fast]', or choose the backend 'numpy' or 'c'"
        )
    return getattr(imported(kernel.name, kernel.source), kernel.name)
