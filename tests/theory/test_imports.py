"""`theory` stays light: a fresh process shows what an import loads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("numpy", "scipy", "torch", "matplotlib", "numerics")
ROOT = Path(__file__).parents[2]


def loaded(code: str, names: tuple[str, ...]) -> set[str]:
    """Which of these modules are in `sys.modules` after the code ran in a fresh interpreter."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    script = f"{code}\nimport sys\nprint(*[n for n in {names!r} if n in sys.modules])"
    environment = os.environ | {"PYTHONPATH": path}
    run = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    return set(run.stdout.split())


def test_plain_import_loads_nothing() -> None:
    assert loaded("import theory", (*HEAVY, "sympy", "flint", "mpmath")) == set()


def test_errors_need_no_sympy() -> None:
    assert loaded("from theory import GradlineError, NoLineError", (*HEAVY, "sympy")) == set()


def test_derivation_loads_no_numerics() -> None:
    code = (
        "import theory\n"
        "flow = theory.derive(theory.AttentionModel(theory.TokenTask(), qk='factorized', ov='factorized'))\n"
        "theory.first_integral(flow)\n"
        "theory.compare(flow.loss, flow.loss)\n"
        "[getattr(theory, name) for name in theory.__all__]"
    )
    assert loaded(code, (*HEAVY, "sympy")) == {"sympy"}


@pytest.mark.parametrize("name", ["numpy", "sympy"])
def test_the_check_sees_an_import(name: str) -> None:
    """Twin: the same check after an import finds it."""
    assert loaded(f"import theory, {name}", (*HEAVY, "sympy")) == {name}


def test_unknown_name_lists_the_known_ones() -> None:
    import theory

    with pytest.raises(AttributeError, match=r"has no attribute 'derivee'; it has .*derive"):
        _ = theory.derivee
    assert set(theory.__all__) <= set(dir(theory))
    assert all(getattr(theory, name) is not None for name in theory.__all__)
