"""Instance evidence for claims about matrices and optimizers: exact fractions, or balls where a softmax enters.

Source: sections 5 and 9 of the theory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from sympy import Rational, sympify

from numerics.checks.cases import Circuit, cases
from numerics.checks.comparison import Finding, Residual
from numerics.checks.enclosure import Positive
from numerics.checks.exact_words import Exact, entries, evaluate_words, fraction, random_matrix
from numerics.checks.explicit_model import ExplicitModel, direction
from numerics.checks.instance import LARGEST, beside, speed, worst
from numerics.checks.tape import ball
from theory.registry import Claim
from theory.symbols import N, c_OV, c_QK
from theory.words import matrix

__all__ = ["CHECKS"]

SHAPES = ((2, 2, 3), (3, 1, 2), (2, 4, 2))
_ETA = {"eta": Rational(7, 10)}


def _zero(what: str, residual: Exact, case: str) -> Residual:
    return worst(what, [ball(x) for x in entries(residual)], case)


def _words(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    """Random fractions; the gradient of a linear loss is any matrix."""
    for rows, inner, columns in SHAPES:
        U, V = random_matrix(rng, rows, inner), random_matrix(rng, columns, inner)
        G, shape = random_matrix(rng, rows, columns), f"U {rows}x{inner}, V {columns}x{inner}"
        dU, dV = -fraction(_ETA["eta"]) * (G @ V), -fraction(_ETA["eta"]) * (G.T @ U)
        if claim.subject[1] == "root":
            yield from _roots(claim, U, shape)
        elif claim.subject[1] == "W":
            stated = evaluate_words(claim.stated["dW/dt"], {"U": U, "V": V, "G": G}, _ETA)
            yield _zero("stated dW/dt minus that of the product", stated - dU @ V.T - U @ dV.T, shape)
        else:
            drift = claim.stated["conserved"].derivative({"U": matrix("dU"), "V": matrix("dV")})
            yield _zero("d/dt", evaluate_words(drift, {"U": U, "V": V, "dU": dU, "dV": dV}, {}), shape)


def _roots(claim: Claim, U: Exact, shape: str) -> Iterator[Finding]:
    """Balanced factors ``V = Q U`` with a rational rotation ``Q``."""
    size = U.shape[0]
    Q = np.array([[Fraction(int(i == j)) for j in range(size)] for i in range(size)], dtype=object)
    Q[0, 0], Q[0, 1], Q[1, 0], Q[1, 1] = Fraction(3, 5), Fraction(-4, 5), Fraction(4, 5), Fraction(3, 5)
    V = Q @ U
    W = U @ V.T
    for name, square in (("U U^T", W @ W.T), ("V V^T", W.T @ W)):
        root = evaluate_words(claim.stated[name], {"U": U, "V": V}, {})
        yield _zero(f"({name})^2 minus the square", root @ root - square, shape)
        yield _zero(f"{name} minus its transpose", root - root.T, shape)


def _isometry(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    """``E E^T E`` of the explicit directions, in fractions."""
    for case in cases(rng, "CACO", 2):
        circuits: tuple[Circuit, ...] = ("OV", "QK")
        for circuit in circuits:
            E = np.array(direction(case, circuit), dtype=object)
            gram, key = E @ E.T, f"sigma2_{circuit} [{case.label}]"
            if key in claim.stated:
                square = fraction(sympify(claim.stated[key]).xreplace(dict(case.values)))
                yield _zero(f"E E^T E - sigma^2 E, {circuit}", gram @ E - square * E, case.describe())
                continue
            once, often = (
                fraction(sympify(claim.stated[f"{key} {times}"]).xreplace(dict(case.values)))
                for times in ("once", "M-1 times")
            )
            both = gram @ (gram @ E) - (once + often) * (gram @ E) + once * often * E
            yield _zero(f"(E E^T - s_1)(E E^T - s_2) E, {circuit}", both, case.describe())
            trace = sum(gram[i, i] for i in range(gram.shape[0])) - once - (int(case.task.classes) - 1) * often
            yield worst(f"trace of E E^T, {circuit}", [ball(trace)], case)
            apart = max(abs(x) for x in entries(gram @ E - once * E))
            yield Positive(f"E E^T E apart from a multiple of E, {circuit}", ball(apart), case.describe())


def _adam(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    """One step of Adam, ``-G/(|G| + 1/100)`` entry by entry, from a point of the line."""
    for drawn in cases(rng, "CACO", 1, LARGEST):
        equal = {**drawn.values, N: drawn.task.block * (drawn.task.classes if drawn.query_kind == "shared" else 1)}
        for case in (drawn, replace(drawn, values=equal)) if drawn.finite else (drawn,):
            for circuit, G in ExplicitModel.on_line(case).velocities().items():
                E = direction(case, circuit)
                key = "OV" if circuit == "OV" else f"QK [{case.label}]"
                stated = fraction(sympify(claim.stated[key]).xreplace(dict(case.values)))
                sizes = [max((abs(e) for row in E for e in row if e * side > 0), default=None) for side in (1, -1)]
                measured = sizes[0] - (sizes[1] if sizes[1] is not None else sizes[0])  # type: ignore[operator]
                yield worst(f"|e| - |f| in E_{circuit}", [ball(stated - measured)], case)
                step = [[g / (abs(g) + ball(Fraction(1, 100))) for g in row] for row in G]
                rest = beside(step, E, speed(step, E))
                if stated == 0:
                    yield worst(f"the step of W_{circuit} beside its line", rest, case)
                else:
                    largest = max((abs(x) for x in rest), key=lambda x: float(x.mid()))
                    yield Positive(f"the step of W_{circuit} leaves its line", largest, case.describe())


def _after(claim: Claim, model: ExplicitModel, step: str, scalars: Mapping[str, Any], count: int) -> ExplicitModel:
    """The model after some steps of the stated update."""
    buffers = {k: np.array([[ball(0)] * len(r) for r in m], dtype=object) for k, m in model.parameters.items()}
    for _ in range(count):
        slopes, moved = model.gradients(), {}
        for name, current in model.parameters.items():
            letters = {
                "W": np.array(current, dtype=object),
                "G": np.array(slopes[name], dtype=object),
                "B_W": buffers[name],
            }
            moved[name] = evaluate_words(claim.stated[step], letters, scalars).tolist()
            if "buffer" in claim.stated:
                buffers[name] = evaluate_words(claim.stated["buffer"], letters, scalars)
        model = replace(model, parameters=moved)
    return model


def _optimizer(claim: Claim, rng: np.random.Generator) -> Iterator[Finding]:
    """Two steps of the stated update on every entry of the parameters, collapsed and factorized with imbalance."""
    scalars = {"h": Rational(1, 3), "lambda": Rational(1, 5), "beta": Rational(4, 5)}
    for code in ("CACO", "FAFO"):
        for case in cases(rng, code, 1, 1 if code == "FAFO" else LARGEST):
            imbalance: dict[Circuit, Any] = {"OV": case.values[c_OV], "QK": case.values[c_QK]}
            start = ExplicitModel.on_line(case, code, imbalance)
            for step in (name for name in claim.stated if name.endswith("step")):
                after = _after(claim, start, step, scalars, 2)
                for circuit, W in after.matrices().items():
                    E = direction(case, circuit)
                    yield worst(f"W_{circuit} beside its line, {step}", beside(W, E, speed(W, E)), case)


CHECKS = {"words": _words, "isometry": _isometry, "adam": _adam, "optimizer": _optimizer}
