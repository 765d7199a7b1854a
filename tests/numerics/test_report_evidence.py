"""Reports of anybody's evidence: own claims of all verdicts, and files that were changed or mean harm."""

from __future__ import annotations

import copy
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from sympy import Abs, Gt, Symbol, exp, sin

from numerics import verify
from numerics.certificate_reader import parse
from numerics.certificates import certificate, dump
from numerics.cli import run
from numerics.report import report_page
from numerics.report.graph import layers
from numerics.report.plain import anchor
from numerics.report.prose import formula_html
from theory import AttentionModel, Claim, TokenTask, derive
from theory.symbols import M, b, eta_OV, mu_OV

sys.path.insert(0, str(Path(__file__).parent))
from chromium import visit, with_chromium

HARM = "\"'><img src=x onerror=hacked()><script>window.hacked=1</script></script>${hacked()}`&amp;\\claimref{<b>}"


def own_claims() -> list[Claim]:
    """As somebody writes them, with each verdict: what holds, what does not, and two beyond the decision procedures."""
    flow, x = derive(AttentionModel(TokenTask(noise=2))), Symbol("x", real=True)
    share = flow.attention
    start = flow.velocity["mu_OV"].xreplace({mu_OV: 0})
    return [
        Claim.equal("at-the-origin", eta_OV * share / (b * M), start, title="Speed at the origin"),
        Claim.equal("50% of it?", 2 * eta_OV * share / (b * M), start, title="Twice & <wrong>"),
        Claim("only-enclosed", Gt(sin(x) + exp(-(x**2)) + 2, 0), title="Beyond the procedures"),
        Claim("never-decided", Gt(Abs(x) + x + exp(-exp(exp(x**2 + 9))), 0), title="Too small to see"),
    ]


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return json.loads(dump(certificate(verify(own_claims()))))  # type: ignore[no-any-return]


def _section(page: str, claim_id: str) -> str:
    return page.split(f'id="{anchor(claim_id)}"')[1].partition("</article>")[0]


def test_own_claims_of_all_verdicts(document: dict[str, Any]) -> None:
    verdicts = {c["id"]: c["verdict"] for c in document["claims"]}
    assert tuple(verdicts.values()) == ("proved", "refuted", "supported", "undecided")
    page = report_page(document)
    for name, verdict in verdicts.items():
        section = _section(page, name)
        assert f'<span class="badge {verdict}">{verdict}</span>' in section
        assert "<math" in section
        assert "Assumes" in section
        assert "gradline verify --claim" not in section  # the command knows only the claims of the library
        assert re.search(rf'<a href="#{re.escape(anchor(name))}" class="{verdict}"', page)
        assert "Eq(" not in section.partition("<details")[0]  # the formula is shown, so its text in Python is not
    assert "No derivation here uses another claim" in page
    assert 'class="large"' not in page
    wrong = _section(page, "50% of it?")
    assert "<strong>Counterexample</strong>" in wrong
    assert "Twice &amp; &lt;wrong&gt;" in wrong
    assert "<strong>Counterexample</strong>" not in _section(page, "never-decided")


def test_the_command_says_what_it_found(document: dict[str, Any], tmp_path: Path, capsys: Any) -> None:
    for kept, code in (((0, 2), 0), ((0, 1, 2, 3), 1), ((0, 3), 3)):
        file = tmp_path / "evidence.json"
        file.write_text(json.dumps(document | {"claims": [document["claims"][i] for i in kept]}), encoding="utf-8")
        assert run(["report", str(file), "--out", str(tmp_path)]) == code
        assert capsys.readouterr().err == ""


def test_no_claim_at_all(document: dict[str, Any]) -> None:
    page = report_page(document | {"claims": []})
    assert "0 of 0 claims shown" in page
    assert "<article" not in page


# Changed files ----------------------------------------------------------------------------------------------------


