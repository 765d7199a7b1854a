"""Sweeps: what is finished is kept and not run again, also after a kill; failures are reported; any executor."""

from __future__ import annotations

import importlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from numerics.integrate import simulate
from numerics.measures import at_equal_loss
from numerics.sweep import grid, sweep
from numerics.sweep_points import model_of, stopping_point, training_point

SCRIPT = Path(__file__).with_name("sweep_functions.py")
ROOT = Path(__file__).parents[2]
#: Kills of the sweep; ten with GRADLINE_LONG set.
KILLS = 10 if "GRADLINE_LONG" in os.environ else 3


@pytest.fixture(scope="module")
def functions() -> Any:
    """The module of functions under a name that spawned processes find as well."""
    sys.path.insert(0, str(SCRIPT.parent))
    try:
        yield importlib.import_module("sweep_functions")
    finally:
        sys.path.remove(str(SCRIPT.parent))


def test_values_in_order_and_kept(functions: ModuleType, tmp_path: Path) -> None:
    points = grid(x=[3, 1, 2], shift=[0.0, 0.5])
    seen: list[tuple[int, int]] = []
    with ThreadPoolExecutor(2) as threads:
        first = sweep(
            functions.square, points, tmp_path, executor=threads, progress=lambda d, n, _: seen.append((d, n))
        )
    assert [v["square"] for v in first.values] == [9.0, 9.5, 1.0, 1.5, 4.0, 4.5]
    assert (first.ran, first.kept, first.failures) == (6, 0, ())
    assert seen[0] == (0, 6)
    assert seen[-1] == (6, 6)
    again = sweep(functions.square, [*points, {"x": 5}], tmp_path, executor=_Refuse(allowed=1))
    assert (again.ran, again.kept) == (1, 6)
    assert again.values[:6] == first.values
    assert again.columns()["x"] == [3, 3, 1, 1, 2, 2, 5]
    assert list(tmp_path.glob("*.lock")) == []
    changed = sweep(functions.square, points[:1], tmp_path, executor=_Refuse(allowed=1), version="2")
    assert changed.ran == 1


class _Refuse(ThreadPoolExecutor):
    """An executor that runs a number of points and no more."""

    def __init__(self, allowed: int) -> None:
        super().__init__(1)
        self.left = allowed

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        self.left -= 1
        assert self.left >= 0
        return super().submit(fn, *args, **kwargs)


def test_a_failing_point_is_reported(functions: ModuleType, tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as threads:
        found = sweep(functions.picky, grid(x=[1, 2, 3]), tmp_path, executor=threads)
    assert found.values == (1, None, 3)
    (failure,) = found.failures
    assert failure.error == "ArithmeticError: two is not allowed"
    assert "picky" in failure.traceback
    assert found.columns() == {"x": [1, 3], "value": [1, 3]}
    retried = sweep(functions.picky, grid(x=[1, 2, 3]), tmp_path, executor=_Refuse(allowed=1))
    assert len(retried.failures) == 1


def test_a_dying_process_takes_nothing_with_it(functions: ModuleType, tmp_path: Path) -> None:
    """Processes, the default: the point that kills its process fails, all others finish."""
    found = sweep(functions.deadly, grid(x=range(5)), tmp_path, workers=2)
    assert found.values == (0, None, 2, 3, 4)
    assert [(f.point["x"], f.error) for f in found.failures] == [(1, "its process died")]


def _kill_once(folder: Path, log: Path, rng: random.Random) -> None:
    """Start the sweep and kill it at a random moment after its next point or two."""
    before = len(list(folder.glob("*.json")))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, str(SCRIPT), str(folder), str(log)]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    wanted = before + rng.randint(0, 2)
    while process.poll() is None and len(list(folder.glob("*.json"))) < wanted + (wanted == before):
        time.sleep(0.002)
    time.sleep(rng.random() * 0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_killed_at_random_moments(functions: ModuleType, tmp_path: Path) -> None:
    """After each kill: what was finished is still there, byte for byte, and is not started again."""
    folder, log = tmp_path / "points", tmp_path / "log"
    folder.mkdir()
    rng = random.Random(7)
    finished: dict[str, tuple[bytes, int]] = {}
    starts_before: dict[str, list[str]] = {}
    for _ in range(KILLS):
        _kill_once(folder, log, rng)
        for path in folder.glob("*.json"):
            if path.name not in finished:
                finished[path.name] = path.read_bytes(), path.stat().st_mtime_ns
                starts_before[path.name] = log.read_text().split()
    assert finished
    with ThreadPoolExecutor(2) as threads:
        last = sweep(functions.logged, functions.points(str(log)), folder, executor=threads)
    assert last.values == tuple(x * x for x in range(24))
    assert last.kept >= len(finished)
    after = log.read_text().split()
    for name, (content, modified) in finished.items():
        path = folder / name
        assert (path.read_bytes(), path.stat().st_mtime_ns) == (content, modified)
        x = str(json.loads(content)["point"]["x"])
        assert after.count(x) == starts_before[name].count(x)
    assert sorted(set(after), key=int) == [str(x) for x in range(24)]


def test_a_lost_result_is_run_again(functions: ModuleType, tmp_path: Path) -> None:
    """Twin: the check above sees a point that runs twice, here because its file was taken away."""
    log = tmp_path / "log"
    points = functions.points(str(log))[:2]
    for _ in range(2):
        with ThreadPoolExecutor(1) as threads:
            sweep(functions.logged, points, tmp_path / "points", executor=threads)
        next(iter((tmp_path / "points").glob("*.json"))).unlink(missing_ok=True)
    assert len(log.read_text().split()) == 3


@pytest.mark.parametrize("content", ["", '{"point": {"x"', "[]", "{}", "\xff"])
def test_a_damaged_file_is_run_again(functions: ModuleType, tmp_path: Path, content: str) -> None:
    log = tmp_path / "log"
    points = functions.points(str(log))[:2]
    kept = tmp_path / "points"
    with ThreadPoolExecutor(1) as threads:
        whole = sweep(functions.logged, points, kept, executor=threads)
        next(iter(kept.glob("*.json"))).write_bytes(content.encode("latin-1"))
        again = sweep(functions.logged, points, kept, executor=threads)
    assert (again.ran, again.kept, again.failures) == (1, 1, ())
    assert again.values == whole.values


def test_on_a_dask_cluster(functions: ModuleType, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="Dask is in the extra [cluster]")
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None) as client:
        found = sweep(functions.square, grid(x=[1, 2, 3]), tmp_path, executor=client.get_executor())
    assert [v["square"] for v in found.values] == [1, 4, 9]
    assert found.ran == 3


