"""Soft attention over patches, one of them informative (arXiv 2307.13421): a case of the built-in model."""

from __future__ import annotations

from sympy import Integer, oo

import numerics
import theory
from theory import AttentionModel, TokenTask
from theory.latex import to_latex
from theory.symbols import M, eta_OV, eta_QK, mu_OV, mu_QK, n

# 1. The setting: one token for each class, one informative slot, noise that never repeats, one query.
task = TokenTask(classes=M, block=1, queries=1, noise=oo, informative_slots=1, noise_slots=n)
model = AttentionModel(task)
flow = theory.derive(model)
print("dmu_OV/dt =", flow.compact["mu_OV"])
print("dmu_QK/dt =", flow.compact["mu_QK"])

# 2. The curve from zero at equal rates.
law = theory.first_integral(flow)
equal = {eta_OV: Integer(1), eta_QK: Integer(1)}
zero = {mu_OV: Integer(0), mu_QK: Integer(0)}
curve = (law.value - law.value.xreplace(zero)).xreplace(equal)
print("curve:", curve)

# 3. The published theory is a claim of the library: proved, and run on an explicit model.
print("verdict:", numerics.verify(["soft-attention-2023"])["soft-attention-2023"].verdict)

# 4. The full model, at random sizes, stays on the line.
print("on the line:", numerics.check_on_line(model, examples=3))

# 5. Where it ends.
run = numerics.simulate(flow, {"M": 5, "n": 9, "eta_OV": 1, "eta_QK": 1}, until_loss=0.01)
print(f"attention at loss 0.01: {run.end.attention:.3f}")
print(to_latex(flow))
