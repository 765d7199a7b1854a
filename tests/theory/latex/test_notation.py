"""The symbol table: both directions, every spelling, and what it refuses."""

from __future__ import annotations

import pickle

import pytest
from sympy import Symbol

from theory.latex import Notation, load_notation
from theory.latex.names import SCALARS, default_latex, name_key
from theory.symbols import M, eta_OV, mu_QK


@pytest.mark.parametrize("symbol", SCALARS.values(), ids=str)
def test_each_symbol_is_found_by_its_name(symbol):
    notation = Notation()
    assert notation.symbol(notation.latex(symbol)) == symbol


@pytest.mark.parametrize(
    "spelling",
    [
        r"\mu_{\mathrm{QK}}",
        r"\mu_{\text{QK}}",
        r"\mu_\mathrm{QK}",
        r"\mu _ {QK}",
        r"{\mu}_{\rm QK}",
        r"\mu_\textrm {QK}",
    ],
)
def test_spellings_of_one_symbol(spelling):
    assert Notation().symbol(spelling) == mu_QK


@pytest.mark.parametrize("spelling", [r"\mu_{KQ}", r"\mu_Q K", r"\muQK", r"\mu^{QK}", "", "{", r"\mu_{\mathrm{QK}"])
def test_other_names_are_refused(spelling):
    with pytest.raises(ValueError, match="did you mean"):
        Notation().symbol(spelling)


def test_own_names_come_first_and_free_the_old_one():
    notation = Notation(names={"mu_QK": r"\beta", "beta": "B"})
    assert notation.symbol(r"\beta") == mu_QK
    assert notation.symbol("B") == SCALARS["beta"]
    assert notation.symbol(r"\mu_{\mathrm{QK}}") == mu_QK


def test_aliases():
    assert Notation(aliases={"eta_OV": (r"\eta_V",)}).symbol(r"\eta_V") == eta_OV


def test_user_symbols():
    speed = Symbol("speed", positive=True)
    notation = Notation().with_symbols([speed])
    assert notation.symbol(r"\mathrm{speed}") == speed
    assert Notation(names={speed: "w"}).latex(speed) == "w"


def test_same_name_other_assumptions():
    with pytest.raises(ValueError, match="other assumptions"):
        Notation().latex(Symbol("M", real=True))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"names": {"mu_KQ": "x"}}, "did you mean 'mu_QK'"),
        ({"names": {"M": r"\alpha"}}, r"M and alpha are both written"),
        ({"names": {"M": "e"}}, "meaning of its own"),
        ({"names": {"M": "a+b"}}, "one name"),
        ({"names": {"M": "{x"}}, "one name"),
        ({"names": {"M": "2x"}}, "one name"),
        ({"aliases": {"M": (r"\alpha",)}}, "both written"),
        ({"derivative": "dots"}, "did you mean 'dot'"),
        ({"log": "lg"}, "expected 'log' or 'ln'"),
        ({"prefix": "g1"}, "2 to 12 letters"),
    ],
)
def test_bad_notation(options, message):
    with pytest.raises(ValueError, match=message):
        Notation(**options)


def test_toml(tmp_path):
    path = tmp_path / "notation.toml"
    path.write_text("derivative = 'dot'\n[names]\nmu_QK = '\\muQK'\n[aliases]\nM = ['C']\n")
    notation = load_notation(path)
    assert notation.derivative == "dot"
    assert notation.symbol(r"\muQK") == mu_QK
    assert notation.symbol("C") == M


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("derivativ = 'dot'", "did you mean 'derivative'"),
        ("derivative = ", "TOML"),
        ("names = 'x'", "expected a table"),
        ("log = ['ln']", "expected a text"),
        ("order = {}", "expected a list"),
    ],
)
def test_bad_toml(tmp_path, text, message):
    path = tmp_path / "notation.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        load_notation(path)


def test_keys_and_default_names():
    assert name_key(r"W_{\mathrm{OV},\mathrm{same}}") == name_key(r"W_{ \text{OV} , \text{same} }")
    assert default_latex("x1") == "x_1"
    with pytest.raises(ValueError, match="letters, digits"):
        default_latex("x_")


def test_a_notation_is_hashable_data():
    notation = Notation(names={"mu_QK": r"\muQK"})
    assert pickle.loads(pickle.dumps(notation)) == notation
