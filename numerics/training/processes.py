"""Independent runs in a few processes, each with one thread: small matrices gain nothing from more.

Source: none, plumbing.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, TypeVar

__all__ = ["PROCESSES", "Job", "run_jobs"]

#: As many as the figures of the paper gain from.
PROCESSES = min(2, os.cpu_count() or 1)

Result = TypeVar("Result")
#: A function of a module, its positional arguments and its keywords.
Job = tuple[Callable[..., Result], tuple[Any, ...], dict[str, Any]]


def _start() -> None:
    """One thread; end without a word when interrupted, the first process speaks for all."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"


def _call(job: Job[Result]) -> Result:
    work, arguments, keywords = job
    return work(*arguments, **keywords)


def run_jobs(jobs: Sequence[Job[Result]], processes: int, report: Callable[[int], None] | None = None) -> list[Result]:
    """Return the results of the jobs, in order; with one process they run here.

    Parameters: ``jobs``, functions of modules with arguments and results that can be pickled, the longest first;
    ``processes``, at least 1; ``report``, called with the number of finished jobs.

    >>> run_jobs([(divmod, (7, 2), {}), (round, (0.26,), {"ndigits": 1})], 1)
    [(3, 1), 0.3]
    """
    if processes < 1:
        raise ValueError(f"processes={processes}: expected at least 1")
    tell = report or (lambda done: None)
    tell(0)
    if min(processes, len(jobs)) <= 1:
        found = []
        for job in jobs:
            found.append(_call(job))
            tell(len(found))
        return found
    with ProcessPoolExecutor(min(processes, len(jobs)), get_context("spawn"), _start) as pool:
        tasks = [pool.submit(_call, job) for job in jobs]
        try:
            for done, task in enumerate(tasks, 1):
                task.result()
                tell(done)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        return [task.result() for task in tasks]
