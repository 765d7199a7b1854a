"""The check of a paper: right equations match, wrong ones differ, and nothing wrong ever matches.

``GRADLINE_LATEX_MUTATIONS=500`` tries that many mutations in place of a few, with ``GRADLINE_LATEX_SEED`` others.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sympy import Eq, Gt, Symbol, cancel, exp

from theory import Claim
from theory.latex.check import Checked, Report, check_paper, judging
from theory.latex.check.stated import statements
from theory.latex.notation import Notation, Rate
from theory.latex.parser.equations import read_group
from theory.latex.parser.evaluate import evaluate
from theory.latex.parser.nodes import Cases
from theory.latex.parser.rows import groups_of
from theory.latex.parser.vocabulary import CONSTANT, vocabulary
from theory.latex.source.document import Display, read_paper
from theory.latex.source.tokens import LatexError, Token, shown, tokenize
from theory.registry import find
from theory.symbols import M, alpha, mu_OV, t
from theory.words import Words, matrix

PAPER = Path(__file__).parents[3] / "data" / "paper.tex"
OTHER_HAND = PAPER.with_name("paper_two.tex")
#: Equations of that paper are right up to this line.
FIRST_ERROR = OTHER_HAND.read_text(encoding="utf-8").split(r"\section{Each with one error}")[0].count("\n")

#: The change that would make each seeded error right, as far as one is found.
CHANGES = {
    "attention-mass:1": "m in place of n",
    "loss-on-line:2": "the other sign in the exponent",
    "loss-on-line:3": "M - 1 in place of M",
    "flow-collapsed:6": "- in place of +",
    "flow-published:7": "b squared",
    "flow-cafo:8": "a factor 1/2",
    "product-flow:9": "",
    "integral-caco:10": "",
    "integral-faco:11": "",
    "fixed-attention-collapsed:12": "M - 1 in place of M",
    "attention-sensitivity:13": "the other sign",
    "stopping-state:14": "- in place of +",
    "loss-rate:15": r"\eta_{\mathrm{OV}} in place of \eta_{\mathrm{QK}}",
}


@pytest.fixture(scope="module")
def report() -> Report:
    return check_paper(PAPER)


def check(folder: Path, text: str, claims: Any = None) -> tuple[Checked, ...]:
    path = folder / "paper.tex"
    path.write_text(text, encoding="utf-8")
    return check_paper(path, claims).equations


def one(folder: Path, claim: str, latex: str, claims: Any = None) -> Checked:
    (found,) = check(folder, rf"\begin{{equation}}\label{{eq:{claim}}}{latex}\end{{equation}}", claims)
    return found


def test_right_equations_match_and_seeded_errors_differ(report: Report) -> None:
    right = [e for e in report.equations if e.place.file.endswith("paper.tex")]
    wrong = [e for e in report.equations if e.place.file.endswith("wrong.tex")]
    assert (len(right), len(wrong)) == (25, 15)
    assert [(str(e.place), e.reason) for e in right if e.status != "match"] == []
    assert [(str(e.place), e.reason) for e in wrong if e.status != "differs"] == []
    assert report.exit_code == 1


def test_a_paper_in_another_hand() -> None:
    r"""Macros with arguments, ``\partial_t``, ``multline``, ``eqnarray``, ``\quad`` before conditions."""
    found = check_paper(OTHER_HAND).equations
    expected = ["match" if e.place.line < FIRST_ERROR else "differs" for e in found]
    assert [(e.status, str(e.place)) for e in found] == [
        (s, str(e.place)) for s, e in zip(expected, found, strict=True)
    ]
    assert (expected.count("match"), expected.count("differs")) == (27, 15)
    changes = [e.finding.repair.text for e in found if e.finding is not None and e.finding.repair is not None]
    assert r"\sigma_{\mathrm{QK}} in place of \sigma_{\mathrm{OV}}" in changes
    assert r"a factor 1 - \alpha" in changes


def test_differences_come_with_a_point_and_the_smallest_change(report: Report) -> None:
    for equation in report.equations:
        if equation.status != "differs" or not equation.labels:
            continue
        change = CHANGES[equation.labels[0].removeprefix("eq:")]
        assert equation.finding is not None
        found = equation.finding.repair
        assert (found.text if found else "") == change
        assert equation.finding.point or "in the theory" in equation.finding.reason
    by_label = {e.labels[0]: e.finding for e in report.equations if e.labels}
    factor = by_label["eq:integral-caco:10"]
    assert factor is not None
    assert factor.factor == "1/2 for the terms in mu_OV"
    sides = by_label["eq:loss-on-line:2"]
    assert sides is not None
    assert sides.values["left"] == sides.values["L"] != sides.values["right"]


def test_assumptions_are_shown_where_they_are_needed(report: Report) -> None:
    by_label = {e.labels[0]: e.finding for e in report.equations if e.labels}
    assert by_label["eq:flow-published"].assumptions == ("K = b, N = oo, gamma = 1",)  # type: ignore[union-attr]
    assert "mu_OV > 0" in by_label["eq:integral-cafo"].assumptions  # type: ignore[union-attr]
    assert by_label["eq:flow-collapsed:infinite"].settings == (
        "shared, N = oo",
        "per_class, N = oo",
    )  # type: ignore[union-attr]


FORMS = [
    ("loss-on-line", r"e^{-L} = \frac{1}{1+(M-1)e^{-\alpha\mu_{OV}}}", "match"),
    ("loss-on-line", r"2 L = 2\log(1+(M-1)e^{-\alpha\mu_{OV}})", "match"),
    ("loss-on-line", r"0 = L - \log(1+(M-1)e^{-\alpha\mu_{OV}})", "match"),
    ("loss-on-line", r"L = \log(1+(M-1)e^{-\ell}), \quad \ell = \alpha\mu_{OV}", "match"),
    ("loss-on-line", r"L^2 = \log(1+(M-1)e^{-\alpha\mu_{OV}})^{2}", "unparsed"),
    ("loss-on-line", r"L^2 = \log^2(1+(M-1)e^{-\alpha\mu_{OV}})", "match"),  # L is positive
    ("loss-on-line", r"\mu_{OV} L = \mu_{OV}\log(1+(M-1)e^{-\alpha\mu_{OV}})", "undecided"),  # no news at mu_OV = 0
    ("loss-on-line", r"L = L", "undecided"),
    ("loss-on-line", r"L \approx \log(1+(M-1)e^{-\alpha\mu_{OV}})", "match"),
    ("loss-on-line", r"L \approx (M-1)e^{-\alpha\mu_{OV}}", "undecided"),
    ("loss-on-line", r"L = (M-1)e^{-\alpha\mu_{OV}}", "differs"),
    ("loss-on-line", r"\alpha = \log(1+(M-1)e^{-\alpha\mu_{OV}})", "differs"),
    ("loss-on-line", r"L = \log(1+(M-1)e^{-\alpha\mu_{OV}}) = \log(1+M e^{-\alpha\mu_{OV}})", "differs"),
    (
        "loss-on-line",
        r"L = \begin{cases} \log(1+(M-1)e^{-\alpha\mu_{OV}}) & \text{if } M>2 \\ 0 & M<2\end{cases}",
        "undecided",
    ),
    ("loss-rate", r"L = \frac{(M-1)b}{\eta_{OV}t}", "undecided"),  # only the leading behavior is claimed
    ("loss-rate", r"L \sim \frac{(M-1)b}{\eta_{OV}t+1}", "undecided"),  # behaves alike, in another form
    ("loss-rate", r"L \sim \frac{(M-1)b}{\eta_{OV}t^2}", "differs"),
    ("attention-limit", r"1-\alpha \sim \frac{2}{\kappa\gamma^2\mu_{OV}^2}", "match"),
    ("attention-limit", r"1-\alpha \sim \frac{2}{\kappa\gamma\mu_{OV}^2}", "differs"),
    ("flow-collapsed", r"\frac{dL}{dt} = -\alpha\eta_{OV}", "undecided"),  # the claim says nothing about it
    ("flow-collapsed", r"\dot\mu_{OV} = \frac{x\,\alpha}{b D}", "undecided"),
    ("flow-collapsed", r"\dot\mu_{OV} = \frac{L\,\alpha}{b D}", "differs"),
    ("stopping-state", r"\mu_{OV} = \frac1\alpha\log\frac{M-1}{e^L-1}", "match"),
    ("stopping-state", r"e^{\alpha\mu_{OV}}(e^L-1) = M-1", "match"),
    ("attention-mass", r"1-\alpha = \frac{n}{m e^{\gamma\mu_{QK}}+n}", "match"),
    ("attention-mass", r"\alpha^{-1} = 1+\frac{n}{m}e^{-\gamma\mu_{QK}}", "match"),
    ("flow-collapsed", r"\frac{\dot\mu_{QK}}{\dot\mu_{OV}} = \kappa\gamma(1-\alpha)\mu_{OV}", "match"),
    (
        "flow-collapsed",
        r"\dot\alpha = \frac{\eta_{QK}\gamma^2(M-1)\alpha^2(1-\alpha)^2\mu_{OV}}{KMbD}",
        "match",
    ),
    ("flow-collapsed", r"\dot\mu_{QK} = \frac{\eta_{QK}(M-1)\alpha(1-\alpha)\mu_{OV}}{KMbD}, \quad\gamma=1", "match"),
    ("flow-collapsed", r"\dot\mu_{OV}^2 = \frac{\eta_{OV}^2\alpha^2}{b^2D^2}", "undecided"),  # -f solves it too
    (
        "flow-collapsed",
        r"\dot\mu_{OV} = \frac{\eta_{OV}}{bD(1+\frac nm e^{-\gamma\mu_{QK}})}",
        "match",
    ),
    ("balancedness", r"U^\top U - V^\top V = \text{const}", "match"),
    ("balancedness", r"U^\top U + V^\top V = \text{const}", "differs"),
    ("product-flow", r"\dot W^\top = -\eta(G^\top UU^\top + VV^\top G^\top)", "match"),
    ("integral-caco", r"\Phi(\mu_{QK})-\Phi(0) = \tfrac{\kappa\gamma}{2}\mu_{OV}^2", "match"),
    ("integral-caco", r"\Phi(\mu_{QK})-\Phi(0) = \kappa\gamma\mu_{OV}^2", "differs"),
    ("integral-caco", r"\Phi(q) = \frac{m}{n\gamma}e^{\gamma q}-q", "differs"),
    ("integral-caco", r"\Phi(\mu_{QK}) = \frac{\kappa\gamma}{2}\mu_{OV}^2 + 2C/M", "match"),
    ("integral-caco", r"\Phi(\mu_{QK}) = \frac{\kappa\gamma}{2}\mu_{OV}^2 + C\alpha", "undecided"),  # alpha moves
    ("integral-caco", r"\Phi(\mu_{QK}) = \frac{\kappa\gamma}{2}\mu_{OV}^2 + C + L", "undecided"),
    ("integral-caco", r"\Phi(\mu_{QK}) = \frac{\kappa\gamma}{2}\mu_{OV}^2 + C + \alpha", "differs"),
    ("integral-caco", r"\frac{d}{dt}\left(\frac{m}{n\gamma}\right) = 0", "undecided"),
    (  # broken before its relation, as a printer of narrow columns does
        "integral-caco",
        r"\begin{aligned} &\Phi(\mu_{QK}) \\ &\quad - \tfrac{\kappa\gamma}{2}\mu_{OV}^2 = \mathrm{const}\end{aligned}",
        "match",
    ),
    (
        "integral-caco",
        r"\begin{aligned} &\Phi(\mu_{QK}) \\ &\quad + \tfrac{\kappa\gamma}{2}\mu_{OV}^2 = \mathrm{const}\end{aligned}",
        "differs",
    ),
    ("attention-monotone", r"\dot\alpha = 0", "undecided"),
    ("noise-correction", r"L = 1", "undecided"),
]


@pytest.mark.parametrize(("claim", "latex", "status"), FORMS, ids=[f"{c}: {x}" for c, x, _ in FORMS])
def test_forms_of_an_equation(tmp_path: Path, claim: str, latex: str, status: str) -> None:
    found = one(tmp_path, claim, latex)
    assert (found.status, found.reason if found.status != status else "") == (status, "")


def test_links_are_explicit(tmp_path: Path) -> None:
    loss = r"L = \log(1+(M-1)e^{-\alpha\mu_{OV}})"
    found = check(
        tmp_path,
        "\n".join(
            [
                rf"\begin{{equation}}{loss}\label{{eq:loss-on-lime}}\end{{equation}}",
                rf"\begin{{equation*}}{loss}\end{{equation*}}",
                rf"\[{loss}\] $$x$$",
                rf"% gradline: loss-on-line{chr(10)}\[{loss}\]",
                rf"\begin{{equation}} % gradline: skip{chr(10)} k = 1 \end{{equation}}",
                r"\begin{equation} \mu = k \end{equation}",
                r"\begin{equation}\label{attention-mass} \mu = k \end{equation}",
            ]
        ),
    )
    statuses = [(e.status, e.suggestions) for e in found]
    unlinked = ("unlinked", ())
    assert statuses == [
        ("unlinked", ("loss-on-line", "stopping-state")),
        ("match", ()),
        ("skipped", ()),
        unlinked,
        ("unparsed", ()),
    ]
    assert "paper.tex" in found[-1].reason
    assert "unknown symbol k" in found[-1].reason


def test_a_label_links_a_display_that_is_not_understood(tmp_path: Path) -> None:
    (found,) = check(tmp_path, r"\begin{equation} x = \begin{a} \label{eq:loss-on-line} \end{a}\end{equation}")
    assert (found.status, found.labels) == ("unparsed", ("eq:loss-on-line",))
    (found,) = check(tmp_path, r"\begin{equation}" + "(" * 30_000 + r"\label{loss-on-line}\end{equation}")
    assert (found.status, found.claims) == ("unparsed", ("loss-on-line",))


def test_unknown_claims_are_named_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(LatexError, match=r"paper.tex:1:1: unknown claim 'loss-on-lime'; did you mean 'loss-on-line'"):
        check(tmp_path, "% gradline: loss-on-lime\n\\[ L = 1 \\]")


def test_claims_of_a_user(tmp_path: Path) -> None:
    rate = Symbol("c", real=True)
    mine = [
        Claim("mine", Eq(rate, exp(mu_OV) + M, evaluate=False)),
        Claim("bounded", Eq(rate, mu_OV, evaluate=False), assumptions=(Gt(mu_OV, 0),)),
        Claim("flow", Eq(Rate(mu_OV, t), alpha / M, evaluate=False)),
        Claim.equal("same", (M - 1) ** 2, M**2 - 2 * M + 1),
    ]
    assert one(tmp_path, "mine", r"c - M = e^{\mu_{OV}}", mine).status == "match"
    assert one(tmp_path, "flow", r"M\dot\mu_{OV} = \alpha", mine).status == "match"
    assert one(tmp_path, "flow", r"\dot\mu_{OV} = \alpha M", mine).status == "differs"
    assert one(tmp_path, "mine", r"c = e^{\mu_{OV}}", mine).status == "differs"
    bounded = one(tmp_path, "bounded", r"c^2 = |\mu_{OV}| c", mine)
    assert bounded.status == "undecided"  # c = 0 solves it too
    assert one(tmp_path, "bounded", r"c = |\mu_{OV}|", mine).finding.assumptions == ("mu_OV > 0",)  # type: ignore[union-attr]
    assert one(tmp_path, "same", r"(M-1)^2 = M^2-2M+1", mine).status == "match"
    assert one(tmp_path, "same", r"(M-1)^2 = M^2-2M", mine).status == "differs"


def test_hand_edits_of_generated_files_are_found(tmp_path: Path) -> None:
    (tmp_path / "gl-x.tex").write_text("x = y")
    (tmp_path / "gl-manifest.json").write_text(
        '{"format": "gradline latex", "files": {"gl-x.tex": "0", "gone.tex": "0"}}'
    )
    (tmp_path / "paper.tex").write_text("text")
    found = check_paper(tmp_path / "paper.tex")
    assert [line.split(": ")[0] for line in found.edited] == [str(tmp_path / "gl-x.tex")]
    assert found.exit_code == 1
    (tmp_path / "gl-manifest.json").write_text("{}")
    assert check_paper(tmp_path / "paper.tex").edited == ()


def test_every_claim_says_what_its_equations_say() -> None:
    """Each statement of a claim matches itself, so that a right equation can match."""
    for claim in ("loss-on-line", "flow-published", "stopping-state", "attention-mass"):
        for statement in statements(find(claim)):
            same = judging.compare_with(statement.quantity, statement.value, statement)
            other = judging.compare_with(statement.quantity, 2 * statement.value, statement)
            assert (same.answer, other.answer) == ("exact", "differs")


# ---- mutations -------------------------------------------------------------------------------------------------

_TEXT = r"""\alpha \muOV \muQK \etaOV \etaQK M b K N m n \gamma 2 1 + - L D = ( ) { } ^ _ \frac \log e / \cdot & \\
\left \kappa \sigma \dot t d | [ , . x \, ' \exp \sqrt c"""
_POOL = _TEXT.split()
_TWINS = {"+": "-", "-": "+", "muOV": "muQK", "muQK": "muOV", "etaOV": "etaQK", "etaQK": "etaOV"}


def mutated(tokens: tuple[Token, ...], random: Random) -> tuple[Token, ...]:
    """One mechanical change: a token away, twice, moved, replaced, put in, or turned into its twin."""
    found = list(tokens)
    at = random.randrange(len(found))
    kind = random.choice(("drop", "twice", "move", "replace", "insert", "twin"))
    new = list(tokenize(random.choice(_POOL)))
    if kind == "drop":
        del found[at]
    elif kind == "twice":
        found.insert(at, found[at])
    elif kind == "move":
        found.insert(random.randrange(len(found)), found.pop(at))
    elif kind in ("replace", "insert"):
        found[at : at + (kind == "replace")] = new
    else:
        places = [i for i, token in enumerate(found) if token.text in _TWINS]
        at = random.choice(places) if places else at
        found[at] = replace(found[at], text=_TWINS.get(found[at].text, "+"))
    return tuple(found)


class _Judge:
    """The verdict on the equations of a display, with what they say."""

    def __init__(self) -> None:
        self.stated: dict[str, Any] = {}
        self.tables: dict[int, Any] = {}

    def __call__(self, display: Display) -> list[tuple[str, Any]]:
        """Status and meaning of each linked equation; refused ones have none."""
        try:
            groups = groups_of(display)
        except LatexError:
            return []
        return [self.equation(display, group) for group in groups]

    def equation(self, display: Display, group: Any) -> tuple[str, Any]:
        parts = [part for label in group.labels for part in label.split(":")]
        claims = [note.text for note in (*group.notes, *display.notes)] or [part for part in parts if part in KNOWN]
        if not claims:
            return "unlinked", None
        words = self.tables.setdefault(id(display.macros), vocabulary(Notation(), display.macros))
        try:
            read = read_group(display, group, words)
            if claims[0] not in self.stated:
                self.stated[claims[0]] = statements(find(claims[0]))
            found = judging.judge(read, self.stated[claims[0]], words)
            return found.status, (meaning(read), found.assumptions)
        except LatexError:
            return "unparsed", None


KNOWN = {e.removeprefix("eq:").split(":")[0] for e in CHANGES} | {"integral-cafo", "flow-fafo", "balancedness"}


def meaning(parts: Any) -> Any:
    """What the equations of a row say, as values."""
    return tuple(
        tuple(None if isinstance(side, Cases) else evaluate(side) for side in chain.sides) for chain in parts.chains
    )


def same(before: Any, after: Any) -> bool:
    """Whether chains say the same: each difference of neighbors is the old one times a number or a positive symbol."""
    if len(before) != len(after) or any(len(a) != len(b) for a, b in zip(before, after, strict=True)):
        return False
    for old, new in zip(before, after, strict=True):
        for i in range(len(old) - 1):
            if not proportional(difference(old[i], old[i + 1]), difference(new[i], new[i + 1])):
                return False
    return True


def difference(left: Any, right: Any) -> Any:
    if isinstance(left, Words) or isinstance(right, Words):
        return left if right == 0 else left - right
    return None if left is None else (left - right).xreplace({CONSTANT: -CONSTANT})


def proportional(old: Any, new: Any) -> bool:
    """Whether two differences vanish together for all to see."""
    if isinstance(old, Words) and isinstance(new, Words):
        first = next(iter(old.terms))
        scale = new.terms.get(first, 0) / old.terms[first]
        flipped = Words.of({word: -c if word == ((CONSTANT.name, False),) else c for word, c in new.terms.items()})
        return bool(scale.is_nonzero) and any((found - scale * old).is_zero() for found in (new, flipped))
    if old is None or new is None or isinstance(old, Words) or isinstance(new, Words):
        return old is new
    flipped = new.xreplace({CONSTANT: -CONSTANT})  # a constant is one with either sign
    return any(found == old or bool(cancel(found / old).is_nonzero) for found in (new, flipped))


def wrong_match(before: list[tuple[str, Any]], after: list[tuple[str, Any]]) -> bool:
    """Whether an equation matches that says something else than it did, without a further assumption."""
    known = [said[0] for _, said in before if said]
    for status, said in after:
        if status in ("match", "enclosed"):
            started = any(assumption.endswith("at the start") for assumption in said[1])
            if not started and not any(same(old, said[0]) for old in known):
                return True
    return False


def test_no_mutation_matches_wrongly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "repair", lambda *_: None)  # the verdict alone is looked at
    count = int(os.environ.get("GRADLINE_LATEX_MUTATIONS", "40"))
    displays = [d for d in read_paper(PAPER).displays if d.place.file.endswith("paper.tex")]
    displays += [d for d in read_paper(OTHER_HAND).displays if d.place.line < FIRST_ERROR]
    random, judge = Random(int(os.environ.get("GRADLINE_LATEX_SEED", "20260806"))), _Judge()
    before: dict[int, Any] = {}
    statuses: list[str] = []
    for _ in range(count):
        at = random.randrange(len(displays))
        if at not in before:
            before[at] = judge(displays[at])
        changed = replace(displays[at], tokens=mutated(displays[at].tokens, random))
        after = judge(changed)
        assert not wrong_match(before[at], after), shown(changed.tokens)
        statuses += [status for status, _ in after]
    assert statuses.count("differs") > count // 10
    assert "match" in statuses  # a blank or a pair of braces more changes nothing


def test_a_wrong_match_would_be_noticed() -> None:
    before = [("match", (((alpha, mu_OV),), ()))]
    assert not wrong_match(before, [("match", (((2 * alpha, 2 * mu_OV),), ())), ("differs", (((alpha, M),), ()))])
    assert wrong_match(before, [("match", (((alpha, -mu_OV),), ()))])
    assert wrong_match(before, [("match", (((alpha * mu_OV, mu_OV**2),), ()))])
    words = matrix("U") @ matrix("V")
    assert not wrong_match([("match", (((words, 0),), ()))], [("match", (((2 * words, 0),), ()))])
    assert wrong_match([("match", (((words, 0),), ()))], [("match", (((words.T, 0),), ()))])
