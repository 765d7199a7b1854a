"""Instance evidence: the model at concrete small sizes, every sequence written out, derivatives enclosed in balls.

The stated formula is enclosed at the same rational values; their difference must be a narrow ball around 0.
Source: sections 1 to 5 of the theory; neither orbits nor the line of the derivation is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from sympy import Rational, diff

from numerics.checks.cases import Case, Circuit, cases, enclosed, with_attention
from numerics.checks.comparison import Finding, Residual
from numerics.checks.exact_words import evaluate_words
from numerics.checks.explicit_model import ExplicitModel, Matrix, direction
from numerics.checks.formulas import integral_formula, published_case, setting_of, velocity_formula
from numerics.checks.tape import ball
from theory.paper.factors import c, mu, sigma
from theory.paper.settings import SIGMA_OV
from theory.registry import Claim
from theory.symbols import c_OV, c_QK, mu_OV, mu_QK
from theory.words import matrix

__all__ = ["CHECKS", "LARGEST", "beside", "law_value", "laws_of", "ones_for", "speed", "worst"]

COORDINATE: dict[Circuit, Any] = {"OV": mu_OV, "QK": mu_QK}
#: Informative and noise tokens at most: hundreds of sequences, a few milliseconds each.
LARGEST = 2


def worst(what: str, balls: Iterable[Any], case: Case | str) -> Residual:
    """The residual that is farthest from 0: one that excludes 0, if there is one."""
    found = sorted(balls, key=lambda x: (x.is_finite() and x.contains(0), -float(x.abs_upper())))
    return Residual(what, found[0], case if isinstance(case, str) else case.describe())


def beside(matrix: Matrix, E: list[list[Fraction]], along: Any) -> list[Any]:
    """The entries of ``matrix - along E``."""
    return [x - along * ball(e) for row, es in zip(matrix, E, strict=True) for x, e in zip(row, es, strict=True)]


def speed(matrix: Matrix, E: list[list[Fraction]]) -> Any:
    """The projection of a matrix on a direction."""
    pairs = [(x, e) for row, es in zip(matrix, E, strict=True) for x, e in zip(row, es, strict=True) if e]
    return sum((x * ball(e) for x, e in pairs), ball(0)) / ball(sum((e * e for _, e in pairs), Fraction(0)))


def _attention(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    for case in cases(rng, "CACO", 1, LARGEST):
        stated = enclosed(claim.stated["alpha"], case.values)
        yield worst("stated minus enumerated attention", [stated - ExplicitModel.on_line(case).attention()], case)


def _loss(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    for case in cases(rng, "CACO", 1, LARGEST):
        stated = enclosed(with_attention(claim.stated["L"]), case.values)
        yield worst("stated minus enumerated loss", [stated - ExplicitModel.on_line(case).loss()], case)


def _velocity(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    published = claim.subject[1] == "published"
    for drawn in cases(rng, "CACO" if published else claim.subject[1], 1, LARGEST):
        case = published_case(drawn) if published else drawn
        for circuit, velocity in ExplicitModel.on_line(case, case.code).velocities().items():
            stated = enclosed(velocity_formula(claim, COORDINATE[circuit].name, case), case.values)
            found = beside(velocity, direction(case, circuit), stated)
            yield worst(f"dW_{circuit}/dt minus the stated multiple of E_{circuit}", found, case)


def _noise(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    for case in cases(rng, "CACO", 1, LARGEST):
        if case.finite:
            pair = [
                speed(ExplicitModel.on_line(x).velocities()["QK"], direction(x, "QK"))
                for x in (case, replace(case, finite=False))
            ]
            ratio = enclosed(claim.stated[case.query_kind], case.values)
            yield worst("stated ratio minus that of the speeds", [ratio - pair[0] / pair[1]], case)


def _stated_direction(claim: Claim, case: Case, circuit: Circuit) -> list[list[Fraction]]:
    """The direction with the stated entries in place of its own."""

    def value(name: str) -> Fraction:
        found = claim.stated[name].xreplace(dict(case.values))
        return Fraction(int(found.p), int(found.q))

    E = direction(case, circuit)
    if circuit == "OV":
        images = {e: value("E_OV same" if e > 0 else "E_OV other") for row in E for e in row if e}
    elif case.finite:
        images = {
            e: value(f"a [{case.query_kind}]") if e > 0 else -value(f"c [{case.query_kind}]") for row in E for e in row
        }
    else:
        return E
    return [[images[e] if e else e for e in row] for row in E]


def _directions(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    for case in cases(rng, "CACO", 1, LARGEST):
        for circuit, velocity in ExplicitModel.on_line(case).velocities().items():
            E = _stated_direction(claim, case, circuit)
            yield worst(f"dW_{circuit}/dt beside E_{circuit}", beside(velocity, E, speed(velocity, E)), case)


def off_line(case: Case, code: str, rng: np.random.Generator) -> ExplicitModel:
    """The model with random rational parameters; zero embeddings stay out of the loss."""
    on = ExplicitModel.on_line(case, code)
    shapes = {name: (len(rows), len(rows[0])) for name, rows in on.parameters.items()}
    drawn = {
        name: [[ball(Rational(int(rng.integers(-15, 16)), 10)) for _ in range(columns)] for _ in range(rows)]
        for name, (rows, columns) in shapes.items()
    }
    return ExplicitModel(case, drawn)


def law_value(claim: Claim, name: str, matrices: Mapping[Circuit, Matrix], case: Case) -> Any:
    """A stated sum over a column of ``W_OV`` or a row of ``W_QK``, for the entries of any matrices."""
    column = int(case.task.classes * case.task.block) if name.endswith("noise") else 0
    entries = _orbit_entries(matrices, case, column)
    law = claim.stated[name]
    total = ball(0)
    for symbol in law.free_symbols:
        found = entries.get(symbol.name, [])
        if found:
            total += enclosed(diff(law, symbol), case.values) * sum(found, ball(0)) / len(found)
    return total


def laws_of(case: Case) -> Iterator[tuple[str, Circuit]]:
    """The stated sums that a case has, by name."""
    yield "column sum, informative", "OV"
    yield "column sum, noise", "OV"
    if case.finite:
        yield f"row sum [{case.query_kind}]", "QK"


def _orbit_entries(matrices: Mapping[Circuit, Matrix], case: Case, column: int) -> dict[str, list[Any]]:
    """The entries in one column of ``W_OV`` and the first row of ``W_QK``, by the names of their orbits."""
    E_QK, blocks = direction(case, "QK")[0], int(case.task.classes * case.task.block)
    output = [line[column] for line in matrices["OV"]]
    own = column // int(case.task.block)
    informative = column < blocks
    row = matrices["QK"][0]
    seen = [x for x, e in zip(row[:blocks], E_QK, strict=False) if e]
    unseen = [x for x, e in zip(row[:blocks], E_QK, strict=False) if not e]
    return {
        "W_OV_same": [output[own]] if informative else [],
        "W_OV_other": [x for i, x in enumerate(output) if i != own] if informative else [],
        "W_OV_noise": [] if informative else output,
        "W_QK_informative": seen,
        "W_QK_same": seen,
        "W_QK_other": unseen,
        "W_QK_noise": row[blocks:],
    }


def _shift(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    """The stated sums of the velocity vanish off the line; so do those of the factors."""
    for case in cases(rng, "CACO", 1, LARGEST):
        velocities = off_line(case, "CACO", rng).velocities()
        for name, _ in laws_of(case):
            yield worst(f"d/dt of the {name}", [law_value(claim, name, velocities, case)], case)
    for code, name in (("CAFO", "ones U of OV"), ("FACO", "V ones of QK")):
        for case in cases(rng, code, 1, LARGEST):
            if case.finite or code == "CAFO":
                model = off_line(case, code, rng)
                slopes, factors = (_factors(x) for x in (model.gradients(), model.parameters))
                moving = {f"d{letter}": slope for letter, slope in slopes.items()}
                drift = claim.stated[name].derivative({letter: matrix(f"d{letter}") for letter in slopes})
                if not drift.terms:
                    continue  # the stated expression is constant
                sums = evaluate_words(drift, factors | moving | {"1": ones_for(name, factors)}, {})
                yield worst(f"d/dt of {name}", sums.ravel(), case)


def _factors(matrices: Mapping[str, Matrix]) -> dict[str, Any]:
    return {name[0]: np.array(rows, dtype=object) for name, rows in matrices.items() if name[0] in "UV"}


def ones_for(name: str, factors: Mapping[str, Any]) -> Any:
    """The vector of ones that a stated law multiplies a factor by."""
    rows = factors["U" if "U" in name else "V"].shape[0]
    like = next(iter(factors.values())).ravel()[0]
    return np.full((rows, 1), like * 0 + 1)


def _factor(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    """Speed of a factorized circuit over that of the collapsed one at the same point."""
    for case in cases(rng, "FAFO", 1, LARGEST):
        imbalance: dict[Circuit, Any] = {"OV": case.values[c_OV], "QK": case.values[c_QK]}
        used = imbalance if claim.subject[1] == "imbalanced" else None
        fast = ExplicitModel.on_line(case, "FAFO", used).velocities()
        slow = ExplicitModel.on_line(case, "CACO").velocities()
        scales: dict[Circuit, Any] = {"OV": SIGMA_OV, "QK": setting_of(case).sigma_QK}
        for circuit, scale in scales.items():
            images = {sigma: scale, mu: COORDINATE[circuit], c: imbalance[circuit]}
            factor = enclosed(claim.stated["factor"].xreplace(images), case.values)
            pairs = zip(fast[circuit], slow[circuit], strict=True)
            found = [x - factor * y for row, other in pairs for x, y in zip(row, other, strict=True)]
            yield worst(f"dW_{circuit}/dt minus the factor times the collapsed one", found, case)


def _integral(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    """The stated constant does not change along the velocity of the enumerated loss."""
    imbalanced = claim.subject[1] == "imbalanced-ov"
    for code in ("CAFO", "FAFO") if imbalanced else (claim.subject[1],):
        for case in cases(rng, code, 2 if "F" in code else 1, LARGEST):
            c_: dict[Circuit, Any] | None = {"OV": case.values[c_OV]} if imbalanced else None
            velocities = ExplicitModel.on_line(case, code, c_).velocities()
            value = integral_formula(claim, case, imbalanced)
            drift = sum(
                enclosed(diff(value, COORDINATE[k]), case.values) * speed(velocities[k], direction(case, k))
                for k in velocities
            )
            yield worst("d/dt of y - slope x", [drift], case)


CHECKS: dict[str, Callable[[Claim, np.random.Generator], Iterator[Finding]]] = {
    "attention": _attention,
    "loss": _loss,
    "velocity": _velocity,
    "noise": _noise,
    "directions": _directions,
    "shift": _shift,
    "factor": _factor,
    "integral": _integral,
}
