"""pytest plugin: ``--gradline-profile quick`` or ``thorough`` sets how many cases each property test tries.

Without the option, or the variable ``GRADLINE_PROFILE``, the profiles of Hypothesis stay as they are. Nothing heavy is
imported here.
"""

from __future__ import annotations

import os
from typing import Any

__all__ = ["PROFILES"]

#: Examples of each profile.
PROFILES = {"quick": 20, "thorough": 500}


def pytest_addoption(parser: Any) -> None:
    """Add the option."""
    group = parser.getgroup("gradline")
    group.addoption(
        "--gradline-profile",
        choices=sorted(PROFILES),
        default=None,
        help="cases of each property test: quick (20) or thorough (500); also GRADLINE_PROFILE",
    )


def pytest_configure(config: Any) -> None:
    """Load the chosen profile into Hypothesis."""
    chosen = config.getoption("--gradline-profile") or os.environ.get("GRADLINE_PROFILE")
    if not chosen:
        return
    if chosen not in PROFILES:
        import pytest

        raise pytest.UsageError(f"GRADLINE_PROFILE={chosen!r}: expected one of {', '.join(PROFILES)}")
    from hypothesis import settings

    name = f"gradline-{chosen}"
    settings.register_profile(name, max_examples=PROFILES[chosen], deadline=None, print_blob=True)
    settings.load_profile(name)
