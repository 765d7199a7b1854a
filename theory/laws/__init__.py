"""Conservation laws of gradient flow: how many there are, the polynomial ones, and those among given functions."""

from theory.laws.architectures import ARCHITECTURES as ARCHITECTURES
from theory.laws.architectures import architecture as architecture
from theory.laws.basis import Law as Law
from theory.laws.basis import laws_in_basis as laws_in_basis
from theory.laws.conserved import is_law as is_law
from theory.laws.counting import Count as Count
from theory.laws.counting import count_laws as count_laws
from theory.laws.counting import independent as independent
from theory.laws.decay import decay_drift as decay_drift
from theory.laws.decay import decay_rate as decay_rate
from theory.laws.fields import GradientFields as GradientFields
from theory.laws.fields import gradient_fields as gradient_fields
from theory.laws.polynomial import polynomial_laws as polynomial_laws

__all__ = [
    "ARCHITECTURES",
    "Count",
    "GradientFields",
    "Law",
    "architecture",
    "count_laws",
    "decay_drift",
    "decay_rate",
    "gradient_fields",
    "independent",
    "is_law",
    "laws_in_basis",
    "polynomial_laws",
]
