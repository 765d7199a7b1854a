"""``gradline derive``: the system, the line, the first integral and the assumptions of a model."""

from __future__ import annotations

from typing import Annotated

import typer

from numerics.commands.console import columns, dump_json, speaks_unicode, write
from numerics.commands.options import ModelOptions, with_options
from numerics.commands.values import choice

__all__ = ["derive"]

_BACKENDS = ("numpy", "torch", "numba", "c", "javascript")


@with_options
def derive(
    options: ModelOptions,
    latex: Annotated[bool, typer.Option("--latex", help="Print LaTeX (amsmath).")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON: each expression as str and latex.")] = False,
    trace: Annotated[bool, typer.Option("--trace", help="Show the steps of the derivation.")] = False,
    emit: Annotated[
        str | None,
        typer.Option(
            "--emit", metavar="BACKEND", help="Print a kernel's source: numpy, torch, numba, c or javascript."
        ),
    ] = None,
) -> int:
    """Derive the gradient flow on the line, its first integral and the assumptions. Sizes left out stay symbols."""
    if latex and json:
        raise ValueError("--latex and --json are both given; expected one of them")
    if emit is not None:
        return _emit(options, choice("--emit", emit, _BACKENDS), {"--latex": latex, "--json": json, "--trace": trace})
    model = options.build()
    from numerics.commands.render import as_data, as_latex, as_text
    from theory.flow import derive as derive_flow

    flow = derive_flow(model)
    if json:
        write(dump_json(as_data(flow, trace=trace)))
    elif latex:
        write(as_latex(flow, trace=trace))
    else:
        write(as_text(flow, unicode=speaks_unicode(), width=columns(), trace=trace))
    return 0


def _emit(options: ModelOptions, backend: str, others: dict[str, bool]) -> int:
    """Print the standalone source of the flow's kernel."""
    for name, given in others.items():
        if given:
            raise ValueError(f"--emit and {name} are both given; expected one of them")
    model = options.build()
    from numerics.kernels import compile_kernel
    from theory.flow import derive as derive_flow

    write(compile_kernel(derive_flow(model), backend).source)
    return 0
