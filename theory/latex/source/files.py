"""LaTeX files as text."""

from __future__ import annotations

from pathlib import Path

from theory.latex.source.tokens import LatexError, Place

__all__ = ["decode"]

_LARGEST = 4_000_000


def decode(path: Path, shown_as: str) -> str:
    """The text of a file in UTF-8.

    Raises: `LatexError` with the place of a byte that is none; ``ValueError`` for a folder or a file that is too large;
    ``OSError`` where the file can't be read.
    """
    if path.exists() and not path.is_file():
        raise ValueError(f"{shown_as}: not a regular file; expected a LaTeX file")
    data = path.read_bytes()
    if len(data) > _LARGEST:
        raise ValueError(f"{shown_as}: {len(data)} bytes; expected a LaTeX file of at most {_LARGEST}")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        column = error.start - (before.rfind(b"\n") + 1) + 1
        place = Place(shown_as, before.count(b"\n") + 1, column)
        raise LatexError(place, f"byte 0x{data[error.start]:02x} is not UTF-8; expected a file in UTF-8") from None
