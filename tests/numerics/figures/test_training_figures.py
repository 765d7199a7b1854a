"""Figures ``fig2`` and ``fig3`` at tiny sizes: tables, facts and words agree with what was trained."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from numerics.figures import Request, draw, fixed_attention, heatmaps
from numerics.training.experiments import ALPHAS, Heatmap, fixed_curves

PUBLISHED = json.loads((Path(__file__).parents[2] / "data" / "published.json").read_text())


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Quick versions that are quicker still."""
    monkeypatch.setattr(fixed_attention, "_QUICK", fixed_attention._Size(12, 20, 10, 200))
    panels = [replace(p, setting=replace(p.setting, epochs=80, steps=5)) for p in heatmaps.PANELS]
    monkeypatch.setattr(heatmaps, "PANELS", tuple(panels))


def test_published_numbers() -> None:
    for ov, values in fixed_attention.PUBLISHED.items():
        assert list(values) == PUBLISHED["fig3"][ov]["final_loss"]
        assert list(ALPHAS[:3]) == PUBLISHED["fig3"][ov]["alpha"]
    top = PUBLISHED["fig2"]["top_row_percent"]
    assert {n.replace(" ", "_"): list(v) for n, v in heatmaps.PUBLISHED.items()} == top


@pytest.mark.usefixtures("tiny")
def test_fig3(tmp_path: Path) -> None:
    told: list[Any] = []
    drawing = draw("fig3", Request(quick=True, seeds=2, progress=lambda *a: told.append(a)))
    table, final = drawing.tables[""], drawing.tables["final"]
    assert told[0][:2] == (0, 14)
    assert final["output"] == ["collapsed"] * 5 + ["factorized"] * 5
    assert final["seeds"] == [2] * 10
    runs = [fixed_curves("factorized", seed, epochs=12, steps=20, fresh=10) for seed in (0, 1)]
    ends = np.array([r.final for r in runs])
    np.testing.assert_allclose(final["final"][5:], ends.mean(0), rtol=1e-6)
    np.testing.assert_allclose(final["spread"][5:], np.ptp(ends, axis=0), atol=1e-6)
    rows = [
        i for i, (o, a) in enumerate(zip(table["output"], table["alpha"], strict=True)) if (o, a) == ("factorized", 0.4)
    ]
    losses = np.array([r.loss[:, 1] for r in runs])
    assert [table["epoch"][i] for i in rows] == list(range(1, 13))
    np.testing.assert_allclose([table["loss_min"][i] for i in rows], losses.min(0), rtol=1e-6)
    # 200 sequences in the flow, 640 in an epoch, far from the paper's: a tenth
    flow = np.array([table["loss_flow"][i] for i in rows])
    assert np.abs(flow / losses.mean(0) - 1).max() < 0.1
    worst = drawing.facts["largest_distance"]["factorized"]
    assert 0 < worst < 0.1
    assert any(f"within {worst:.1%} of training from epoch 10" in line for line in drawing.lines)
    assert all(np.isnan(x) for x in final["published"]), "a quick version is not compared with the paper"
    files = drawing.files("fig3", tmp_path)
    assert sorted(p.name for p in files) == ["fig3-final.csv", "fig3.csv", "fig3.pdf", "fig3.png"]
    assert "quick" in drawing.figure.get_suptitle()


@pytest.mark.usefixtures("tiny")
def test_fig2() -> None:
    drawing = draw("fig2", Request(quick=True))
    table = drawing.tables[""]
    assert list(dict.fromkeys(table["panel"])) == ["FAFO", "CACO ratio 1", "CACO ratio 5"]
    percent = np.array(table["percent"]).reshape(3, 5, 5)
    assert percent.sum((1, 2)) == pytest.approx(100)
    for panel, name in zip(percent, drawing.facts["top_row_percent"], strict=True):
        assert panel[-1].tolist() == drawing.facts["top_row_percent"][name]
    assert set(drawing.facts["largest_difference"]) == set(heatmaps.PUBLISHED)
    assert len(drawing.lines) == 3
    assert not any("published" in line for line in drawing.lines)


def test_difference_from_the_published_row() -> None:
    percent = np.zeros((5, 5))
    percent[-1] = [0.0, 60.0, 40.0, 0.0, 0.0]
    found = Heatmap(percent[None], np.array([1101]), np.array([9e-4]))
    assert heatmaps.difference("FAFO", found) == pytest.approx(4.3)
    assert "1101 epochs" in heatmaps._words("FAFO", found, True)
    assert "4.3 points" in heatmaps._words("FAFO", found, True)
    other = percent + [[0.0, 4.0, -4.0, 0.0, 0.0] if row == 4 else [0.0] * 5 for row in range(5)]
    both = Heatmap(np.array([percent, other]), np.array([1101, 1001]), np.array([9e-4, 9e-4]))
    assert heatmaps.difference("FAFO", both) == pytest.approx(2.3)
    assert "2 seeds within 4.0 points" in heatmaps._words("FAFO", both, True)


def test_the_full_version_has_the_settings_of_the_paper() -> None:
    jobs = list(heatmaps._jobs(Request()))
    settings = {job[1][0].name: job[1][0] for job in jobs}
    assert list(settings) == ["FAFO", "FACO", "CAFO", "CACO ratio 1", "CACO ratio 2", "CACO ratio 5"]
    fafo, raised = settings["FAFO"], settings["CACO ratio 5"]
    assert (fafo.epochs, fafo.steps, fafo.until_loss, fafo.length, fafo.rate) == (2500, 250, 1e-3, 64, 0.01)
    assert (fafo.start_qk, fafo.start_ov) == (None, 1e-6)
    assert (settings["FACO"].start_qk, settings["FACO"].start_ov) == (1e-6, 1e-6)
    assert (raised.epochs, raised.steps, raised.length, raised.until_loss) == (2000, 100, 128, None)
    assert raised.ratio * raised.rate == pytest.approx(0.05)
    assert len(jobs[-1][1][1]) == 5
    sizes = [job[2] for job in fixed_attention._jobs(fixed_attention._FULL, 3)]
    assert sizes == [{"epochs": 500, "steps": 250, "fresh": 1000}] * 6
