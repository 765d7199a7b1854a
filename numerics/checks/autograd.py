"""Autograd evidence: stated formulas against derivatives of the enumerated loss of the full model, at random points.

Source: sections 2 to 5 of the theory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import numpy as np
import torch
from sympy import Rational

from numerics.checks.cases import Array, Case, Circuit, cases, evaluate, matrix_velocities, with_attention
from numerics.checks.comparison import Comparison, Finding
from numerics.checks.formulas import published_case, setting_of, velocity_formula
from numerics.checks.instance import law_value, laws_of, ones_for
from numerics.checks.tape import ball
from theory.paper.factors import c, mu, sigma
from theory.paper.settings import SIGMA_OV
from theory.registry import Claim
from theory.symbols import c_OV, c_QK, mu_OV, mu_QK
from theory.words import Words, matrix

__all__ = ["CHECKS", "ROUNDING", "along", "exact_rows", "numeric", "off_line"]

#: Rounding of the enumerated loss and its gradient: sums of up to about 1e4 terms in double precision, each
#: within 1e-16 of its size.
ROUNDING = 1e-11

COORDINATE: dict[Circuit, Any] = {"OV": mu_OV, "QK": mu_QK}


def _compare(what: str, stated: float, found: float, case: Case) -> Comparison:
    return Comparison(what, stated, found, ROUNDING * (1 + abs(found)), case.describe())


def along(velocity: Array, direction: Array) -> float:
    return float(np.vdot(velocity, direction) / np.vdot(direction, direction))


def _attention(claim: Claim, rng: np.random.Generator, repeats: int = 3) -> Iterator[Finding]:
    for case in cases(rng, "CACO", repeats):
        yield _compare("alpha", evaluate(claim.stated["alpha"], case.values), float(case.model().attention()), case)


def _loss(claim: Claim, rng: np.random.Generator, repeats: int = 3) -> Iterator[Finding]:
    for case in cases(rng, "CACO", repeats):
        formula = with_attention(claim.stated["L"])
        yield _compare("L", evaluate(formula, case.values), float(case.model().loss().detach()), case)


def _velocity(claim: Claim, rng: np.random.Generator, repeats: int = 3) -> Iterator[Finding]:
    published = claim.subject[1] == "published"
    for drawn in cases(rng, "CACO" if published else claim.subject[1], repeats):
        case = published_case(drawn) if published else drawn
        net = case.model()
        directions = {"OV": net.directions().E_OV, "QK": net.directions().E_QK}
        for circuit, velocity in matrix_velocities(net, case.rates).items():
            name = COORDINATE[circuit].name
            formula = velocity_formula(claim, name, case)
            stated = evaluate(formula, case.values)
            yield _compare(f"d{name}/dt", stated, along(velocity, directions[circuit]), case)
            beside = np.abs(velocity - stated * directions[circuit]).max()
            yield _compare(f"dW_{circuit}/dt beside the line", 0.0, float(beside), case)


def _noise(claim: Claim, rng: np.random.Generator, repeats: int = 3) -> Iterator[Finding]:
    for case in cases(rng, "CACO", repeats):
        if case.finite:
            infinite = Case(case.query_kind, False, case.code, case.values)
            speeds = [
                along(matrix_velocities(c.model(), c.rates)["QK"], c.model().directions().E_QK)
                for c in (case, infinite)
            ]
            stated = evaluate(claim.stated[case.query_kind], case.values)
            yield _compare("speed, finite over infinite N", stated, speeds[0] / speeds[1], case)


def _directions(claim: Claim, rng: np.random.Generator, repeats: int = 3) -> Iterator[Finding]:
    """The velocity on the line has the stated proportions."""
    for case in cases(rng, "CACO", repeats):
        M, N = int(case.task.classes), 0 if not case.finite else int(case.task.noise)
        blocks = np.repeat(np.arange(M), int(case.task.block))
        velocities = matrix_velocities(case.model(), case.rates)
        own = blocks[None, :] == np.arange(M)[:, None]
        same, other = (evaluate(claim.stated[f"E_OV {k}"], case.values) for k in ("same", "other"))
        E_OV = np.concatenate([np.where(own, same, other), np.zeros((M, max(N, 1)))], axis=1)
        a = evaluate(claim.stated[f"a [{case.query_kind}]"], case.values) if case.finite else 1.0
        c = evaluate(claim.stated[f"c [{case.query_kind}]"], case.values) if case.finite else 0.0
        rows = velocities["QK"].shape[0]
        classes = np.repeat(np.arange(M), rows // M) if case.query_kind == "per_class" else None
        seen = np.ones((rows, blocks.size), bool) if classes is None else classes[:, None] == blocks[None, :]
        E_QK = np.concatenate([np.where(seen, a, 0.0), np.full((rows, max(N, 1)), -c)], axis=1)
        for circuit, E in (("OV", E_OV), ("QK", E_QK)):
            velocity = velocities[circuit]  # type: ignore[index]
            beside = np.abs(velocity - along(velocity, E) * E).max()
            yield _compare(f"dW_{circuit}/dt beside E_{circuit}", 0.0, float(beside), case)


def off_line(case: Case, rng: np.random.Generator, code: str) -> Any:
    """The model of a case with random parameters, off the line."""
    net = case.model(code)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.from_numpy(rng.normal(size=tuple(parameter.shape))))
    net.set_matrices(**{k: _frozen(net, k, v) for k, v in net.named_parameters()})
    return net


def _frozen(net: Any, name: str, value: Any) -> Any:
    if name.startswith("U"):
        return value.detach()
    return value.detach() * (net.embedding[:, None] if name.startswith("V") else net.embedding)


def exact_rows(W: Array) -> list[list[Any]]:
    """The entries of a matrix, exactly, as balls."""
    return [[ball(Rational(float(x))) for x in row] for row in W]


def _shift(claim: Claim, rng: np.random.Generator, repeats: int = 4) -> Iterator[Finding]:
    """The stated sums do not change off the line; neither do those of the factors.

    Several cases of each setting: in one of them alone ``N = 1`` or ``b = M`` would hide a wrong size.
    """
    for case in cases(rng, "CACO", repeats):
        velocities = matrix_velocities(off_line(case, rng, "CACO"), case.rates)
        rows: dict[Circuit, Any] = {c: exact_rows(v) for c, v in velocities.items()}
        for name, _ in laws_of(case):
            yield _compare(f"d/dt of the {name}", 0.0, float(law_value(claim, name, rows, case).mid()), case)
        net = off_line(case, rng, "FAFO")
        named = dict(net.named_parameters())
        grads = dict(zip(named, torch.autograd.grad(net.loss(), list(named.values())), strict=True))
        for circuit, name in (("OV", "ones U of OV"), ("QK", "V ones of QK")):
            if case.finite or circuit == "OV":
                slopes = {side: grads[f"{side}_{circuit}"].numpy() for side in "UV"}
                factors = {side: named[f"{side}_{circuit}"].detach().numpy() for side in "UV"}
                sums = numeric_drift(claim.stated[name], factors | {"1": ones_for(name, factors)}, slopes)
                yield _compare(f"d/dt of {name}", 0.0, float(np.abs(sums).max()), case)


def _factor(claim: Claim, rng: np.random.Generator, repeats: int = 3) -> Iterator[Finding]:
    """Speed of a factorized circuit over that of the collapsed one at the same point."""
    for case in cases(rng, "FAFO", repeats):
        imbalance: dict[Circuit, Any] = {"OV": case.values[c_OV], "QK": case.values[c_QK]}
        factorized = case.model("FAFO", imbalance if claim.subject[1] == "imbalanced" else None)
        fast, slow = (matrix_velocities(net, case.rates) for net in (factorized, case.model("CACO")))
        directions = {"OV": factorized.directions().E_OV, "QK": factorized.directions().E_QK}
        setting = setting_of(case)
        values: dict[Circuit, Any] = {"OV": SIGMA_OV, "QK": setting.sigma_QK}
        for circuit, E in directions.items():
            images = {sigma: values[circuit], mu: COORDINATE[circuit], c: imbalance[circuit]}  # type: ignore[index]
            stated = evaluate(claim.stated["factor"].xreplace(images), case.values)
            found = along(fast[circuit], E) / along(slow[circuit], E)  # type: ignore[index]
            yield _compare(f"factor of {circuit}", stated, found, case)


def _isometry(claim: Claim, rng: np.random.Generator, repeats: int = 3) -> Iterator[Finding]:
    """Singular values of the explicit directions."""
    for case in cases(rng, "CACO", repeats):
        directions = case.model().directions()
        for circuit, E in (("OV", directions.E_OV), ("QK", directions.E_QK)):
            values = np.linalg.svd(E, compute_uv=False)
            found = np.sort(np.unique(np.round(values[values > 1e-9] ** 2, 9)))
            key = f"sigma2_{circuit} [{case.label}]"
            keys = [key] if key in claim.stated else [f"{key} M-1 times", f"{key} once"]
            stated = [evaluate(claim.stated[k], case.values) for k in keys]
            yield _compare(f"number of singular values of E_{circuit}", len(stated), len(found), case)
            for s, f in zip(stated, found, strict=False):
                # the squares were rounded to 9 digits to tell equal from different
                yield Comparison(f"sigma^2 of E_{circuit}", s, float(f), 1e-8, case.describe())


def numeric(words: Words, matrices: dict[str, Array], scalars: dict[str, float]) -> Array:
    total: Array | None = None
    for word, coefficient in words.terms.items():
        value = float(coefficient.xreplace({s: scalars[s.name] for s in coefficient.free_symbols}))
        if not word:
            raise ValueError("a word without letters has no size")
        product = reduce(np.matmul, (matrices[a].T if t else matrices[a] for a, t in word))
        total = value * product if total is None else total + value * product
    if total is None:
        raise ValueError("no word to evaluate")
    return total


def numeric_drift(words: Words, matrices: dict[str, Array], slopes: dict[str, Array]) -> Array:
    """The derivative of an expression in matrices, some of which move with the given slopes."""
    drift = words.derivative({letter: matrix(f"d{letter}") for letter in slopes})
    if not drift.terms:
        return np.zeros((1, 1))
    return numeric(drift, matrices | {f"d{letter}": slope for letter, slope in slopes.items()}, {})


def _words(claim: Claim, rng: np.random.Generator, repeats: int = 3) -> Iterator[Finding]:
    """Random factors of several shapes, with the gradient of a smooth loss by automatic differentiation."""
    for rows, inner, columns in ((2, 2, 3), (3, 1, 2), (2, 4, 2)) * repeats:
        U, V = (torch.tensor(rng.normal(size=(k, inner)), requires_grad=True) for k in (rows, columns))
        target = torch.tensor(rng.normal(size=(rows, columns)))
        if claim.subject[1] == "root":
            yield from _roots(claim, U.detach().numpy(), f"U {rows}x{inner}")
            continue
        product = (U @ V.T).detach().requires_grad_()
        (G,) = torch.autograd.grad((torch.exp(product / 2) * target).sum() + (product**4).sum() / 40, product)
        loss = (torch.exp(U @ V.T / 2) * target).sum() + ((U @ V.T) ** 4).sum() / 40
        dU, dV = (-0.7 * g.numpy() for g in torch.autograd.grad(loss, (U, V)))
        u, v = U.detach().numpy(), V.detach().numpy()
        matrices = {"U": u, "V": v, "G": G.numpy()}
        shape = f"U {rows}x{inner}, V {columns}x{inner}"
        if claim.subject[1] == "W":
            stated = numeric(claim.stated["dW/dt"], matrices, {"eta": 0.7})
            found = dU @ v.T + u @ dV.T
            error, size = float(np.abs(stated - found).max()), float(np.abs(found).max())
        else:
            error = float(np.abs(numeric_drift(claim.stated["conserved"], matrices, {"U": dU, "V": dV})).max())
            size = float(np.abs(dU.T @ u).max())
        yield Comparison(f"largest entry of the {claim.id} residual", 0.0, error, ROUNDING * (1 + size), shape)


def _roots(claim: Claim, u: Array, shape: str) -> Iterator[Comparison]:
    """Balanced factors ``V = Q U R`` with an orthogonal ``Q``, and the square roots by eigenvalues."""
    rotation = np.linalg.qr(np.random.default_rng(u.shape[0]).normal(size=(u.shape[0], u.shape[0])))[0]
    v = rotation @ u
    W = u @ v.T
    for name, square in (("U U^T", W @ W.T), ("V V^T", W.T @ W)):
        values, vectors = np.linalg.eigh(square)
        root = vectors @ np.diag(np.sqrt(np.clip(values, 0, None))) @ vectors.T
        error = float(np.abs(numeric(claim.stated[name], {"U": u, "V": v}, {}) - root).max())
        # the square root of an eigenvalue that is 0 up to 1e-16 is 1e-8
        yield Comparison(f"{name} against the square root", 0.0, error, 1e-6, shape)


CHECKS: dict[str, Callable[[Claim, np.random.Generator], Iterator[Finding]]] = {
    "attention": _attention,
    "loss": _loss,
    "velocity": _velocity,
    "noise": _noise,
    "directions": _directions,
    "shift": _shift,
    "factor": _factor,
    "isometry": _isometry,
    "words": _words,
}
