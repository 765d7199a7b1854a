"""Hypothesis profiles: ``HYPOTHESIS_PROFILE=quick`` (default), ``ci`` (the same, derandomized) or ``thorough``."""

from __future__ import annotations

import os

from hypothesis import settings

# No deadline: an example integrates a model, and how long that takes says nothing about the property.
settings.register_profile("quick", max_examples=20, deadline=None, print_blob=True)
settings.register_profile("ci", settings.get_profile("quick"), derandomize=True)
settings.register_profile("thorough", settings.get_profile("quick"), max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "quick"))

# Compiling takes ten seconds for each kind of model; the tests of the compiled integrator ask for it.
os.environ.setdefault("GRADLINE_FAST", "0")
