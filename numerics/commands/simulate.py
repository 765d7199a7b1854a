"""``gradline simulate``: trajectories of a reduced flow, as a table, data and a plot."""

from __future__ import annotations

import time as clock
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from numerics.commands.console import dump_json, progress_bar, show, write
from numerics.commands.options import ModelOptions, option, with_options
from numerics.commands.values import choice, integer, pairs, positive, real
from numerics.output import check_file, write_files

if TYPE_CHECKING:
    from numerics.trajectory import Point, Trajectory
    from theory.flow import ReducedFlow

__all__ = ["EPILOG", "RateOptions", "simulate"]

EPILOG = (
    "The published runs: gradline simulate -M 20 -b 50 -K 50 -N oo -m 5 -n 50 --ratio 0.01,0.1,1,10,100 "
    "--time tau --until-loss 1e-4"
)
_TIMES = ("t", "tau", "log")
_DATA = (".csv", ".npz")
_PLOTS = (".pdf", ".png")
_MOST_POINTS = 1_000_000
_RUN, _OUT = "Run", "Output"


@dataclass(frozen=True)
class RateOptions:
    """Rates and start of the runs, as typed."""

    eta_ov: Annotated[
        str | None, option("--eta-ov", panel=_RUN, metavar="RATE", text="Rate of output-value; 1 by default.")
    ] = None
    eta_qk: Annotated[str | None, option("--eta-qk", panel=_RUN, metavar="RATE", text="Rate of query-key.")] = None
    ratio: Annotated[
        list[str] | None,
        option("--ratio", panel=_RUN, metavar="R,R,...", text="eta_QK / eta_OV, a run for each; may be repeated."),
    ] = None
    start: Annotated[
        list[str] | None,
        option("--start", panel=_RUN, metavar="NAME=X,...", text="Start, such as mu_OV=0.1,mu_QK=0.1; 0 by default."),
    ] = None
    start_ov: Annotated[str | None, option("--start-ov", panel=_RUN, metavar="X", text="Start of mu_OV.")] = None
    start_qk: Annotated[str | None, option("--start-qk", panel=_RUN, metavar="X", text="Start of mu_QK.")] = None

    def rates(self) -> tuple[float, list[float]]:
        """The rate of output-value and those of query-key, one for each run."""
        rate = positive("--eta-ov", "1" if self.eta_ov is None else self.eta_ov)
        if self.eta_qk is not None and self.ratio:
            raise ValueError("--eta-qk and --ratio are both given; expected one of them")
        if self.eta_qk is not None:
            return rate, [positive("--eta-qk", self.eta_qk)]
        if not self.ratio:
            raise ValueError("no value for eta_QK (learning rate of query-key): give --eta-qk or --ratio a number")
        return rate, [rate * ratio for text in self.ratio for ratio in _ratios(text)]

    def begin(self) -> dict[str, float]:
        """The start by name, as far as given."""
        given = [("mu_OV", real("--start-ov", self.start_ov))] if self.start_ov is not None else []
        given += [("mu_QK", real("--start-qk", self.start_qk))] if self.start_qk is not None else []
        begin: dict[str, float] = {}
        for name, value in [*given, *(item for text in self.start or () for item in pairs("--start", text).items())]:
            if name in begin:
                raise ValueError(f"the start of {name} is given twice; expected it once")
            begin[name] = value
        return begin


@dataclass(frozen=True)
class RunOptions:
    """End, time and tolerance of the runs, as typed."""

    until_loss: Annotated[str | None, option("--until-loss", panel=_RUN, metavar="LOSS", text="Stop at this loss.")] = (
        None
    )
    until_time: Annotated[
        str | None,
        option("--until-time", panel=_RUN, metavar="TIME", text="Stop at this time; with --until-loss, a limit."),
    ] = None
    time: Annotated[
        str | None,
        option(
            "--time",
            panel=_RUN,
            metavar="NAME",
            text="t (default); tau = t min(eta_OV, eta_QK), in --until-time and --plot; log, for points even in log t.",
        ),
    ] = None
    rtol: Annotated[
        str | None, option("--rtol", panel=_RUN, metavar="TOL", text="Tolerance, 1e-11 to 1e-3; 1e-10 by default.")
    ] = None

    def read(self, rates: RateOptions) -> dict[str, Any]:
        """The arguments of `numerics.simulate`, parameters and start included."""
        if self.until_loss is None and self.until_time is None:
            raise ValueError("no end of the run: expected --until-loss, --until-time or both")
        rate, query_rates = rates.rates()
        return {
            "parameters": {"eta_OV": rate, "eta_QK": query_rates},
            "start": rates.begin(),
            "until_loss": None if self.until_loss is None else positive("--until-loss", self.until_loss),
            "until_time": None if self.until_time is None else positive("--until-time", self.until_time),
            "time": choice("--time", "t" if self.time is None else self.time, _TIMES),
            "rtol": positive("--rtol", "1e-10" if self.rtol is None else self.rtol),
        }


def _ratios(text: str) -> list[float]:
    parts = [part.strip() for part in text.split(",")]
    if "" in parts:
        raise ValueError(f"--ratio={text}: number {parts.index('') + 1} is missing; expected such as 0.1,1,10")
    return [positive("--ratio", part) for part in parts]


