"""Closed forms of the reduced flow: fixed attention, the margin at a loss, time along the curve.

    t = T(mu_OV) - T(mu_0),  T = int dmu_OV/velocity    with the attention held fixed
    alpha mu_OV = log((M-1)/(e^L - 1))                  at loss L

Each is derived from the flow at hand and checked by its derivative; numbers come from `numerics.fixed_attention` and
`numerics.stopping`. Source: arXiv 2608.06776, fixed attention and stopping loss; claims `fixed-attention-collapsed`,
`fixed-attention-factorized`, `stopping-state`, `time-on-curve`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sympy import Abs, Function, Gt, Integer, Integral, LambertW, Lt, Symbol, cancel, diff, exp, log

from theory.errors import GradlineError
from theory.flow import ReducedFlow
from theory.identities import is_zero
from theory.primitives import antiderivative
from theory.symbols import alpha, mu_OV, t
from theory.trace import Assumption, Step, Trace

__all__ = ["FixedAttention", "fixed_attention", "loss", "mu_0", "stopping_margin", "time_on_curve"]

#: Start of ``mu_OV``, and the loss at which a run stops.
mu_0 = Symbol("mu_0", real=True)
loss = Symbol("L", positive=True)
_S = Symbol("s", real=True)


@dataclass(frozen=True)
class FixedAttention:
    """The solution for ``mu_OV`` while the attention ``alpha`` is held fixed.

    ``elapsed``, a function ``T`` of ``mu_OV``: the time between two values is the difference; ``mu_OV``, the closed
    form in ``t`` and ``mu_0`` where there is one, else ``None``; ``sign`` of the branch; ``assumptions`` and
    ``trace``.
    """

    elapsed: Any
    mu_OV: Any | None
    sign: int
    assumptions: tuple[Assumption, ...]
    trace: Trace


def fixed_attention(flow: ReducedFlow, sign: int = 1) -> FixedAttention:
    """Solve for output-value with the attention held fixed.

        dmu_OV/dt = eta_OV alpha f_OV/(b (e^(alpha mu_OV) + M - 1)),   alpha constant

    Parameters: ``flow``; ``sign`` of ``mu_OV`` (1 or -1), which a balanced circuit keeps. Returns: a
    `FixedAttention`; its ``elapsed`` holds an unevaluated integral where the circuit is imbalanced.

    Raises: ``ValueError`` for another sign; `GradlineError` where the integral is none of the primitives of the theory.

    Source: arXiv 2608.06776, fixed attention; claims `fixed-attention-collapsed`, `fixed-attention-factorized`.

    >>> from theory import AttentionModel, TokenTask, derive
    >>> fixed_attention(derive(AttentionModel(TokenTask(classes=2, block=1), ov="factorized"))).elapsed
    (log(mu_OV) + Ei(alpha*mu_OV))/(2*alpha*eta_OV)
    """
    if not isinstance(flow, ReducedFlow):
        raise TypeError(f"fixed_attention({flow!r}): expected a ReducedFlow, such as derive(model)")
    if isinstance(sign, bool) or sign not in (1, -1):
        raise ValueError(f"sign={sign!r}: expected 1 or -1, the sign of mu_OV")
    return _fixed_attention(flow, sign)


@lru_cache(maxsize=64)
def _fixed_attention(flow: ReducedFlow, sign: int) -> FixedAttention:
    velocity = flow.compact["mu_OV"]
    if flow.model.is_balanced("OV"):
        velocity = velocity.xreplace({Abs(mu_OV): sign * mu_OV})
    factor, pace = (1 / velocity).as_independent(mu_OV, as_Add=False)
    terms = pace.expand().as_ordered_terms()
    inner = sum((antiderivative(term, mu_OV, sign) for term in terms), Integer(0))
    elapsed = factor * inner
    if not is_zero(diff(elapsed, mu_OV) * velocity - 1):
        raise GradlineError(f"fixed attention: d/dt({elapsed}) is not 1")
    branch: tuple[Assumption, ...] = ()
    if flow.model.is_balanced("OV"):
        relation = (Gt if sign > 0 else Lt)(mu_OV, 0, evaluate=False)
        branch = (Assumption(f"mu_OV {'>' if sign > 0 else '<'} 0", relation),)
    trace: Trace = (
        Step("integration", "T", (1 / velocity,), elapsed, "the derivative along the flow has normal form 1"),
    )
    solution = None
    if flow.model.form("OV") == "collapsed":
        solution = _lambert(elapsed)
        trace = (*trace, Step("inversion", "mu_OV", (elapsed,), solution, "e^z + k z = a has one root"))
    fixed = Assumption("the attention alpha is held fixed")
    return FixedAttention(elapsed, solution, sign, (*flow.assumptions, *branch, fixed), trace)


def _lambert(elapsed: Any) -> Any:
    """Invert ``p e^(alpha mu) + c mu = t + T(mu_0)``: with ``k = c/(p alpha)``, ``alpha mu = a - W_0(e^a/k)``, ``a =
    rhs/(p k)``.
    """
    expanded = elapsed.expand()
    p, c = expanded.coeff(exp(alpha * mu_OV)), expanded.coeff(mu_OV, 1)
    if not is_zero(expanded - p * exp(alpha * mu_OV) - c * mu_OV):
        raise GradlineError(f"fixed attention: {elapsed} is not an exponential and a linear term")
    k = cancel(c / (p * alpha))
    level = ((t + elapsed.xreplace({mu_OV: mu_0})) / p).expand()
    a = level / k
    z = a - LambertW(exp(a) / k)
    root = Symbol("a", real=True)
    closed = root - LambertW(exp(root) / k)
    if not is_zero(exp(closed) + k * closed - k * root):
        raise GradlineError(f"fixed attention: {z} does not solve e^z + k z = k a")
    return z / alpha


def stopping_margin(flow: ReducedFlow) -> Any:
    """The margin ``alpha mu_OV`` at which a flow has loss ``L``.

        alpha mu_OV = log((M-1)/(e^L - 1))

    Parameters: ``flow``. Returns: an expression in ``L`` and the number of classes, checked by the loss of the flow
    there.

    Source: arXiv 2608.06776, stopping loss; claim `stopping-state`.

    >>> from theory import AttentionModel, TokenTask, derive
    >>> stopping_margin(derive(AttentionModel(TokenTask(classes=3))))
    log(2/(exp(L) - 1))
    """
    on_line = flow.line.loss
    margin = log((flow.task.classes - 1) / (exp(loss) - 1))
    if not is_zero(on_line.xreplace({mu_OV: margin / alpha}) - loss):
        raise GradlineError(f"stopping margin: the loss {on_line} is not L at {margin}")
    return margin


def time_on_curve(flow: ReducedFlow) -> Any:
    """The time along a curve, as a quadrature over ``mu_OV``.

        t = int_(mu_0)^(mu_OV) dv/velocity(v),   alpha on the curve, a function of v by the first integral

    Parameters: ``flow``. Returns: an unevaluated integral over ``s``; ``alpha`` in it depends on ``s``.

    Source: arXiv 2608.06776; claim `time-on-curve`. The integrand has no pole where ``mu_OV`` passes 0, unlike that
    over ``mu_QK``.

    >>> from theory import AttentionModel, TokenTask, derive
    >>> time_on_curve(derive(AttentionModel(TokenTask(classes=2, block=1))))
    Integral((exp(s*alpha(s)) + 1)/(eta_OV*alpha(s)), (s, mu_0, mu_OV))
    """
    pace = (1 / flow.compact["mu_OV"]).xreplace({mu_OV: _S, Abs(mu_OV): Abs(_S)})
    return Integral(pace.xreplace({alpha: Function("alpha", positive=True)(_S)}), (_S, mu_0, mu_OV))
