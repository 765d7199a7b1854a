"""``gradline simulate``: trajectories of a reduced flow, as a table, data and a plot."""

from __future__ import annotations

import time as clock
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from numerics.commands.console import dump_json, progress_bar, show, write
from numerics.commands.options import ModelOptions, with_model
from numerics.commands.values import choice, integer, pairs, positive, real
from numerics.output import check_file, write_files

if TYPE_CHECKING:
    from numerics.trajectory import Point, Trajectory
    from theory.flow import ReducedFlow

__all__ = ["EPILOG", "simulate"]

EPILOG = (
    "The published runs: gradline simulate -M 20 -b 50 -K 50 -N oo -m 5 -n 50 --ratio 0.01,0.1,1,10,100 "
    "--time tau --until-loss 1e-4"
)
_TIMES = ("t", "tau", "log")
_DATA = (".csv", ".npz")
_PLOTS = (".pdf", ".png")
_MOST_POINTS = 1_000_000
_RUN, _OUT = "Run", "Output"


def _option(*names: str, panel: str, metavar: str, text: str) -> Any:
    return typer.Option(*names, rich_help_panel=panel, metavar=metavar, help=text, show_default=False)


@dataclass(frozen=True)
class _Settings:
    """Everything a run needs, checked before anything is computed."""

    flow: ReducedFlow
    eta_OV: float
    eta_QK: tuple[float, ...]
    start: dict[str, float]
    until_loss: float | None
    until_time: float | None
    time: str
    rtol: float
    points: int | None
    out: Path | None
    plot: Path | None


@with_model
def simulate(
    options: ModelOptions,
    eta_ov: Annotated[
        str | None, _option("--eta-ov", panel=_RUN, metavar="RATE", text="Rate of output-value; 1 by default.")
    ] = None,
    eta_qk: Annotated[str | None, _option("--eta-qk", panel=_RUN, metavar="RATE", text="Rate of query-key.")] = None,
    ratio: Annotated[
        list[str] | None,
        _option("--ratio", panel=_RUN, metavar="R,R,...", text="eta_QK / eta_OV, a run for each; may be repeated."),
    ] = None,
    start: Annotated[
        list[str] | None,
        _option("--start", panel=_RUN, metavar="NAME=X,...", text="Start, such as mu_OV=0.1,mu_QK=0.1; 0 by default."),
    ] = None,
    start_ov: Annotated[str | None, _option("--start-ov", panel=_RUN, metavar="X", text="Start of mu_OV.")] = None,
    start_qk: Annotated[str | None, _option("--start-qk", panel=_RUN, metavar="X", text="Start of mu_QK.")] = None,
    until_loss: Annotated[
        str | None, _option("--until-loss", panel=_RUN, metavar="LOSS", text="Stop at this loss.")
    ] = None,
    until_time: Annotated[
        str | None,
        _option("--until-time", panel=_RUN, metavar="TIME", text="Stop at this time; with --until-loss, a limit."),
    ] = None,
    time: Annotated[
        str | None,
        _option(
            "--time",
            panel=_RUN,
            metavar="NAME",
            text="t (default); tau = t min(eta_OV, eta_QK), for --until-time and the plot; log, for points even in log t.",
        ),
    ] = None,
    rtol: Annotated[
        str | None, _option("--rtol", panel=_RUN, metavar="TOL", text="Tolerance, 1e-11 to 1e-3; 1e-10 by default.")
    ] = None,
    out: Annotated[str | None, _option("--out", panel=_OUT, metavar="FILE", text="Write data, .csv or .npz.")] = None,
    points: Annotated[
        str | None, _option("--points", panel=_OUT, metavar="INT", text="Points of each run in --out, even in time.")
    ] = None,
    plot: Annotated[
        str | None, _option("--plot", panel=_OUT, metavar="FILE", text="Draw a plot, .pdf or .png.")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", rich_help_panel=_OUT, help="Print the summary as JSON, without table.")
    ] = False,
) -> int:
    """Integrate the gradient flow on the line to a loss or for a time. Every size needs a value."""
    begin = _read_start(start, start_ov, start_qk)
    model = options.build(numbers=True)
    rate, rates = _read_rates(eta_ov, eta_qk, ratio)
    checked: dict[str, Any] = {
        "until_loss": None if until_loss is None else positive("--until-loss", until_loss),
        "until_time": None if until_time is None else positive("--until-time", until_time),
        "time": choice("--time", time or "t", _TIMES),
        "rtol": positive("--rtol", rtol or "1e-10"),
        "points": _read_points(points, out),
        "out": None if out is None else check_file("--out", out, _DATA),
        "plot": None if plot is None else check_file("--plot", plot, _PLOTS),
    }
    if until_loss is None and until_time is None:
        raise ValueError("no end of the run: expected --until-loss, --until-time or both")
    from theory.flow import derive

    settings = _Settings(derive(model), rate, rates, begin, **checked)
    runs, seconds = _integrate(settings)
    _write(settings, runs)
    if json:
        write(dump_json(_summary(settings, runs, seconds)))
    else:
        _show(settings, runs, seconds)
    return 0


