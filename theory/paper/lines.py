"""Claims about the line and the collapsed flow.

Source: arXiv 2608.06776, model and reduced dynamics.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from sympy import Dummy, Integer, Symbol, diff, exp, log, oo

from theory.attention import orbit_flow
from theory.factorization import factor_velocity
from theory.flow import derive
from theory.line import collapsed_line
from theory.model import AttentionModel
from theory.paper.settings import ALPHA, LOSS, SETTINGS, Setting, setting_flow, velocity_OV, velocity_QK
from theory.registry import Obligation, Stated, published
from theory.symbols import K, M, N, alpha, b, eta_OV, eta_QK, gamma, mu_OV, mu_QK
from theory.task import QueryKind, TokenTask
from theory.trace import Assumption, Trace
from theory.words import Rule, Words, matrix, rewrite

SOURCE = "arXiv 2608.06776"


def assumptions_of(setting: Setting = SETTINGS[0], code: str = "CACO", **options: Any) -> tuple[Assumption, ...]:
    """The assumptions of a derived flow."""
    return setting_flow(setting, code, **options).assumptions


def trace_of(setting: Setting = SETTINGS[0], code: str = "CACO", **options: Any) -> Trace:
    """The steps of a derived flow."""
    return setting_flow(setting, code, **options).trace


def _attention_mass(stated: Stated) -> Iterator[Obligation]:
    for setting in SETTINGS:
        yield Obligation(f"alpha [{setting.label}]", stated["alpha"] - setting_flow(setting).attention)


def _loss_on_line(stated: Stated) -> Iterator[Obligation]:
    for setting in SETTINGS:
        flow = setting_flow(setting)
        loss = stated["L"].xreplace({alpha: flow.attention})
        yield Obligation(f"L [{setting.label}]", loss - flow.loss)


def _value(circuit: str, kind: str) -> Symbol:
    return Symbol(f"W_{circuit}_{kind}", real=True)


def _shift_invariance() -> Iterator[Obligation]:
    """Cross-entropy and attention do not see a shift of all logits of a sequence, or of all scores of a query."""
    total, label, shift = Dummy("S", positive=True), Dummy("z", real=True), Dummy("s", real=True)
    shifted = log(exp(shift) * total) - (label + shift)
    yield Obligation("cross-entropy under a shift of all logits", shifted - (log(total) - label))
    weight = exp(label + shift) / (exp(shift) * total)
    yield Obligation("attention under a shift of all scores", weight - exp(label) / total)


def _shift_conservation(stated: Stated) -> Iterator[Obligation]:
    yield from _shift_invariance()
    for setting in SETTINGS:
        flow = orbit_flow(setting.task)
        for name, law in stated.items():
            if not isinstance(law, Words) and (setting.finite or name.startswith("column")):
                if name.startswith("row") and setting.query_kind not in name:
                    continue
                drift = sum((diff(law, v) * speed for v, speed in flow.velocity.items()), Integer(0))
                yield Obligation(f"d/dt {name} [{setting.label}]", drift)
    no_column_sums = Rule((("1", True), ("G", False)), Words.of({}))
    no_row_sums = Rule((("G", False), ("1", False)), Words.of({}))
    velocity = factor_velocity()
    for name, rules in (
        ("ones U of OV", (no_column_sums, _transposed(no_column_sums))),
        ("V ones of QK", (no_row_sums, _transposed(no_row_sums))),
    ):
        drift = rewrite(stated[name].derivative(velocity), rules)
        yield Obligation(f"d/dt {name}", drift, hypotheses=rules)


def _transposed(rule: Rule) -> Rule:
    word = tuple((letter, not t) for letter, t in reversed(rule.word))
    return Rule(word, rule.image.T)


def _gradient_parallel(stated: Stated) -> Iterator[Obligation]:
    for setting in SETTINGS:
        flow = orbit_flow(setting.task)
        for circuit, found in flow.orbits.items():
            entries = {o.symbol: _stated_entry(stated, setting, circuit, o.columns.name, o.relation) for o in found}
            yield Obligation(f"contrast of E_{circuit} [{setting.label}]", _contrast(circuit, entries) - 1)
        point = {s: mu * e for s, mu, e in _all_entries(stated, setting)}
        for circuit, found in flow.orbits.items():
            moving = [o for o in found if not o.frozen]
            speed = {o: flow.velocity[o.symbol].xreplace({alpha: flow.attention}).xreplace(point) for o in moving}
            entry = {o: _stated_entry(stated, setting, circuit, o.columns.name, o.relation) for o in moving}
            for o, p in combinations(moving, 2):
                value = speed[o] * entry[p] - speed[p] * entry[o]
                yield Obligation(f"{o.symbol} against {p.symbol} [{setting.label}]", value)


def parallel_obligations() -> Iterator[Obligation]:
    """The obligations of `gradient-parallel`, for claims that build on it."""
    return _gradient_parallel(_DIRECTIONS)


def _all_entries(stated: Stated, setting: Setting) -> Iterator[tuple[Symbol, Symbol, Any]]:
    for circuit, found in orbit_flow(setting.task).orbits.items():
        for o in found:
            mu = mu_OV if circuit == "OV" else mu_QK
            yield o.symbol, mu, _stated_entry(stated, setting, circuit, o.columns.name, o.relation)


def _stated_entry(stated: Stated, setting: Setting, circuit: str, column: str, relation: str) -> Any:
    if circuit == "OV":
        return stated[f"E_OV {relation}"] if column == "informative" else Integer(0)
    if relation == "other":
        return Integer(0)
    key = "a" if column == "informative" else "c"
    entry = stated[f"{key} [{setting.query_kind}]"]
    if not setting.finite:
        entry = Integer(1 if key == "a" else 0)
    return entry if key == "a" else -entry


def _contrast(circuit: str, entries: dict[Symbol, Any]) -> Any:
    names = {s.name: e for s, e in entries.items()}
    if circuit == "OV":
        return names["W_OV_same"] - names["W_OV_other"]
    seen = names.get("W_QK_same", names.get("W_QK_informative"))
    return seen - names["W_QK_noise"]


def _flow_collapsed(stated: Stated) -> Iterator[Obligation]:
    for setting in SETTINGS:
        flow = setting_flow(setting)
        for key in ("mu_OV", "mu_QK"):
            formula = stated[key if key == "mu_OV" else f"mu_QK [{setting.label}]"]
            yield Obligation(f"d{key}/dt [{setting.label}]", formula.xreplace({alpha: ALPHA}) - flow.velocity[key])


def published_flow(kind: QueryKind = "shared") -> Any:
    """The general flow with ``K = b``, ``N = oo``, ``gamma = 1``, by substitution into the derived general flow."""
    flow = derive(AttentionModel(TokenTask(noise=oo, query_kind=kind, score_scale=gamma)))
    return {s: v.xreplace({K: b, gamma: Integer(1)}) for s, v in flow.velocity.items()}


def _flow_published(stated: Stated) -> Iterator[Obligation]:
    kinds: tuple[QueryKind, ...] = ("shared", "per_class")
    for kind in kinds:
        for state, velocity in published_flow(kind).items():
            formula = stated[state.name].xreplace({alpha: ALPHA.xreplace({gamma: Integer(1)})})
            yield Obligation(f"d{state}/dt [{kind}]", formula - velocity)


def _noise_correction(stated: Stated) -> Iterator[Obligation]:
    kinds: tuple[QueryKind, ...] = ("shared", "per_class")
    for kind in kinds:
        finite, infinite = setting_flow(Setting(kind, True)), setting_flow(Setting(kind, False))
        ratio = finite.velocity[mu_QK] / infinite.velocity[mu_QK]
        yield Obligation(f"d mu_QK/dt, finite over infinite N [{kind}]", stated[kind] - ratio)
        yield Obligation(
            f"d mu_OV/dt, finite over infinite N [{kind}]", finite.velocity[mu_OV] - infinite.velocity[mu_OV]
        )


def _laws() -> dict[str, Any]:
    return {
        "column sum, informative": _value("OV", "same") + (M - 1) * _value("OV", "other"),
        "column sum, noise": M * _value("OV", "noise"),
        "row sum [shared]": M * b * _value("QK", "informative") + N * _value("QK", "noise"),
        "row sum [per_class]": b * _value("QK", "same")
        + (M - 1) * b * _value("QK", "other")
        + N * _value("QK", "noise"),
        "ones U of OV": matrix("1").T @ matrix("U"),
        "V ones of QK": matrix("V").T @ matrix("1"),
    }


_DIRECTIONS = {
    "E_OV same": 1 - 1 / M,
    "E_OV other": -1 / M,
    "a [shared]": N / (M * b + N),
    "c [shared]": M * b / (M * b + N),
    "a [per_class]": N / (b + N),
    "c [per_class]": b / (b + N),
}
_DISPLAY = {f"mu_QK [{s.label}]": velocity_QK(s) for s in SETTINGS}

CLAIMS = (
    published(
        "attention-mass",
        "Attention mass on the line",
        "alpha = m e^(gamma mu_QK)/(m e^(gamma mu_QK) + n), for both query kinds, finite and infinite N",
        {"alpha": ALPHA},
        _attention_mass,
        SOURCE,
        assumptions_of,
        lambda: collapsed_line(SETTINGS[0].task).trace,
        ("attention", "alpha"),
    ),
    published(
        "loss-on-line",
        "Loss on the line",
        "L = log(1 + (M-1) e^(-alpha mu_OV))",
        {"L": LOSS},
        _loss_on_line,
        SOURCE,
        assumptions_of,
        lambda: collapsed_line(SETTINGS[0].task).trace,
        ("loss", "L"),
    ),
    published(
        "shift-conservation",
        "Softmax shift invariance conserves sums",
        "column sums of W_OV and, for finite N, row sums of W_QK are constant; "
        "1^T U of a factorized OV circuit and V^T 1 of a "
        "factorized QK circuit are constant",
        _laws(),
        _shift_conservation,
        SOURCE,
        lambda: (Assumption("gradient flow, on and off the line; QK laws need finite N"),),
        lambda: tuple(orbit_flow(SETTINGS[0].task).trace),
        ("shift",),
    ),
    published(
        "gradient-parallel",
        "On the line the gradients are parallel to the directions",
        "E_OV = 1[own class] - 1/M; E_QK = a on seen informative tokens, -c on noise, a + c = 1, a S = c N",
        _DIRECTIONS,
        _gradient_parallel,
        SOURCE,
        assumptions_of,
        trace_of,
        ("directions",),
    ),
    published(
        "flow-collapsed",
        "Reduced flow, both circuits collapsed (CACO)",
        "d mu_OV/dt = eta_OV alpha/(b D), d mu_QK/dt = eta_QK gamma (M-1) alpha (1-alpha) mu_OV/(||E_QK||^2 D), "
        "D = e^(alpha mu_OV) + M - 1",
        {"mu_OV": velocity_OV()} | _DISPLAY,
        _flow_collapsed,
        SOURCE,
        assumptions_of,
        trace_of,
        ("velocity", "CACO"),
    ),
    published(
        "flow-published",
        "The published system",
        "K = b, N = oo, gamma = 1: d mu_OV/dt = eta_OV alpha/(b D), "
        "d mu_QK/dt = eta_QK (M-1) alpha (1-alpha) mu_OV/(M b^2 D)",
        {
            "mu_OV": eta_OV * alpha / (b * (exp(alpha * mu_OV) + M - 1)),
            "mu_QK": eta_QK * (M - 1) * alpha * (1 - alpha) * mu_OV / (M * b**2 * (exp(alpha * mu_OV) + M - 1)),
        },
        _flow_published,
        SOURCE,
        lambda: (*assumptions_of(SETTINGS[1]), Assumption("K = b, N = oo, gamma = 1")),
        lambda: trace_of(SETTINGS[1]),
        ("velocity", "published"),
    ),
    published(
        "noise-correction",
        "A finite noise vocabulary speeds up query-key",
        "with N noise tokens d mu_QK/dt is larger by 1 + M b/N (shared queries) or 1 + b/N (per class); "
        "d mu_OV/dt is the same",
        {"shared": 1 + M * b / N, "per_class": 1 + b / N},
        _noise_correction,
        SOURCE,
        assumptions_of,
        trace_of,
        ("noise",),
    ),
)

__all__ = ["CLAIMS", "assumptions_of", "parallel_obligations", "published_flow", "trace_of"]
