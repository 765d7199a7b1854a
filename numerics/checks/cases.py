"""Random small cases on which a claim is confronted with the full model: exact values, concrete sizes.

Source: section 2 of the theory (the model); every value is rational, so that formulas are evaluated exactly up
to one rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sympy import Integer, Rational, Symbol, oo

from numerics.checks.tape import BITS
from numerics.matrix_model import MatrixModel
from theory.balls import enclose
from theory.model import PARAMETERIZATIONS
from theory.paper.settings import ALPHA, SETTINGS, has_line
from theory.symbols import K, M, N, alpha, b, c_OV, c_QK, eta_OV, eta_QK, gamma, m, mu_OV, mu_QK, n
from theory.task import QueryKind, TokenTask

__all__ = ["Case", "Circuit", "cases", "draw", "enclosed", "evaluate", "exact", "matrix_velocities", "with_attention"]

Array = NDArray[np.float64]
Circuit = Literal["OV", "QK"]


@dataclass(frozen=True)
class Case:
    """A concrete setting: query kind, finite or infinite noise, parameterization, and a rational value for each
    symbol.
    """

    query_kind: QueryKind
    finite: bool
    code: str
    values: Mapping[Symbol, Rational]

    @property
    def label(self) -> str:
        """The setting in the words of the claims."""
        return f"{self.query_kind}, {'N' if self.finite else 'N = oo'}"

    @property
    def task(self) -> TokenTask:
        """The task with the sizes of the case."""
        value = self.values
        noise = value[N] if self.finite else oo
        return TokenTask(value[M], value[b], value[K], noise, value[m], value[n], self.query_kind, value[gamma])

    @property
    def rates(self) -> dict[str, float]:
        """Both learning rates."""
        return {"eta_OV": float(self.values[eta_OV]), "eta_QK": float(self.values[eta_QK])}

    def model(self, code: str | None = None, imbalance: Mapping[Circuit, Any] | None = None) -> MatrixModel:
        """The full model on the line at the coordinates of the case."""
        qk, ov = PARAMETERIZATIONS[code or self.code]
        c = imbalance or {}
        start = {"mu_OV": float(self.values[mu_OV]), "mu_QK": float(self.values[mu_QK])}
        return MatrixModel(
            self.task,
            qk=qk,
            ov=ov,
            start=start,
            imbalance_qk=float(c.get("QK", 0)),
            imbalance_ov=float(c.get("OV", 0)),
        )

    def describe(self) -> str:
        """The values, for a message."""
        shown = {s: v for s, v in self.values.items() if self.finite or s != N}
        return f"{self.code}, {self.label}: " + ", ".join(f"{s}={v}" for s, v in shown.items())


def draw(
    rng: np.random.Generator, query_kind: QueryKind, finite: bool, code: str = "CACO", index: int = 0, largest: int = 3
) -> Case:
    """Draw sizes 2-3 (classes) and 1-``largest``, one or two slots of each kind, and rational rates, scale, coordinates
    and imbalances.

    Coordinates stay within 2 and away from 0, where a balanced circuit would be stationary. The number of classes and
    all four pairs of signs follow ``index``, so that four cases in a row have them all.
    """

    def size(low: int, high: int) -> Integer:
        return Integer(int(rng.integers(low, high + 1)))

    def rational(low: int, high: int) -> Rational:
        return Rational(int(rng.integers(low, high + 1)), 10)

    def sign(bit: int) -> int:
        return -1 if bit % 2 else 1

    values = {
        M: Integer(3 - (index + index // 4) % 2),
        b: size(1, largest),
        K: size(1, 2),
        N: size(1, largest),
        m: size(1, 2),
        n: size(1, 2),
        gamma: rational(3, 20),
        eta_OV: rational(1, 30),
        eta_QK: rational(1, 30),
        mu_OV: rational(1, 20) * sign(index),
        mu_QK: rational(1, 20) * sign(index // 2),
        c_OV: rational(1, 20) * sign(index // 2),
        c_QK: rational(1, 20) * sign(index),
    }
    return Case(query_kind, finite, code, values)


def cases(rng: np.random.Generator, code: str, repeats: int, largest: int = 3) -> Iterator[Case]:
    """Cases of every setting in which the parameterization stays on the line."""
    index = int(rng.integers(4))
    for setting in SETTINGS:
        for _ in range(repeats if has_line(setting, code) else 0):
            yield draw(rng, setting.query_kind, setting.finite, code, index, largest)
            index += 1


def enclosed(expression: Any, values: Mapping[Symbol, Rational], bits: int = BITS) -> Any:
    """Enclose a formula at rational values: a ball, not finite where the formula has no value."""
    return enclose(expression, {s: values[s] for s in expression.free_symbols if s in values}, bits=bits)


def exact(expression: Any, values: Mapping[Symbol, Rational]) -> Rational:
    """A rational number within ``2^-500`` of a formula's value, for checks at `BITS` bits: far below their rounding.

    Raises: ``ValueError`` when the formula has no finite value there.
    """
    found = enclosed(expression, values, 2 * BITS)
    if not found.is_finite():
        raise ValueError(f"{expression} has no finite value at {dict(values)}")
    numerator, power = found.mid().man_exp()
    return Rational(int(numerator)) * Rational(2) ** int(power)


def evaluate(expression: Any, values: Mapping[Symbol, Rational]) -> float:
    """Evaluate a formula at rational values by ball arithmetic, rounded once to double precision.

    Raises: ``ValueError`` when the formula has no finite value there.
    """
    needed = {s: values[s] for s in expression.free_symbols if s in values}
    ball = enclose(expression, needed, bits=160)
    if not ball.is_finite():
        raise ValueError(f"{expression} has no finite value at {needed}")
    return float(ball.mid())


def with_attention(expression: Any) -> Any:
    """Replace ``alpha`` by its definition, for formulas that are stated with it."""
    return expression.xreplace({alpha: ALPHA})


def matrix_velocities(net: MatrixModel, rates: Mapping[str, float]) -> dict[Circuit, Array]:
    """``dW/dt`` of both effective matrices under gradient flow of the trained parameters, by automatic
    differentiation.
    """
    loss = net.loss()
    named = dict(net.named_parameters())
    found = torch.autograd.grad(loss, list(named.values()))
    speed = {name: -rates[f"eta_{name[-2:]}"] * g for (name, _), g in zip(named.items(), found, strict=True)}
    velocities: dict[Circuit, Array] = {}
    circuits: tuple[Circuit, ...] = ("OV", "QK")
    for circuit in circuits:
        if f"W_{circuit}" in named:
            velocity = speed[f"W_{circuit}"]
        else:
            U, V = named[f"U_{circuit}"], named[f"V_{circuit}"]
            velocity = speed[f"U_{circuit}"] @ V.T + U @ speed[f"V_{circuit}"].T
        velocities[circuit] = (velocity * net.embedding).detach().numpy()
    return velocities
