"""A two-layer linear net, from nothing to a verified theorem in LaTeX."""

from __future__ import annotations

from sympy import Add, Matrix, Symbol, eye

import numerics
import theory
from theory.latex import Notation, to_latex
from theory.laws import laws_in_basis
from theory.models import Block, Model, reduce_model

# 1. The model: two trained matrices, a loss, and a symmetry that you believe in.
s, eta_A, eta_B = (Symbol(name, positive=True) for name in ("s", "eta_A", "eta_B"))
A, B = Block("A", (2, 2), eta_A), Block("B", (2, 2), eta_B)
residual = B.array * A.array - s * eye(2)
loss = Add(*(entry**2 for entry in residual)) / 2


def flip(arrays: dict) -> dict:
    """Change the sign of the first coordinate everywhere."""
    sign = Matrix([[-1, 0], [0, 1]])
    return {name: sign * array * sign for name, array in arrays.items()}


swap = {"A": ([1, 0], [1, 0]), "B": ([1, 0], [1, 0])}
model = Model([A, B], loss, symmetry=[swap, flip], name="linear net")

# 2. Reduce it: invariance is proved, and eight entries become two states.
flow = reduce_model(model)
a, b = flow.states
print("states:", a, b)
for state, speed in flow.velocity.items():
    print(f"d{state}/dt =", speed.factor())

# 3. What is conserved? Once by separation, once among functions of your own.
law = theory.first_integral(flow)
print("conserved:", law.value)
print("among squares:", [found.expression for found in laws_in_basis(flow, [a**2, a * b, b**2])])

# 4. State the theorem and have it verified.
claim = theory.Claim.equal("balance", flow.along(eta_A * b**2 - eta_B * a**2), 0, title="Balance of the layers")
print("verdict:", numerics.verify([claim])["balance"].verdict)
wrong = theory.Claim.equal("no-rates", flow.along(b**2 - a**2), 0)
print("without the rates:", numerics.verify([wrong])["no-rates"].verdict)

# 5. Does the full model, entry by entry, follow the two states?
print("on the line:", numerics.check_on_line(model, flow, examples=6))
run = numerics.simulate(flow, {"s": 1, "eta_A": 1, "eta_B": 2}, {a: 0.1, b: 0.2}, until_loss=1e-6)
print(f"product at the end: {run[a][-1] * run[b][-1]:.4f}")

# 6. Into the paper.
paper = Notation().with_symbols({a: "w_{A}", b: "w_{B}", s: "s_{0}", eta_A: r"\eta_{A}", eta_B: r"\eta_{B}"})
print(to_latex(flow, paper))
print(to_latex(law.value, paper), r"=\mathrm{const}")
