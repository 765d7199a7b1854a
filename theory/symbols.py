"""Every symbol of the theory, once: name, assumptions, LaTeX, meaning.

Source: arXiv 2608.06776, sections on the task and the reduced dynamics. All symbols are dimensionless
except the time ``t`` (inverse learning rate).

>>> from theory.symbols import M, mu_OV
>>> (M.is_positive, mu_OV.is_real, mu_OV.is_positive)
(True, True, None)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from sympy import Symbol

__all__ = [
    "LOWER_BOUNDS",
    "PARAMETERS",
    "STATES",
    "SYMBOLS",
    "UPPER_BOUNDS",
    "K",
    "M",
    "N",
    "SymbolInfo",
    "alpha",
    "b",
    "c_OV",
    "c_QK",
    "eta_OV",
    "eta_QK",
    "gamma",
    "m",
    "mu_OV",
    "mu_QK",
    "n",
    "t",
]


@dataclass(frozen=True)
class SymbolInfo:
    """A symbol with its LaTeX name, its space and its meaning."""

    symbol: Symbol
    latex: str
    space: str
    meaning: str


M = Symbol("M", integer=True, positive=True)
b = Symbol("b", integer=True, positive=True)
K = Symbol("K", integer=True, positive=True)
N = Symbol("N", integer=True, positive=True)
m = Symbol("m", integer=True, positive=True)
n = Symbol("n", integer=True, positive=True)
gamma = Symbol("gamma", positive=True)
eta_OV = Symbol("eta_OV", positive=True)
eta_QK = Symbol("eta_QK", positive=True)
c_OV = Symbol("c_OV", real=True, nonzero=True)
c_QK = Symbol("c_QK", real=True, nonzero=True)
mu_OV = Symbol("mu_OV", real=True)
mu_QK = Symbol("mu_QK", real=True)
alpha = Symbol("alpha", positive=True)
t = Symbol("t", real=True)

_INFO = (
    SymbolInfo(M, r"M", "integer >= 2", "number of classes"),
    SymbolInfo(b, r"b", "integer >= 1", "informative tokens per class"),
    SymbolInfo(K, r"K", "integer >= 1", "query tokens (per class if the query is class-specific)"),
    SymbolInfo(N, r"N", "integer >= 1", "noise tokens, finite"),
    SymbolInfo(m, r"m", "integer >= 1", "informative slots of a sequence"),
    SymbolInfo(n, r"n", "integer >= 1", "noise slots of a sequence"),
    SymbolInfo(gamma, r"\gamma", "real > 0", "score scale"),
    SymbolInfo(eta_OV, r"\eta_{\mathrm{OV}}", "real > 0", "learning rate of the output-value circuit"),
    SymbolInfo(eta_QK, r"\eta_{\mathrm{QK}}", "real > 0", "learning rate of the query-key circuit"),
    SymbolInfo(c_OV, r"c_{\mathrm{OV}}", "real, not 0", "imbalance of a factorized output-value circuit"),
    SymbolInfo(c_QK, r"c_{\mathrm{QK}}", "real, not 0", "imbalance of a factorized query-key circuit"),
    SymbolInfo(mu_OV, r"\mu_{\mathrm{OV}}", "real", "coordinate of the output-value circuit on its line"),
    SymbolInfo(mu_QK, r"\mu_{\mathrm{QK}}", "real", "coordinate of the query-key circuit on its line"),
    SymbolInfo(alpha, r"\alpha", "0 < alpha <= 1", "attention mass on the informative slots; 1 only where held fixed"),
    SymbolInfo(t, r"t", "real", "time of gradient flow"),
)

#: name -> SymbolInfo, in canonical order.
SYMBOLS: Mapping[str, SymbolInfo] = MappingProxyType({info.symbol.name: info for info in _INFO})

#: The two coordinates on the line.
STATES: tuple[Symbol, ...] = (mu_OV, mu_QK)

#: Parameters in canonical (call) order.
PARAMETERS: tuple[Symbol, ...] = (M, b, K, N, m, n, gamma, eta_OV, eta_QK, c_OV, c_QK)

#: Integer lower bounds above what SymPy's assumptions can say (all other integers are at least 1).
LOWER_BOUNDS: Mapping[Symbol, int] = MappingProxyType({M: 2})

#: Upper bounds, which SymPy's assumptions can't say; the bound itself is a value. A softmax stays below 1, but the
#: claims about fixed attention hold for all of it on the informative slots too, and their experiments go there.
UPPER_BOUNDS: Mapping[Symbol, int] = MappingProxyType({alpha: 1})
