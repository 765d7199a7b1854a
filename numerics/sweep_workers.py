"""Workers of a sweep: a lock for each running point, processes that end with the one that started them."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

__all__ = ["claimed", "pool", "writing"]

_WRITING = threading.Lock()


@contextlib.contextmanager
def claimed(path: Path) -> Iterator[None]:
    """Hold the lock of a point while a block runs; wait for it where another process has it.

    The system frees it when its holder dies; the file that is then left behind says which point that was. Where there
    are no such locks, or no such folder, the block runs without.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    if not path.parent.is_dir():
        yield
        return
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            with contextlib.suppress(FileNotFoundError):
                path.unlink()


@contextlib.contextmanager
def writing() -> Iterator[None]:
    """Keep a process whose parent died alive until what is finished is written."""
    with _WRITING:
        yield


def _end_with_parent() -> None:
    """End this process when its parent does, though not while it writes."""
    from multiprocessing import parent_process
    from multiprocessing.connection import wait

    parent = parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait([parent.sentinel])
        with _WRITING:
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def pool(workers: int | None) -> ProcessPoolExecutor:
    """Processes that share nothing with this one, and end with it."""
    from multiprocessing import get_context

    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        raise ValueError(f"workers={workers!r}: expected an integer of at least 1")
    return ProcessPoolExecutor(workers or os.cpu_count(), get_context("spawn"), _end_with_parent)
