"""Models that a user brings: blocks, loss and symmetry, reduced to a flow of few states."""

from theory.models.blocks import Block as Block
from theory.models.flow import GradientFlow as GradientFlow
from theory.models.reduction import Model as Model
from theory.models.reduction import SymmetryError as SymmetryError
from theory.models.reduction import reduce_model as reduce_model

__all__ = ["Block", "GradientFlow", "Model", "SymmetryError", "reduce_model"]
