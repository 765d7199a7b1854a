"""Generated files that were changed after they were written: their hashes against the list that lies beside them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

__all__ = ["edited_files"]

_FORMAT = "gradline latex"
_LARGEST = 10_000_000


def edited_files(read: Iterable[Path]) -> tuple[str, ...]:
    """One line for each generated file that is not as `gradline latex` wrote it.

    Parameters: ``read``, files of a paper; the lists ``*-manifest.json`` in their folders are looked at.
    Returns: what was found, sorted; files that a list names and that are not there say nothing.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "gl-a.tex").write_text("changed")
    >>> listed = {"format": "gradline latex", "version": 1, "files": {"gl-a.tex": hashlib.sha256(b"was").hexdigest()}}
    >>> _ = (folder / "gl-manifest.json").write_text(json.dumps(listed))
    >>> [line.rpartition("/")[2] for line in edited_files([folder / "paper.tex"])]
    ['gl-a.tex: generated, and changed since; set names and overrides in the notation instead']
    """
    folders = sorted({path.parent for path in read})
    manifests = [found for folder in folders for found in sorted(folder.glob("*-manifest.json"))]
    return tuple(line for found in manifests for line in _lines(found))


def _lines(manifest: Path) -> Iterator[str]:
    if not manifest.is_file() or manifest.stat().st_size > _LARGEST:
        return
    try:
        data = json.loads(manifest.read_bytes())
    except ValueError:
        yield f"{manifest}: no JSON; write it again with gradline latex"
        return
    if not isinstance(data, dict) or data.get("format") != _FORMAT:
        return
    files = data.get("files")
    if not isinstance(files, dict):
        yield f"{manifest}: no list of files; write it again with gradline latex"
        return
    for name, expected in sorted(files.items()):
        path = manifest.parent / name
        if not path.is_file() or path.resolve().parent != manifest.parent.resolve():
            continue
        if hashlib.sha256(path.read_bytes()).hexdigest() != expected:
            yield f"{path}: generated, and changed since; set names and overrides in the notation instead"
