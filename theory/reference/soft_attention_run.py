"""Runs of soft attention over patches, entry by entry. Source: arXiv 2307.13421."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sympy import Add, Integer, Symbol, exp, log

from theory.models import Block, GradientFlow, Model, reduce_model
from theory.models.trial import Comparison, Trial
from theory.registry import Stated

#: ``C`` classes and ``m`` patches; ``mu`` and ``nu`` are the coordinates of output and attention.
C, m = Symbol("C", integer=True, positive=True), Symbol("m", integer=True, positive=True)
mu, nu = Symbol("mu", real=True), Symbol("nu", real=True)
alpha = Symbol("alpha", positive=True)


def full_model(classes: int, patches: int) -> tuple[GradientFlow, Any, Any]:
    """Every entry of output ``W`` and scores ``s``: one patch is the token of its class, the others embed as 0."""
    output, query = Block("W", (classes, classes)), Block("s", classes)
    terms = []
    for label, score in enumerate(query.symbols):
        logits = exp(score) / (exp(score) + patches - 1) * output.array[:, label]
        terms.append(log(Add(*(exp(z) for z in logits))) - logits[label])
    return reduce_model(Model((output, query), Add(*terms) / classes)), output.array, query.symbols


def trials() -> list[Trial]:
    """``mu`` is a diagonal entry of ``W`` minus one beside it, ``nu`` a score; from zero."""
    classes, patches = 3, 4
    flow, output, scores = full_model(classes, patches)
    start = {state: Integer(0) for state in flow.states}
    known = {C: Integer(classes), m: Integer(patches), mu: output[0, 0] - output[1, 0], nu: scores[0]}

    def compare(stated: Stated) -> Iterator[Comparison]:
        share = stated["alpha"].xreplace(known)
        for name, coordinate in (("mu", mu), ("nu", nu)):
            rate = stated[name].xreplace({alpha: share}).xreplace(known)
            yield Comparison(f"d{name}/dt", flow.along(known[coordinate]), rate)
        curve = stated["curve"].xreplace({alpha: share}).xreplace(known)
        yield Comparison("curve", curve, curve.xreplace(start))

    return [Trial("three classes, four patches", flow, start, 4, compare)]
