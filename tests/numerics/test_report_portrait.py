"""The phase portrait: each function of the page against NumPy, and settings at the ends of every slider."""

from __future__ import annotations

import json
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from numerics.report.portrait import kernels, portrait_section

sys.path.insert(0, str(Path(__file__).parent))
from chromium import visit, with_chromium

with_node = pytest.mark.skipif(
    not (shutil.which("node") or shutil.which("nodejs")), reason="Node.js is not installed: apt install nodejs"
)
POINTS = 10_000
#: Each operation rounds once in both languages; about 30 of them, with exponents up to 100.
CLOSE = 1e-12
MODELS = ("CACO", "CAFO", "FACO", "FAFO")
NAMES = [f"{m}_{n}_{k}" for m in MODELS for n in ("finite", "infinite") for k in ("flow", "integral", "stop")]
NAMES += [f"{m}_inverse" for m in MODELS]


def _ranges() -> dict[str, tuple[float, float, bool]]:
    """The sliders of the page: least, largest, and whether they hold exponents."""
    found = re.findall(r'name="(\w+)" min="([^"]+)" max="([^"]+)"[^>]* data-log="(\d)"', portrait_section())
    return {name: (float(low), float(high), log == "1") for name, low, high, log in found}


def _sample(name: str, generator: np.random.Generator) -> Any:
    if name == "eta_OV":
        return np.ones(POINTS)
    if name in ("mu_OV", "mu_QK", "x"):
        return generator.uniform(0.01, 20, POINTS)
    low, high, log = _ranges()["ratio" if name == "eta_QK" else name]
    values = generator.uniform(low, high, POINTS)
    return 10**values if log else np.round(values)


def _worst(ours: Any, right: Any, terms: Any = 0.0) -> float:
    """The largest difference, relative to the value, or to the largest of its terms where they cancel."""
    scale = np.maximum(np.abs(right), terms)
    return float(np.max(np.where(ours == right, 0.0, np.abs(ours - right) / scale)))


def test_these_are_all_functions_of_the_page() -> None:
    assert sorted(kernels()) == sorted(NAMES)
    called = set(re.findall(r"^\"(\w+)\": \[\(\(\) => \{", portrait_section(), re.MULTILINE))
    assert called == set(NAMES)


@with_node
@pytest.mark.parametrize("name", NAMES)
def test_javascript_agrees_with_numpy(name: str) -> None:
    script, array = kernels()[name], kernels("numpy")[name]
    assert script.arguments == array.arguments
    generator = np.random.default_rng(len(name))
    values = {argument: _sample(argument, generator) for argument in script.arguments}
    ours, right = (kernel(*values.values()) for kernel in (script, array))
    pairs = zip(ours, right, strict=True) if isinstance(right, tuple) else [(ours, right)]
    # Psi = (m/n) Ei(gamma q) + log q passes through 0, so there its terms are the scale
    terms = 1 + np.abs(np.log(values["mu_QK"])) if name.endswith("integral") and name[0] == "F" else 0.0
    for mine, theirs in pairs:
        assert np.all(np.isfinite(theirs))
        assert _worst(np.asarray(mine), np.asarray(theirs), terms) < CLOSE


@with_node
def test_a_changed_function_is_noticed() -> None:
    kernel = kernels()["CACO_finite_flow"]
    values = [_sample(argument, np.random.default_rng(0)) for argument in kernel.arguments]
    wrong = replace(kernel, source=kernel.source.replace("= eta_OV /", "= (1 + 1e-11) * eta_OV /"))
    assert wrong.source != kernel.source
    assert _worst(wrong(*values)[0], kernel(*values)[0]) > CLOSE


_EXTREMES = """
const sliders = [...document.querySelectorAll("#portrait-controls input")];
const picture = document.getElementById("portrait-picture"), said = document.getElementById("portrait-said");
const wrong = []; let drawn = 0;
const look = (setting) => {
  document.getElementById("portrait-controls").dispatchEvent(new Event("input"));
  drawn += 1;
  const paths = [...picture.querySelectorAll("path")].map((path) => path.getAttribute("d"));
  const places = [...picture.querySelectorAll("circle, text")].flatMap((node) =>
    ["cx", "cy", "x", "y"].map((name) => node.getAttribute(name)));
  const text = [...paths, ...places, said.textContent].join(" ");
  const numbers = paths.flatMap((path) => path.match(/-?[0-9.]+(?:e-?[0-9]+)?/g) || []);
  const good = !/NaN|Infinity|undefined/.test(text) && numbers.every((number) => Math.abs(number) < 2000);
  if (!good || picture.querySelectorAll("path.bold").length !== 1) wrong.push(setting);
};
for (const model of ["CACO", "CAFO", "FACO", "FAFO"]) for (const noise of ["finite", "infinite"]) {
  document.getElementById("set-model").value = model; document.getElementById("set-noise").value = noise;
  for (const all of ["min", "max"]) {
    for (const slider of sliders) slider.value = slider[all];
    look([model, noise, all]);
    for (const one of sliders) {
      const before = one.value; one.value = all === "min" ? one.max : one.min;
      look([model, noise, all, one.name]); one.value = before;
    }
  }
  for (const slider of sliders) slider.value = slider.defaultValue;
  for (const one of sliders) for (const end of ["min", "max"]) {
    one.value = one[end]; look([model, noise, one.name, end]); one.value = one.defaultValue;
  }
}
return { wrong, drawn };
"""


@with_chromium
def test_extreme_settings_draw_finite_paths(tmp_path: Path) -> None:
    page = _page()
    seen = visit(page, _EXTREMES, tmp_path)
    assert (seen.console, seen.requests) == ((), ())
    assert seen.found["drawn"] == 8 * (2 + 4 * 11)
    assert seen.found["wrong"] == []


@with_chromium
def test_a_path_without_numbers_is_noticed(tmp_path: Path) -> None:
    page = _page().replace("forms.wide = 1.25 *", "forms.wide = forms.at.M > 40 ? 0 / 0 : 1.25 *")
    script = _EXTREMES.replace(f"of {json.dumps(MODELS)})", 'of ["CACO"])')
    assert script != _EXTREMES
    assert ["CACO", "finite", "M", "max"] in visit(page, script, tmp_path).found["wrong"]


def _page() -> str:
    """The portrait alone."""
    from numerics.report import report_page

    empty = {"claims": [], "steps": [], "versions": {}, "seed": 0, "sha256": ""}
    return report_page(empty)
