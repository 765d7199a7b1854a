"""The graph of claims as SVG: layers from left to right, each claim to the right of those that it uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

__all__ = ["graph_svg", "layers"]

_WIDTH, _HEIGHT, _ACROSS, _DOWN, _MARGIN = 150, 42, 175, 50, 8
#: Characters in a line of a label.
_LONGEST = 17
_MARKS = {"proved": "✓", "supported": "≈", "refuted": "✗", "undecided": "?"}


def layers(uses: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Claims by the length of the longest way to them, each layer in the order of what it uses.

    >>> layers({"a": [], "b": ["a"], "c": ["a", "b"]})
    [['a'], ['b'], ['c']]
    """
    depth: dict[str, int] = {}

    def measure(name: str) -> int:
        if name not in depth:
            depth[name] = 0  # a cycle, which no certificate of this package has, ends here
            depth[name] = max((measure(other) + 1 for other in uses[name] if other in uses), default=0)
        return depth[name]

    for name in uses:
        measure(name)
    found: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for name in uses:
        found[depth[name]].append(name)
    place: dict[str, float] = {}
    for layer in found:
        layer.sort(key=lambda name: _middle(name, uses, place))
        place |= {name: i - (len(layer) - 1) / 2 for i, name in enumerate(layer)}
    return found


def _middle(name: str, uses: Mapping[str, Sequence[str]], place: Mapping[str, float]) -> float:
    """Where the claims stand that a claim uses; on average."""
    at = [place[other] for other in uses[name] if other in place]
    return sum(at) / len(at) if at else 0.0


def graph_svg(claims: Sequence[Mapping[str, Any]]) -> str:
    """The graph of the claims of an evidence file, each a link to its section.

    Parameters: ``claims``, entries with ``id``, ``title``, ``verdict`` and ``uses``.
    Returns: an ``svg`` element without styles of its own.
    """
    uses = {c["id"]: c["uses"] for c in claims}
    found = layers(uses)
    rows = max((len(layer) for layer in found), default=1)
    at = {
        name: (_MARGIN + x * _ACROSS, _MARGIN + (y + (rows - len(layer)) / 2) * _DOWN)
        for x, layer in enumerate(found)
        for y, name in enumerate(layer)
    }
    width, height = 2 * _MARGIN + (len(found) - 1) * _ACROSS + _WIDTH, 2 * _MARGIN + (rows - 1) * _DOWN + _HEIGHT
    edges = [_edge(at[other], at[name]) for name, used in uses.items() for other in used if other in at]
    nodes = [_node(c, *at[c["id"]]) for c in claims]
    return (
        f'<svg id="graph-picture" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="group" '
        'aria-label="Graph of claims: lines lead from a claim to those that use it">'
        f'<g class="edges" aria-hidden="true">{"".join(edges)}</g>{"".join(nodes)}</svg>'
    )


def _edge(start: tuple[float, float], end: tuple[float, float]) -> str:
    x, y = start[0] + _WIDTH, start[1] + _HEIGHT / 2
    to_x, to_y = end[0], end[1] + _HEIGHT / 2
    middle = (x + to_x) / 2
    tip = f"M{to_x - 6:g} {to_y - 3.5:g}L{to_x:g} {to_y:g}L{to_x - 6:g} {to_y + 3.5:g}"
    return f'<path d="M{x:g} {y:g}C{middle:g} {y:g} {middle:g} {to_y:g} {to_x:g} {to_y:g}{tip}"/>'


def _node(claim: Mapping[str, Any], x: float, y: float) -> str:
    name, verdict = escape(claim["id"]), claim["verdict"]
    lines = _lines(claim["id"])
    left, top = x + 8, y + (_HEIGHT / 2 + 5 if len(lines) == 1 else 18)
    rest = "".join(f'<tspan x="{left + 16:g}" dy="15">{escape(line)}</tspan>' for line in lines[1:])
    return (
        f'<a href="#claim-{name}" class="{verdict}"><title>{escape(claim["title"] or claim["id"])}: {verdict}</title>'
        f'<rect x="{x:g}" y="{y:g}" width="{_WIDTH}" height="{_HEIGHT}" rx="5"/>'
        f'<text x="{left:g}" y="{top:g}"><tspan class="mark">{_MARKS[verdict]}</tspan>'
        f'<tspan x="{left + 16:g}">{escape(lines[0])}</tspan>{rest}</text></a>'
    )


def _lines(name: str) -> list[str]:
    """An id in one line or in two, parted behind a hyphen; what is still too long is cut.

    >>> _lines("fixed-attention-factorized"), _lines("early-time")
    (['fixed-attention-', 'factorized'], ['early-time'])
    """
    parts = [(name[: i + 1], name[i + 1 :]) for i, c in enumerate(name) if c in "-_" and 0 < i < len(name) - 1]
    fitting = [pair for pair in parts if max(map(len, pair)) <= _LONGEST]
    if len(name) <= _LONGEST:
        lines = [name]
    elif fitting:
        lines = [*max(fitting, key=lambda pair: len(pair[0]))]
    else:
        lines = [name[:_LONGEST], name[_LONGEST:]]
    return [line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…" for line in lines]


def unknown(claims: Iterable[Mapping[str, Any]], uses: Sequence[str]) -> list[str]:
    """What is used and is not in the file."""
    known = {c["id"] for c in claims}
    return [name for name in uses if name not in known]
