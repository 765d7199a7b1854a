"""``gradline laws``: how many conservation laws an architecture has, and the polynomial ones."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from numerics.commands.console import dump_json, progress_bar, write
from numerics.commands.values import choice, integer

if TYPE_CHECKING:
    from theory.laws import Count

__all__ = ["EPILOG", "laws"]

EPILOG = (
    "Widths by model: linear INPUT HIDDEN ... OUTPUT; relu, gelu, silu, swiglu INPUT HIDDEN OUTPUT; attention INPUT "
    "QUERY VALUE OUTPUT; softmax-cross-entropy INPUT CLASSES; value-softmax OUTPUT SLOTS; moe-softmax, moe-sigmoid "
    "INPUT EXPERTS OUTPUT."
)


def laws(
    model: Annotated[
        str, typer.Option("--model", metavar="NAME", help="Architecture, such as linear, attention or swiglu.")
    ] = "linear",
    widths: Annotated[
        list[str] | None, typer.Option("--widths", metavar="N N ...", help="Widths of the layers.", show_default=False)
    ] = None,
    more: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    heads: Annotated[str, typer.Option("--heads", metavar="H", help="Attention heads.")] = "1",
    rotary: Annotated[bool, typer.Option("--rotary", help="Attention with rotary positions.")] = False,
    bias: Annotated[bool, typer.Option("--bias", help="ReLU units with a bias.")] = False,
    degree: Annotated[str, typer.Option("--degree", metavar="D", help="Polynomial laws up to this degree.")] = "2",
    seed: Annotated[str, typer.Option("--seed", metavar="S", help="Seed of the random points.")] = "0",
    weight_decay: Annotated[
        bool, typer.Option("--weight-decay", help="Also print how each law decays, at rate eta and decay lambda.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Count the conservation laws that hold for every loss and data set, and print the polynomial ones."""
    from theory.laws import ARCHITECTURES, architecture, count_laws, polynomial_laws

    name = choice("--model", model, list(ARCHITECTURES))
    words = [w for text in [*(widths or []), *(more or [])] for w in text.replace(",", " ").split()]
    if not words:
        raise ValueError(f"--widths: expected {ARCHITECTURES[name].widths} for {name}")
    sizes = [integer("--widths", w, 1) for w in words]
    number = integer("--heads", heads, 1)
    fields = architecture(name, sizes, heads=number, rotary=rotary, bias=bias)
    begin = time.perf_counter()
    chosen = integer("--seed", seed, 0)
    with progress_bar("laws") as update:
        if update is not None:
            update(0, 1, "fields of the architecture")
        found = polynomial_laws(fields, integer("--degree", degree, 1), seed=chosen, progress=update)
        count = count_laws(fields, found, seed=chosen, progress=update)
    if json:
        setting = {"model": name, "widths": sizes, "heads": number, "rotary": rotary, "bias": bias}
        decay = {"decay": [_decay(law, fields) for law in found]} if weight_decay else {}
        write(dump_json({**setting, **_as_data(count), "laws": [str(law) for law in found], **decay}))
        return 0
    lines = [f"{law}{f'   {_decay(law, fields)}' if weight_decay else ''}" for law in found]
    head = f"{name} {' '.join(map(str, sizes))}: {count.parameters} parameters, conservation laws: {count}"
    tail = f"{len(lines)} polynomial laws up to degree {degree}, each proved; {time.perf_counter() - begin:.1f} s\n"
    write("\n".join([head, *(f"  {line}" for line in lines), tail]))
    return 0


def _decay(law: Any, fields: Any) -> str:
    """How a law ``h`` moves under weight decay: exponentially, or what its derivative is."""
    from sympy import Symbol, factor_terms

    from theory.laws import decay_drift, decay_rate

    strength, rates = Symbol("lambda", positive=True), dict.fromkeys(fields.parameters, Symbol("eta", positive=True))
    rate = decay_rate(law, fields.parameters, strength, rates)
    if rate is not None:
        return f"h(t) = h(0) exp(-{rate}*t)"
    return f"dh/dt = {factor_terms(decay_drift(law, fields.parameters, strength, rates))}"


def _as_data(count: Count) -> dict[str, Any]:
    return {
        "parameters": count.parameters,
        "count": count.count,
        "at_least": count.at_least,
        "certified": count.certified,
        "complete": count.complete,
        "lie_dimension": count.lie_dimension,
        "depth": count.depth,
        "primes": list(count.primes),
    }