@dataclass(frozen=True)
class OutputOptions:
    """Where the results go, as typed."""

    out: Annotated[str | None, option("--out", panel=_OUT, metavar="FILE", text="Write data, .csv or .npz.")] = None
    points: Annotated[
        str | None, option("--points", panel=_OUT, metavar="INT", text="Points of each run in --out, even in time.")
    ] = None
    plot: Annotated[str | None, option("--plot", panel=_OUT, metavar="FILE", text="Draw a plot, .pdf or .png.")] = None
    json: Annotated[
        bool, typer.Option("--json", rich_help_panel=_OUT, help="Print the summary as JSON, without table.")
    ] = False

    def read(self) -> _Output:
        """The files, checked before anything is computed."""
        return _Output(
            None if self.out is None else check_file("--out", self.out, _DATA),
            self._points(),
            None if self.plot is None else check_file("--plot", self.plot, _PLOTS),
        )

    def _points(self) -> int | None:
        if self.points is None:
            return None
        if self.out is None:
            raise ValueError(f"--points={self.points}: there is no file to write them to; expected --out as well")
        wanted = f"an integer from 2 to {_MOST_POINTS}"
        number = integer("--points", self.points, 2, wanted)
        if number > _MOST_POINTS:
            raise ValueError(f"--points={self.points}: expected {wanted}")
        return number


@dataclass(frozen=True)
class _Output:
    """Checked output files and the number of points in the data."""

    out: Path | None
    points: int | None
    plot: Path | None

    @property
    def paths(self) -> tuple[Path, ...]:
        return tuple(path for path in (self.out, self.plot) if path is not None)


@with_options
def simulate(options: ModelOptions, rates: RateOptions, run: RunOptions, output: OutputOptions) -> int:
    """Integrate the gradient flow on the line to a loss or for a time. Every size needs a value."""
    model = options.build(numbers=True)
    arguments, files = run.read(rates), output.read()
    from theory.flow import derive

    flow = derive(model)
    runs, seconds = _integrate(flow, arguments)
    _write(files, runs)
    if output.json:
        write(dump_json(_summary(runs, seconds, arguments["rtol"], files)))
    else:
        _show(runs, seconds, files)
    return 0


def _integrate(flow: ReducedFlow, arguments: dict[str, Any]) -> tuple[list[Trajectory], dict[str, float]]:
    """All runs, and the time they took."""
    from numerics.integrate import simulate as integrate

    wall, cpu = clock.perf_counter(), clock.process_time()
    with progress_bar("integrating") as update:
        batch: Any = integrate(flow, **arguments, progress=update)
    return list(batch), {"seconds": clock.perf_counter() - wall, "cpu_seconds": clock.process_time() - cpu}


def _write(files: _Output, runs: Sequence[Trajectory]) -> None:
    contents: dict[Path, bytes] = {}
    if files.out is not None:
        from numerics.commands.series import series_bytes

        contents[files.out] = series_bytes(runs, files.points, files.out)
    if files.plot is not None:
        from numerics.figures import figure_bytes, trajectory_figure

        labels = [f"{_ratio(run):.4g}" for run in runs]
        axis: Any = "tau" if runs[0].time == "tau" else "t"
        title = r"$\eta_{\mathrm{QK}}/\eta_{\mathrm{OV}}$"
        contents[files.plot] = figure_bytes(trajectory_figure(runs, labels, time=axis, title=title), files.plot)
    write_files(contents)


def _ratio(run: Trajectory) -> float:
    return run.parameters["eta_QK"] / run.parameters["eta_OV"]


def _summary(runs: Sequence[Trajectory], seconds: dict[str, float], rtol: float, files: _Output) -> dict[str, Any]:
    model = runs[0].flow.model
    names = ("classes", "block", "queries", "noise", "informative_slots", "noise_slots", "query_kind", "score_scale")
    return {
        "parameterization": model.parameterization,
        "task": {name: str(getattr(model.task, name)) for name in names},
        "imbalance": {"QK": str(model.imbalance("QK")), "OV": str(model.imbalance("OV"))},
        "start": dict(runs[0].start),
        "rtol": rtol,
        **seconds,
        "runs": [_run_data(run) for run in runs],
        "files": [str(path) for path in files.paths],
    }


def _point_data(point: Point) -> dict[str, float]:
    return {name: float(getattr(point, name)) for name in ("t", "tau", "mu_OV", "mu_QK", "attention", "loss")}


def _run_data(run: Trajectory) -> dict[str, Any]:
    return {
        "ratio": _ratio(run),
        "eta_OV": run.parameters["eta_OV"],
        "eta_QK": run.parameters["eta_QK"],
        "end": _point_data(run.end),
        "halfway": _point_data(run.at(run.end.t / 2)),
        "steps": run.steps,
        "error_estimate": run.error_estimate,
    }


def _show(runs: Sequence[Trajectory], seconds: dict[str, float], files: _Output) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for header in ("ratio", "at", "tau", "t", "mu_OV", "mu_QK", "alpha", "loss", "steps", "error"):
        table.add_column(header, justify="left" if header == "at" else "right", no_wrap=True)
    for run in runs:
        for name, point in (("half", run.at(run.end.t / 2)), ("end", run.end)):
            last = (str(run.steps), f"{run.error_estimate:.0e}") if name == "end" else ("", "")
            cells = f"{point.tau:.4g}", f"{point.t:.4g}", f"{point.mu_OV:.6g}", f"{point.mu_QK:.6g}"
            table.add_row(f"{_ratio(run):.4g}", name, *cells, f"{point.attention:.4f}", f"{point.loss:.3e}", *last)
    from numerics.commands.statement import describe_model, describe_task

    show(describe_model(runs[0].flow), describe_task(runs[0].flow), table)
    written = "".join(f"; wrote {path}" for path in files.paths)
    took = f"integration {seconds['seconds']:.2f} s ({seconds['cpu_seconds']:.2f} s of one core)"
    show(f"half: at half of the final time; {took}{written}")
