"""Reads certificates: what is no whole, well-formed certificate is refused in one line."""

from __future__ import annotations

import json
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numerics.certificates import FORMAT, VERSION

__all__ = ["load", "parse"]

_LARGEST = 1 << 28
_PLAIN = "plain data"

_OPTIONAL_TEXT = (str, type(None))
_OBLIGATION: dict[str, Any] = {
    "name": str,
    "relation": ("= 0", "> 0"),
    "srepr": str,
    "assumptions": [str],
    "decisive": bool,
    "hypotheses": [str],
    "answer": ("proved", "refuted", "undecided"),
    "how": str,
    "reason": str,
    "relied_on": [str],
    "counterexample": _PLAIN,
}
_EVIDENCE: dict[str, Any] = {
    "kind": ("symbolic", "enclosure", "instance", "autograd", "trajectory"),
    "supports": (True, False, None),
    "detail": str,
    "numbers": {str: _PLAIN},
    "parts": [str],
    "broken": [str],
}
_CLAIM: dict[str, Any] = {
    "id": str,
    "title": str,
    "text": str,
    "source": str,
    "statement": [{"name": str, "srepr": str, "latex": str}],
    "assumptions": [{"text": str, "srepr": _OPTIONAL_TEXT}],
    "obligations": [_OBLIGATION],
    "obligations_from": ("statement", "derivation"),
    "derivation": [int],
    "uses": [str],
    "evidence": [_EVIDENCE],
    "verdict": ("proved", "supported", "refuted", "undecided"),
    "sha256": str,
}
_DOCUMENT: dict[str, Any] = {
    "format": str,
    "version": int,
    "seed": int,
    "steps": [{"rule": str, "name": str, "reason": str, "latex": str}],
    "claims": [_CLAIM],
    "sha256": str,
    "versions": {str: str},
    "times": {str: _PLAIN},
}


def load(path: str | Path) -> dict[str, Any]:
    """Read a certificate from a file.

    Parameters: ``path``.
    Returns: the certificate, as `numerics.certificates.certificate` gives it.
    Raises: ``ValueError`` in one line for a file that is missing, empty, cut off, too large, no JSON, no
    certificate, or of a later version.
    """
    try:
        return parse(_content(Path(path)))
    except OSError as error:
        raise ValueError(f"{error.strerror}; expected a file written by gradline verify --json") from None


def _content(path: Path) -> bytes:
    found = path.stat()
    if stat.S_ISDIR(found.st_mode):
        raise ValueError("this is a folder; expected a file written by gradline verify --json")
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("not a regular file; expected a file written by gradline verify --json")
    if found.st_size > _LARGEST:
        raise ValueError(f"{found.st_size} bytes are too many for a certificate")
    return path.read_bytes()


def parse(content: bytes) -> dict[str, Any]:
    """Read a certificate from bytes.

    Raises: ``ValueError`` in one line, as `load`.

    >>> parse(b'{"format": "gradline evidence", "version": 2}')
    Traceback (most recent call last):
    ...
    ValueError: certificate of version 2; this gradline reads version 1, a newer one may read it
    """
    document = _strict_json(content)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f'no certificate of gradline: expected an object with "format": {json.dumps(FORMAT)}')
    written = document.get("version")
    if type(written) is int and written > VERSION:
        raise ValueError(
            f"certificate of version {written}; this gradline reads version {VERSION}, a newer one may read it"
        )
    if written != VERSION or type(written) is not int:
        raise ValueError(f"certificate of version {written!r}; expected {VERSION}")
    _check(document, _DOCUMENT, "")
    _check_names(document)
    _check_steps(document)
    return document


def _strict_json(content: bytes) -> Any:
    if not content.strip():
        raise ValueError("the file is empty; expected a certificate")
    try:
        return json.loads(content.decode(), object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)
    except UnicodeDecodeError as error:
        raise ValueError(f"no UTF-8 text: byte {error.start} is wrong; cut off or changed?") from None
    except json.JSONDecodeError as error:
        raise ValueError(
            f"no JSON: {error.msg} in line {error.lineno}, column {error.colno}; cut off or changed?"
        ) from None
    except RecursionError:
        raise ValueError("no certificate of gradline: nested too deep") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [key for key, _ in pairs]
        twice = next(key for key in names if names.count(key) > 1)
        raise ValueError(f"the key {twice!r} is given twice in one object")
    return found


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no number of strict JSON")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"the number {text[:30]} is beyond double precision")
    return value


def _check(value: Any, shape: Any, place: str) -> None:
    """Compare data with a shape: a type, a tuple of types or values, ``[shape]``, ``{key: shape}`` or
    ``{str: shape}`` for any keys.
    """
    if shape is _PLAIN:
        return
    if isinstance(shape, list):
        _expect(isinstance(value, list), place, "a list", value)
        for position, item in enumerate(value):
            _check(item, shape[0], f"{place}[{position}]")
    elif isinstance(shape, Mapping):
        _expect(isinstance(value, dict), place, "an object", value)
        _check_keys(value, shape, place)
        for key, item in value.items():
            _check(item, shape[str] if str in shape else shape[key], f"{place}.{key}".lstrip("."))
    elif isinstance(shape, tuple):
        fits = any(type(value) is x if isinstance(x, type) else type(value) is type(x) and value == x for x in shape)
        wanted = " or ".join("text" if x is str else json.dumps(x) for x in shape if x is not type(None))
        _expect(fits, place, wanted, value)
    else:
        names = {str: "text", int: "an integer", bool: "true or false"}
        _expect(type(value) is shape, place, names[shape], value)


def _check_keys(value: Mapping[str, Any], shape: Mapping[Any, Any], place: str) -> None:
    if str in shape:
        return
    where = place or "the certificate"
    missing = sorted(set(shape) - set(value))
    if missing:
        raise ValueError(f"{where} has no {missing[0]!r}; cut off or changed?")
    unknown = sorted(set(value) - set(shape))
    if unknown:
        raise ValueError(f"{where} has an unknown key {unknown[0]!r}; expected {', '.join(sorted(shape))}")


def _expect(fits: bool, place: str, wanted: str, value: Any) -> None:
    if not fits:
        shown = json.dumps(value)
        raise ValueError(f"{place or 'the certificate'}: expected {wanted}, found {shown[:40]}")


def _check_names(document: Mapping[str, Any]) -> None:
    """Claims, formulas of a claim and kinds of evidence are given once each."""
    lists: list[tuple[str, list[str]]] = [("claims", [claim["id"] for claim in document["claims"]])]
    for claim in document["claims"]:
        lists.append((f"statement of {claim['id']}", [f["name"] for f in claim["statement"]]))
        lists.append((f"evidence of {claim['id']}", [e["kind"] for e in claim["evidence"]]))
    for where, names in lists:
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ValueError(f"{where}: {twice[0]!r} is given twice")


def _check_steps(document: Mapping[str, Any]) -> None:
    """Derivations have steps that are there, numbered as they first occur; each step differs and is used."""
    count = len(document["steps"])
    for claim in document["claims"]:
        wrong = [number for number in claim["derivation"] if not 0 <= number < count]
        if wrong:
            raise ValueError(f"derivation of {claim['id']}: no step {wrong[0]}; the file has {count}")
    first = list(dict.fromkeys(number for claim in document["claims"] for number in claim["derivation"]))
    if first != list(range(count)):
        place = next((k for k, number in enumerate(first) if k != number), len(first))
        raise ValueError(f"steps: step {place} is not used in its turn by the derivations; cut out or changed?")
    if len({tuple(sorted(step.items())) for step in document["steps"]}) < count:
        raise ValueError("steps: one step is given twice")
