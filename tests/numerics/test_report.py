"""The report: made from the evidence file alone, the same bytes each time, and tried in a browser."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sympy import Eq

from numerics import verify
from numerics.certificates import certificate, dump
from numerics.cli import run
from numerics.dependencies import uses
from numerics.report import report_page
from numerics.report.graph import graph_svg, layers
from numerics.report.mathml import mathml
from numerics.report.plain import anchor
from numerics.report.portrait import flow_of, kernels
from numerics.report.prose import prose
from theory import claims
from theory.registry import Claim, find
from theory.symbols import M, b

sys.path.insert(0, str(Path(__file__).parent))
from chromium import visit, with_chromium

SOME = ("attention-mass", "loss-on-line", "gradient-parallel", "flow-collapsed", "balanced-root", "rescaling-balanced")
OWN = Claim("mine <b>", Eq((M - 1) ** 2, M**2 - 2 * M + 1), title="A <script>title</script> & more")
WRONG = Claim.equal("wrong", (M + b) ** 2, M**2 + b**2, title="A wrong square")


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """Evidence without numerical checks, to be quick, of the theory and of a user, one claim refuted."""
    chosen = [replace(find(name), subject=None) for name in SOME]
    return json.loads(dump(certificate(verify([*chosen, OWN, WRONG]))))  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def page(document: dict[str, Any]) -> str:
    return report_page(document)


@pytest.fixture(scope="module")
def look(page: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    return lambda script, *flags: visit(page, script, tmp_path_factory.mktemp("browser"), *flags)


# The file ---------------------------------------------------------------------------------------------------------


def test_same_evidence_same_bytes(document: dict[str, Any], page: str) -> None:
    assert report_page(json.loads(json.dumps(document))) == page
    assert report_page(document | {"seed": 9}) != page


def test_everything_of_a_claim_is_shown(document: dict[str, Any], page: str) -> None:
    for claim in document["claims"]:
        section = page.split('<article class="claim" id="claim-')[1 + document["claims"].index(claim)]
        assert f'<span class="badge {claim["verdict"]}">' in section
        assert section.count('<li class="step">') == len(claim["derivation"])
        assert section.count("<math") >= len(claim["statement"])
        assert all(evidence["kind"] in section for evidence in claim["evidence"])
    assert "Counterexample" in page.split('id="claim-wrong"')[1]
    assert "A &lt;script&gt;title" in page
    assert "<script>title" not in page
    assert all(
        version in page for version in document["versions"].values() if version != document["versions"]["sha256"]
    )


def test_no_address_is_loaded(page: str) -> None:
    assert "default-src 'none'" in page
    assert not any(text in page for text in ("http://", "https://", "src=", "@import", "url("))


def test_command(document: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evidence, out = tmp_path / "evidence.json", tmp_path / "out"
    evidence.write_text(dump(document), encoding="utf-8")
    assert run(["report", str(evidence), "--out", str(out), "--json"]) == 1  # a claim is refuted
    told = json.loads(capsys.readouterr().out)
    assert told["verdicts"]["refuted"] == 1
    assert Path(told["file"]).stat().st_size == told["bytes"]
    assert [p.name for p in out.iterdir()] == ["report.html"]


@pytest.mark.parametrize(
    ("content", "message"),
    [("", "is empty"), ('{"format": "gradline evidence"', "no JSON"), ("{}", "no certificate"), (None, "No such file")],
)
def test_bad_files_get_one_line(content: str | None, message: str, tmp_path: Path, capsys: Any) -> None:
    evidence = tmp_path / "evidence.json"
    if content is not None:
        evidence.write_text(content, encoding="utf-8")
    assert run(["report", str(evidence), "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error
    assert not (tmp_path / "out").exists()


def test_mutants_are_shown_and_checked(document: dict[str, Any], tmp_path: Path, capsys: Any) -> None:
    mutant = {"name": "sign", "description": "a <sign> flipped", "answer": "refuted", "detail": ""}
    found = {"claims": [{"id": "loss-on-line", "mutants": [mutant, mutant]}]}
    assert "Mutants: 2 refuted" in report_page(document, found)
    assert "a &lt;sign&gt; flipped" in report_page(document, found)
    wrong = tmp_path / "mutants.json"
    wrong.write_text('{"claims": [{"id": "x", "mutants": [{}]}]}', encoding="utf-8")
    assert run(["report", "--mutants", str(wrong)]) == 2
    assert "expected a file written by gradline verify --mutants" in capsys.readouterr().err


# Its parts --------------------------------------------------------------------------------------------------------


def test_every_statement_of_the_theory_becomes_mathml() -> None:
    from theory.latex import to_latex

    for claim in claims():
        for formula in claim.stated.values():
            tree = ET.fromstring(mathml(to_latex(formula)))
            assert len(list(tree.iter())) > 1


def test_mathml_keeps_the_structure() -> None:
    tree = ET.fromstring(mathml(r"\frac{a}{b}^2+\sqrt{c_{\mathrm{OV}}}-e^{-x}"))
    assert [node.tag for node in tree][:3] == ["msup", "mo", "msqrt"]
    assert ET.fromstring(mathml(r"\begin{align*}a&=b\\c&=d\end{align*}")).find("mtable/mtr[2]/mtd[2]") is not None
    with pytest.raises(ValueError, match=r"unknown command \\unknown"):
        mathml(r"\unknown{x}")
    with pytest.raises(ValueError, match="before its end"):
        mathml(r"\frac{a}{b")


def test_prose_links_and_escapes() -> None:
    text = prose("By \\claimref{balanced-root},\n\\begin{equation*}\nx<1\n\\end{equation*}\nso $y$ \\% \\textless{}.")
    assert '<a href="#claim-balanced-root">' in text
    assert text.count("<math") == 2
    assert "% &lt;." in text


def test_uses_come_from_the_derivations() -> None:
    found = uses([find(name) for name in (*SOME, "flow-cafo", "integral-cafo")])
    assert found["flow-collapsed"] == ("gradient-parallel",)
    assert set(found["rescaling-balanced"]) == {"flow-collapsed", "balanced-root"}
    assert found["integral-cafo"] == ("flow-cafo",)
    assert found["attention-mass"] == ()
    by_words = uses([find(n) for n in ("product-flow", "balancedness", "balanced-root", "isometry-criterion")])
    assert by_words["balancedness"] == ("product-flow",)
    assert by_words["isometry-criterion"] == ("product-flow", "balanced-root")
    assert uses([find("product-flow"), replace(find("balancedness"), source="user")])["balancedness"] == ()
    without = replace(find("flow-cafo"), trace=tuple)
    assert uses([find("rescaling-balanced"), without])["flow-cafo"] == ()


def test_the_graph_has_the_lines_of_factorized_circuits() -> None:
    """Product flow, balancedness and singular values reach the claims whose steps take them."""
    found = uses(claims())
    taken = {"flow-collapsed", "balancedness", "isometry-criterion"}
    assert (set(found["rescaling-balanced"]), set(found["rescaling-imbalanced"])) == (taken, taken)
    assert found["isometry-criterion"] == ("gradient-parallel", "balanced-root")
    assert found["integral-imbalanced-ov"] == ("rescaling-imbalanced",)
    assert found["integral-fafo"] == ("flow-fafo",)
    assert {name for name, used in found.items() if not used} == {
        "attention-mass", "product-flow", "balanced-root",
    }  # fmt: skip


@pytest.mark.parametrize("gone", ["product-flow", "balancedness", "isometry-criterion"])
def test_what_a_step_does_not_take_draws_no_line(gone: str) -> None:
    """The twin: without what a step takes from a claim, the line to that claim goes, and no other."""
    claim = replace(find("rescaling-balanced"), source="user")  # nothing is taken from the words of its proof
    given = {*find(gone).stated.values(), *(step.output for step in find(gone).trace())}

    def trace() -> Any:
        return tuple(replace(s, inputs=tuple(part for part in s.inputs if part not in given)) for s in claim.trace())

    names = ("flow-collapsed", "product-flow", "balancedness", "balanced-root", "isometry-criterion")
    known = [find(name) for name in names]
    before, after = uses([claim], known)[claim.id], uses([replace(claim, trace=trace)], known)[claim.id]
    assert set(before) - set(after) == {gone}


def test_layers_and_edges() -> None:
    edges = {"a": ["b"], "b": [], "c": ["a", "b", "elsewhere"]}
    assert layers(edges) == [["b"], ["a"], ["c"]]
    entries = [{"id": k, "title": k, "verdict": "proved", "uses": v} for k, v in edges.items()]
    tree = ET.fromstring(graph_svg(entries))
    assert len(tree.findall("./g/path")) == 3
    assert [a.get("href") for a in tree.findall("a")] == ["#claim-a", "#claim-b", "#claim-c"]


def test_portrait_curves_are_level_sets_and_contours_have_the_loss() -> None:
    """The kernels fit together: the inverse of ``x``, the state at a loss."""
    at = {"M": 5.0, "b": 2.0, "K": 2.0, "N": 7.0, "m": 1.0, "n": 9.0, "gamma": 0.5, "eta_OV": 1.0, "eta_QK": 10.0}
    q = np.linspace(0.5, 9.0, 40)
    found = kernels("numpy")
    for model in ("CACO", "FAFO"):
        given = [at[name] for name in found[f"{model}_finite_flow"].arguments[2:]]
        v = found[f"{model}_finite_stop"](0.1, q, *given)
        # relative to the loss: a few roundings of exponents of size 10
        assert np.max(np.abs(found[f"{model}_finite_flow"](v, q, *given)[2] / 0.1 - 1)) < 1e-13
        x, _, _ = found[f"{model}_finite_integral"](v, q, *given)
        assert np.max(np.abs(found[f"{model}_inverse"](x) / v - 1)) < 1e-14  # two roundings
    assert flow_of("CACO", "finite") != flow_of("CACO", "infinite")


# In a browser -----------------------------------------------------------------------------------------------------

_PROBE = """
const all = [...document.querySelectorAll("article.claim")];
const shown = () => all.filter((claim) => claim.offsetParent !== null).map((claim) => claim.id);
const type = (text) => { const box = document.getElementById("search"); box.value = text;
  box.dispatchEvent(new Event("input")); };
