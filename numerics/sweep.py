"""Sweeps: a function at every point of a grid, through any `concurrent.futures.Executor`, kept on disk as it finishes.

A finished point is a file of its own, written beside and renamed by the worker that ran it, so a kill at any moment
loses no finished point, and none is run again. While a point runs its worker holds a lock, so two sweeps on one
folder, or a worker left over from a killed one, don't run it twice either. The executor is a pool of processes by
default; a Dask client's ``get_executor()`` or mpi4py's ``MPIPoolExecutor`` use a cluster, with the folder on a file
system that all share; where the workers can't write to it the caller does.

>>> grid(ratio=[0.1, 1], model=["CACO"])
({'ratio': 0.1, 'model': 'CACO'}, {'ratio': 1, 'model': 'CACO'})
"""

from __future__ import annotations

import itertools
import json
import os
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Executor, Future, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from numerics.output import write_files
from numerics.sweep_workers import claimed, pool, writing

__all__ = ["Failure", "Sweep", "grid", "sweep"]

Point = Mapping[str, Any]


@dataclass(frozen=True)
class Failure:
    """A point that failed: the error in one line, and the traceback."""

    point: Point
    error: str
    traceback: str


@dataclass(frozen=True)
class Sweep:
    """What a sweep gives: ``points`` and ``values`` in the order of the grid, ``None`` where a point failed;
    ``failures``; ``ran`` and ``kept``, how many points were run now and found on disk.
    """

    points: tuple[Point, ...]
    values: tuple[Any, ...]
    failures: tuple[Failure, ...]
    ran: int
    kept: int

    def columns(self) -> dict[str, list[Any]]:
        """Points and values as columns of a table, one row for each point that finished; a value that is no mapping is
        called ``value``.
        """
        rows = [
            {**point, **(value if isinstance(value, Mapping) else {"value": value})}
            for point, value in zip(self.points, self.values, strict=True)
            if value is not None
        ]
        names = dict.fromkeys(name for row in rows for name in row)
        return {name: [row.get(name) for row in rows] for name in names}


def grid(**axes: Sequence[Any]) -> tuple[dict[str, Any], ...]:
    """The points of a grid, the last axis fastest.

    Parameters: the values of each axis by name. Returns: a mapping for each point.

    >>> len(grid(seed=range(3), model=["CACO", "FAFO"]))
    6
    """
    return tuple(dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values()))


