"""Certificates: what is written can be read and checked again, and every change that matters is found."""

from __future__ import annotations

import copy
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sympy import And, Dummy, Eq, Function, Integer, Integral, Max, Ne, Rational, Symbol, exp, log, oo, pi, srepr, true

from numerics import verify
from numerics.certificate_reader import load, parse
from numerics.certificates import canonical_hash, certificate, claim_hash, content_hash, dump, save
from numerics.cli import run
from numerics.recheck import Recheck, recheck
from theory import GradlineError, registry
from theory.blocks import Block, BlockMatrix
from theory.orbits import IndexSet
from theory.reader import read
from theory.registry import Claim, Obligation, find
from theory.serialize import DEEPEST, write
from theory.symbols import M, alpha, b, m, mu_OV, n
from theory.trace import Assumption
from theory.words import Rule, Words, matrix

Document = dict[str, Any]
ROOT = Path(__file__).parents[2]
x, y = Symbol("x", real=True), Symbol("y", real=True)
U, V = matrix("U"), matrix("V")

#: Published claims with scalars, words, block matrices, signs, dummy symbols; without numerical checks, to be quick.
SOME = tuple(
    replace(find(name), subject=None)
    for name in ("attention-limit", "isometry-criterion", "line-momentum", "attention-mass", "balanced-root")
)
SQUARE = Claim("square", {"first": Eq((M - 1) ** 2, M**2 - 2 * M + 1), "above": M + b > 1})
ROOT_CLAIM = Claim("root", {"it": Eq((x**2) ** Rational(1, 2), x)}, assumptions=[x > 0])
WRONG = Claim.equal("wrong", (M + 1) ** 2, M**2 + 1)


@pytest.fixture(scope="module")
def whole() -> Document:
    """A certificate of published and of other claims, one of them refuted."""
    return parse(dump(certificate(verify([*SOME, SQUARE, ROOT_CLAIM, WRONG]))).encode())


@pytest.fixture(scope="module")
def proved() -> Document:
    """A certificate without a refuted claim."""
    return parse(dump(certificate(verify([*SOME, SQUARE, ROOT_CLAIM]))).encode())


def rehashed(document: Document) -> Document:
    """What a forger would do: all hashes are made to match."""
    for claim in document["claims"]:
        claim["sha256"] = claim_hash(claim)
    return document | {"sha256": content_hash(document)}


def problems(found: Recheck) -> list[str]:
    return [*found.problems, *(p for r in found.results for p in r.problems)]


def claim_of(document: Document, name: str) -> Any:
    return next(c for c in document["claims"] if c["id"] == name)


# Text and back ----------------------------------------------------------------------------------------------------

VALUES: tuple[Any, ...] = (
    M - 1,
    exp(2 * alpha * mu_OV) / (M - 1) + Rational(-7, 3) * pi,
    2 * (x + 1) - 2,
    exp(Integer(0), evaluate=False) + Max(x, y),
    Integral(exp(x * y), (x, 0, 1)),
    Ne(x, 0),
    And(x > 0, y < 1),
    true,
    oo,
    Symbol('it\'s \\ "quoted" µ\n', positive=True),
    U @ V.T - 3 * M * matrix("W") @ V,
    Words.of({}),
    Rule((("U", True), ("U", False)), matrix("P")),
    BlockMatrix(M, (IndexSet("a", b, True),), (IndexSet("c", Integer(1), False),), ((Block(Integer(0), 1 / M),),)),
)


@pytest.mark.parametrize("value", VALUES, ids=lambda v: type(v).__name__)
def test_values_come_back(value: Any) -> None:
    assert read(write(value)) == value
    assert read(write(value)) != (U if value == U @ V else x**5)


