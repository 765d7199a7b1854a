"""Steps of a derivation in sentences: the words of ``steps.toml``, with the formulas that the derivation recorded."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any

from theory.latex.claims.displays import SETTING_WORDS, display
from theory.latex.claims.equations import Equation
from theory.latex.claims.folding import fold, primitive
from theory.latex.names import SCALARS
from theory.latex.notation import Notation, Rate
from theory.latex.printer import MatrixForm, to_latex
from theory.latex.printer.linebreak import COLUMN
from theory.latex.printer.sentences import formula, paragraph, typeset
from theory.paper.settings import SETTINGS
from theory.symbols import alpha, mu_OV, mu_QK, t
from theory.trace import Step
from theory.words import Words, matrix

__all__ = ["OWNERS", "shown_steps", "step_text"]

#: The claim whose proof a rule belongs to; other proofs refer to it. Rules that are not here belong to every proof.
OWNERS: Mapping[str, str] = {
    "symmetry": "attention-mass",
    "softmax": "attention-mass",
    "cross-entropy": "loss-on-line",
    "gradient flow": "gradient-parallel",
    "null space": "gradient-parallel",
    "reduction": "gradient-parallel",
    "parallel": "gradient-parallel",
    "square root": "rescaling-balanced",
    "product flow": "rescaling-balanced",
    "projection": "rescaling-imbalanced",
    "elimination": "rescaling-imbalanced",
}

_CIRCUITS = {"OV": "output-value", "QK": "query-key"}
_U, _V = matrix("U"), matrix("V")
_LEFT: Mapping[str, Any] = {
    "alpha": alpha,
    "L": SCALARS["L"],
    **{f"d{letter}/dt": MatrixForm(letter, "rate") for letter in ("U", "V", "W")},
    **{f"d{s}/dt": Rate(s, t) for s in (mu_OV, mu_QK)},
    "d mu_QK/d mu_OV": Rate(mu_QK, mu_OV),
    "U U^T": _U @ _U.T,
    "(U U^T)^2": _U @ _U.T @ _U @ _U.T,
    "W^T W": matrix("W").T @ matrix("W"),
}

Slots = Mapping[str, str]


@lru_cache(maxsize=1)
def _words() -> Mapping[str, str]:
    return tomllib.loads((files("theory.latex.documents") / "steps.toml").read_text(encoding="utf-8"))


def _equal(left: Any, right: Any) -> Equation:
    return Equation("", "", "", left, "=", right)


def _circuit(step: Step) -> str:
    return "OV" if "OV" in step.name else "QK"


def _equations(step: Step) -> list[Equation]:
    """What a step found, as equations."""
    if step.rule == "gradient flow":
        return [_equal(Rate(symbol, t), value) for symbol, value in step.output]
    if step.rule == "null space":
        return [Equation("", "", "", law, "const", None) for law in step.output]
    if step.rule == "reduction":
        return [_equal(symbol, value) for symbol, value in step.output]
    if step.rule == "parallel":
        circuit = _circuit(step)
        return [_equal(matrix(f"G_{circuit}"), Words.of({((f"E_{circuit}", False),): step.output}))]
    if step.rule == "separation":
        constant, x, y = step.output
        value = primitive(constant * x * y)
        named = fold({SETTINGS[0].label: value})
        return [_equal(_LEFT[step.name], value if named is None else named.value)]
    return [_equal(_LEFT.get(step.name), step.output)]


def _math(value: Any, notation: Notation) -> str:
    return f"${to_latex(value, notation)}$"


def _values(step: Step, notation: Notation) -> str:
    """What a step found, or acted on, set in the text."""
    rules: dict[str, Callable[[], str]] = {
        "symmetry": lambda: ", ".join(_math(s, notation) for s in step.output),
        "reduction": lambda: f"${formula(step.name, notation)}$",
        "flow": lambda: _math(step.inputs[1], notation),
        "product rule": lambda: _math(step.inputs[0], notation),
        "rewriting": lambda: f"${formula('W W^T' if 'U' in step.name else '(V V^T)^2', notation)}$",
        "spectrum": lambda: _spectrum(step, notation),
        "integration": lambda: f"${step.name}={to_latex(step.output, notation)}$",
        "normal form": lambda: _math(step.output, notation),
    }
    return rules[step.rule]() if step.rule in rules else ""


def _spectrum(step: Step, notation: Notation) -> str:
    """Singular values with their multiplicities."""
    parts = [
        _math(value, notation) + ("" if times == 1 else f" ({_math(times, notation)} times)")
        for value, times in step.output
    ]
    return " and ".join(parts)


def _slots(step: Step, notation: Notation, column: float) -> Slots:
    slots = {"value": _values(step, notation), "rule": step.rule, "circuit": _CIRCUITS[_circuit(step)]}
    if step.rule == "spectrum":
        circuit, _, label = step.name.removesuffix("]").partition(" [")
        slots["direction"] = typeset(f"$E_{circuit}$ ({SETTING_WORDS[label]})", notation)
    elif step.rule == "integration":
        slots["inside"] = _math(step.inputs[0], notation)
        slots["state"] = _math(mu_QK if step.name == "y" else mu_OV, notation)
    elif step.rule not in ("symmetry", "normal form") and step.name != "d(U^T U - V^T V)/dt":
        slots["shown"] = display(_equations(step), notation, column)
    return slots


def _joint_slots(steps: Sequence[Step], notation: Notation, column: float) -> Slots:
    """Several steps in one: their equations in one display, or their values in one list."""
    each = [_slots(s, notation, column) for s in steps]
    if steps[0].rule == "spectrum":
        return {"value": "; ".join(f"of {s['direction']} {s['value']}" for s in each)}
    return {**each[0], "shown": display([e for s in steps for e in _equations(s)], notation, column)}


def _template(step: Step) -> str:
    words = _words()
    if step.rule == "flow" and step.inputs[1] != 1:
        return words["scaled-flow"]
    if step.name == "d(U^T U - V^T V)/dt":
        return words["balance"]
    return words.get(step.rule.replace(" ", "-"), words["other"])


def step_text(steps: Sequence[Step], notation: Notation, column: float = COLUMN) -> str:
    """Steps by one rule as sentences; a rule without words of its own is shown with its equation.

    >>> from theory.factorization import product_trace
    >>> print(step_text(product_trace()[2:], Notation()))
    By the product rule,
    \\begin{equation*}
    \\frac{\\mathrm{d}W}{\\mathrm{d}t}=-\\eta(G V V^{\\top}+U U^{\\top} G).
    \\end{equation*}
    """
    step = steps[0]
    slots = _slots(step, notation, column) if len(steps) == 1 else _joint_slots(steps, notation, column)

    def place(name: str) -> tuple[str, bool]:
        kind, _, claim = name.partition(":")
        if kind == "ref":
            return f"\\{notation.prefix}ref{{{claim}}}", False
        return slots[name], name == "shown"

    return paragraph(_template(step), place, notation)


def shown_steps(names: str, steps: Mapping[str, Step], notation: Notation, column: float = COLUMN) -> str:
    """The equations of steps by name, in one display."""
    return display([_equal(_LEFT[name], steps[name].output) for name in names.split(",")], notation, column)