def _without(key: str) -> Callable[[dict[str, Any]], Any]:
    return lambda document: document["claims"][0].pop(key)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(version=2), "certificate of version 2"),
        (lambda d: d.update(version="1"), "expected 1"),
        (lambda d: d.update(format="another"), "no certificate of gradline"),
        (lambda d: d.update(more=1), "unknown key 'more'"),
        (lambda d: d["claims"][0].update(color="red"), "unknown key 'color'"),
        (_without("verdict"), "has no 'verdict'"),
        (lambda d: d["claims"][0].update(verdict="certain"), 'expected "proved" or'),
        (lambda d: d["claims"][0].update(derivation=[99]), "no step 99"),
        (lambda d: d["claims"][0].update(uses="x"), "expected a list"),
        (lambda d: d["claims"].append(d["claims"][0]), "claims: 'at-the-origin' is given twice"),
    ],
)
def test_changed_files_get_one_line(
    document: dict[str, Any], change: Callable[[dict[str, Any]], Any], message: str, tmp_path: Path, capsys: Any
) -> None:
    changed, file = copy.deepcopy(document), tmp_path / "evidence.json"
    change(changed)
    file.write_text(json.dumps(changed), encoding="utf-8")
    assert run(["report", str(file), "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("part", [0.1, 0.5, 0.999])
def test_a_file_that_was_cut_off_gets_one_line(
    document: dict[str, Any], part: float, tmp_path: Path, capsys: Any
) -> None:
    text, file = dump(document).strip(), tmp_path / "evidence.json"
    file.write_text(text[: int(part * len(text))], encoding="utf-8")
    assert run(["report", str(file), "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "cut off" in error


# Files that mean harm ---------------------------------------------------------------------------------------------


def _texts(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to all texts, and to the data that may be of any kind."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _texts(part, (*way, key))
    elif isinstance(value, list):
        for i, part in enumerate(value):
            yield from _texts(part, (*way, i))
    elif isinstance(value, str) or value is None:
        yield way


def _changed(document: dict[str, Any], way: tuple[Any, ...], value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(document)
    place: Any = changed
    for key in way[:-1]:
        place = place[key]
    place[way[-1]] = value
    return changed


def _accepted(document: dict[str, Any]) -> bool:
    try:
        parse(json.dumps(document).encode())
    except ValueError:
        return False
    return True


class _Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: Counter[str] = Counter()
        self.bad: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen[tag] += 1
        self.bad += [f"{tag} {n}={v}" for n, v in attrs if n.startswith("on") or n in ("src", "srcdoc", "action")]
        self.bad += [f"{tag} {v}" for n, v in attrs if n == "href" and v and not v.startswith(("#", "data:,"))]


@pytest.fixture(scope="module")
def harmful(document: dict[str, Any]) -> dict[str, Any]:
    """Harm in every text at once that a certificate may have."""
    changed = document
    for way in _texts(document):
        attempt = _changed(changed, way, f"{HARM}{len(way)}{way[1] if len(way) > 1 else ''}")
        if _accepted(attempt):
            changed = attempt
    return changed


def test_harm_is_shown_as_text(document: dict[str, Any], harmful: dict[str, Any]) -> None:
    assert dump(harmful).count("hacked=1") > 50
    before, after = _Tags(report_page(document)), _Tags(report_page(harmful))
    assert (before.bad, after.bad) == ([], [])
    assert after.seen["script"] == before.seen["script"]
    assert set(after.seen) <= set(before.seen) | {"code"}
    assert _Tags(f"<p>{HARM}</p>").bad == ["img src=x", "img onerror=hacked()"]


@with_chromium
def test_harm_does_nothing_in_a_browser(harmful: dict[str, Any], tmp_path: Path) -> None:
    links = "[...document.querySelectorAll('#graph-picture a')].map((a) => a.getAttribute('href').slice(1))"
    script = (
        f"return [typeof window.hacked, document.images.length, {links}.every((id) => document.getElementById(id))];"
    )
    seen = visit(report_page(harmful), script, tmp_path)
    assert (seen.found, seen.console, seen.requests) == (["undefined", 0, True], (), ())


@pytest.mark.parametrize("odd", [[], {}, 1, "odd", None, [[1, {"a": []}]], {"point": {"x": [1]}, "enclosure": 3}])
def test_data_of_any_kind_is_shown(document: dict[str, Any], odd: Any) -> None:
    """What a certificate holds as plain data: counterexamples and figures."""
    claims = document["claims"]
    ways: list[tuple[Any, ...]] = [
        ("claims", i, "obligations", j, "counterexample")
        for i, c in enumerate(claims)
        for j in range(len(c["obligations"]))
    ]
    ways += [("claims", i, "evidence", 0, "numbers", "obligations") for i in range(len(claims))]
    for way in ways:
        changed = _changed(document, way, odd)
        assert _accepted(changed)
        assert "</html>" in report_page(changed)


def test_odd_formulas_are_shown_as_they_are(document: dict[str, Any]) -> None:
    for text in (
        "",
        "Integer(",
        "Symbol('x')**" * 3,
        "__import__('os')",
        "(" * 500,
        "1/0",
        "Pow(Integer(0), Integer(-1))",
    ):
        for key in ("srepr", "latex"):
            changed = _changed(document, ("claims", 0, "statement", 0, key), text)
            if _accepted(changed):
                assert "</html>" in report_page(changed)


def _nested(depth: int) -> Any:
    found: Any = 1
    for _ in range(depth):
        found = [found]
    return found


@pytest.mark.parametrize(
    ("way", "value"),
    [
        (("uses",), ["50% of it?", "at-the-origin", "elsewhere"]),
        (("text",), "x^(" * 3000 + ")" * 3000),
        (("title",), "^(" * 3000),
        (("evidence", 0, "numbers", "deep"), _nested(400)),
    ],
)
def test_circles_and_depth_do_no_harm(document: dict[str, Any], way: tuple[Any, ...], value: Any) -> None:
    changed = _changed(document, ("claims", 0, *way), value)
    changed["claims"][1]["uses"] = ["at-the-origin"]
    assert _accepted(changed)
    page = report_page(changed)
    assert page.count('<g class="edges" aria-hidden="true"><path') == 1
    assert "</html>" in page


def test_a_long_chain_of_uses() -> None:
    """Longer than Python's stack is deep."""
    names = [f"c{i}" for i in range(1500)]
    found = layers({name: names[i - 1 : i] for i, name in enumerate(names)})
    assert found == [[name] for name in names]
    assert layers({"a": ["b"], "b": ["a"], "c": ["c"]}) == [["b", "c"], ["a"]]


def test_deep_formulas_are_shown_as_they_are() -> None:
    for text in ("{" * 5000, "x^{" * 5000 + "}" * 5000):
        assert formula_html(text).startswith(("<code>", "<math"))
