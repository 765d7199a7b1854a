"""Claims beyond the flow: which optimizers stay on the line, and how the first integral drifts under finite steps.

On the line the gradient is ``G = g E`` (claim `gradient-parallel`, whose obligations are taken over).
Factorized circuits start at ``U = u A``, ``V = v B`` with ``A B^T = E/sigma`` and ``A^T A = B^T B = P`` a
projection.

Source: arXiv 2608.06776; section 9 of the theory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sympy import Abs, Gt, Integer, Symbol, diff

from theory.factorization import PROJECTION, A, B, factor_velocity
from theory.integrals import first_integral
from theory.line import Direction, collapsed_line
from theory.orbits import Circuit
from theory.paper.lines import SOURCE, assumptions_of, parallel_obligations, trace_of
from theory.paper.settings import SETTINGS, has_line, setting_flow
from theory.positivity import sign
from theory.registry import Claim, Obligation, Stated, published
from theory.symbols import M, N, b, mu_OV, mu_QK
from theory.trace import Assumption
from theory.words import Words, matrix, rewrite

E, W, G = (matrix(name) for name in ("E", "W", "G"))
BUFFER = matrix("B_W")
h, decay, beta = (Symbol(name, positive=True) for name in ("h", "lambda", "beta"))
mu, g, u, v, p = (Symbol(name, real=True) for name in ("mu", "g", "u", "v", "p"))


def _beside(found: Words, line: Words) -> Words:
    """What is left of an expression beside a multiple of a matrix."""
    ((word, _),) = line.terms.items()
    return found - found.terms.get(word, Integer(0)) * line


def _factor_gradients() -> dict[str, Words]:
    """``dL/dU`` and ``dL/dV`` at ``U = u A``, ``V = v B`` for ``G = g A B^T``."""
    images = {"G": g * (A @ B.T), "U": u * A, "V": v * B}
    return {name: rewrite(f.replace(images), PROJECTION) for name, f in factor_velocity(Integer(-1)).items()}


def _stays(stated: Stated) -> Iterator[Obligation]:
    """The stated update, with weights, gradient and buffer on the line, gives a multiple of the same matrix."""
    gradients = _factor_gradients()
    cases = (("W", mu * E, g * E, E), ("U", u * A, gradients["U"], A), ("V", v * B, gradients["V"], B))
    for key, update in stated.items():
        for name, weights, gradient, line in cases:
            new = update.replace({"W": weights, "G": gradient, "B_W": p * line})
            left = _beside(rewrite(new, PROJECTION), line)
            yield Obligation(f"{key} of {name}", left, hypotheses=PROJECTION)
    yield from parallel_obligations()


def _magnitudes(direction: Direction) -> tuple[Any, Any]:
    """Absolute values of the positive and of the negative entry of a direction; equal if all non-zero entries are."""
    entries = [x for x in direction.values.values() if x != 0]
    positive = [x for x in entries if sign(x) == 1]
    negative = [-x for x in entries if sign(x) == -1]
    return positive[0], negative[0] if negative else positive[-1]


def _adam(stated: Stated) -> Iterator[Obligation]:
    """A first step of Adam moves an entry by ``-h s(G)``, ``s(G) = G/(|G| + eps)``; two entries ``e, f`` of
    ``E`` stay in proportion iff ``e s(g f) - f s(g e) = g e f (|g e| - |g f|)/((|g e| + eps)(|g f| + eps))``
    vanishes, that is iff ``|e| = |f|``.
    """
    e, f, slope = (Symbol(name, real=True, nonzero=True) for name in ("e", "f", "g"))
    eps = Symbol("epsilon", positive=True)
    sizes = {entry: Abs(slope * entry) + eps for entry in (e, f)}
    determinant = e * slope * f / sizes[f] - f * slope * e / sizes[e]
    yield Obligation(
        "entries against their steps", determinant - slope * e * f * (sizes[e] - sizes[f]) / (sizes[e] * sizes[f])
    )
    for setting in SETTINGS:
        for circuit, direction in collapsed_line(setting.task).directions.items():
            large, small = _magnitudes(direction)
            key = "OV" if circuit == "OV" else f"QK [{setting.label}]"
            yield Obligation(f"|e| - |f| in E_{circuit} [{setting.label}]", stated[key] - (large - small))
    cases: tuple[tuple[Circuit, dict[Symbol, int]], ...] = (("OV", {M: 3}), ("QK", {M: 2, b: 1, N: 1}))
    for circuit, small_sizes in cases:
        point = {symbol: Integer(value) for symbol, value in small_sizes.items()}
        large, small = (x.xreplace(point) for x in _magnitudes(collapsed_line(SETTINGS[0].task).directions[circuit]))
        key = "OV" if circuit == "OV" else f"QK [{SETTINGS[0].label}]"
        exact = (large - small) / ((large + 1) * (small + 1))
        where = ", ".join(f"{s} = {x}" for s, x in small_sizes.items())
        yield Obligation(
            f"counterexample for {circuit}: {where}, g = eps = 1", exact * stated[key].xreplace(point), "> 0"
        )


def _drift_order(stated: Stated) -> Iterator[Obligation]:
    """The first integral after one step is its value before plus ``O(h^2)``; over a fixed time there are
    ``O(1/h)`` steps.

    A balanced factorized circuit steps to ``mu (1 + h f/(2 mu))^2``, a collapsed one to ``mu + h f``, with
    ``f`` its velocity. The first integral is that of the branch where factorized coordinates are positive.
    """
    for name, formula in stated.items():
        yield Obligation(f"no step for h = 0, {name}", formula.xreplace({h: Integer(0)}) - mu)
    velocity = {mu_OV: Symbol("f_OV", real=True), mu_QK: Symbol("f_QK", real=True)}
    for code in ("CACO", "CAFO", "FACO", "FAFO"):
        for setting in SETTINGS:
            if not has_line(setting, code):
                continue
            flow = setting_flow(setting, code)
            law = first_integral(flow)
            speeds = {f: flow.velocity[s] for s, f in velocity.items()}
            after = {s: _step(stated, code, s).xreplace(speeds) for s in flow.states}
            change = diff(law.value.xreplace(after), h).xreplace({h: Integer(0)})
            signs = tuple(Gt(s, 0, evaluate=False) for s in flow.states if _is_factorized(code, s))
            yield Obligation(f"order h of one step [{code}; {setting.label}]", change, assumptions=signs)


def _is_factorized(code: str, state: Symbol) -> bool:
    return code[2 if state == mu_OV else 0] == "F"


def _step(stated: Stated, code: str, state: Symbol) -> Any:
    """The stated step of one coordinate."""
    formula = stated["factorized" if _is_factorized(code, state) else "collapsed"]
    return formula.xreplace({mu: state, g: Symbol("f_OV" if state == mu_OV else "f_QK", real=True)})


def _line_claim(identity: str, title: str, text: str, updates: dict[str, Words]) -> Claim:
    equal = Assumption("a factorized circuit has equal rates and decay for U and V, balanced or not")
    return published(
        identity,
        title,
        text,
        updates,
        _stays,
        SOURCE,
        lambda: (*assumptions_of(SETTINGS[1], "FAFO"), equal),
        trace_of,
        ("optimizer", identity.removeprefix("line-")),
    )


_HEAVY = beta * BUFFER + G
_MAGNITUDE_GAPS: dict[str, Any] = {
    "OV": (M - 2) / M,
    "QK [shared, N]": (N - M * b) / (M * b + N),
    "QK [shared, N = oo]": Integer(0),
    "QK [per_class, N]": (N - b) / (N + b),
    "QK [per_class, N = oo]": Integer(0),
}

CLAIMS = (
    _line_claim(
        "line-gradient-descent",
        "Gradient descent stays on the line",
        "gradient descent with any step stays on the line, collapsed or factorized",
        {"step": W - h * G},
    ),
    _line_claim(
        "line-momentum",
        "Momentum stays on the line",
        "heavy-ball and Nesterov momentum stay on the line, collapsed or factorized",
        {"buffer": _HEAVY, "heavy-ball step": W - h * _HEAVY, "Nesterov step": W - h * (G + beta * _HEAVY)},
    ),
    _line_claim(
        "line-weight-decay",
        "Weight decay stays on the line",
        "gradient descent with weight decay stays on the line, collapsed or factorized; only the imbalance drifts",
        {"step": W - h * (G + decay * W)},
    ),
    published(
        "adam-leaves-line",
        "Adam leaves the line",
        "Adam keeps W_OV on its line iff M = 2, W_QK iff N = oo or N = S: iff the non-zero entries of E "
        "have one magnitude",
        _MAGNITUDE_GAPS,
        _adam,
        SOURCE,
        assumptions_of,
        trace_of,
        ("adam",),
    ),
    published(
        "integral-drift-order",
        "The first integral drifts with the step",
        "under gradient descent with step h over a fixed time the first integral drifts by O(h)",
        {"collapsed": mu + h * g, "factorized": mu * (1 + h * g / (2 * mu)) ** 2},
        _drift_order,
        SOURCE,
        lambda: (
            *assumptions_of(),
            Assumption(
                "gradient descent; balanced factors, positive coordinates; the velocity and its derivatives are bounded"
            ),
        ),
        trace_of,
        ("drift",),
    ),
)

__all__ = ["CLAIMS"]
