"""Standalone Numba source: one function of plain numbers, compiled, and a loop over arrays around it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numerics.backends import numpy as numpy_backend
from numerics.backends.cache import fingerprint, stored
from numerics.backends.printer import Body, Dialect, Signature, identifiers, needed, words
from numerics.backends.python_module import call, display, docstring, header
from numerics.backends.special_numba import HELPERS as SPECIAL
from numerics.backends.table import written
from numerics.ir import Program
from theory.errors import GradlineError

if TYPE_CHECKING:
    from numerics.kernels import Kernel

__all__ = ["COMPILED", "DIALECT", "emit", "load"]

COMPILED = '@numba.njit(error_model="numpy", forceinline=True)'
_CACHED = '@numba.njit(cache=True, error_model="numpy")'
_ONE = '@numba.njit(cache=True, error_model="numpy", forceinline=True)'

_SCALAR = {
    "_unit_exp": '''\
def _unit_exp(x):
    """exp(x) for x <= 0 to two units in the last place, 0 where it is subnormal.

    Arithmetic that vectorizes.
    """
    shifted = x * 1.4426950408889634 + 6755399441055744.0
    whole = shifted - 6755399441055744.0
    r = (x - whole * 0.6931471803691238) - whole * 1.9082149292705877e-10
    r2 = r * r
    r4 = r2 * r2
    a = (1.0 + r) + r2 * (1 / 2 + r * (1 / 6))
    b = (1 / 24 + r * (1 / 120)) + r2 * (1 / 720 + r * (1 / 5040))
    c = (1 / 40320 + r * (1 / 362880)) + r2 * (1 / 3628800 + r * (1 / 39916800))
    d = 1 / 479001600 + r * (1 / 6227020800)
    bits = np.float64(shifted).view(np.int64)
    power = np.int64((bits + 1023) << 52).view(np.float64)
    value = ((a + r4 * b) + r4 * r4 * (c + r4 * d)) * power
    return 0.0 if x < -708.39 else value
''',
    "_unit_log1p": '''\
def _unit_log1p(x):
    """log(1 + x) for x from 0 to 1: the series of 2 atanh(s).

    Beyond sqrt(2) - 1 for half of 1 + x.
    """
    far = x > 0.41421356237309503
    s = (x - 1.0 if far else x) / (x + 3.0 if far else x + 2.0)
    z = s * s
    z2 = z * z
    z4 = z2 * z2
    a = (1 / 3 + z * (1 / 5)) + z2 * (1 / 7 + z * (1 / 9))
    b = (1 / 11 + z * (1 / 13)) + z2 * (1 / 15 + z * (1 / 17))
    c = (1 / 19 + z * (1 / 21)) + z2 * (1 / 23)
    rest = z * (a + z4 * (b + z4 * c))
    return (0.6931471805599453 if far else 0.0) + (2.0 * s + 2.0 * s * rest)
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
    return _max(x, y) + math.log1p(math.exp(-abs(x - y)))
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

_ARRAYS = {
    "_inputs": numpy_backend.DIALECT.helpers["_inputs"],
    "_flat": '''\
def _flat(value, shape):
    """A plain number, or a contiguous array of doubles, one for each state."""
    if value.ndim == 0:
        return float(value)
    whole = np.broadcast_to(value, shape).reshape(-1)
    return np.ascontiguousarray(whole, np.float64)
''',
    "_shaped": '''\
def _shaped(value, dtype, shape):
    """An array of the full shape and dtype; a scalar if the shape is ()."""
    return np.asarray(value).astype(dtype, copy=False).reshape(shape)[()]
''',
    "_stacked": '''\
def _stacked(entries, dtype, shape, matrix):
    """An array of shape (*shape, *matrix)."""
    stack = np.stack([_shaped(e, dtype, shape) for e in entries], axis=-1)
    return stack.reshape(*shape, *matrix)
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
_HELPERS = {n: f"{COMPILED}\n{s}" for n, s in {**_SCALAR, **SPECIAL}.items()} | _ARRAYS

_BLOCK = 512
_MATH = ("sqrt", "exp", "expm1", "log", "log1p", "sin", "cos", "tan", "atan", "sinh", "cosh", "tanh", "asinh")
_TAKEN = words(
    "math numba np abs float bool int type range isinstance tuple dtype shape values results size i v r "
    "block first count min _overload_at"
)

DIALECT = Dialect(
    name="numba",
    imports={"math.": "import math", "numba.": "\nimport numba", "np.": "import numpy as np"},
    calls={"pow": "math.pow", "abs": "abs", **{n: f"math.{n}" for n in _MATH}, **written(_HELPERS, "_")},
    helpers=_HELPERS,
    copy="{}",
    defaults="dtype, shape = np.dtype(float), ()",
    reserved=frozenset({*_TAKEN, *_HELPERS}),
)


def _one(program: Program, signature: Signature, results: tuple[str, ...]) -> list[str]:
    """The function of plain numbers."""
    printer = Body(program, DIALECT, signature.parameters, frozenset({signature.name, *results}))
    lines = printer.print()
    texts = [printer.texts[i][0] for i in program.outputs]
    texts = [printer.named(i, output) for i, output in zip(program.outputs, signature.outputs, strict=True)]
    texts = [f"{t}.0" if t.lstrip("-").isdigit() else t for t in texts]
    last = [f"return {texts[0]}"] if signature.single else display("return ", texts)
    inner = [
        '"""One state: plain numbers in, plain numbers out."""',
        *lines,
        *last,
    ]
    return [_ONE, *header(f"{signature.name}_one", signature.parameters), *_indented(inner)]


def _many(signature: Signature, results: tuple[str, ...]) -> list[str]:
    """The loop over arrays, in blocks: their results go through one array, in which nothing can overlap."""
    entries = [f"_at({p}, first + i)" for p in signature.parameters]
    targets = [f"block[{k * _BLOCK} + i]" if k else "block[i]" for k in range(len(results))]
    if signature.single:
        loop = call(f"{targets[0]} = ", f"{signature.name}_one(", entries, ")", 12)
    else:
        loop = call("values = ", f"{signature.name}_one(", entries, ")", 12)
        loop += display("", targets, " = values", indent=12)
    out = [f"{r}[first : first + count] = block[{k * _BLOCK} : {k * _BLOCK} + count]" for k, r in enumerate(results)]
    inner = [
        '"""All states: arrays or plain numbers in, arrays of results filled."""',
        f"block = np.empty({len(results) * _BLOCK})",
        f"for first in range(0, {results[0]}.size, {_BLOCK}):",
        f"    count = min({_BLOCK}, {results[0]}.size - first)",
        "    for i in range(count):",
        *_indented(_indented(loop)),
        *_indented(out),
    ]
    return [_CACHED, *header(f"{signature.name}_many", (*signature.parameters, *results)), *_indented(inner)]


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" if line else "" for line in lines]


def _all(signature: Signature) -> list[str]:
    """The function that takes numbers and arrays of any shape."""
    count = len(signature.outputs)
    name = signature.name
    lines = [*call("values, dtype, shape = ", "_inputs(", signature.parameters, ")", 4)]
    if not signature.parameters:
        lines = ["values, dtype, shape = (), np.dtype(float), ()"]
    lines.append("values = [_flat(v, shape) for v in values]")
    filled = [f"    {name}_many(*values, *results)"]
    if signature.single:
        lines += ["if shape == ():", f"    results = [{name}_one(*values)]"]
    else:
        lines += ["if shape == ():", f"    results = {name}_one(*values)"]
    lines += ["else:", f"    results = [np.empty(math.prod(shape)) for _ in range({count})]", *filled]
    if signature.shape is not None:
        rows = ", ".join(str(n) for n in signature.shape)
        lines.append(f"return _stacked(results, dtype, shape, ({rows}))")
    elif signature.single:
        lines.append("return _shaped(results[0], dtype, shape)")
    else:
        lines.append("return tuple([_shaped(r, dtype, shape) for r in results])")
    return [*header(name, signature.parameters), *_indented([*docstring(signature), *lines])]


def emit(program: Program, signature: Signature) -> str:
    """Print a program as a module: the function of arrays, and the compiled ones it calls."""
    name = signature.name
    taken = DIALECT.reserved | {*signature.parameters, name, f"{name}_one", f"{name}_many"}
    results = identifiers(signature.outputs, taken)
    used = sorted({DIALECT.calls[v.op] for v in program.values if v.op in DIALECT.calls})
    last = "_shaped" if signature.shape is None else "_stacked"
    helpers = [h.rstrip() for h in needed([*used, "_at", "_inputs", "_flat", last], DIALECT.helpers)]
    functions = [_one(program, signature, results), _many(signature, results), _all(signature)]
    code = "\n\n\n".join([*helpers, *["\n".join(f) for f in functions]])
    imports = "\n".join(s for text, s in DIALECT.imports.items() if text in code)
    return f'"""{signature.title}"""\n\n{imports}\n\n\n{code}\n'


def load(kernel: Kernel) -> Any:
    """Import the source from a file of the cache folder, beside which Numba keeps the machine code.

    Raises: `GradlineError` if Numba is not installed.
    """
    if importlib.util.find_spec("numba") is None:
        raise GradlineError(
            f"compiling {kernel.name}: the backend 'numba' needs Numba, which is not installed: "
            "pip install 'gradline[fast]', or choose the backend 'numpy' or 'c'"
        )
    module = f"{kernel.name}_{fingerprint(kernel.source)}"
    if module not in sys.modules:
        path = stored(f"{module}.py", lambda new: _write(new, kernel.source))
        spec = importlib.util.spec_from_file_location(module, path)
        if spec is None or spec.loader is None:
            raise GradlineError(f"compiling {kernel.name}: {path} can't be imported; remove it")
        loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
        sys.modules[module] = loaded
    return getattr(sys.modules[module], kernel.name)


def _write(path: Path, source: str) -> None:
    path.write_text(source, encoding="utf-8")
