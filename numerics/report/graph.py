"""The graph of claims as SVG: layers from left to right, each claim to the right of those that it uses.

A layer is as wide as its names, which break at a hyphen; a line over several layers keeps a lane of its own between the
boxes of each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from numerics.report.plain import anchor

__all__ = ["graph_svg", "layers"]

_LETTER, _LINE, _PAD, _LANE, _BETWEEN, _ACROSS, _MARGIN = 7.7, 15, 7, 10, 8, 38, 8
#: What is wider than the least width of the picture in the style is shrunk to a screen, but not below that.
_PAGE = 1056
#: Characters in a line of a label.
_LONGEST = 17
_MARKS = {"proved": "✓", "supported": "≈", "refuted": "✗", "undecided": "?"}

#: A claim, or the lane of the lines from a claim through a layer.
Place = tuple[str, int | None]


@dataclass(frozen=True)
class _Box:
    """Where a claim or a lane is: left edge, right edge, top and height."""

    left: float
    right: float
    top: float
    height: float

    @property
    def middle(self) -> float:
        return self.top + self.height / 2


def layers(uses: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Claims by the length of the longest way to them.

    >>> layers({"a": [], "b": ["a"], "c": ["a", "b"]})
    [['a'], ['b'], ['c']]
    """
    depth: dict[str, int] = {}
    for first in uses:
        way = [first]
        while way:
            name = way[-1]
            known = [other for other in uses[name] if other in uses]
            # what is on the way already is a cycle, which no certificate of this package has: left out
            open_ = [other for other in known if other not in depth and other not in way]
            if name not in depth and open_:
                way.append(open_[0])
            else:
                depth.setdefault(name, max((depth[other] + 1 for other in known if other in depth), default=0))
                way.pop()
    found: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for name in uses:
        found[depth[name]].append(name)
    return found


def _before(place: Place, depth: Mapping[str, int], uses: Mapping[str, Sequence[str]]) -> list[Place]:
    """What a claim or a lane is joined to in the layer before."""
    name, layer = place
    if layer is not None:
        return [(name, None if depth[name] == layer - 1 else layer - 1)]
    return [
        (o, None if depth[o] == depth[name] - 1 else depth[name] - 1) for o in uses[name] if _is_before(o, name, depth)
    ]


def _is_before(used: str, name: str, depth: Mapping[str, int]) -> bool:
    """Whether a line is drawn: not to what the file lacks, nor back along a cycle, which no certificate has."""
    return used in depth and depth[used] < depth[name]


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


def _columns(uses: Mapping[str, Sequence[str]], depth: Mapping[str, int]) -> list[list[Place]]:
    """The claims of each layer, and the lanes through it."""
    last = dict(depth)
    for name, used in uses.items():
        for other in used:
            if other in depth:
                last[other] = max(last[other], depth[name])
    return [
        [(name, None) for name in uses if depth[name] == i]
        + [(name, i) for name in uses if depth[name] < i < last[name]]
        for i in range(max(depth.values(), default=-1) + 1)
    ]


def _boxes(uses: Mapping[str, Sequence[str]], depth: Mapping[str, int]) -> dict[Place, _Box]:
    """The places of claims and lanes, each near the middle of what it is joined to before."""
    columns = _columns(uses, depth)
    tall = max((_height(column) for column in columns), default=0.0)
    boxes: dict[Place, _Box] = {}
    left: float = _MARGIN
    for column in columns:
        means = {p: _mean([boxes[b].middle for b in _before(p, depth, uses) if b in boxes], 0.0) for p in column}
        column.sort(key=means.__getitem__)
        high = _height(column)
        top = _MARGIN + min(max(_mean(list(means.values()), 0.0) - high / 2 - _MARGIN, 0.0), tall - high)
        letters = max(len(line) for name, lane in column if lane is None for line in _lines(name))
        right = left + letters * _LETTER + 2 * _PAD + 18
        for place in column:
            boxes[place] = _Box(left, right, top, _high(place))
            top += _high(place) + _BETWEEN
        left = right + _ACROSS
    return boxes


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _high(place: Place) -> float:
    return _LANE if place[1] is not None else _LINE * len(_lines(place[0])) + 2 * _PAD - 4


def _height(column: Sequence[Place]) -> float:
    return sum(_high(place) + _BETWEEN for place in column) - _BETWEEN


def graph_svg(claims: Sequence[Mapping[str, Any]]) -> str:
    """The graph of the claims of an evidence file, each a link to its section.

    Parameters: ``claims``, entries with ``id``, ``title``, ``verdict`` and ``uses``.
    Returns: an ``svg`` element without styles of its own.
    """
    uses = {c["id"]: c["uses"] for c in claims}
    depth = {name: i for i, layer in enumerate(layers(uses)) for name in layer}
    boxes = _boxes(uses, depth)
    width = _MARGIN + max((box.right for box in boxes.values()), default=0.0)
    height = _MARGIN + max((box.top + box.height for box in boxes.values()), default=0.0)
    large = ' class="large"' if width > _PAGE else ""
    edges = [
        _edge([boxes[o, None], *(boxes[o, i] for i in range(depth[o] + 1, depth[name])), boxes[name, None]])
        for name, used in uses.items()
        for o in used
        if _is_before(o, name, depth)
    ]
    nodes = [_node(c, boxes[c["id"], None], uses[c["id"]]) for c in claims]
    return (
        f'<svg id="graph-picture"{large} viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
        'role="group" aria-label="Graph of claims: lines lead from a claim to those that use it">'
        f'<g class="edges" aria-hidden="true">{"".join(edges)}</g>{"".join(nodes)}</svg>'
    )


def _edge(way: Sequence[_Box]) -> str:
    """A line from the first box to the last, through the lanes between, with a tip."""
    start, end = way[0], way[-1]
    text, x, y = f"M{start.right:g} {start.middle:g}", start.right, start.middle
    for box in way[1:]:
        middle = (x + box.left) / 2
        text += f"C{middle:g} {y:g} {middle:g} {box.middle:g} {box.left:g} {box.middle:g}"
        if box is not end:
            text += f"H{box.right:g}"
        x, y = box.right, box.middle
    tip = f"M{end.left - 6:g} {end.middle - 3.5:g}L{end.left:g} {end.middle:g}L{end.left - 6:g} {end.middle + 3.5:g}"
    return f'<path d="{text}{tip}"/>'


def _node(claim: Mapping[str, Any], box: _Box, used: Sequence[str]) -> str:
    name, verdict = escape(claim["id"]), claim["verdict"]
    said = f"{claim['title'] or claim['id']}: {verdict}" + (f"; uses {', '.join(used)}" if used else "")
    lines = "".join(
        f'<tspan x="{box.left + _PAD + 16:g}" y="{box.top + _PAD + 9 + i * _LINE:g}">{escape(line)}</tspan>'
        for i, line in enumerate(_lines(claim["id"]))
    )
    return (
        f'<a href="#{anchor(claim["id"])}" class="{verdict}" aria-label="{name}, {escape(said)}">'
        f"<title>{escape(said)}</title>"
        f'<rect x="{box.left:g}" y="{box.top:g}" width="{box.right - box.left:g}" height="{box.height:g}" rx="5"/>'
        f'<text><tspan class="mark" x="{box.left + _PAD:g}" y="{box.top + _PAD + 9:g}">{_MARKS[verdict]}</tspan>{lines}'
        "</text></a>"
    )
