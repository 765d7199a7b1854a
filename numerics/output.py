"""Files are written whole or not at all: checked before the work, written beside their place, then renamed."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Collection, Mapping
from pathlib import Path

__all__ = ["check_file", "make_folder", "write_files"]


def check_file(option: str, text: str, suffixes: Collection[str]) -> Path:
    """Return the path of a file that can be written, before anything is computed.

    Parameters: ``option``, for messages; ``text``, the path; ``suffixes``, the extensions that are understood.

    Raises: ``ValueError`` for an unknown extension, a folder that does not exist or can't be written to, or a path that
    is a folder or no regular file.

    >>> check_file("--plot", "curve.jpeg", (".pdf", ".png"))
    Traceback (most recent call last):
    ...
    ValueError: --plot=curve.jpeg: unknown extension '.jpeg'; expected .pdf or .png
    """
    given = Path(text)
    if text.endswith(("/", os.sep)) or given.is_dir():
        raise ValueError(f"{option}={text}: this is a folder; expected a file name ending in {_either(suffixes)}")
    if given.suffix.lower() not in suffixes:
        raise ValueError(f"{option}={text}: unknown extension {given.suffix!r}; expected {_either(suffixes)}")
    path = Path(os.path.realpath(given))
    folder = path.parent
    if not folder.is_dir():
        raise ValueError(f"{option}={text}: the folder {given.parent} does not exist; create it first")
    if path.exists() and not path.is_file():
        raise ValueError(f"{option}={text}: not a regular file; expected a file name ending in {_either(suffixes)}")
    if not os.access(folder, os.W_OK | os.X_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise ValueError(f"{option}={text}: no permission to write there; choose another place")
    return path


def make_folder(option: str, text: str) -> Path:
    """Return a folder that files can be written to, made if only its last part is missing.

    Raises: ``ValueError`` where that is not possible.
    """
    given = Path(os.path.realpath(text))
    if given.exists() and not given.is_dir():
        raise ValueError(f"{option}={text}: this is a file; expected a folder")
    if not given.is_dir():
        if not given.parent.is_dir():
            raise ValueError(f"{option}={text}: the folder {given.parent} does not exist; create it first")
        if not os.access(given.parent, os.W_OK | os.X_OK):
            raise ValueError(f"{option}={text}: no permission to make a folder there; choose another place")
        given.mkdir(exist_ok=True)
    if not os.access(given, os.W_OK | os.X_OK):
        raise ValueError(f"{option}={text}: no permission to write there; choose another place")
    return given


def _either(choices: Collection[str]) -> str:
    return " or ".join(choices)


def write_files(contents: Mapping[Path, bytes]) -> None:
    """Write several files, all or none: each beside its place first, then all are renamed.

    Raises: ``OSError`` where a file can't be written; what was written beside is removed.
    """
    waiting: dict[Path, Path] = {}
    try:
        for path, content in contents.items():
            beside = path.parent / f".gradline-{secrets.token_hex(6)}.part"
            waiting[beside] = path
            with beside.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        for beside, path in waiting.items():
            beside.replace(path)
    finally:
        for beside in waiting:
            with contextlib.suppress(OSError):
                beside.unlink()
