"""Steps of a derivation as plain data: rule, name, reason, and the step in words with its formulas, as LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from theory.errors import GradlineError
from theory.latex.documents.steps import step_text
from theory.latex.notation import Notation
from theory.latex.printer.sentences import escape
from theory.registry import Claim
from theory.trace import Step

__all__ = ["derivations", "referred", "step_entry", "step_latex"]

_NOTATION = Notation()
_REFERENCE = re.compile(r"\\[A-Za-z]*ref\{([^{}]*)\}")


@lru_cache(maxsize=4096)
def step_latex(step: Step) -> str:
    """A step in words, as LaTeX text with formulas on one line; what has no LaTeX is shown as plain text.

    >>> from theory.factorization import product_trace
    >>> print(step_latex(product_trace()[0]).splitlines()[0])
    The loss depends on the factors through $W = U V^{\\top}$ alone, so
    """
    try:
        return step_text([step], _NOTATION, float("inf"))
    except (GradlineError, KeyError, TypeError, ValueError, AttributeError):  # a step of somebody's own
        return escape(f"{step}")


def referred(latex: str) -> tuple[str, ...]:
    r"""The claims that a text refers to.

    >>> referred(r"by \claimref{balanced-root}")
    ('balanced-root',)
    """
    return tuple(dict.fromkeys(_REFERENCE.findall(latex)))


def step_entry(step: Step) -> dict[str, str]:
    """A step as plain data."""
    return {"rule": step.rule, "name": step.name, "reason": step.reason, "latex": step_latex(step)}


def derivations(claims: Iterable[Claim]) -> tuple[list[dict[str, str]], dict[str, list[int]]]:
    """The distinct steps of several derivations, and for each claim, by id, which of them its derivation has.

    >>> from theory.registry import find
    >>> steps, used = derivations([find("product-flow"), find("balancedness")])
    >>> len(steps), used
    (4, {'product-flow': [0, 1, 2], 'balancedness': [0, 1, 3]})
    """
    numbers: dict[Any, int] = {}
    steps: list[dict[str, str]] = []
    used: dict[str, list[int]] = {}
    for claim in claims:
        used[claim.id] = []
        for step in dict.fromkeys(claim.trace()):
            entry = step_entry(step)
            number = numbers.setdefault(tuple(entry.values()), len(steps))
            if number == len(steps):
                steps.append(entry)
            used[claim.id].append(number)
    return steps, used
