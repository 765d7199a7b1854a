"""Standalone JavaScript source: one function of numbers, for pages that draw from the closed forms of the theory.

A kernel of this backend can be called from Python where Node.js is installed: once for a whole array of arguments.
"""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Any

from numerics.backends.c import number
from numerics.backends.printer import LINE, Dialect, Signature, called, formulas, needed, words
from numerics.backends.special_javascript import HELPERS as SPECIAL
from numerics.backends.table import written
from numerics.ir import Program
from theory.errors import GradlineError

if TYPE_CHECKING:
    from numerics.kernels import Kernel

__all__ = ["DIALECT", "emit", "load"]

_HELPERS = {
    **SPECIAL,
    "decay": """\
/** exp(-|x|), which cannot overflow. */
function decay(x) {
  return Math.exp(-Math.abs(x));
}
""",
    "sigmoid": """\
/** 1/(1 + exp(-x)) from decay = exp(-|x|): both tails keep their digits. */
function sigmoid(x, decay) {
  return (x < 0 ? decay : 1) / (1 + decay);
}
""",
    "sigmoid_minus": """\
/** 1/(1 + exp(x)) from decay = exp(-|x|): both tails keep their digits. */
function sigmoid_minus(x, decay) {
  return (x < 0 ? 1 : decay) / (1 + decay);
}
""",
    "softplus_minus": """\
/** log(1 + exp(-x)) from decay = exp(-|x|). */
function softplus_minus(x, decay) {
  return Math.max(-x, 0) + Math.log1p(decay);
}
""",
    "softplus": """\
/** log(1 + exp(x)) from decay = exp(-|x|). */
function softplus(x, decay) {
  return Math.max(x, 0) + Math.log1p(decay);
}
""",
    "logaddexp": """\
/** log(exp(x) + exp(y)) without overflow. */
function logaddexp(x, y) {
  return Math.max(x, y) + Math.log1p(Math.exp(-Math.abs(x - y)));
}
""",
}

_MATH = ("pow", "sqrt", "exp", "expm1", "log", "log1p", "abs", "sign", "sin", "cos", "tan", "atan")
_MORE = ("sinh", "cosh", "tanh", "asinh", "max", "min")
_RESERVED = words("""
    arguments await boolean break byte case catch char class const continue debugger default delete do double else enum
    eval export extends false final finally float for function goto if implements import in Infinity instanceof int
    interface let long Math NaN native new null Number package private protected public return short static super
    switch synchronized this throw throws transient true try typeof undefined var void volatile while with yield
    globalThis module exports require process console window document
""")

DIALECT = Dialect(
    name="javascript",
    calls={**{n: f"Math.{n}" for n in (*_MATH, *_MORE)}, **written(_HELPERS)},
    helpers=_HELPERS,
    reserved=frozenset({*_RESERVED, *_HELPERS}),
    number=number,
    assignment="const {} = {};",
)


def _comment(signature: Signature) -> list[str]:
    kind = "the value of" if signature.single else "the array"
    lines = [*signature.described(LINE - 3), "", f"Numbers in, double precision; returns {kind}"]
    lines[-1] += f" {', '.join(signature.outputs)}."
    return ["/**", *[f" * {line}".rstrip().replace("*/", "* /") for line in lines], " */"]


def emit(program: Program, signature: Signature) -> str:
    """Print a program as a function of plain numbers, with the helpers it calls before it.

    Several outputs are returned as an array, in their order; a matrix row by row.
    """
    lines, texts = formulas(program, DIALECT, signature)
    lines.append(f"return {texts[0]};" if signature.single else f"return [{', '.join(texts)}];")
    head = f"function {signature.name}({', '.join(signature.parameters)}) {{"
    function = "\n".join([*_comment(signature), head, *[f"  {line}" for line in lines], "}"])
    return "\n\n".join([*[h.rstrip() for h in needed(called(program, DIALECT), DIALECT.helpers)], function]) + "\n"


#: Reads rows of doubles from standard input, writes the results as doubles: every bit travels.
_RUNNER = """
const bytes = require("fs").readFileSync(0);
const given = new Float64Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
const found = [];
for (let i = 0; i < given.length; i += WIDTH) found.push(...[NAME(...given.subarray(i, i + WIDTH))].flat());
process.stdout.write(Buffer.from(new Float64Array(found).buffer));
"""
_LONGEST = 120.0


def load(kernel: Kernel) -> Any:
    """The function of a kernel on arrays, computed by Node.js.

    Raises: `GradlineError` when called where there is no Node.js.
    """

    def function(*values: Any) -> Any:
        import numpy as np

        arrays = np.broadcast_arrays(*[np.asarray(v, float) for v in values])
        shape = arrays[0].shape if arrays else ()
        rows = np.stack([a.ravel() for a in arrays], axis=-1) if arrays else np.zeros((1, 1))
        found = np.frombuffer(_run(kernel, rows.astype("<f8").tobytes(), max(len(arrays), 1)), "<f8")
        found = found.reshape(*shape, len(kernel.outputs)).copy()
        if kernel.layout == "single":
            return found[..., 0]
        if isinstance(kernel.layout, tuple):
            return found.reshape(*shape, *kernel.layout)
        return tuple(found[..., i] for i in range(len(kernel.outputs)))

    return function


def _run(kernel: Kernel, rows: bytes, width: int) -> bytes:
    node = shutil.which("node") or shutil.which("nodejs")
    if node is None:
        raise GradlineError(
            f"running {kernel.name}: JavaScript needs Node.js, and node is not on PATH; install it (Debian: apt "
            "install nodejs), use kernel.source in a page, or choose the backend 'numpy'"
        )
    runner = _RUNNER.replace("WIDTH", str(width)).replace("NAME", kernel.name)
    done = subprocess.run(
        [node, "--eval", f"{kernel.source}{runner}"], input=rows, capture_output=True, check=False, timeout=_LONGEST
    )
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise GradlineError(f"running {kernel.name}: node failed: {said[-1] if said else 'no message'}; report it")
    return done.stdout