def test_arrays_become_lists(functions: ModuleType, tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as threads:
        found = sweep(functions.square, grid(x=[np.float64(2.0)]), tmp_path, executor=threads)
    assert found.values == ({"square": 4.0},)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"function": lambda x: x}, "which other processes can import"),
        ({"points": [{"x": object()}]}, "expected numbers, strings and lists"),
        ({"workers": 0}, "workers=0: expected an integer of at least 1"),
    ],
)
def test_refusals(change: dict[str, Any], words: str, functions: ModuleType, tmp_path: Path) -> None:
    given: dict[str, Any] = {"function": functions.square, "points": [{"x": 1}], "workers": 1} | change
    with pytest.raises((TypeError, ValueError), match=words):
        sweep(given["function"], given["points"], tmp_path, workers=given["workers"])


def test_theory_and_training_points(tmp_path: Path) -> None:
    """Ready-made points: stopping states as the library gives them; training runs compared at equal loss."""
    sizes = {"classes": 3, "block": 2, "queries": 2, "noise": "oo", "informative_slots": 2, "noise_slots": 1}
    points = [{**sizes, **p} for p in grid(model=["CACO", "CAFO"], eta_QK=[1.0, 5.0], loss=[1e-2], mu_OV=[0.1])]
    with ThreadPoolExecutor(1) as threads:
        theory = sweep(stopping_point, points, tmp_path, executor=threads)
        runs = sweep(
            training_point,
            grid(eta_QK=[0.1, 30.0], eta_OV=[1.0], start_ov=[0.0], epochs=[11], steps=[20], seed=[3]),
            tmp_path,
            executor=threads,
        )
    assert [f.error for f in (*theory.failures, *runs.failures)] == []
    run = simulate(model_of(model="CAFO", **sizes), {"eta_OV": 1, "eta_QK": 5}, {"mu_OV": 0.1}, until_loss=1e-2)
    assert theory.values[3]["mu_QK"] == pytest.approx(run.end.mu_QK, rel=1e-8)
    assert theory.values[3]["t"] == pytest.approx(run.end.t, rel=1e-8)
    slow, fast = ((value["loss"], value["attention"]) for value in runs.values)
    found = at_equal_loss({"slow": slow, "fast": fast}, points=5)
    # the slow run hardly attends anew while it learns, the fast one does; a mean over 1000 sequences scatters by 0.003
    assert np.ptp(found.values[0]) < 0.01
    assert abs(found.difference("fast", "slow")[-1]) > 0.05
