"""``gradline figure``: a figure of the paper as PDF and PNG, with the data behind it as CSV."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from numerics.commands.console import dump_json, progress_bar, show, write
from numerics.commands.values import choice, integer
from numerics.output import make_folder, write_files

__all__ = ["figure"]


def figure(
    name: Annotated[str, typer.Argument(metavar="NAME", help="fig2, fig3, fig4 or line.", show_default=False)],
    out: Annotated[
        str, typer.Option("--out", metavar="DIR", help="Folder for NAME.pdf, NAME.png and NAME*.csv.")
    ] = ".",
    quick: Annotated[
        bool, typer.Option("--quick", help="A reduced version in under 30 s, marked as such in the picture.")
    ] = False,
    seeds: Annotated[
        str | None, typer.Option("--seeds", metavar="INT", help="Seeds of the runs that a figure shows.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the numbers of the figure as JSON.")] = False,
) -> int:
    """Draw a figure of the paper from theory and from training."""
    from numerics.figures import FIGURES, SEEDED

    choice("NAME", name, FIGURES)
    if seeds is not None and name not in SEEDED:
        raise ValueError(
            f"--seeds={seeds}: {name} shows no runs with seeds; expected it with {' or '.join(SEEDED)} only"
        )
    count = None if seeds is None else integer("--seeds", seeds, 1)
    folder = make_folder("--out", out)
    from numerics.figures.drawing import Request, draw

    wall, cpu = time.perf_counter(), time.process_time()
    with progress_bar(name) as update:
        drawing = draw(name, Request(quick, count, update))
        files = drawing.files(name, folder)
    write_files(files)
    took = {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}
    paths = [str(path) for path in files]
    if json:
        write(dump_json({"figure": name, "quick": quick, **drawing.facts, **took, "files": paths}))
    else:
        show(
            *drawing.lines,
            f"{took['seconds']:.2f} s ({took['cpu_seconds']:.2f} s of one core); wrote {', '.join(paths)}",
        )
    return 0
