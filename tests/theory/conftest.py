"""Fixtures shared by the tests of the derivation."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def reference() -> ModuleType:
    """The independent oracles of ``reference.py``, loaded by path: tests are not a package."""
    path = Path(__file__).with_name("reference.py")
    spec = importlib.util.spec_from_file_location("gradline_test_reference", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
