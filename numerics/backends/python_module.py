"""A program as a Python module of array functions: what the NumPy and the Torch backend share.

The helpers `_inputs`, `_shaped` and `_stacked` of a backend bring arguments in and results out.
"""

from __future__ import annotations

import linecache
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from zlib import crc32

from numerics.backends.printer import LINE, Body, Dialect, Signature, needed
from numerics.ir import Program

if TYPE_CHECKING:
    from numerics.kernels import Kernel

__all__ = ["call", "display", "docstring", "entry", "header", "load", "module"]


def docstring(signature: Signature) -> list[str]:
    lines = [line.replace("\\", "\\\\").replace('"""', '\\"\\"\\"') for line in signature.described(LINE - 4)]
    lines[0] = f'"""{lines[0]}'
    kind = "the value of" if signature.single else "the tuple"
    if signature.shape is not None:
        kind = "an array of shape (*batch, " + ", ".join(str(n) for n in signature.shape) + "):"
    lines += ["", "Arguments broadcast; integers become floating point, float32 stays float32."]
    returned = f"Returns {kind} {', '.join(signature.outputs)}"
    wrapped = textwrap.wrap(
        f"{returned}, each of the common shape.", 84, subsequent_indent="    ", break_long_words=False
    )
    return [line.rstrip() for line in [*lines, *wrapped, '"""']]


def _returned(texts: Sequence[str], signature: Signature) -> list[str]:
    if signature.shape is not None:
        rows = ", ".join(str(n) for n in signature.shape)
        return [*display("entries = ", texts, brackets="[]"), f"return _stacked(entries, dtype, shape, ({rows}))"]
    shaped = [f"_shaped({t}, dtype, shape)" for t in texts]
    if signature.single:
        return [f"return {shaped[0]}"]
    return display("return ", shaped)


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


def entry(parameters: Sequence[str]) -> list[str]:
    """Arguments become arrays."""
    lines = call("values, dtype, shape = _inputs", "(", parameters, ")", 4)
    return [*lines, *display("", parameters, " = values")]


def header(name: str, parameters: Sequence[str]) -> list[str]:
    """The first lines of a function."""
    return call("", f"def {name}(", parameters, "):")


def module(program: Program, dialect: Dialect, signature: Signature) -> str:
    """Print a program as a standalone module with one function.

    Parameters: ``program``; ``dialect``, the backend; ``signature``, what the docstring says.
    Returns: Python source. Raises: `UnsupportedError` for an operation the backend does not have.
    """
    printer = Body(program, dialect, signature.parameters, frozenset({signature.name}))
    lines = printer.print()
    texts = []
    for position, index in enumerate(program.outputs):
        repeated = program.values[index].op == "arg" or index in program.outputs[:position]
        constant = program.values[index].op == "const"
        text = printer.named(index, signature.outputs[position])
        texts.append(dialect.copy.format(text) if repeated and not constant else text)
    if signature.parameters:
        lines[:0] = entry(signature.parameters)
    else:
        lines.insert(0, dialect.defaults)
    used = sorted({dialect.calls[v.op] for v in program.values if v.op in dialect.calls})
    first = [n for n in ("_inputs",) if signature.parameters]
    last = "_shaped" if signature.shape is None else "_stacked"
    helpers = needed([*first, last, *used], dialect.helpers)
    inner = [*docstring(signature), *lines, *_returned(texts, signature)]
    function = "\n".join(
        [*header(signature.name, signature.parameters), *[f"    {line}" if line else "" for line in inner]]
    )
    code = "\n\n\n".join([*[h.rstrip() for h in helpers], function])
    imports = "\n".join(s for text, s in dialect.imports.items() if text in code).lstrip("\n")
    return f'"""{signature.title}"""\n\n{imports}\n\n\n{code}\n'


def load(kernel: Kernel) -> Any:
    """The function of a kernel, built from its source; tracebacks show the source."""
    file = f"<gradline {kernel.backend} kernel {kernel.name} {crc32(kernel.source.encode()):08x}>"
    space: dict[str, Any] = {"__name__": f"gradline_kernel_{kernel.name}"}
    exec(compile(kernel.source, file, "exec"), space)
    linecache.cache[file] = (len(kernel.source), None, kernel.source.splitlines(True), file)
    return space[kernel.name]
