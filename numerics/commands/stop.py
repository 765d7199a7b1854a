"""``gradline stop``: the states at given losses, without integration."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from numerics.commands.console import dump_json, show, write
from numerics.commands.options import ModelOptions, option, with_options
from numerics.commands.simulate import RateOptions
from numerics.commands.values import positive
from numerics.output import check_file, write_files

if TYPE_CHECKING:
    from numerics.stopping import StoppingState
    from theory.flow import ReducedFlow

__all__ = ["EPILOG", "stop"]

EPILOG = (
    "The published task: gradline stop -M 20 -b 50 -K 50 -N oo -m 5 -n 50 --ratio 0.01,0.1,1,10,100 --loss 1e-2,1e-4"
)
_COLUMNS = ("ratio", "loss", "mu_OV", "mu_QK", "attention", "t", "tau", "error_estimate", "t_error_estimate")


@dataclass(frozen=True)
class StopOptions:
    """The losses, and where the results go, as typed."""

    loss: Annotated[
        list[str] | None,
        option("--loss", panel="Run", metavar="L,L,...", text="Losses to stop at; may be repeated."),
    ] = None
    no_time: Annotated[bool, typer.Option("--no-time", rich_help_panel="Run", help="Leave out the times.")] = False
    out: Annotated[str | None, option("--out", panel="Output", metavar="FILE", text="Write the table, .csv.")] = None
    json: Annotated[bool, typer.Option("--json", rich_help_panel="Output", help="Print JSON, without table.")] = False

    def losses(self) -> list[float]:
        """The losses, in the order given."""
        if not self.loss:
            raise ValueError("no loss to stop at: expected --loss, such as --loss 1e-2,1e-4")
        return [positive("--loss", part.strip()) for text in self.loss for part in text.split(",")]


@with_options
def stop(options: ModelOptions, rates: RateOptions, wanted: StopOptions) -> int:
    """Solve for the state at which a loss is reached, and the time it takes, without integration. Every size needs a
    value.
    """
    model = options.build(numbers=True)
    rate, query_rates = rates.rates()
    start, losses = rates.begin(), wanted.losses()
    path = None if wanted.out is None else check_file("--out", wanted.out, (".csv",))
    import numpy as np

    from numerics.stopping import stopping_state
    from theory.flow import derive

    flow = derive(model)
    parameters = {"eta_OV": rate, "eta_QK": np.array(query_rates)[:, None]}
    found = stopping_state(flow, parameters, start, loss=losses, time=not wanted.no_time)
    rows = _rows(found, rate, query_rates)
    if path is not None:
        _write(path, rows)
    if wanted.json:
        data = {"parameterization": model.parameterization, "eta_OV": rate, "start": start, "states": rows}
        write(dump_json(data | {"files": [str(path)] if path else []}))
    else:
        _show(flow, rows, path)
    return 0


def _rows(found: StoppingState, rate: float, query_rates: list[float]) -> list[dict[str, float]]:
    names = [name for name in _COLUMNS[1:] if name != "tau" and getattr(found, name) is not None]
    rows = []
    for i, query_rate in enumerate(query_rates):
        for j in range(found.loss.shape[-1]):
            row = {"ratio": query_rate / rate, **{name: float(getattr(found, name)[i, j]) for name in names}}
            if "t" in row:
                row["tau"] = row["t"] * min(rate, query_rate)
            rows.append({name: row[name] for name in _COLUMNS if name in row})
    return rows


def _write(path: Path, rows: list[dict[str, float]]) -> None:
    from numerics.figures.drawing import csv_bytes

    write_files({path: csv_bytes({name: [row[name] for row in rows] for name in rows[0]})})


def _show(flow: ReducedFlow, rows: list[dict[str, float]], path: Path | None) -> None:
    from rich import box
    from rich.table import Table

    from numerics.commands.statement import describe_model, describe_task

    formats = {"error_estimate": ".0e", "t_error_estimate": ".0e", "attention": ".4f", "t": ".4g", "tau": ".4g"}
    heads: dict[str, Any] = {"attention": "alpha", "error_estimate": "error", "t_error_estimate": "error of t"}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in rows[0]:
        table.add_column(heads.get(name, name), justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*(format(value, formats.get(name, ".6g")) for name, value in row.items()))
    show(describe_model(flow), describe_task(flow), table)
    if path is not None:
        show(f"wrote {path}")
