"""The attention model: which circuits are factorized, with which imbalance and inner width.

Source: arXiv 2608.06776, the four parameterizations CACO, CAFO, FACO, FAFO.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal, get_args

from sympy import Ge, Integer, factor

from theory.line import collapsed_line
from theory.orbits import Circuit
from theory.positivity import sign
from theory.task import TokenTask, exact_number, refuse_moving

__all__ = ["PARAMETERIZATIONS", "AttentionModel", "Form"]

Form = Literal["collapsed", "factorized"]

#: Name of the paper's code -> (query-key circuit, output-value circuit).
PARAMETERIZATIONS: dict[str, tuple[Form, Form]] = {
    "CACO": ("collapsed", "collapsed"),
    "CAFO": ("collapsed", "factorized"),
    "FACO": ("factorized", "collapsed"),
    "FAFO": ("factorized", "factorized"),
}


@dataclass(frozen=True)
class AttentionModel:
    """One attention head on a task.

    Parameters: ``task``; ``qk`` and ``ov``, ``"collapsed"`` (``W`` is trained) or ``"factorized"`` (``W = U
    V^T``, both trained); ``imbalance_qk``, ``imbalance_ov``, the ``c`` of ``U^T U - V^T V = c P`` (a number or
    a symbol such as ``theory.symbols.c_QK``, default 0: balanced); ``width_qk``, ``width_ov``, inner widths, by
    default the rank of the direction (M-1 for output-value; 1, or M with a query for each class, for
    query-key).

    Raises: ``ValueError`` for an imbalance or a width on a collapsed circuit, or a width below the rank.

    >>> AttentionModel(TokenTask(), qk="factorized").parameterization
    'FACO'
    """

    task: TokenTask
    qk: Form = "collapsed"
    ov: Form = "collapsed"
    imbalance_qk: Any = 0
    imbalance_ov: Any = 0
    width_qk: Any = None
    width_ov: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.task, TokenTask):
            raise TypeError(f"task={self.task!r}: expected a TokenTask")
        for circuit in ("qk", "ov"):
            self._check_circuit(circuit)

    def _check_circuit(self, circuit: str) -> None:
        form = getattr(self, circuit)
        forms = get_args(Form)
        if form not in forms:
            near = get_close_matches(str(form).lower(), forms, 1, 0.3) or [forms[0]]
            raise ValueError(f"{circuit}={form!r}: expected 'collapsed' or 'factorized'; did you mean {near[0]!r}?")
        imbalance = exact_number(f"imbalance_{circuit}", getattr(self, f"imbalance_{circuit}"))
        refuse_moving(f"imbalance_{circuit}", imbalance)
        if imbalance.is_real is not True:
            raise ValueError(f"imbalance_{circuit}={imbalance}: expected a real number or a real symbol such as c_QK")
        if imbalance.free_symbols and imbalance.is_zero is not False:
            raise ValueError(
                f"imbalance_{circuit}={imbalance}: expected a symbol that is not 0, "
                f"such as theory.symbols.c_{circuit.upper()}; "
                "leave it out for a balanced circuit"
            )
        object.__setattr__(self, f"imbalance_{circuit}", imbalance)
        width = getattr(self, f"width_{circuit}")
        if form == "collapsed" and imbalance != 0:
            raise ValueError(
                f"imbalance_{circuit}={imbalance}: the {circuit} circuit is collapsed and has no factors; "
                f"use {circuit}='factorized'"
            )
        if width is None:
            return
        if form == "collapsed":
            raise ValueError(
                f"width_{circuit}={width}: the {circuit} circuit is collapsed and has no inner width; "
                f"use {circuit}='factorized'"
            )
        width = exact_number(f"width_{circuit}", width)
        classes = self.task.classes
        at_least_two = () if classes.is_number else (Ge(classes, 2, evaluate=False),)
        if not width.is_integer or sign(width, at_least_two) != 1:
            raise ValueError(f"width_{circuit}={width}: expected a positive integer or a positive integer symbol")
        rank = collapsed_line(self.task).directions["QK" if circuit == "qk" else "OV"].rank
        if sign(factor(width - rank), at_least_two) == -1:
            raise ValueError(f"width_{circuit}={width}: expected at least the rank of the direction, {rank}")
        object.__setattr__(self, f"width_{circuit}", width)

    @property
    def parameterization(self) -> str:
        """CACO, CAFO, FACO or FAFO: attention collapsed or factorized, output collapsed or factorized."""
        return next(name for name, forms in PARAMETERIZATIONS.items() if forms == (self.qk, self.ov))

    def form(self, circuit: Circuit) -> Form:
        """Whether a circuit is collapsed or factorized."""
        return self.qk if circuit == "QK" else self.ov

    def imbalance(self, circuit: Circuit) -> Any:
        """The imbalance of a circuit; 0 if balanced or collapsed."""
        value = self.imbalance_qk if circuit == "QK" else self.imbalance_ov
        return Integer(0) if value == 0 else value

    def is_balanced(self, circuit: Circuit) -> bool:
        """Whether a circuit is factorized with balanced factors, so that 0 is stationary and never crossed."""
        return self.form(circuit) == "factorized" and self.imbalance(circuit) == 0
