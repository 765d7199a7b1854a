"""My own attention variant: a score scale, outputs that are never a label, tokens that are not equally frequent.

M classes with two tokens each, the first twice as frequent; X more outputs; one slot of noise that embeds as zero;
scores are halved. The model is torch, the theory is ours, and property tests compare them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sympy import Add, Expr, Rational, Symbol, diff, exp, log

import numerics
from theory.models import Block, GradientFlow, Model

HALF = Rational(1, 2)
FREQUENCIES = (Rational(2, 3), Rational(1, 3))
M, X = Symbol("M", integer=True, positive=True), Symbol("X", integer=True, positive=True)
eta = Symbol("eta", positive=True)
names = [f"{letter}_{kind}" for kind in (1, 2) for letter in "aoes"]
own_1, other_1, extra_1, score_1, own_2, other_2, extra_2, score_2 = states = [Symbol(n, real=True) for n in names]


def model(M: int, X: int) -> Model:
    """The full model: output weights (M + X, 2 M), one score for each token; token ``2 c + k`` belongs to class c."""
    labels = torch.arange(2 * M) // 2
    frequency = torch.tensor([float(f) for f in FREQUENCIES], dtype=torch.float64).repeat(M) / M

    def loss(W: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
        share = torch.sigmoid(float(HALF) * q)
        losses = torch.nn.functional.cross_entropy((W * share).T, labels, reduction="none")
        return frequency @ losses

    return Model([Block("W", (M + X, 2 * M)), Block("q", 2 * M, eta)], loss, name="my attention")


def line(M: int, X: int) -> dict[Any, Any]:
    """Which entries each state stands for."""
    found = {}
    for kind, (own, other, extra, score) in enumerate((states[:4], states[4:])):
        arrays = {s: np.zeros((M + X, 2 * M)) for s in (own, other, extra)}
        scores = np.zeros(2 * M)
        for c in range(M):
            column = 2 * c + kind
            arrays[other][:M, column] = 1
            arrays[other][c, column] = 0
            arrays[own][c, column] = 1
            arrays[extra][M:, column] = 1
            scores[column] = 1
        found |= {s: {"W": array} for s, array in arrays.items()} | {score: {"q": scores}}
    return found


def theory_loss(outputs: Any = X, scale: Any = HALF) -> Expr:
    """The loss on the line, for any sizes."""
    terms = []
    for frequency, (own, other, extra, score) in zip(FREQUENCIES, (states[:4], states[4:]), strict=True):
        share = exp(scale * score) / (exp(scale * score) + 1)
        below = exp(share * own) + (M - 1) * exp(share * other) + outputs * exp(share * extra)
        terms.append(frequency * (log(below) - share * own))
    return Add(*terms)


def theory_flow(loss: Expr, others: Any = M - 1) -> GradientFlow:
    """``dv/dt = -(eta/|O|) dL/dv``: M own entries, M (M - 1) others, M X extra ones, M scores of each kind."""
    size = [M, M * others, M * X, M] * 2
    rate = [1, 1, 1, eta] * 2
    velocity = {s: -r * diff(loss, s) / k for s, k, r in zip(states, size, rate, strict=True)}
    return GradientFlow(velocity, loss, name="my theory")


SIZES = {"M": (2, 4), "X": (1, 3)}
#: Three slips that are easily made: the extra outputs forgotten, M for M - 1, the score scale forgotten.
WRONG = {
    "extra outputs forgotten": theory_flow(theory_loss(outputs=0)),
    "M for M - 1": theory_flow(theory_loss(), others=M),
    "score scale forgotten": theory_flow(theory_loss(scale=1)),
}


def main() -> None:
    """Test the theory, then the slips."""
    right = theory_flow(theory_loss())
    print("my theory:", numerics.check_on_line(model, right, line=line, sizes=SIZES, examples=8))
    for name, flow in WRONG.items():
        try:
            numerics.check_on_line(model, flow, line=line, sizes=SIZES, examples=8)
        except AssertionError as error:
            print(f"{name}: {str(error).splitlines()[0]}")


if __name__ == "__main__":
    main()
