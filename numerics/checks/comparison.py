"""What a check finds: a stated value beside the one that was found, and the bound on their difference.

Three forms, with one interface (``holds``, ``error``, ``bound``, ``case``, ``says``): `Comparison` of two
floats, `Residual` enclosed in a ball, `Ordering` of two values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["WIDTH", "Comparison", "Finding", "Ordering", "Residual"]

#: A residual is accepted as zero when it is enclosed in a ball around 0 narrower than this: at 256 bits the rounding of
#: one operation is 1e-77, which leaves 37 digits for cancellation and growth.
WIDTH = 1e-40


class Finding(Protocol):
    """A result of a check: ``holds`` is None where it could not decide."""

    @property
    def holds(self) -> bool | None: ...
    @property
    def error(self) -> float: ...
    @property
    def bound(self) -> float: ...
    @property
    def case(self) -> str: ...
    @property
    def says(self) -> str: ...


@dataclass(frozen=True)
class Comparison:
    """A stated value beside the one that was found, with the bound on their difference and the case."""

    what: str
    stated: float
    found: float
    bound: float
    case: str

    @property
    def error(self) -> float:
        """The difference; infinite if either is not a number."""
        difference = float(abs(self.stated - self.found))
        return difference if math.isfinite(difference) else math.inf

    @property
    def holds(self) -> bool:
        """Whether they agree within the bound."""
        return bool(self.error <= self.bound)

    @property
    def says(self) -> str:
        """Both values, for a message."""
        return f"{self.what} is {self.found:.12g}, stated {self.stated:.12g} ({self.case})"


@dataclass(frozen=True)
class Residual:
    """A ball that should enclose 0 and be narrower than `WIDTH`."""

    what: str
    ball: Any
    case: str
    bound: float = WIDTH

    @property
    def error(self) -> float:
        """An upper bound of the residual's size."""
        return float(self.ball.abs_upper()) if self.ball.is_finite() else math.inf

    @property
    def holds(self) -> bool | None:
        """False where the ball excludes 0, None where it is too wide to say."""
        if not self.ball.is_finite():
            return None
        if not self.ball.contains(0):
            return False
        return True if self.error <= self.bound else None

    @property
    def says(self) -> str:
        """The residual, for a message."""
        return f"{self.what} is {self.ball.str(15, radius=False)}, not 0 ({self.case})"


@dataclass(frozen=True)
class Ordering:
    """Two values of which the first should be larger by more than ``bound``, their error."""

    what: str
    larger: float
    smaller: float
    bound: float
    case: str

    @property
    def error(self) -> float:
        """How far the order is from being wrong, in units in which `bound` is the limit: ``bound^2/difference``."""
        gap = float(self.larger - self.smaller)
        return self.bound * self.bound / gap if gap > 0 else math.inf

    @property
    def holds(self) -> bool | None:
        """None where the difference is below its error."""
        gap = float(self.larger - self.smaller)
        if not math.isfinite(gap):
            return None
        return True if gap > self.bound else False if gap < -self.bound else None

    @property
    def says(self) -> str:
        """Both values, for a message."""
        return f"{self.what}: {self.larger:.12g} should be above {self.smaller:.12g} ({self.case})"
