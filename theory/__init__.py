"""Derive and prove the gradient-flow theory of attention with SymPy.

`TokenTask` and `AttentionModel` describe the setting, `derive` gives the `ReducedFlow` of the two coordinates,
`first_integral` its conserved quantity, `claims` the statements of the theory, `compare` decides whether two
expressions are equal.

Source of the theory: arXiv 2608.06776.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from theory.lazy import lazy_names

if TYPE_CHECKING:
    from theory import symbols as symbols
    from theory.errors import GradlineError as GradlineError
    from theory.errors import NoLineError as NoLineError
    from theory.flow import ReducedFlow as ReducedFlow
    from theory.flow import derive as derive
    from theory.identities import Decision as Decision
    from theory.identities import UndecidedError as UndecidedError
    from theory.identities import compare as compare
    from theory.integrals import FirstIntegral as FirstIntegral
    from theory.integrals import first_integral as first_integral
    from theory.latex.printer import to_latex as to_latex
    from theory.model import AttentionModel as AttentionModel
    from theory.registry import Claim as Claim
    from theory.registry import claims as claims
    from theory.solutions import fixed_attention as fixed_attention
    from theory.task import TokenTask as TokenTask

_HOME = {
    "TokenTask": "task",
    "AttentionModel": "model",
    "ReducedFlow": "flow",
    "derive": "flow",
    "FirstIntegral": "integrals",
    "first_integral": "integrals",
    "fixed_attention": "solutions",
    "Claim": "registry",
    "claims": "registry",
    "compare": "identities",
    "Decision": "identities",
    "UndecidedError": "identities",
    "to_latex": "latex.printer",
    "GradlineError": "errors",
    "NoLineError": "errors",
    "symbols": "",
}

__all__ = [*_HOME]  # noqa: PLE0604
__getattr__, __dir__ = lazy_names("theory", _HOME)