const before = shown();
type("loss LINE"); const words = shown(); type("gamma mu_QK"); const written = shown();
type("γ μqk"); const letters = shown(); type("nothing-like-it"); const none = shown(); type("");
const box = document.querySelector('input[value="proved"]'); box.click(); const unproved = shown(); box.click();
const formulas = [...document.querySelectorAll(".claim > .formula math")].map((m) => m.getBoundingClientRect());
const links = [...document.querySelectorAll("#graph-picture a")].map((a) => a.getAttribute("href"));
const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
const named = (control) => control.labels?.length || control.textContent;
const unnamed = [...document.querySelectorAll("input, select, button")].filter((control) => !named(control));
const hash = (id) => { type("wrong"); location.hash = id; dispatchEvent(new Event("hashchange"));
  return shown().length; };
const pictures = [];
for (const model of ["CACO", "CAFO", "FACO", "FAFO"]) for (const noise of ["finite", "infinite"]) {
  document.getElementById("set-model").value = model; document.getElementById("set-noise").value = noise;
  document.getElementById("set-model").dispatchEvent(new Event("input", { bubbles: true }));
  const drawn = document.getElementById("portrait-picture");
  pictures.push([drawn.querySelectorAll("path.thin").length, drawn.querySelectorAll("path.bold, path.chosen").length,
    drawn.innerHTML.includes("NaN"), document.getElementById("portrait-said").textContent]);
}
return { before, words, written, letters, none, unproved,
  sizes: formulas.map((r) => Math.min(r.width, r.height)), links, ids,
  unnamed: unnamed.length, revealed: hash("claim-attention-mass"), pictures,
  loaded: performance.getEntriesByType("resource").map((r) => r.name),
  wide: document.documentElement.scrollWidth - innerWidth,
  levels: [...document.querySelectorAll("h1, h2, h3")].map((h) => h.tagName).join(" "),
  ground: getComputedStyle(document.body).backgroundColor, ink: getComputedStyle(document.body).color };
