"""The settings of the theory and its published formulas, typed as published: what the derivation is confronted with.

Source: arXiv 2608.06776. Nothing here is used by a derivation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sympy import Abs, Integer, exp, log, oo, sqrt

from theory.flow import ReducedFlow, derive
from theory.model import PARAMETERIZATIONS, AttentionModel
from theory.symbols import K, M, N, alpha, b, eta_OV, eta_QK, gamma, m, mu_OV, mu_QK, n
from theory.task import QueryKind, TokenTask

__all__ = ["ALPHA", "LOSS", "SETTINGS", "D", "Setting", "model", "setting_flow"]

#: Attention mass, denominator of the velocities and loss on the line.
ALPHA = m * exp(gamma * mu_QK) / (m * exp(gamma * mu_QK) + n)
D = exp(alpha * mu_OV) + M - 1
LOSS = log(1 + (M - 1) * exp(-alpha * mu_OV))


@dataclass(frozen=True)
class Setting:
    """A query kind with finite or infinite noise."""

    query_kind: QueryKind
    finite: bool

    @property
    def label(self) -> str:
        """A short name for messages."""
        return f"{self.query_kind}, {'N' if self.finite else 'N = oo'}"

    @property
    def task(self) -> TokenTask:
        """The task with symbolic sizes and score scale."""
        return TokenTask(noise=N if self.finite else oo, query_kind=self.query_kind, score_scale=gamma)

    @property
    def seen(self) -> Any:
        """``S``, the informative tokens that a query token is trained on."""
        return M * b if self.query_kind == "shared" else b

    @property
    def shape(self) -> tuple[Any, Any]:
        """Entries ``(a, -c)`` of the query-key direction, as ``(a, c)``."""
        if not self.finite:
            return Integer(1), Integer(0)
        return N / (self.seen + N), self.seen / (self.seen + N)

    @property
    def norm2_QK(self) -> Any:
        """``||E_QK||^2``."""
        if self.query_kind == "shared":
            return K * M * b * N / (M * b + N) if self.finite else K * M * b
        return M * K * b * N / (b + N) if self.finite else M * K * b

    @property
    def sigma_QK(self) -> Any:
        """The singular value of ``E_QK``; None where there are several."""
        if self.query_kind == "shared":
            return sqrt(self.norm2_QK)
        return None if self.finite else sqrt(K * b)


SETTINGS = (
    Setting("shared", True),
    Setting("shared", False),
    Setting("per_class", True),
    Setting("per_class", False),
)

NORM2_OV = (M - 1) * b
SIGMA_OV = sqrt(b)


def model(setting: Setting, code: str = "CACO", **options: Any) -> AttentionModel:
    """The model of a setting with the paper's code for its parameterization."""
    qk, ov = PARAMETERIZATIONS[code]
    return AttentionModel(setting.task, qk=qk, ov=ov, **options)


def setting_flow(setting: Setting, code: str = "CACO", **options: Any) -> ReducedFlow:
    """The derived flow of a setting."""
    return derive(model(setting, code, **options))


def has_line(setting: Setting, code: str) -> bool:
    """Whether a parameterization stays on the line in a setting: a factorized query-key circuit needs one
    singular value.
    """
    return code[0] == "C" or setting.sigma_QK is not None


def velocity_OV() -> Any:
    """``d mu_OV/dt`` of the collapsed circuit."""
    return eta_OV * alpha / (b * D)


def velocity_QK(setting: Setting) -> Any:
    """``d mu_QK/dt`` of the collapsed circuit."""
    return eta_QK * gamma * (M - 1) * alpha * (1 - alpha) * mu_OV / (setting.norm2_QK * D)


def balanced(sigma: Any, mu: Any) -> Any:
    """Rate factor of a balanced factorized circuit."""
    return 2 * sigma * Abs(mu)


def imbalanced(sigma: Any, mu: Any, c: Any) -> Any:
    """Rate factor of a factorized circuit with imbalance ``c``."""
    return sqrt(c**2 + 4 * sigma**2 * mu**2)
