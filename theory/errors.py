"""Errors of the package: what a method can't do, as opposed to a wrong value (``ValueError``, ``TypeError``)."""


class GradlineError(Exception):
    """A limit of a method; the message names the expression or setting, the stage and a remedy."""


class NoLineError(GradlineError):
    """The gradient flow of this model does not stay on a line; the message names the criterion that fails."""
