"""What commands print: text and tables on standard output, progress on a terminal, JSON for programs."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

__all__ = ["Update", "columns", "dump_json", "plain_data", "progress_bar", "show", "speaks_unicode", "write"]

Update = Callable[..., None]

#: Width of tables that go to a file or a pipe: as wide as they need to be.
_UNLIMITED = 100_000


def columns() -> int | None:
    """Columns of the terminal, ``None`` where standard output is none."""
    if not _is_terminal(sys.stdout):
        return None
    from rich.console import Console

    return Console().width


def _is_terminal(stream: Any) -> bool:
    return bool(stream is not None and stream.isatty())


def speaks_unicode() -> bool:
    """Whether standard output can print Greek letters and the pieces of tall brackets."""
    try:
        "μα⎛√─".encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def show(*renderables: Any) -> None:
    """Print text and rich renderables; color and folding on a terminal only."""
    from rich.console import Console

    console = Console(width=columns() or _UNLIMITED, highlight=False, markup=False, emoji=False)
    with console.capture() as captured:
        for renderable in renderables:
            console.print(renderable, soft_wrap=isinstance(renderable, str))
    text = captured.get()
    write("\n".join(line.rstrip() for line in text.split("\n")) if columns() is None else text)


def write(text: str) -> None:
    """Write text to standard output, all of it now, so that a full disk or a closed pipe is noticed here."""
    if sys.stdout is not None:
        sys.stdout.write(text)
        sys.stdout.flush()


def plain_data(value: Any) -> Any:
    """Return data that strict JSON can hold: numbers of NumPy as Python's, NaN and infinities as strings."""
    if isinstance(value, Mapping):
        return {str(k): plain_data(v) for k, v in value.items()}
    if isinstance(value, (str, bool, int)) or value is None:
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    if isinstance(value, Sequence):
        return [plain_data(v) for v in value]
    item = getattr(value, "tolist", None)
    return plain_data(item()) if item is not None else str(value)


def dump_json(value: Any) -> str:
    """Return strict JSON text with a final newline.

    >>> dump_json({"loss": float("nan")})
    '{\\n  "loss": "nan"\\n}\\n'
    """
    return json.dumps(plain_data(value), indent=2, allow_nan=False) + "\n"


@contextmanager
def progress_bar(text: str) -> Iterator[Update | None]:
    """Show a progress bar on standard error while a block runs; ``None`` where that is no terminal.

    Yields a function of the amount done, the total and a label.
    """
    if not _is_terminal(sys.stderr):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    label = TextColumn("{task.fields[label]}", markup=False)
    bars = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), label
    with Progress(*bars, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(text, total=None, label="")

        def update(done: float, total: float, label: str = "") -> None:
            progress.update(task, completed=done, total=total, label=label)

        yield update
