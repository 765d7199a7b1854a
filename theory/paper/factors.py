"""Claims about factorized circuits: product flow, balancedness, rescaling, the isometry criterion, and the
flows that follow.

Source: arXiv 2608.06776, implicit rescaling of learning rates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sympy import Integer, Symbol

from theory.factorization import (
    BALANCED,
    balance_trace,
    factor_velocity,
    product_flow,
    product_trace,
    rescaling,
    root_trace,
)
from theory.line import COORDINATES, collapsed_line
from theory.paper.lines import SOURCE, assumptions_of, trace_of
from theory.paper.settings import (
    ALPHA,
    SETTINGS,
    SIGMA_OV,
    Setting,
    balanced,
    has_line,
    imbalanced,
    setting_flow,
    velocity_OV,
    velocity_QK,
)
from theory.positivity import sign
from theory.registry import Claim, Obligation, Stated, published
from theory.symbols import K, M, N, alpha, b, c_OV, c_QK, mu_OV, mu_QK
from theory.trace import Assumption, Step, Trace
from theory.words import Letter, Words, matrix, rewrite

U, V, G, W = matrix("U"), matrix("V"), matrix("G"), matrix("W")
eta = Symbol("eta", positive=True)
sigma = Symbol("sigma", positive=True)
mu = Symbol("mu", real=True)
c = Symbol("c", real=True)


def _product_flow(stated: Stated) -> Iterator[Obligation]:
    yield Obligation("dW/dt", stated["dW/dt"] - product_flow(eta))


def _balancedness(stated: Stated) -> Iterator[Obligation]:
    yield Obligation("d/dt", stated["conserved"].derivative(factor_velocity(eta)))


def _balanced_root(stated: Stated) -> Iterator[Obligation]:
    product = {"W": U @ V.T}
    for name, square in (("U U^T", W @ W.T), ("V V^T", W.T @ W)):
        root = stated[name]
        left = rewrite(root @ root - square.replace(product), BALANCED)
        yield Obligation(f"({name})^2", left, decisive=False, hypotheses=BALANCED)
        plain = rewrite(root, BALANCED)
        squares = Words.of({w: k for w, k in plain.terms.items() if sign(k) == 1 and _is_square(w)})
        yield Obligation(f"{name} is a sum of squares X X^T", plain - squares, decisive=False)
        size = Symbol("u", positive=True)
        at_size_one = sum((k * size ** len(w) for w, k in root.terms.items()), Integer(0))
        yield Obligation(f"{name} for U = V = (u)", at_size_one, "> 0")


def _is_square(word: tuple[Letter, ...]) -> bool:
    """Whether a word reads ``X X^T``."""
    half = len(word) // 2
    return len(word) % 2 == 0 and word[half:] == tuple((a, not t) for a, t in reversed(word[:half]))


def _directions() -> Iterator[tuple[Setting, str, Any]]:
    """Every direction that has one singular value, with its stated sigma."""
    for setting in SETTINGS:
        yield setting, "OV", SIGMA_OV
        if setting.sigma_QK is not None:
            yield setting, "QK", setting.sigma_QK


def _rescaling(stated: Stated, imbalance: Any) -> Iterator[Obligation]:
    for setting, circuit, value in _directions():
        direction = collapsed_line(setting.task).directions[circuit]  # type: ignore[index]
        coordinate = COORDINATES[circuit]  # type: ignore[index]
        formula = stated["factor"].xreplace({sigma: value, mu: coordinate, c: imbalance})
        derived = rescaling(direction, coordinate, imbalance).factor
        yield Obligation(f"factor of {circuit} [{setting.label}]", formula - derived)


def _isometry(stated: Stated) -> Iterator[Obligation]:
    for setting in SETTINGS:
        for circuit, direction in collapsed_line(setting.task).directions.items():
            E = direction.matrix
            key = f"sigma2_{circuit} [{setting.label}]"
            if key in stated:
                yield Obligation(f"E E^T E - sigma^2 E, {key}", E @ E.T @ E - stated[key] * E)
                continue
            once, often = (stated[f"{key} {times}"] for times in ("once", "M-1 times"))
            found = {times: value for value, times in direction.singular_values2}
            yield Obligation(f"{key}, on class-constant vectors", once - found[Integer(1)])
            yield Obligation(f"{key}, on class-zero-sum vectors", often - found[M - 1])
            yield Obligation(f"{key}, gap of the squared singular values", once - often, "> 0")


def _spectra() -> Trace:
    """The squared singular values of every direction, with their multiplicities."""
    return tuple(
        Step("spectrum", f"{circuit} [{setting.label}]", (direction.matrix,), direction.singular_values2)
        for setting in SETTINGS
        for circuit, direction in collapsed_line(setting.task).directions.items()
    )


def _flows(code: str) -> Any:
    def obligations(stated: Stated) -> Iterator[Obligation]:
        for setting in SETTINGS:
            if not has_line(setting, code):
                continue
            flow = setting_flow(setting, code)
            for state in ("mu_OV", "mu_QK"):
                formula = stated[state] if state in stated else stated[f"{state} [{setting.label}]"]
                difference = formula.xreplace({alpha: ALPHA}) - flow.velocity[state]
                yield Obligation(f"d{state}/dt [{setting.label}]", difference)

    return obligations


def _stated_flow(code: str) -> dict[str, Any]:
    output = velocity_OV() * (balanced(SIGMA_OV, mu_OV) if code[2] == "F" else 1)
    formulas = {"mu_OV": output}
    for setting in SETTINGS:
        if has_line(setting, code):
            scale = balanced(setting.sigma_QK, mu_QK) if code[0] == "F" else 1
            formulas[f"mu_QK [{setting.label}]"] = velocity_QK(setting) * scale
    return formulas


def _flow_claim(code: str, title: str) -> Claim:
    setting = SETTINGS[0]
    return published(
        f"flow-{code.lower()}",
        f"Reduced flow, {title} ({code})",
        "the collapsed flow with the rate of each balanced factorized circuit multiplied by 2 sigma |mu|",
        _stated_flow(code),
        _flows(code),
        SOURCE,
        lambda: assumptions_of(setting, code),
        lambda: trace_of(setting, code),
        ("velocity", code),
    )


_ISOMETRY = {
    **{f"sigma2_OV [{s.label}]": b for s in SETTINGS},
    "sigma2_QK [shared, N]": K * M * b * N / (M * b + N),
    "sigma2_QK [shared, N = oo]": K * M * b,
    "sigma2_QK [per_class, N = oo]": K * b,
    "sigma2_QK [per_class, N] once": K * b * N * (N + M * b) / (b + N) ** 2,
    "sigma2_QK [per_class, N] M-1 times": K * b * N**2 / (b + N) ** 2,
}

_ANY_SHAPES = (Assumption("W = U V^T, matrices of any shapes; gradient flow with one rate eta for both factors"),)
_LINE = Assumption("the circuit starts on its line and E E^T E = sigma^2 E")


def _any_shapes() -> tuple[Assumption, ...]:
    return _ANY_SHAPES


CLAIMS = (
    published(
        "product-flow",
        "Flow of a product",
        "dW/dt = -eta (U U^T G + G V V^T), G = dL/dW",
        {"dW/dt": (-eta) * (U @ U.T @ G) + (-eta) * (G @ V @ V.T)},
        _product_flow,
        SOURCE,
        _any_shapes,
        product_trace,
        ("words", "W"),
    ),
    published(
        "balancedness",
        "Balancedness is conserved",
        "U^T U - V^T V is constant",
        {"conserved": U.T @ U - V.T @ V},
        _balancedness,
        SOURCE,
        _any_shapes,
        balance_trace,
        ("words", "conserved"),
    ),
    published(
        "balanced-root",
        "Balanced factors are square roots",
        "U^T U = V^T V: U U^T = (W W^T)^(1/2), V V^T = (W^T W)^(1/2)",
        {"U U^T": U @ U.T, "V V^T": V @ V.T},
        _balanced_root,
        SOURCE,
        lambda: (
            *_ANY_SHAPES,
            Assumption("U^T U = V^T V"),
            Assumption("U U^T and V V^T are positive semidefinite, so each is the unique such root of its square"),
        ),
        root_trace,
        ("words", "root"),
    ),
    published(
        "rescaling-balanced",
        "A balanced factorization multiplies the rate by 2 sigma |mu|",
        "U^T U = V^T V on the line: the rate is multiplied by 2 sigma |mu|",
        {"factor": balanced(sigma, mu)},
        lambda stated: _rescaling(stated, Integer(0)),
        SOURCE,
        lambda: (*_ANY_SHAPES, _LINE, Assumption("balanced start, mu not 0")),
        lambda: trace_of(SETTINGS[0], "FAFO"),
        ("factor", "balanced"),
    ),
    published(
        "rescaling-imbalanced",
        "An imbalanced factorization multiplies the rate by sqrt(c^2 + 4 sigma^2 mu^2)",
        "U^T U - V^T V = c P on the line: the rate is multiplied by sqrt(c^2 + 4 sigma^2 mu^2)",
        {"factor": imbalanced(sigma, mu, c)},
        lambda stated: (o for value in (c_OV, c_QK) for o in _rescaling(stated, value)),
        SOURCE,
        lambda: (
            *_ANY_SHAPES,
            _LINE,
            Assumption("U = u A, V = v B, A B^T = E/sigma, A^T A = B^T B = P, u^2 - v^2 = c"),
        ),
        lambda: trace_of(SETTINGS[0], "FAFO", imbalance_qk=c_QK, imbalance_ov=c_OV),
        ("factor", "imbalanced"),
    ),
    published(
        "isometry-criterion",
        "One distinct non-zero singular value, or no line",
        "E E^T E = sigma^2 E holds for both circuits, except query-key with per-class queries and finite N, "
        "where it never does",
        _ISOMETRY,
        _isometry,
        SOURCE,
        lambda: (Assumption("all sizes; M >= 2"),),
        _spectra,
        ("isometry",),
    ),
    _flow_claim("CAFO", "output-value factorized"),
    _flow_claim("FACO", "query-key factorized"),
    _flow_claim("FAFO", "both circuits factorized"),
)

__all__ = ["CLAIMS"]
