"""Errors of an integration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from theory.errors import GradlineError

__all__ = ["IntegrationError", "TimeLimitError", "numbered"]


@contextmanager
def numbered(index: int, total: int, parameters: Mapping[str, float]) -> Iterator[None]:
    """Put the number of a run of several, and its ratio, before the message of an error."""
    try:
        yield
    except GradlineError as error:
        if total > 1:
            ratio = parameters["eta_QK"] / parameters["eta_OV"]
            text = f"run {index + 1} of {total}, eta_QK/eta_OV = {ratio:.6g}: {error}"
            error.args = (text, *error.args[1:])
        raise


class IntegrationError(GradlineError):
    """The integration failed, or two integrations disagree; the message names the stage and a remedy."""


class TimeLimitError(GradlineError, ValueError):
    """The time limit came before the target loss; ``loss`` and ``t`` say where."""

    def __init__(self, message: str, loss: float, t: float) -> None:
        super().__init__(message)
        self.loss = loss
        self.t = t
