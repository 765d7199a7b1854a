"""Python source of a kernel: docstrings, calls and tuples as formatters set them, the module around them.

Functions of arrays bring arguments in by the helper `_inputs` and, but for Torch, results out by `_outputs`.
"""

from __future__ import annotations

import linecache
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from zlib import crc32

from numerics.backends.printer import LINE, Dialect, Signature, called, needed
from numerics.ir import Program

if TYPE_CHECKING:
    from numerics.kernels import Kernel

__all__ = ["ARRAYS", "call", "display", "docstring", "header", "indented", "load", "module", "whole"]

#: Arguments in and results out, as arrays of NumPy.
ARRAYS: Mapping[str, str] = {
    "_inputs": '''\
def _inputs(*values):
    """Arrays of one floating-point dtype, that dtype, and their common shape.

    Integers become float64; plain numbers adapt to the arrays.
    """
    plain = (bool, int, float)
    values = [float(v) if type(v) in plain else np.asarray(v) for v in values]
    dtype = np.result_type(*values) if values else np.dtype(float)
    if dtype.kind in "biu":
        dtype = np.dtype(float)
    if dtype.kind != "f":
        raise TypeError(f"expected real numbers or real arrays, got dtype {dtype}")
    arrays = [np.asarray(v, dtype)[()] for v in values]
    return arrays, dtype, np.broadcast_shapes(*{a.shape for a in arrays})
''',
    "_outputs": '''\
def _outputs(out, count, dtype, shape, values):
    """Arrays for the results: new ones, or those that are given."""
    if out is None:
        return [np.empty(shape, dtype) for _ in range(count)]
    arrays = [out] if isinstance(out, np.ndarray) else [*out]
    if len(arrays) != count:
        raise ValueError(f"out: {len(arrays)} arrays, expected {count}")
    for position, array in enumerate(arrays):
        if (array.dtype, array.shape) != (dtype, shape):
            found = f"{array.dtype} of shape {array.shape}"
            raise ValueError(f"out: {found}, expected {dtype} of shape {shape}")
        others = [*values, *arrays[:position]]
        if any(np.shares_memory(array, other) for other in others):
            raise ValueError("out: memory of its own is expected for each array")
    return arrays
''',
}


def docstring(signature: Signature, fills: bool = True) -> list[str]:
    """What the function of arrays is; ``fills``, whether it takes ``out``."""
    lines = [line.replace("\\", "\\\\").replace('"""', '\\"\\"\\"') for line in signature.described(LINE - 4)]
    lines[0] = f'"""{lines[0]}'
    kind = "the value of" if signature.single else "the tuple"
    if signature.shape is not None:
        kind = "an array of shape (*batch, " + ", ".join(str(n) for n in signature.shape) + "):"
    lines += ["", "Arguments broadcast; integers become floating point, float32 stays float32."]
    lines += ["Arrays given as `out` are filled and returned."] if fills else []
    returned = f"Returns {kind} {', '.join(signature.outputs)}"
    wrapped = textwrap.wrap(
        f"{returned}, each of the common shape.", 84, subsequent_indent="    ", break_long_words=False
    )
    return [line.rstrip() for line in [*lines, *wrapped, '"""']]


def call(before: str, opening: str, items: Sequence[str], closing: str, indent: int = 0) -> list[str]:
    """A call or a tuple: on one line if it fits, otherwise its items below, as formatters do."""
    line = f"{before}{opening}{', '.join(items)}{closing}"
    if len(line) + indent <= LINE or not items:
        return [line]
    inner = f"    {', '.join(items)}"
    rows = [inner] if len(inner) + indent <= LINE else [f"    {item}," for item in items]
    return [f"{before}{opening}", *rows, closing]


def display(before: str, items: Sequence[str], after: str = "", brackets: str = "()", indent: int = 4) -> list[str]:
    """A tuple or a list: on one line if it fits, otherwise an item a line, as formatters do."""
    bare = brackets == "()" and len(items) > 1
    inner = ", ".join(items) + "," * (len(items) == 1 and brackets == "()")
    line = before + (inner if bare else f"{brackets[0]}{inner}{brackets[1]}") + after
    if len(line) + indent <= LINE:
        return [line]
    return [before + brackets[0], *[f"    {item}," for item in items], brackets[1] + after]


def indented(lines: Iterable[str]) -> list[str]:
    """Lines of a block."""
    return [f"    {line}" if line else "" for line in lines]


def header(name: str, parameters: Sequence[str]) -> list[str]:
    """The first lines of a function."""
    return call("", f"def {name}(", parameters, "):")


def whole(signature: Signature, inner: str) -> list[str]:
    """The function of arrays of any shape, with ``out``; ``inner`` is the one that `_fill` calls."""
    count, shape, target, last = len(signature.outputs), "shape", "results", "return tuple([r[()] for r in results])"
    fill = []
    if signature.shape is not None:
        rows, columns = signature.shape
        shape, target = f"(*shape, {rows}, {columns})", "entries"
        fill = [f"entries = [results[0][..., i, j] for i in range({rows}) for j in range({columns})]"]
    if signature.single or signature.shape is not None:
        count, last = 1, "return results[0][()]"
    lines = [
        *docstring(signature),
        *call("values, dtype, shape = _inputs", "(", signature.parameters, ")", 4),
        f"results = _outputs(out, {count}, dtype, {shape}, values)",
        *fill,
        *call("", "_fill(", [inner, "values", target], ")", 4),
        "if out is not None:",
        "    return out",
        last,
    ]
    only = ["*"] if signature.parameters else []
    return [*header(signature.name, [*signature.parameters, *only, "out=None"]), *indented(lines)]


def module(
    program: Program, dialect: Dialect, title: str, helpers: Sequence[str], functions: Sequence[Sequence[str]]
) -> str:
    """A standalone module: helpers by these names and those that the program calls, then functions."""
    sources = [h.rstrip() for h in needed([*helpers, *called(program, dialect)], dialect.helpers)]
    code = "\n\n\n".join([*sources, *["\n".join(f) for f in functions]])
    imports = "\n".join(s for text, s in dialect.imports.items() if text in code).lstrip("\n")
    return f'"""{title}"""\n\n{imports}\n\n\n{code}\n'


def load(kernel: Kernel) -> Any:
    """The function of a kernel, built from its source; tracebacks show the source."""
    file = f"<gradline {kernel.backend} kernel {kernel.name} {crc32(kernel.source.encode()):08x}>"
    space: dict[str, Any] = {"__name__": f"gradline_kernel_{kernel.name}"}
    exec(compile(kernel.source, file, "exec"), space)
    linecache.cache[file] = (len(kernel.source), None, kernel.source.splitlines(True), file)
    return space[kernel.name]
