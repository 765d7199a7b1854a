"""The report can be used by everybody: labels, headings, contrast, keyboard, motion; each check can fail."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from numerics import verify
from numerics.certificates import certificate
from numerics.report import report_page
from theory.registry import Claim
from theory.symbols import M, b

sys.path.insert(0, str(Path(__file__).parent))
from chromium import visit, with_chromium

CONTROLS = ("input", "select", "button", "textarea")
#: WCAG 2.2, level AA: 4.5 for text, 3 for lines and borders that carry meaning.
TEXT, LINES = 4.5, 3.0
SCHEMES = ("light", "dark")
VERDICTS = ("proved", "supported", "refuted", "undecided")
PAIRS = [
    *((front, back, TEXT) for front in ("ink", "soft", "link", *VERDICTS) for back in ("ground", "raised")),
    *((verdict, f"{verdict}-ground", TEXT) for verdict in VERDICTS),
    *(("ink", f"{verdict}-ground", TEXT) for verdict in VERDICTS),
    *((front, "raised", TEXT) for front in ("bold", "dash")),
    *(("thin", back, LINES) for back in ("ground", "raised")),
]  # fmt: skip


@pytest.fixture(scope="module")
def page() -> str:
    found = [Claim.equal("right", (M + b) ** 2, M**2 + 2 * M * b + b**2), Claim.equal("wrong", M + b, M)]
    return report_page(certificate(verify(found)))


class _Reader(HTMLParser):
    """Tags with their attributes, and the text of each button, label, summary, link and heading."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: dict[int, str] = {}
        self._open: list[int] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag in ("button", "label", "summary", "a", "legend", "h1", "h2", "h3", "h4", "h5", "h6"):
            self._open.append(len(self.tags) - 1)
            self.texts[len(self.tags) - 1] = ""

    def handle_endtag(self, tag: str) -> None:
        if self._open and self.tags[self._open[-1]][0] == tag:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        for place in self._open:
            self.texts[place] += data


def _unlabeled(read: _Reader) -> Iterator[str]:
    """Controls without a label: one around them, one that names them, or a text of their own."""
    labels = {a["for"] for i, (tag, a) in enumerate(read.tags) if tag == "label" and "for" in a and read.texts[i]}
    for i, (tag, attrs) in enumerate(read.tags):
        before, around = read.tags[i - 1]
        inside = before == "label" and "for" not in around and read.texts[i - 1]
        text = tag == "button" and read.texts[i].strip()
        if tag in CONTROLS and not (attrs.get("id") in labels or attrs.get("aria-label") or inside or text):
            yield f"no label: {tag} {attrs}"


def problems(page: str) -> list[str]:
    """What keeps people out, from the HTML alone."""
    read = _Reader(page)
    found = list(_unlabeled(read))
    levels = [int(tag[1]) for tag, _ in read.tags if re.fullmatch(r"h[1-6]", tag)]
    found += [f"heading jumps from {a} to {b}" for a, b in pairwise(levels) if b > a + 1]
    found += [] if levels.count(1) == 1 else [f"{levels.count(1)} headings of level 1"]
    found += [] if any(tag == "html" and attrs.get("lang") for tag, attrs in read.tags) else ["no language"]
    ids = [attrs["id"] for _, attrs in read.tags if "id" in attrs]
    found += [f"id given twice: {name}" for name in set(ids) if ids.count(name) > 1]
    for i, (tag, attrs) in enumerate(read.tags):
        named = attrs.get("aria-label") or attrs.get("aria-labelledby")
        if tag == "svg" and not (attrs.get("role") and named):
            found.append("svg without a text")
        if tag in ("a", "summary") and not (attrs.get("aria-label") or read.texts[i].strip()):
            found.append(f"{tag} without a text")
        if tag == "a" and attrs.get("href", "#")[1:] not in ("", *ids):
            found.append(f"link to nothing: {attrs['href']}")
        found += [f"names nothing: {n}" for n in attrs.get("aria-labelledby", "").split() if n not in ids]
        if int(attrs.get("tabindex", "0")) > 0:
            found.append("order of stops changed")
    style = page.partition("<style>")[2].partition("</style>")[0]
    found += [] if ":focus-visible" in style and not re.search(r"outline:\s*(0|none)", style) else ["focus is not seen"]
    moving = re.findall(r"animation|transition|scroll-behavior|requestAnimationFrame|behavior:", page)
    return found + [f"moves: {word}" for word in moving]


