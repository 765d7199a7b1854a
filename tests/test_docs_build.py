"""The built documentation: no warning, every link and anchor leads somewhere, and nothing comes from the network."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

ROOT = Path(__file__).parent.parent


class _Page(HTMLParser):
    """The anchors of a page, where its links lead, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {name: value or "" for name, value in attrs}
        self.anchors |= {known[name] for name in ("id", "name") if name in known}
        if tag == "a" and "href" in known:
            self.links.append(known["href"])
        source = known.get("href" if tag == "link" else "src", "")
        if tag in ("link", "script", "img", "iframe", "source") and known.get("rel") not in ("index", "search", "next"):
            self.loaded.append(source)


def broken(folder: Path) -> list[str]:
    """Links of the pages of a folder that lead to no file or to no anchor."""
    pages = {file.resolve(): _Page(file.read_text(encoding="utf-8")) for file in folder.rglob("*.html")}
    found = []
    for file, page in pages.items():
        for link in page.links:
            address = urlparse(link)
            if address.scheme:
                continue
            target = (file.parent / unquote(address.path)).resolve() if address.path else file
            known = pages.get(target)
            if not target.exists() or (known and address.fragment and unquote(address.fragment) not in known.anchors):
                found.append(f"{file.name}: {link}")
    return found


def fetched(folder: Path) -> list[str]:
    """What the pages of a folder load from elsewhere."""
    pages = ((file, _Page(file.read_text(encoding="utf-8"))) for file in folder.rglob("*.html"))
    return [f"{file.name}: {source}" for file, page in pages for source in page.loaded if urlparse(source).netloc]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("html")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", str(folder / "trees")]
    done = subprocess.run(
        [*command, "-b", "html", str(ROOT / "docs"), str(folder / "html")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "html"


def test_links_and_anchors(built: Path) -> None:
    assert len(list(built.rglob("*.html"))) > 40
    assert broken(built) == []


def test_nothing_comes_from_the_network(built: Path) -> None:
    assert fetched(built) == []


def test_formulas_are_mathml(built: Path) -> None:
    theory = (built / "theory.html").read_text(encoding="utf-8")
    assert theory.count("<math") > 60
    assert not re.search(r"\\\(|<script[^>]*mathjax", theory)
    shown = re.sub(r"<[^>]*>", "", theory.partition("<h1")[2])
    assert not re.search(r"\$|\\[a-z]", shown), "LaTeX that was not set"


def test_what_is_broken_is_found(tmp_path: Path) -> None:
    """The twin."""
    (tmp_path / "a.html").write_text('<a href="b.html#x">1</a><a href="b.html#y">2</a><a href="c.html">3</a>')
    (tmp_path / "b.html").write_text('<p id="x"></p><a href="#z">4</a><script src="https://cdn.example/m.js"></script>')
    assert sorted(broken(tmp_path)) == ["a.html: b.html#y", "a.html: c.html", "b.html: #z"]
    assert fetched(tmp_path) == ["b.html: https://cdn.example/m.js"]