def test_every_obligation_of_the_theory_comes_back() -> None:
    seen = 0
    for claim in registry.claims():
        for obligation in claim.obligations(claim.stated):
            text = write(obligation.value)
            again = read(text)
            has_dummies = not isinstance(again, Words | BlockMatrix) and again.atoms(Dummy)
            assert write(again) == text if has_dummies else again == obligation.value
            seen += 1
    assert seen > 300


def test_the_text_is_srepr_with_sorted_assumptions() -> None:
    plain = exp(x) / (x + Symbol("z")) + Rational(1, 2)
    assert write(plain) == srepr(plain, order="none")
    first, second = Symbol("k", positive=True, integer=True), Symbol("k", integer=True, positive=True)
    assert write(first) == write(second) != write(Symbol("k", positive=True))


def test_dummies_are_numbered_as_they_come() -> None:
    def text() -> str:
        s, t = Dummy("s", positive=True), Dummy("s", positive=True)
        return write(log(s) - t + s)

    assert text() == text()
    again = read(text())
    assert len(again.atoms(Dummy)) == 2
    assert "dummy_index=3" not in text()


#: Text that is refused; the nearest that is read; where and what the message says.
REFUSED: dict[str, tuple[str, str, str]] = {
    "code": ("__import__('os')", "exp(Symbol('os'))", "position 0: unknown head '__import__'"),
    "inner": ("Add(Integer(1), eval('x'))", "Add(Integer(1), Symbol('x'))", "position 16: unknown head 'eval'"),
    "attribute": ("Integer(1).real", "Integer(1)", "position 10: '.real' is not understood"),
    "float": ("Float('1.0')", "Rational(1, 2)", "unknown head 'Float'"),
    "empty": ("", "Integer(0)", "expected a value, found the end"),
    "open": ("exp(Integer(1)", "exp(Integer(1))", "position 14: expected , or )"),
    "more": ("pi pi", "pi", "position 3: 'pi' after the end"),
    "fraction": ("Rational(2, 4)", "Rational(1, 2)", "lowest terms"),
    "by zero": ("Rational(1, 0)", "Rational(1, 3)", "lowest terms"),
    "assumption": ("Symbol('x', odd_one=True)", "Symbol('x', odd=True)", "no assumption 'odd_one'"),
    "value": ("Symbol('x', real=1)", "Symbol('x', real=True)", "True or False for real"),
    "contradiction": ("Symbol('x', zero=True, odd=True)", "Symbol('x', zero=False, odd=True)", "contradict"),
    "twice": ("Symbol('x', real=True, real=True)", "Symbol('x', real=True)", "position 27: real is given twice"),
    "arguments": ("exp(pi, pi)", "exp(pi)", "exp takes exactly 1 argument"),
    "rewritten": ("Max(pi)", "Max(E, pi)", "arguments that stay as they are"),
    "relation in a sum": ("Add(pi, true)", "Add(pi, E)", "expressions"),
    "words in a sum": ("Add(pi, Words())", "Words()", "expressions"),
    "zero word": ("Words(Term(Integer(0)))", "Words(Term(Integer(1)))", "coefficients other than 0"),
    "letter alone": ("Letter('U', True)", "Words(Term(Integer(1), Letter('U', True)))", "no expression"),
    "digits": (f"Integer({'9' * 5000})", f"Integer({'9' * 4000})", "more than 4000 digits"),
    "deep": ("exp(" * 200 + "pi" + ")" * 200, "exp(" * 99 + "pi" + ")" * 99, "nested more than"),
    "limits": ("Integral(pi, Tuple())", "Integral(pi, Tuple(Symbol('x')))", "a variable"),
    "control": ("pi\x00", "pi\n", "position 2: '\\x00' is not understood"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_understood_is_refused_by_name_and_position(case: str) -> None:
    wrong, right, message = REFUSED[case]
    with pytest.raises(ValueError, match=r"^position \d+: ") as caught:
        read(wrong)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    read(right)


@pytest.mark.parametrize("value", [Function("f")(x), Symbol("x") + 0.5, "text", Integer(10) ** 4000, x**x**x])
def test_what_has_no_text_is_refused_by_name(value: Any) -> None:
    if value == x**x**x:
        assert read(write(value)) == value
        for _ in range(DEEPEST):
            value = exp(value)
    with pytest.raises(GradlineError, match=r"^writing "):
        write(value)


# Certificates -----------------------------------------------------------------------------------------------------


def test_a_certificate_checks_again(whole: Document, proved: Document) -> None:
    found = recheck(whole)
    assert (problems(found), found.notes, found.holds) == ([], (), True)
    assert [r.verdict for r in found.results] == ["proved"] * (len(SOME) + 2) + ["refuted"]
    assert found.exit_code == 1  # as verify: a claim is refuted
    assert recheck(proved).exit_code == 0


def test_what_a_certificate_holds(whole: Document) -> None:
    mass = claim_of(whole, "attention-mass")
    assert read(mass["statement"][0]["srepr"]) == find("attention-mass").stated["alpha"]
    assert "\\mu_{\\mathrm{QK}}" in mass["statement"][0]["latex"]
    assert read(mass["assumptions"][0]["srepr"]).lhs == M
    assert {o["answer"] for o in mass["obligations"]} == {"proved"}
    assert [e["kind"] for e in mass["evidence"]] == ["symbolic", "enclosure"]
    assert claim_of(whole, "root")["obligations"][0]["assumptions"] == [write(x > 0)]
    wrong = claim_of(whole, "wrong")["obligations"][0]
    assert wrong["answer"] == "refuted"
    assert set(wrong["counterexample"]["point"]) == {"M"}
    assert set(whole["versions"]) == {*("gradline", "numpy", "python", "python-flint", "sha256", "sympy", "torch")}
    assert whole["versions"]["sympy"].startswith("1.")
    assert list(json.loads(dump(whole))) == sorted(whole)


def test_the_same_seed_gives_the_same_bytes_in_every_process(tmp_path: Path) -> None:
    names = ("balancedness", "adam-leaves-line")
    texts = []
    for seed in (5, 6):
        found = certificate(verify([find(name) for name in names], seed=seed))
        texts.append(dump(found | {"times": {}}))
    args = ("verify", "--seed", "5", "--json", str(tmp_path / "e.json"), *(x for n in names for x in ("--claim", n)))
    subprocess.run(
        [sys.executable, "-m", "numerics.cli", *args],
        cwd=ROOT,
        timeout=120,
        check=True,
        capture_output=True,
        env=os.environ | {"PYTHONHASHSEED": "1"},
    )
    texts.append(dump(load(tmp_path / "e.json") | {"times": {}}))
    assert texts[0] == texts[2] != texts[1]


def test_hashes_do_not_see_order_or_times_or_versions(whole: Document) -> None:
    other = whole | {"times": {}, "versions": {"sympy": "0"}}
    assert content_hash(dict(reversed(other.items()))) == whole["sha256"] != content_hash(whole | {"seed": 9})
    assert canonical_hash(1) != canonical_hash(1.0) != canonical_hash(True)
    claim = copy.deepcopy(whole["claims"][0])
    claim["obligations"][0]["how"] = "guess"
    assert claim_hash(claim) == claim["sha256"]  # how it was proved is no part of what is claimed
    claim["obligations"][0]["name"] = "guess"
    assert claim_hash(claim) != claim["sha256"]


def test_claims_of_users_in_the_api(tmp_path: Path) -> None:
    wide = Claim.equal("mine", log(x**2), 2 * log(x), [x > 0])
    save(verify([wide, SQUARE]), tmp_path / "mine.json")
    document = load(tmp_path / "mine.json")
    assert [c["obligations_from"] for c in document["claims"]] == ["statement", "statement"]
    assert recheck(document).exit_code == 0
    unknown = Claim("unknown", {}, lambda _: [Obligation("f", Function("f", real=True)(x))])
    with pytest.raises(GradlineError, match=r"certificate of unknown: writing f\(x\)"):
        certificate(verify([unknown]))


# Changes ----------------------------------------------------------------------------------------------------------


def relevant(document: Document) -> str:
    """All that matters: everything but the times, whatever the white space."""
    return json.dumps({k: v for k, v in document.items() if k != "times"}, sort_keys=True)


def changed(content: bytes, rng: random.Random) -> bytes:
    """The content with one small random change."""
    i = rng.randrange(len(content))
    kind = rng.randrange(6)
    if kind == 0:
        return content[:i] + bytes([content[i] ^ (1 << rng.randrange(8))]) + content[i + 1 :]
    if kind == 1:
        return content[:i] + bytes([rng.randrange(256)]) + content[i + 1 :]
    if kind == 2:
        return content[:i] + content[i + 1 :]
    if kind == 3:
        return content[:i] + bytes([rng.choice(b" 01.-\"',()eE{}[]\n")]) + content[i:]
    if kind == 4:
        return content[:i] + content[i : i + 2][::-1] + content[i + 2 :]
    digits = [j for j in range(i, min(i + 400, len(content))) if 48 <= content[j] <= 57]
    j = digits[0] if digits else i
    return content[:j] + b"7" + content[j + 1 :]


def outcome_of(content: bytes) -> tuple[int, Document | None, str]:
    """The exit code that a file gets, what was read, and the message if it is unreadable."""
    try:
        document = parse(content)
        return recheck(document).exit_code, document, ""
    except ValueError as error:
        return 2, None, str(error)


def test_every_changed_byte_is_found_or_does_not_matter(proved: Document) -> None:
    content = dump(proved).encode()
    rng = random.Random(20)
    counts = {0: 0, 1: 0, 2: 0}
    for _ in range(250):
        other = changed(content, rng)
        code, document, message = outcome_of(other)
        assert "\n" not in message
        if code == 0:
            assert document is not None
            assert relevant(document) == relevant(proved), other
        counts[code] += 1
    assert min(counts.values()) > 0
    assert counts[1] > counts[0]


def test_white_space_and_times_do_not_matter(proved: Document) -> None:
    dense = json.dumps(proved | {"times": {}}, separators=(",", ":")).encode()
    assert recheck(parse(dense)).exit_code == 0
    assert recheck(parse(dense.replace(b'"seed":0', b'"seed":1'))).exit_code == 1


def change(name: str, edit: Callable[[Any], None]) -> Callable[[Document], None]:
    return lambda document: edit(claim_of(document, name))


def put(*path: Any) -> Callable[[Any], None]:
    *way, key, value = path

    def edit(target: Any) -> None:
        for step in way:
            target = target[step]
        target[key] = value

    return edit


def other_formula(claim: Any) -> None:
    """A right claim about other formulas."""
    own = certificate(verify([Claim("attention-mass", {"alpha": Eq(alpha, alpha + 0 * M)})]))["claims"][0]
    claim.update(own)


def weaker(claim: Any) -> None:
    claim["obligations"] = claim["obligations"][1:]


def unproved(claim: Any) -> None:
    claim["obligations"][0]["srepr"] = write(M - 1)


#: Changes after which all hashes were made to match; words of what is found.
FORGED: dict[str, tuple[Callable[[Document], None], str]] = {
    "a verdict": (change("wrong", put("verdict", "proved")), "verdict recorded proved, found refuted"),
    "an answer": (change("wrong", put("obligations", 0, "answer", "proved")), "answer recorded 'proved'"),
    "a witness": (change("wrong", put("obligations", 0, "counterexample", None)), "counterexample recorded 'None'"),
    "an obligation": (change("attention-mass", unproved), "answer recorded 'proved', found 'refuted'"),
    "how": (change("attention-mass", put("obligations", 0, "how", "by hand")), "how recorded 'by hand'"),
    "LaTeX": (change("attention-mass", put("statement", 0, "latex", "x")), "LaTeX is not that"),
    "the text": (change("attention-mass", put("text", "alpha = 1")), "the text is not that of the claim"),
    "the formula": (change("attention-mass", put("statement", 0, "srepr", write(m / (m + n)))), "formula is not that"),
    "a name": (change("attention-mass", put("statement", 0, "name", "beta")), "the claim of the theory states alpha"),
    "another claim": (change("attention-mass", other_formula), "formula is not that of the claim"),
    "symbolic counts": (change("square", put("evidence", 0, "numbers", "proved", 3)), "symbolic evidence"),
    "no symbolic evidence": (change("square", lambda c: c["evidence"].pop(0)), "symbolic evidence"),
    "a statement": (change("square", put("statement", 0, "srepr", write(Eq(M, M + 1)))), "do not follow from"),
    "no relation": (change("square", put("statement", 0, "srepr", write(M))), "no relations"),
    "one obligation less": (change("square", weaker), "do not follow from"),
    "an assumption less": (change("root", put("assumptions", [])), "do not follow from"),
    "an assumption of a proof": (change("root", put("obligations", 0, "assumptions", [])), "answer recorded 'proved'"),
    "evidence against": (change("attention-mass", put("evidence", 1, "supports", False)), "contradicts it"),
    "no real value": (
        change("balanced-root", put("obligations", 0, "srepr", "Symbol('i', imaginary=True)")),
        "decided",
    ),
    "an assumption of the theory less": (
        change("attention-mass", lambda c: c["assumptions"].pop(0)),
        "the assumptions are not those of the claim attention-mass",
    ),
    "an assumption in words": (
        change("balanced-root", put("assumptions", 0, "text", "always")),
        "the assumptions are not those of the claim balanced-root",
    ),
    "another name for a claim of the theory": (change("attention-mass", put("id", "attention")), "no claim of the"),
    "where obligations come from": (
        change("attention-mass", put("obligations_from", "statement")),
        "its obligations come from the derivation, not from the statement",
    ),
    "a false statement with obligations of its own": (
        change("square", lambda c: c.update(obligations_from="derivation", statement=false_statement(c))),
        "first: it is stated, and refuted",
    ),
    "a bound": (change("attention-mass", put("evidence", 1, "numbers", "bound", 1.0)), "the figures"),
    "a difference": (
        change("attention-mass", put("evidence", 1, "numbers", "worst_difference", 0.5)),
        "worst 5.0e-01 of 1.0e-40, support nothing",
    ),
    "a count": (change("attention-mass", put("evidence", 1, "numbers", "comparisons", 99)), "'99 enclosures"),
    "a count that is none": (change("attention-mass", put("evidence", 1, "numbers", "comparisons", "8")), "without"),
    "no case": (change("attention-mass", put("evidence", 1, "numbers", "comparisons", 0)), "support nothing"),
    "no bound": (change("attention-mass", lambda c: c["evidence"][1]["numbers"].pop("bound")), "without comparisons"),
    "words of a figure": (change("attention-mass", put("evidence", 1, "detail", "all well")), "'all well'"),
    "obligations that are enclosed": (
        change("attention-mass", put("evidence", 1, "numbers", "enclosed", 3)),
        "enclosure evidence: for 3 obligations; 4 are scalar",
    ),
    "a part": (change("attention-mass", put("evidence", 1, "parts", ["beta"])), "parts beta; expected some of alpha"),
    "a part twice": (change("attention-mass", put("evidence", 1, "parts", ["alpha"] * 2)), "parts alpha, alpha;"),
    "a broken part": (
        change("attention-mass", put("evidence", 1, "broken", ["beta"])),
        "broken beta; expected some of",
    ),
    "the order of evidence": (change("attention-mass", lambda c: c["evidence"].reverse()), "expected the order"),
    "evidence of another claim": (
        lambda d: swap(claim_of(d, "attention-mass"), claim_of(d, "attention-limit"), "evidence"),
        "parts",
    ),
    "a claim that it uses": (
        change("attention-mass", put("uses", ["gradient"])),
        "uses gradient: expected other claims",
    ),
    "itself": (change("attention-mass", put("uses", ["attention-mass"])), "uses attention-mass: expected other claims"),
    "no claim": (lambda d: d.update(claims=[], steps=[]), "it holds no claim"),
    "another kind of value": (change("square", put("obligations", 0, "srepr", "Rule(Word(), Words())")), "decided"),
}


def false_statement(claim: Any) -> Any:
    return [claim["statement"][0] | {"srepr": write(Eq(M**2, M + 1))}]


def swap(first: Any, second: Any, key: str) -> None:
    first[key], second[key] = second[key], first[key]


@pytest.mark.parametrize("case", FORGED)
def test_a_forger_who_makes_the_hashes_match(case: str, whole: Document) -> None:
    edit, message = FORGED[case]
    document = copy.deepcopy(whole)
    edit(document)
    if "latex" not in message.lower():
        for claim in document["claims"]:
            for formula in claim["statement"]:
                formula["latex"] = relatex(formula["srepr"])
    found = recheck(parse(dump(rehashed(document)).encode()))
    assert found.exit_code == 1
    assert any(message in problem for problem in problems(found)), problems(found)
    assert problems(recheck(rehashed(copy.deepcopy(whole)))) == []


def relatex(text: str) -> str:
    from numerics.certificates import formula_latex

    return formula_latex(read(text))


def test_obligations_of_a_derivation_that_is_not_here_are_a_note() -> None:
    odd = Claim("odd", {"it": x}, lambda _: [Obligation("nothing", Integer(0))])
    found = recheck(parse(dump(certificate(verify([odd, SQUARE]))).encode()))
    assert (found.exit_code, len(found.notes)) == (0, 1)
    assert found.notes[0].startswith("odd is no claim of the theory: that its obligations say what it states")


def last_use(document: Document) -> None:
    last = len(document["steps"]) - 1
    for claim in document["claims"]:
        claim["derivation"] = [k for k in claim["derivation"] if k != last]


#: Changes of the steps of derivations after which all hashes match.
STEPS: dict[str, tuple[Callable[[Document], None], str]] = {
    "a step that nothing uses": (last_use, "is not used in its turn"),
    "two steps swapped": (
        lambda d: d["steps"].append(d["steps"].pop(0)) or change("attention-limit", rotate(d))(d),
        "turn",
    ),
    "a step twice": (
        lambda d: d["steps"].append(d["steps"][0]) or d["claims"][-1]["derivation"].append(len(d["steps"]) - 1),
        "one step is given twice",
    ),
    "a step more": (lambda d: d["steps"].append(d["steps"][0] | {"name": "more"}), "is not used in its turn"),
}


def rotate(document: Document) -> Callable[[Any], None]:
    count = len(document["steps"])
    return lambda claim: claim.update(derivation=[(k - 1) % count for k in claim["derivation"]])


@pytest.mark.parametrize("case", STEPS)
def test_changed_steps_are_refused(case: str, whole: Document) -> None:
    edit, message = STEPS[case]
    document = copy.deepcopy(whole)
    edit(document)
    with pytest.raises(ValueError, match=message):
        parse(dump(rehashed(document)).encode())


def test_without_new_hashes_the_place_of_a_change_is_named(whole: Document) -> None:
    stated, proof, seed, version = (copy.deepcopy(whole) for _ in range(4))
    stated["claims"][0]["obligations"][0]["srepr"] = "open('x')"  # never read: the hash is compared first
    found = recheck(stated)
    assert found.results[0].problems == ("the claim was changed: its sha256 does not match what it states",)
    assert not any(r.problems for r in found.results[1:])
    proof["claims"][1]["evidence"][-1]["detail"] = "better"
    assert recheck(proof).problems == ("the file was changed: its sha256 does not match its content",)
    seed["seed"] = 1
    assert recheck(seed).problems == recheck(proof).problems
    version["versions"]["sympy"] = "1.0"
    found = recheck(version)
    assert found.problems == ("the versions were changed: their sha256 does not match",)
    assert any("written with sympy 1.0, checked with" in note for note in found.notes)


def test_other_versions_are_a_note_and_no_problem(proved: Document) -> None:
    stated = {k: v for k, v in proved["versions"].items() if k != "sha256"} | {"torch": "2.0"}
    found = recheck(proved | {"versions": stated | {"sha256": canonical_hash(stated)}})
    assert (found.exit_code, len(found.notes)) == (0, 1)


def test_code_in_a_formula_with_the_right_hash_is_refused(whole: Document) -> None:
    document = copy.deepcopy(whole)
    document["claims"][0]["obligations"][0]["srepr"] = "Add(Integer(1), open('x'))"
    name = document["claims"][0]["obligations"][0]["name"]
    with pytest.raises(ValueError, match=r"of attention-limit: position 16: unknown head 'open'") as caught:
        recheck(rehashed(document))
    assert repr(name) in str(caught.value)


# Files ------------------------------------------------------------------------------------------------------------


def with_entry(key: str, value: Any) -> Callable[[Document], bytes]:
    return lambda document: json.dumps(document | {key: value}).encode()


#: Files that are no certificates, and words of the message.
BROKEN: dict[str, tuple[Callable[[Document], bytes], str]] = {
    "empty": (lambda _: b"", "the file is empty"),
    "blank": (lambda _: b" \n", "the file is empty"),
    "cut off": (lambda d: dump(d).encode()[:2000], "cut off or changed?"),
    "cut off inside a letter": (lambda d: json.dumps({"a": "é"}, ensure_ascii=False).encode()[:-3], "no UTF-8"),
    "binary": (lambda _: bytes(range(256)), "no UTF-8"),
    "text": (lambda _: b"proved", "no JSON"),
    "a number": (lambda _: b"1", 'expected an object with "format"'),
    "other JSON": (lambda _: b'{"claims": []}', 'expected an object with "format"'),
    "NaN": (lambda d: dump(d).replace('"seed": 0', '"seed": NaN').encode(), "NaN is no number"),
    "too large a number": (lambda d: dump(d).replace('"seed": 0', '"seed": 1e999').encode(), "1e999 is beyond"),
    "too long a number": (lambda d: dump(d).replace('"seed": 0', '"seed": ' + "9" * 9999).encode(), "digits"),
    "true for a number": (with_entry("seed", True), "seed: expected an integer, found true"),
    "nested": (lambda _: b"[" * 100_000 + b"]" * 100_000, "nested too deep"),
    "a key twice": (lambda d: dump(d).replace('"seed": 0', '"seed": 0, "seed": 0').encode(), "'seed' is given twice"),
    "a key more": (with_entry("seal", 1), "unknown key 'seal'"),
    "a key less": (lambda d: json.dumps({k: d[k] for k in d if k != "times"}).encode(), "has no 'times'"),
    "later": (with_entry("version", 2), "certificate of version 2; this gradline reads version 1"),
    "version of another type": (with_entry("version", 1.0), "certificate of version 1.0; expected 1"),
    "claims as object": (with_entry("claims", {}), "claims: expected a list, found {}"),
    "claim as text": (with_entry("claims", ["balancedness"]), "claims[0]: expected an object"),
    "a formula twice": (
        lambda d: dump(d | {"claims": [d["claims"][0] | {"statement": d["claims"][0]["statement"] * 2}]}).encode(),
        "statement of attention-limit: '1 - alpha [shared, N]' is given twice",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_no_certificate_gets_one_line(
    case: str, proved: Document, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make, message = BROKEN[case]
    path = tmp_path / "e.json"
    path.write_bytes(make(proved))
    assert run(("verify", "--recheck", str(path))) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"gradline: error: --recheck={path}: ")
    assert err.count("\n") == 1
    assert message in err


def test_a_missing_file_a_folder_and_other_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path, message in ((tmp_path / "no.json", "No such file"), (tmp_path, "this is a folder")):
        assert run(("verify", "--recheck", str(path))) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert message in err
    assert run(("verify", "--recheck", "/dev/null")) == 2
    assert "not a regular file" in capsys.readouterr().err
    for more in (("--seed", "1"), ("--json", "-"), ("--list",), ("--claim", "balancedness")):
        assert run(("verify", "--recheck", "e.json", *more)) == 2
        assert "expected no other option" in capsys.readouterr().err


def test_on_the_command_line(
    proved: Document, whole: Document, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "e.json"
    path.write_text(dump(proved))
    assert run(("verify", "--recheck", str(path))) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "7 claims: 7 proved; seed 0; everything matches" in out
    path.write_text(dump(whole))
    assert run(("verify", "--recheck", str(path))) == 1
    assert "1 refuted; seed 0; everything matches" in capsys.readouterr().out
    path.write_text(dump(proved).replace("M - 1", "M - 2"))
    assert run(("verify", "--recheck", str(path))) == 1
    out, _ = capsys.readouterr()
    assert "NOT as it was written" in out
    assert "no match: the file was changed" in out


@pytest.mark.parametrize(("cut", "code"), [(0, 0), (9, 2)])
def test_from_standard_input(cut: int, code: int, proved: Document) -> None:
    content = dump(proved).encode()
    command = [sys.executable, "-m", "numerics.cli", "verify", "--recheck", "-"]
    found = subprocess.run(
        command, cwd=ROOT, input=content[: len(content) - cut], capture_output=True, timeout=120, check=False
    )
    assert (found.returncode, found.stderr.count(b"\n")) == (code, code // 2)


def test_an_error_while_writing_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "e.json"
    path.write_text("before")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        save(verify([SQUARE]), path)
    assert [p.name for p in tmp_path.iterdir()] == ["e.json"]
    assert path.read_text() == "before"
    monkeypatch.undo()
    save(verify([SQUARE]), path)
    assert recheck(load(path)).exit_code == 0


def test_two_claims_of_one_id_are_checked_each_for_itself() -> None:
    found = recheck(certificate(verify([SOME[3], SOME[3].with_stated(alpha=m / (m + n))])))
    assert [bool(r.problems) for r in found.results] == [False, True]
    assert "the formula is not that of the claim attention-mass" in problems(found)[0]


def test_undecided_stays_undecided() -> None:
    conserved = find("balancedness").stated["conserved"]
    unclear = Claim("unclear", {}, lambda _: [Obligation("balance", conserved, decisive=False)])
    document = parse(dump(certificate(verify([unclear]))).encode())
    assert recheck(document).exit_code == 3
    document["claims"][0]["obligations"][0]["decisive"] = True
    assert recheck(rehashed(document)).exit_code == 1


def test_assumptions_in_words_only() -> None:
    told = Claim("told", Eq(x, x + 0 * y), assumptions=[Assumption("said in words")])
    document = certificate(verify([told]))
    assert document["claims"][0]["assumptions"] == [{"text": "said in words", "srepr": None}]
    assert recheck(document).exit_code == 0


DOCS = ROOT / "docs" / "evidence.md"


def test_the_documentation_names_every_field(whole: Document) -> None:
    text = DOCS.read_text()
    claim = claim_of(whole, "wrong")
    for entry in (whole, claim, claim["statement"][0], claim["obligations"][0], claim["evidence"][0]):
        assert [key for key in entry if f"`{key}`" not in text] == []
    assert "`seal`" not in text
