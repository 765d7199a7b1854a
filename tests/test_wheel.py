"""The wheel holds every file of the packages, and its command runs outside the repository."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from shutil import copy, copytree, ignore_patterns

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("theory", "numerics")
_LONGEST = 300  # a loaded machine; nothing is measured by this


def _sources(root: Path) -> set[str]:
    """The files of the packages, without what Python caches."""
    files = (path for name in PACKAGES for path in (root / name).rglob("*"))
    return {p.relative_to(root).as_posix() for p in files if p.is_file() and "__pycache__" not in p.parts}


def _build(source: Path, out: Path) -> Path:
    """A wheel, built without network by the build backend that is installed."""
    code = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
    subprocess.run(
        [sys.executable, "-c", code, str(out)], cwd=source, check=True, capture_output=True, timeout=_LONGEST
    )
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what a wheel is built from, since building writes into its folder."""
    pytest.importorskip("setuptools", minversion="77", reason="building a wheel needs setuptools 77")
    copied = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        copy(ROOT / name, copied)
    for name in PACKAGES:
        copytree(ROOT / name, copied / name, ignore=ignore_patterns("__pycache__"))
    return copied


@pytest.fixture(scope="module")
def installed(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(_build(source, tmp_path_factory.mktemp("wheel"))) as wheel:
        wheel.extractall(folder)
    return folder


def test_no_file_is_missing(source: Path, installed: Path) -> None:
    assert _sources(installed) == _sources(source)
    assert {f"{name}/py.typed" for name in PACKAGES} < _sources(installed)


def test_a_file_that_is_not_declared_is_missing(source: Path, tmp_path: Path) -> None:
    """The twin: data that the configuration does not name is noticed."""
    changed = tmp_path / "source"
    copytree(source, changed, ignore=ignore_patterns("build", "*.egg-info"))
    text = (changed / "pyproject.toml").read_text(encoding="utf-8")
    (changed / "pyproject.toml").write_text(text.replace('"report/*.css", ', ""), encoding="utf-8")
    with zipfile.ZipFile(_build(changed, tmp_path)) as wheel:
        assert _sources(source) - set(wheel.namelist()) == {"numerics/report/page.css"}


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        (["latex", "--out", "tex"], "tex/gl-macros.tex"),
        (["report", "evidence.json", "--out", "report"], "report/report.html"),
    ],
)
def test_command_outside_the_repository(arguments: list[str], written: str, installed: Path, tmp_path: Path) -> None:
    """These read data files; the installed packages come first on the path."""
    make = (
        "import theory, numerics; from numerics.certificates import save; from theory import Claim;"
        f"from theory.symbols import M; assert theory.__file__.startswith({str(installed)!r}), theory.__file__;"
        "save(numerics.verify([Claim.equal('mine', (M - 1)**2, M**2 - 2*M + 1)]), 'evidence.json')"
    )
    command = "import sys; from numerics.cli import run; sys.exit(run(sys.argv[1:]))"
    env = os.environ | {"PYTHONPATH": str(installed)}
    for call in (["-c", make], ["-c", command, *arguments]):
        done = subprocess.run(
            [sys.executable, *call],
            cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=_LONGEST,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert (tmp_path / written).stat().st_size > 0