"""


@with_chromium
def test_in_chromium(look: Callable[..., Any], document: dict[str, Any]) -> None:
    seen = look(_PROBE)
    assert (seen.console, seen.requests) == ((), ())
    found = seen.found
    ids = [anchor(c["id"]) for c in document["claims"]]
    assert (found["before"], found["none"], found["unproved"]) == (ids, [], ["claim-wrong"])
    assert "claim-loss-on-line" in found["words"]
    assert "claim-balanced-root" not in found["words"]
    assert "claim-attention-mass" in found["written"] == found["letters"]
    assert len(found["sizes"]) > len(ids)
    assert min(found["sizes"]) > 4
    assert set(found["links"]) == {f"#{name}" for name in ids}
    assert len(found["ids"]) == len(set(found["ids"]))
    assert set(ids) <= set(found["ids"])
    assert (found["unnamed"], found["revealed"], found["loaded"]) == (0, len(ids), [])
    assert found["wide"] <= 0
    assert found["levels"].startswith("H1 H2 H2 H2 H3")
    for thin, bold, broken, said in found["pictures"]:
        assert (thin > 10, bold, broken) == (True, 2, False)
        assert "attention" in said or "not reached" in said


@with_chromium
def test_console_errors_and_requests_are_noticed(page: str, tmp_path: Path) -> None:
    without = page.replace("http-equiv", "data-none")
    seen = visit(without, "fetch('http://127.0.0.1:9/x').catch(() => 0); console.error('no'); return 1;", tmp_path)
    assert any("no" in line for line in seen.console)
    assert any("127.0.0.1:9" in address for address in seen.requests)


def _luminance(color: str) -> float:
    parts = [int(part) / 255 for part in color.removeprefix("rgb(").removesuffix(")").split(",")]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


@with_chromium
@pytest.mark.parametrize(("scheme", "dark"), [(0, True), (1, False)])
def test_both_color_schemes_on_a_phone(look: Callable[..., Any], scheme: int, dark: bool) -> None:
    script = """
      const style = (selector) => getComputedStyle(document.querySelector(selector));
      return [innerWidth, document.documentElement.scrollWidth, style("body").backgroundColor, style("body").color,
        style(".where").color, style("a").color, style(".badge.proved").color, style(".badge.proved").backgroundColor];
    """
    seen = look(script, f"--blink-settings=preferredColorScheme={scheme}", "--window-size=500,900")
    width, content, ground, ink, soft, link, badge, behind = seen.found
    assert content <= width
    assert (_luminance(ground) < 0.1) is dark
    for front, back in ((ink, ground), (soft, ground), (link, ground), (badge, behind)):
        light, low = sorted((_luminance(front), _luminance(back)), reverse=True)
        assert (light + 0.05) / (low + 0.05) >= 4.5  # WCAG 2.2, level AA
