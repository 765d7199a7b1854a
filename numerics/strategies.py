"""Hypothesis strategies for the setting of the theory: tasks, rates, models, starts on the line and off it.

Sizes shrink to small ones and numbers to round ones; every number is a decimal or a small fraction, so that none is
subnormal and a counterexample can be read.

Source: sections 1, 2 and 5 of the theory, arXiv 2608.06776.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sympy import Rational, oo

from numerics.sizes import Sizes, check_choice, concrete_sizes, size_range
from theory.line import Direction, collapsed_line
from theory.model import PARAMETERIZATIONS, AttentionModel
from theory.orbits import Circuit
from theory.symbols import M, N
from theory.task import QueryKind, TokenTask

try:
    from hypothesis import strategies as st
    from hypothesis.extra import numpy as array_strategies
except ModuleNotFoundError as error:  # pragma: no cover - the test extra is installed where this is measured
    raise ModuleNotFoundError(
        "numerics.strategies needs hypothesis, which is not installed: pip install 'gradline[test]'"
    ) from error

__all__ = ["Experiment", "Noise", "decimals", "experiments", "models", "off_line", "rates", "sizes", "starts", "tasks"]

Array = NDArray[np.float64]
Noise = Literal["any", "finite", "infinite"]

#: Population entries (distinct sequences times tokens) of a task: a gradient of the full model takes a millisecond.
ENTRIES = 6_000
LARGEST_SIZE, LARGEST_SLOTS = 5, 3
_NAMES = ("classes", "block", "queries", "noise")
_SMALLEST = {"classes": 2, "block": 1, "queries": 1, "noise": 1}
_SCALES = (Rational(1), Rational(2), Rational(1, 2), Rational(3, 2), Rational(1, 3))


def _entries(size: dict[str, int], slots: tuple[int, int]) -> int:
    """Entries of the enumerated population: ``M K C(b + m - 1, m) C(N + n - 1, n) (M b + N)``."""
    informative = math.comb(size["block"] + slots[0] - 1, slots[0])
    noise = math.comb(size["noise"] + slots[1] - 1, slots[1])
    tokens = size["classes"] * size["block"] + size["noise"]
    return size["classes"] * size["queries"] * informative * noise * tokens


def _check_range(what: str, low: float, high: float) -> None:
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ValueError(f"{what} from {low} to {high}: expected finite bounds in increasing order")


@st.composite
def _tasks(draw: st.DrawFn, query_kind: QueryKind | None, noise: Noise, max_entries: int) -> TokenTask:
    infinite = draw(st.booleans()) if noise == "any" else noise == "infinite"
    kind = draw(st.sampled_from(get_args(QueryKind))) if query_kind is None else query_kind
    slots = draw(st.integers(1, LARGEST_SLOTS)), draw(st.integers(1, LARGEST_SLOTS))
    size = dict(_SMALLEST)
    for name in _NAMES:
        # drawn for infinite noise too, so that an example with infinite noise is no shorter than one with finite noise
        largest = max(
            value
            for value in range(size[name], LARGEST_SIZE + 1)
            if value == size[name] or _entries(size | {name: value}, slots) <= max_entries
        )
        size[name] = draw(st.integers(size[name], largest))
    scale = draw(st.sampled_from(_SCALES))
    noise_tokens = oo if infinite else size["noise"]
    return TokenTask(size["classes"], size["block"], size["queries"], noise_tokens, *slots, kind, scale)


def tasks(
    *, query_kind: QueryKind | None = None, noise: Noise = "any", max_entries: int = ENTRIES
) -> st.SearchStrategy[TokenTask]:
    """Generate tasks with concrete sizes, small enough to enumerate.

        M in 2..5,   b, K, N in 1..5 or N = oo,   m, n in 1..3,   gamma in {1, 2, 1/2, 3/2, 1/3}

    Parameters: ``query_kind``, ``"shared"`` or ``"per_class"``, both by default; ``noise``, ``"finite"``,
    ``"infinite"`` or ``"any"``; ``max_entries``, bound on the entries of the enumerated population (distinct
    sequences times tokens), at least 6.

    Returns: a strategy of `TokenTask`; it shrinks to two classes and one token, slot and query of each kind.

    Raises: ``ValueError`` for an unknown choice or a bound that no task meets.

    Source: section 1 of the theory.

    >>> from hypothesis import find
    >>> task = find(tasks(noise="finite"), lambda task: task.classes == 4)
    >>> task.classes, task.noise_is_finite
    (4, True)
    """
    check_choice("noise", noise, get_args(Noise))
    if query_kind is not None:
        check_choice("query_kind", query_kind, get_args(QueryKind))
    if max_entries < 6:
        raise ValueError(f"max_entries={max_entries}: expected at least 6, the size of the smallest task")
    return _tasks(query_kind, noise, max_entries)


def decimals(low: float, high: float, *, digits: int = 1, zero: bool = True) -> st.SearchStrategy[float]:
    """Generate numbers with a fixed number of decimal digits; they shrink to 0 or the nearest bound.

    Parameters: ``low``, ``high``, the bounds, included; ``digits`` after the point; ``zero``, whether 0 may come.

    Raises: ``ValueError`` for bounds that are not finite or in the wrong order.

    >>> from hypothesis import find
    >>> find(decimals(-2, 2), lambda x: x > 1.8) in (1.9, 2.0)
    True
    """
    _check_range("decimals", low, high)
    unit = 10**digits
    whole = st.integers(math.ceil(low * unit), math.floor(high * unit))
    return (whole if zero else whole.filter(bool)).map(lambda k: k / unit)


def sizes(**ranges: tuple[int, int] | int) -> st.SearchStrategy[dict[str, int]]:
    """Generate named sizes of a model of your own; they shrink to the least.

        name in least..largest     for each name

    Parameters: ``ranges``, for each name ``(least, largest)``, positive integers, or one number. Sizes that depend on
    each other: ``sizes(n=(1, 5), m=(1, 5)).filter(lambda s: s["m"] <= s["n"])``.

    Returns: a strategy of ``{name: size}``, for ``given``, for ``check_on_line(..., sizes=...)`` and for
    ``holds(..., sizes=...)``.

    Raises: ``ValueError`` or ``TypeError`` for a range that is none.

    >>> from hypothesis import find
    >>> find(sizes(n=(1, 5), m=(2, 3)), lambda size: size["n"] >= 2)
    {'n': 2, 'm': 2}
    """
    if not ranges:
        raise ValueError("sizes: expected at least one, such as n=(1, 5)")
    return st.fixed_dictionaries({name: st.integers(*size_range(name, given)) for name, given in ranges.items()})


def rates(low: float = -2, high: float = 2) -> st.SearchStrategy[dict[str, float]]:
    """Generate both learning rates, each over the decades from ``10**low`` to ``10**high``.

    Parameters: ``low``, ``high``, decimal exponents; a decade has the ten rates 1, 1.3, 1.6, 2, 2.5, ..., 7.9.

    Returns: a strategy of ``{"eta_OV": ..., "eta_QK": ...}``; it shrinks to 1 in both.

    Raises: ``ValueError`` for bounds that are not finite or in the wrong order.

    Source: section 2 of the theory.

    >>> from hypothesis import find
    >>> rate = find(rates(), lambda rate: rate["eta_QK"] > rate["eta_OV"])
    >>> rate["eta_QK"] > rate["eta_OV"]
    True
    """
    _check_range("rates", low, high)
    tenths = st.integers(math.ceil(10 * low), math.floor(10 * high))
    rate = tenths.map(lambda k: float(f"{10 ** (k / 10):.1e}"))
    return st.fixed_dictionaries({"eta_OV": rate, "eta_QK": rate})


def _direction(task: TokenTask, circuit: Circuit) -> Direction:
    """The direction for symbolic sizes, derived once for each query kind and kind of noise."""
    noise = N if task.noise_is_finite else oo
    return collapsed_line(TokenTask(noise=noise, query_kind=task.query_kind)).directions[circuit]


def _rank(task: TokenTask, circuit: Circuit) -> int:
    return int(_direction(task, circuit).rank.xreplace({M: task.classes}))


def _has_line(task: TokenTask, code: str) -> bool:
    circuits: tuple[tuple[Circuit, int], ...] = (("QK", 0), ("OV", 2))
    return all(code[at] == "C" or _direction(task, circuit).isometry.holds for circuit, at in circuits)


@st.composite
def _models(draw: st.DrawFn, task: TokenTask, code: str | None, balanced: bool | None) -> AttentionModel:
    if code is None:
        code = draw(st.sampled_from([c for c in PARAMETERIZATIONS if _has_line(task, c)]))
    qk, ov = PARAMETERIZATIONS[code]
    options: dict[str, Any] = {}
    circuits: tuple[tuple[Circuit, str], ...] = (("QK", qk), ("OV", ov))
    for circuit, form in circuits:
        if form == "collapsed":
            continue
        name = circuit.lower()
        tenths = 0 if balanced else draw(st.integers(-20, 20).filter(lambda c: c != 0 or balanced is None))
        extra = draw(st.integers(0, 2))
        options[f"imbalance_{name}"] = Rational(tenths, 10)
        if extra:
            options[f"width_{name}"] = _rank(task, circuit) + extra
    return AttentionModel(task, qk, ov, **options)


def models(
    task: TokenTask, *, code: str | None = None, balanced: bool | None = None
) -> st.SearchStrategy[AttentionModel]:
    """Generate models of a task that keep to a line.

        U^T U - V^T V = c P,   c in {-2, -1.9, ..., 2};   inner width = rank, rank + 1 or rank + 2

    Parameters: ``task``, with concrete sizes; ``code``, ``"CACO"``, ``"CAFO"``, ``"FACO"`` or ``"FAFO"``, by default
    any for which the line exists; ``balanced``, whether all factorized circuits have ``c = 0`` or none have it.

    Returns: a strategy of `AttentionModel`; it shrinks to collapsed circuits, balanced factors and the smallest width.

    Raises: ``ValueError`` for an unknown parameterization or one without a line.

    Source: sections 2 and 5 of the theory.

    >>> from hypothesis import find
    >>> task = TokenTask(3, 2, 2, 2, 1, 1)
    >>> model = find(models(task, code="CAFO"), lambda model: model.imbalance_ov < 0)
    >>> model.parameterization, model.imbalance_ov >= -2
    ('CAFO', True)
    """
    if code is not None:
        check_choice("code", code, PARAMETERIZATIONS)
        if not _has_line(task, code):
            raise ValueError(
                f"code={code!r}: no line with query_kind={task.query_kind!r} and noise={task.noise}, the singular "
                "values of E_QK differ; expected a collapsed query-key circuit such as 'CACO'"
            )
    return _models(task, code, balanced)


def starts(model: AttentionModel, *, largest: float = 2.0) -> st.SearchStrategy[dict[str, float]]:
    """Generate starts on the line of a model: any sign, and 0 where the circuit can leave it.

        W_OV = mu_OV E_OV,   W_QK = mu_QK E_QK,   |mu| <= largest

    Parameters: ``model``; ``largest``, the bound, at least 0.1.

    Returns: a strategy of ``{"mu_OV": ..., "mu_QK": ...}`` in tenths; coordinates of balanced circuits are not 0.

    Raises: ``ValueError`` for a bound below 0.1.

    Source: sections 4 and 5 of the theory.

    >>> from hypothesis import find
    >>> model = AttentionModel(TokenTask(2, 1, 1, 1, 1, 1), ov="factorized")
    >>> find(starts(model), lambda start: start["mu_OV"] < -1)
    {'mu_OV': -1.1, 'mu_QK': 0.0}
    """
    if not 0.1 <= largest < math.inf:
        raise ValueError(f"largest={largest}: expected a finite number of at least 0.1")
    circuits: tuple[Circuit, ...] = ("OV", "QK")
    return st.fixed_dictionaries(
        {f"mu_{c}": decimals(-largest, largest, zero=not model.is_balanced(c)) for c in circuits}
    )


@dataclass(frozen=True)
class Experiment:
    """A model with learning rates and a start on its line."""

    model: AttentionModel
    rates: dict[str, float]
    start: dict[str, float]


@st.composite
def _experiments(
    draw: st.DrawFn, code: str | None, noise: Noise, balanced: bool | None, max_entries: int
) -> Experiment:
    kinds: list[QueryKind] = ["shared", "per_class"]
    kind = draw(st.sampled_from(kinds))
    if code is not None and code[0] == "F" and kind == "per_class":
        noise = "infinite"
    task = draw(tasks(query_kind=kind, noise=noise, max_entries=max_entries))
    model = draw(models(task, code=code, balanced=balanced))
    return Experiment(model, draw(rates()), draw(starts(model)))


def experiments(
    *, code: str | None = None, noise: Noise = "any", balanced: bool | None = None, max_entries: int = ENTRIES
) -> st.SearchStrategy[Experiment]:
    """Generate a model that keeps to a line, its learning rates over four decades, and a start on the line.

    Parameters: ``code`` and ``balanced`` as in `models`; ``noise`` and ``max_entries`` as in `tasks` (a factorized
    query-key circuit with a query for each class has a line for infinite noise only).

    Returns: a strategy of `Experiment`. Raises: ``ValueError`` for an unknown choice.

    >>> from hypothesis import find
    >>> found = find(experiments(code="CACO"), lambda experiment: experiment.start["mu_QK"] < 0)
    >>> found.model.qk, sorted(found.rates), sorted(found.start)
    ('collapsed', ['eta_OV', 'eta_QK'], ['mu_OV', 'mu_QK'])
    """
    check_choice("noise", noise, get_args(Noise))
    if code is not None:
        check_choice("code", code, PARAMETERIZATIONS)
    return _experiments(code, noise, balanced, max_entries)


def _shapes(model: AttentionModel, sizes: Sizes) -> dict[str, tuple[int, int]]:
    rows: dict[Circuit, int] = {"OV": sizes.classes, "QK": sizes.query_tokens}
    found: dict[str, tuple[int, int]] = {}
    for circuit, count in rows.items():
        if model.form(circuit) == "collapsed":
            found[f"W_{circuit}"] = (count, sizes.tokens)
            continue
        given = model.width_qk if circuit == "QK" else model.width_ov
        width = _rank(model.task, circuit) if given is None else int(given)
        found |= {f"U_{circuit}": (count, width), f"V_{circuit}": (sizes.tokens, width)}
    return found


def off_line(model: AttentionModel, *, largest: float = 2.0) -> st.SearchStrategy[dict[str, Array]]:
    """Generate starting matrices anywhere, on the line or off it, for ``MatrixModel.set_matrices``.

    Parameters: ``model``, with concrete sizes; ``largest``, the bound on the entries, at least 0.1.

    Returns: a strategy of ``{"W_OV": (M, T), "W_QK": (Q, T)}`` or the factors ``U`` (rows, width), ``V`` (T, width),
    entries in tenths; the entries of a noise token of zero embedding are 0. It shrinks to zero matrices.

    Raises: ``ValueError`` for a bound below 0.1 or symbolic sizes.

    Source: sections 2 and 3 of the theory.

    >>> from hypothesis import find
    >>> model = AttentionModel(TokenTask(2, 1, 1, 1, 1, 1))
    >>> found = find(off_line(model), lambda matrices: matrices["W_QK"].any())
    >>> {name: value.shape for name, value in found.items()}
    {'W_OV': (2, 3), 'W_QK': (1, 3)}
    """
    if not 0.1 <= largest < math.inf:
        raise ValueError(f"largest={largest}: expected a finite number of at least 0.1")
    sizes = concrete_sizes(model.task)
    shapes = _shapes(model, sizes)
    whole = math.floor(10 * largest)
    entries = st.integers(-whole, whole)

    def scaled(drawn: dict[str, Any]) -> dict[str, Array]:
        matrices = {name: value / 10.0 for name, value in drawn.items()}
        for name, value in matrices.items():
            if sizes.zero_noise and not name.startswith("U"):
                (value if name.startswith("V") else value.T)[-1] = 0.0
        return matrices

    arrays = {name: array_strategies.arrays(np.int64, shape, elements=entries) for name, shape in shapes.items()}
    return st.fixed_dictionaries(arrays).map(scaled)
