"""Texts of claims, written with names such as ``mu_QK`` and ``e^(-alpha)``, as HTML with sub- and superscripts.

>>> print(plain("||E_QK||^2 >= 2 sigma |mu| & N = oo"))
‖E<sub>QK</sub>‖<sup>2</sup> ≥ 2 σ |μ| &amp; N = ∞
"""

from __future__ import annotations

import re
from html import escape

from numerics.report.mathml import GREEK

__all__ = ["anchor", "plain"]

_SIGNS = {">=": "≥", "<=": "≤", "->": "→", "||": "‖", "oo": "∞", "sqrt(": "√("}
_LETTERS = "|".join(sorted(GREEK, key=len, reverse=True))
_TOKEN = re.compile(
    rf"(?<![A-Za-z_\\])(?P<letter>{_LETTERS}|[A-Za-z](?=_))(?P<power>\d)?(?:_(?P<below>[A-Za-z0-9]+))?(?![A-Za-z_])"
    r"|\^(?P<above>T\b|-?\d+|[A-Za-z](?![A-Za-z]))"
    r"|(?P<open>\^\()|(?P<sign>>=|<=|->|\|\||(?<![A-Za-z])oo(?![A-Za-z])|(?<![A-Za-z])sqrt\()"
)


def plain(text: str, depth: int = 4) -> str:
    """A text with its symbols set, exponents to some depth; everything else is escaped."""
    parts, at = [], 0
    while (found := _TOKEN.search(text, at)) is not None:
        parts.append(escape(text[at : found.start()]))
        at = found.end()
        if found["open"]:
            end = _closing(text, at) if depth else None
            if end is None:
                parts.append("^(")
            else:
                parts.append(f"<sup>{plain(text[at:end], depth - 1)}</sup>")
                at = end + 1
        else:
            parts.append(_set(found))
    return "".join([*parts, escape(text[at:])])


def anchor(claim_id: str) -> str:
    """The id of a claim's section, of letters that mean themselves in addresses and in lists of ids.

    >>> anchor("flow-cafo"), anchor("50% <b>")
    ('claim-flow-cafo', 'claim-50.25..20..3c.b.3e.')
    """
    return "claim-" + re.sub(r"[^A-Za-z0-9_-]", lambda found: f".{ord(found[0]):x}.", claim_id)


def _set(found: re.Match[str]) -> str:
    if found["sign"]:
        return _SIGNS[found["sign"]]
    if found["above"]:
        return f"<sup>{'⊤' if found['above'] == 'T' else found['above'].replace('-', '−')}</sup>"
    power = f"<sup>{found['power']}</sup>" if found["power"] else ""
    below = f"<sub>{found['below']}</sub>" if found["below"] else ""
    return GREEK.get(found["letter"], found["letter"]) + power + below


def _closing(text: str, at: int) -> int | None:
    """Where the bracket closes that was opened before a place."""
    depth = 1
    for i in range(at, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return i
    return None