def _plain(value: Any) -> Any:
    """Numbers and arrays of NumPy as Python's."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    convert = getattr(value, "tolist", None)
    return value if convert is None else convert()


def _name(function: Callable[..., Any]) -> str:
    name = getattr(function, "__qualname__", None)
    if not callable(function) or name is None or "<" in name:
        raise TypeError(
            f"function={function!r}: expected a function that a module defines, which other processes can import"
        )
    return f"{function.__module__}.{name}"


def _key(name: str, version: str, point: Point) -> str:
    try:
        text = json.dumps([name, version, _plain(point)], sort_keys=True)
    except TypeError as error:
        raise TypeError(f"point={dict(point)!r}: expected numbers, strings and lists of them ({error})") from None
    return sha256(text.encode()).hexdigest()[:32]


def _read(path: Path) -> Any:
    """The value of a finished point; None without a file, and for one that was cut short or damaged by others."""
    try:
        return json.loads(path.read_bytes())["value"]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def _content(point: Point, value: Any) -> bytes:
    return (json.dumps({"point": _plain(point), "value": _plain(value)}) + "\n").encode()


def run_point(function: Callable[..., Any], point: Point, path: Path) -> Any:
    """Run a point in a worker and keep its value, unless another one did meanwhile; returns the value."""
    with claimed(path.with_suffix(".lock")):
        value = _read(path)
        if value is not None:
            return value
        value = _plain(function(**point))
        if value is None:
            raise ValueError("the function returned None; expected a number, a mapping or a list")
        with writing():
            if path.parent.is_dir():
                write_files({path: _content(point, value)})
        return value


def sweep(
    function: Callable[..., Any],
    points: Iterable[Point],
    folder: str | os.PathLike[str],
    *,
    executor: Executor | None = None,
    workers: int | None = None,
    version: str = "",
    progress: Callable[..., None] | None = None,
) -> Sweep:
    """Call a function at every point, in parallel, and keep what is finished.

    Parameters: ``function``, defined in a module, called with the entries of a point as keywords, returns what JSON
    can hold (arrays become lists) and not ``None``; ``points``, such as those of `grid`; ``folder``, where finished
    points are kept, made if missing; ``executor``, any ``concurrent.futures.Executor``, by default processes,
    ``workers`` of them (one for each core); ``version``, part of what identifies a finished point: change it when the
    function changes; ``progress``, called with (done, total, label).

    Returns: a `Sweep`. A point that raises, or whose process dies, is a `Failure` there and is tried again by the
    next sweep.

    Raises: ``TypeError`` or ``ValueError`` for a function that other processes can't import, or a point JSON can't
    hold.

    >>> import tempfile
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> points, folder = [{"x": 1, "y": 2}], tempfile.mkdtemp()
    >>> with ThreadPoolExecutor() as threads:
    ...     first = sweep(dict, points, folder, executor=threads)
    ...     again = sweep(dict, points, folder, executor=threads)
    >>> first.values, (first.ran, again.ran)
    (({'x': 1, 'y': 2},), (1, 0))
    """
    name = _name(function)
    chosen = tuple(dict(point) for point in points)
    base = Path(folder)
    base.mkdir(parents=True, exist_ok=True)
    paths = [base / f"{_key(name, version, point)}.json" for point in chosen]
    kept = {path: _read(path) for path in dict.fromkeys(paths)}
    jobs = {path: point for path, point in zip(paths, chosen, strict=True) if kept[path] is None}
    task = _Task(function, jobs, len(kept), progress)
    task.report("")
    if executor is not None:
        task.collect(executor, task.waiting())
        task.give_up(task.waiting(), "its worker was lost")
    while executor is None and task.waiting():
        with pool(workers) as own:
            whole = task.collect(own, task.waiting())
        if not whole:
            task.try_alone()
    failures = task.failed
    kept |= {path: _read(path) for path in jobs if path not in failures}
    found = tuple(failures[path] for path in kept if path in failures)
    return Sweep(chosen, tuple(kept[path] for path in paths), found, len(jobs) - len(failures), len(kept) - len(jobs))


@dataclass
class _Task:
    """The points of a sweep that are not on disk yet; ``done`` and ``failed`` fill up."""

    function: Callable[..., Any]
    jobs: dict[Path, dict[str, Any]]
    total: int
    progress: Callable[..., None] | None
    done: set[Path] = field(default_factory=set)
    failed: dict[Path, Failure] = field(default_factory=dict)

    def waiting(self) -> list[Path]:
        """The points that are neither finished nor failed."""
        return [path for path in self.jobs if path not in self.done and path not in self.failed]

    def report(self, label: str) -> None:
        """Tell how many points are finished or failed."""
        if self.progress is not None:
            self.progress(self.total - len(self.jobs) + len(self.done) + len(self.failed), self.total, label)

    def collect(self, executor: Executor, paths: Iterable[Path]) -> bool:
        """Run points; false where a process died, which ends the round."""
        futures: dict[Future[Any], Path] = {}
        broken = False
        try:
            for path in paths:
                futures[executor.submit(run_point, self.function, self.jobs[path], path)] = path
            for future in as_completed(futures):
                broken |= not self._take(future, futures[future])
        except BrokenProcessPool:
            broken = True
        finally:
            for future in futures:
                future.cancel()
        return not broken

    def _take(self, future: Future[Any], path: Path) -> bool:
        """Note the end of a point; false where its process died."""
        point = self.jobs[path]
        try:
            value = future.result()
        except (BrokenProcessPool, CancelledError):
            return False
        except Exception as error:  # whatever a point raises is its own failure
            said = "".join(traceback.format_exception(error))
            self.failed[path] = Failure(point, f"{type(error).__name__}: {error}", said)
        else:
            if _read(path) is None:
                write_files({path: _content(point, value)})
            self.done.add(path)
        self.report(str(point))
        return True

    def try_alone(self) -> None:
        """Run what was running when a process died, each in a process of its own: one that dies then has failed.

        A lock that was left behind shows what was running; without locks everything that waits may have been.
        """
        self.done |= {path for path in self.waiting() if _read(path) is not None}
        waiting = self.waiting()
        for path in [path for path in waiting if path.with_suffix(".lock").exists()] or waiting:
            with pool(1) as own:
                if not self.collect(own, [path]):
                    self.give_up([path], "its process died")

    def give_up(self, paths: Iterable[Path], reason: str) -> None:
        """Count points as failed."""
        for path in paths:
            self.failed[path] = Failure(self.jobs[path], reason, "")
            self.report(str(self.jobs[path]))