def test_nothing_keeps_people_out(page: str) -> None:
    assert problems(page) == []
    read = _Reader(page)
    assert sum(tag in CONTROLS for tag, _ in read.tags) > 12
    assert sum(tag == "svg" for tag, _ in read.tags) == 2


@pytest.mark.parametrize(
    ("right", "wrong", "problem"),
    [
        ('<label for="set-M">', '<label for="set-none">', "no label: input"),
        ("Unfold all", "", "no label: button"),
        ('<label class="search">Search ', "<span>", "no label: input"),
        ("<h2 ", "<h4 ", "heading jumps"),
        ("<h1>", "<h2>", "0 headings of level 1"),
        (' lang="en"', "", "no language"),
        ('role="img"', "", "svg without"),
        ('id="title-claim-wrong"', "", "names nothing"),
        ('id="claim-wrong"', 'id="claim-right"', "id given twice"),
        ('href="#about"', 'href="#nowhere"', "link to nothing"),
        ("outline: 3px", "outline: none; x: 3px", "focus is not seen"),
        ("cursor: pointer", "transition: all 1s", "moves"),
    ],
)
def test_each_problem_is_noticed(page: str, right: str, wrong: str, problem: str) -> None:
    assert right in page
    assert any(problem in found for found in problems(page.replace(right, wrong)))


def _luminance(color: str) -> float:
    full = color if len(color) == 7 else "#" + "".join(c * 2 for c in color[1:])
    parts = [int(full[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    light, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _colors(page: str) -> dict[str, dict[str, str]]:
    """The variables of the three blocks of colors: light, dark, print."""
    blocks = re.findall(r":root \{(.*?)\}", page, re.DOTALL)
    return {
        scheme: dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{3,6});", block))
        for scheme, block in zip((*SCHEMES, "print"), blocks, strict=True)
    }


@pytest.mark.parametrize("scheme", [*SCHEMES, "print"])
def test_contrast(page: str, scheme: str) -> None:
    found = _colors(page)[scheme]
    low = {(a, b): contrast(found[a], found[b]) for a, b, least in PAIRS if contrast(found[a], found[b]) < least}
    assert low == {}


def test_contrast_is_that_of_the_standard() -> None:
    """Black on white has 21; the gray #767676 is the lightest with 4.5, #777777 has less."""
    assert contrast("#000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#fff") >= TEXT > contrast("#777777", "#fff")


_STOPS = """
const stops = [...document.querySelectorAll("a[href], summary, button, input, select, [tabindex='0']")]
  .filter((node) => node.tabIndex >= 0 && (node.offsetParent !== null || node.closest("svg")));
const at = (selector) => stops.indexOf(document.querySelector(selector));
const outline = (selector) => { const node = document.querySelector(selector); node.focus({ focusVisible: true });
  const style = getComputedStyle(node);
  return [document.activeElement === node, style.outlineStyle, style.outlineWidth]; };
const order = [".skip", "#graph-picture a", "#set-model", "#search", "#claim-right summary", "#claim-wrong summary"];
return { order: order.map(at),
  outlines: [".skip", "#set-M", "#search", "#unfold", "#claim-wrong summary"].map(outline),
  moves: [...document.querySelectorAll("*")].filter((node) => { const style = getComputedStyle(node);
    return style.animationName !== "none" || parseFloat(style.transitionDuration) > 0; }).length };
"""


@with_chromium
def test_keyboard_reaches_everything_in_order(page: str, tmp_path: Path) -> None:
    found: dict[str, Any] = visit(page, _STOPS, tmp_path).found
    assert found["order"] == sorted(found["order"])
    assert found["order"][0] == 0
    assert all(reached and style != "none" and float(width[:-2]) >= 2 for reached, style, width in found["outlines"])
    assert found["moves"] == 0
