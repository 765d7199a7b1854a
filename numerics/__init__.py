"""Turn the derived theory into kernels, trajectories and evidence.

`compile_kernel` generates NumPy or Torch source, `simulate` integrates a reduced flow, `MatrixModel` is the
full model that every formula is checked against, `verify` gathers evidence for every claim.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from theory.lazy import lazy_names

if TYPE_CHECKING:
    from numerics.evidence import Report as Report
    from numerics.evidence import verify as verify
    from numerics.fixed_attention import fixed_attention as fixed_attention
    from numerics.integrate import simulate as simulate
    from numerics.kernels import compile_kernel as compile_kernel
    from numerics.matrix_model import MatrixModel as MatrixModel
    from numerics.models import reduce_model as reduce_model
    from numerics.stopping import stopping_state as stopping_state
    from numerics.testing import check_on_line as check_on_line
    from numerics.testing import holds as holds
    from numerics.trajectory import Trajectory as Trajectory

_HOME = {
    "compile_kernel": "kernels",
    "simulate": "integrate",
    "Trajectory": "trajectory",
    "MatrixModel": "matrix_model",
    "reduce_model": "models",
    "stopping_state": "stopping",
    "fixed_attention": "fixed_attention",
    "check_on_line": "testing",
    "holds": "testing",
    "verify": "evidence",
    "Report": "evidence",
}

__all__ = [*_HOME]  # noqa: PLE0604
__getattr__, __dir__ = lazy_names("numerics", _HOME)