def _read_points(points: str | None, out: str | None) -> int | None:
    if points is None:
        return None
    if out is None:
        raise ValueError(f"--points={points}: there is no file to write them to; expected --out as well")
    wanted = f"an integer from 2 to {_MOST_POINTS}"
    number = integer("--points", points, 2, wanted)
    if number > _MOST_POINTS:
        raise ValueError(f"--points={points}: expected {wanted}")
    return number


def _read_rates(
    eta_ov: str | None, eta_qk: str | None, ratios: Sequence[str] | None
) -> tuple[float, tuple[float, ...]]:
    """The rate of output-value and those of query-key, one for each run."""
    rate = positive("--eta-ov", eta_ov or "1")
    if eta_qk is not None and ratios:
        raise ValueError("--eta-qk and --ratio are both given; expected one of them")
    if eta_qk is not None:
        return rate, (positive("--eta-qk", eta_qk),)
    if not ratios:
        raise ValueError("no value for eta_QK (learning rate of the query-key circuit): expected --eta-qk or --ratio")
    found = [positive("--ratio", part.strip()) for text in ratios for part in text.split(",")]
    return rate, tuple(rate * r for r in found)


def _read_start(start: Sequence[str] | None, start_ov: str | None, start_qk: str | None) -> dict[str, float]:
    begin: dict[str, float] = {}
    given = [("mu_OV", real("--start-ov", start_ov))] if start_ov is not None else []
    given += [("mu_QK", real("--start-qk", start_qk))] if start_qk is not None else []
    for name, value in [*given, *(item for text in start or () for item in pairs("--start", text).items())]:
        if name in begin:
            raise ValueError(f"the start of {name} is given twice; expected it once")
        begin[name] = value
    return begin


def _integrate(settings: _Settings) -> tuple[list[Trajectory], float]:
    """All runs, and the seconds they took."""
    from numerics.integrate import simulate as integrate

    parameters = {"eta_OV": settings.eta_OV, "eta_QK": list(settings.eta_QK)}
    begin = clock.perf_counter()
    with progress_bar("integrating") as update:
        batch: Any = integrate(
            settings.flow,
            parameters,
            settings.start,
            settings.until_loss,
            settings.until_time,
            time=settings.time,  # type: ignore[arg-type]
            rtol=settings.rtol,
            progress=update,
        )
    return list(batch), clock.perf_counter() - begin


def _write(settings: _Settings, runs: Sequence[Trajectory]) -> None:
    contents: dict[Path, bytes] = {}
    if settings.out is not None:
        from numerics.commands.series import series_bytes

        contents[settings.out] = series_bytes(runs, settings.points, settings.out)
    if settings.plot is not None:
        from numerics.figures import figure_bytes, trajectory_figure

        labels = [f"{_ratio(run):.4g}" for run in runs]
        axis: Any = "tau" if settings.time == "tau" else "t"
        title = r"$\eta_{\mathrm{QK}}/\eta_{\mathrm{OV}}$"
        contents[settings.plot] = figure_bytes(trajectory_figure(runs, labels, time=axis, title=title), settings.plot)
    write_files(contents)


def _ratio(run: Trajectory) -> float:
    return run.parameters["eta_QK"] / run.parameters["eta_OV"]


def _summary(settings: _Settings, runs: Sequence[Trajectory], seconds: float) -> dict[str, Any]:
    model = settings.flow.model
    names = ("classes", "block", "queries", "noise", "informative_slots", "noise_slots", "query_kind", "score_scale")
    return {
        "parameterization": model.parameterization,
        "task": {name: str(getattr(model.task, name)) for name in names},
        "imbalance": {"QK": str(model.imbalance("QK")), "OV": str(model.imbalance("OV"))},
        "start": dict(runs[0].start),
        "rtol": settings.rtol,
        "seconds": seconds,
        "runs": [_run_data(run) for run in runs],
        "files": [str(path) for path in (settings.out, settings.plot) if path is not None],
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


def _show(settings: _Settings, runs: Sequence[Trajectory], seconds: float) -> None:
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

    show(describe_model(settings.flow), describe_task(settings.flow), table)
    written = "".join(f"; wrote {path}" for path in (settings.out, settings.plot) if path is not None)
    show(f"half: at half of the final time; integration {seconds:.2f} s{written}")
