"""Trajectories as data files: one row for each point, with the number and the ratio of the run."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numerics.trajectory import Trajectory

__all__ = ["COLUMNS", "resampled", "series_bytes"]

Array = NDArray[np.float64]

COLUMNS = ("run", "ratio", "t", "tau", "mu_OV", "mu_QK", "attention", "loss")


def ratio_of(run: Trajectory) -> float:
    """``eta_QK / eta_OV`` of a run."""
    return run.parameters["eta_QK"] / run.parameters["eta_OV"]


def resampled(run: Trajectory, points: int | None) -> dict[str, Array]:
    """The arrays of a run; with ``points``, that many, even in time, or in log time if that is the time of the run."""
    if points is None:
        return {name: getattr(run, name) for name in COLUMNS[2:]}
    if run.time == "log":
        t = run.solution.t_of(np.linspace(0.0, run.solution.u_end, points))
        t[-1] = run.end.t
    else:
        t = np.linspace(0.0, run.end.t, points)
    states = [run.at(x) for x in np.minimum(t, run.end.t)]
    return {name: np.array([getattr(s, name) for s in states]) for name in COLUMNS[2:]}


def table(runs: Sequence[Trajectory], points: int | None) -> dict[str, Any]:
    """The columns of all runs, one below the other."""
    parts = []
    for number, run in enumerate(runs, 1):
        part = resampled(run, points)
        length = part["t"].size
        parts.append({"run": np.full(length, number), "ratio": np.full(length, ratio_of(run)), **part})
    return {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS}


def series_bytes(runs: Sequence[Trajectory], points: int | None, path: Path) -> bytes:
    """The content of a CSV or NPZ file, by the extension of ``path``: the same names and rows in both.

    Numbers in CSV have all their digits. The bytes are the same each time.
    """
    columns = table(runs, points)
    if path.suffix.lower() == ".npz":
        stream = io.BytesIO()
        np.savez_compressed(stream, **columns)
        return stream.getvalue()
    rows = zip(*(columns[name].tolist() for name in COLUMNS), strict=True)
    lines = [",".join(COLUMNS), *(",".join(map(repr, row)) for row in rows)]
    return ("\n".join(lines) + "\n").encode()
