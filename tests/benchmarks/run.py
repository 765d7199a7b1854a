"""Kernels and sweeps side by side, in one run, with the error beside every time: ``make bench``.

    python tests/benchmarks/run.py [docs/benchmarks.md]

Times are minimum and median over repetitions; ratios are of minima, to the practical limit: a C loop with polynomial
exponentials over data in L1 cache (`limit.c`). Kernels take turns, so that all see the same pace of the machine. A page
fault is memory that the system hands out anew: what results in new arrays may cost, and results in given ones never.
"""

from __future__ import annotations

import ctypes
import math
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

if __name__ == "__main__":  # before NumPy is loaded; the collection of tests imports this file and keeps its settings
    for _name in [n for n in os.environ if n.startswith("OPENBLAS_")]:
        del os.environ[_name]
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import sympy

import numerics
from theory import AttentionModel, TokenTask, derive
from theory.errors import GradlineError

HERE = Path(__file__).parent
STATES = 1_000_000
PUBLISHED = {"M": 20.0, "b": 50.0, "K": 50.0, "m": 5.0, "n": 50.0, "eta_OV": 1.0, "eta_QK": 2.0}
RATIOS = [0.01, 0.1, 1.0, 10.0, 100.0]
LIMIT_FLAGS = ["-std=c11", "-O3", "-march=native", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math"]
#: What gradline promises for these states and sweeps; others may lose digits, which the table shows.
PROMISED = 1e-8
Row = tuple[str, float, float, str]


def timed(call: Callable[[], Any], seconds: float = 1.5, most: int = 400) -> tuple[float, float]:
    """Minimum and median in seconds, after one call that does not count."""
    return in_turns([call], seconds, most)[0][:2]


def in_turns(calls: Sequence[Callable[[], Any]], seconds: float, most: int) -> list[tuple[float, float, float]]:
    """Minimum, median and page faults a call of each, one after the other, over again."""
    times: list[list[float]] = [[] for _ in calls]
    faults: list[list[int]] = [[] for _ in calls]
    for call in calls:
        call()
    end = time.perf_counter() + seconds
    while len(times[0]) < 5 or (time.perf_counter() < end and len(times[0]) < most):
        for k, call in enumerate(calls):
            before, begin = _page_faults(), time.perf_counter()
            call()
            times[k].append(time.perf_counter() - begin)
            faults[k].append(_page_faults() - before)
    return [(min(t), median(t), median(f)) for t, f in zip(times, faults, strict=True)]


def _page_faults() -> int:
    if sys.platform == "win32":
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def limit_loop(folder: Path) -> tuple[Callable[[], Any], int]:
    """The practical limit: a call, and the states it passes."""
    library = folder / "limit.so"
    subprocess.run(["cc", *LIMIT_FLAGS, "-shared", "-fPIC", "-o", library, HERE / "limit.c"], check=True)
    function = ctypes.CDLL(str(library)).limit
    double, pointer, size = ctypes.c_double, ctypes.c_void_p, ctypes.c_size_t
    function.argtypes, function.restype = [size, size, *[pointer] * 6, *[double] * 6], None
    count, repeat = 512, 100
    v, q = states(count)
    out = [np.empty(count) for _ in range(4)]
    M, b, m, n, eta_OV, eta_QK = (PUBLISHED[k] for k in ("M", "b", "m", "n", "eta_OV", "eta_QK"))
    numbers = M, b, n / m, math.log(M - 1), eta_OV, eta_QK
    arrays = [a.ctypes.data for a in (v, q, *out)]
    function(1, count, *arrays, *numbers)
    worst = max(relative(a, b) for a, b in zip(out, by_hand(v, q), strict=True))
    if worst > 1e-11:
        raise GradlineError(f"the loop of the practical limit is wrong by {worst:.2g}; its time means nothing")
    return lambda: (function(repeat, count, *arrays, *numbers), v, q, out), repeat * count


def states(count: int) -> tuple[Any, Any]:
    """States of the published runs: ``mu_OV`` from 0 to 40, ``mu_QK`` from 0 to 8."""
    random = np.random.default_rng(0)
    return random.uniform(0.0, 40.0, count), random.uniform(0.0, 8.0, count)


def by_hand(v: Any, q: Any) -> tuple[Any, Any, Any, Any]:
    """What a person would write in NumPy."""
    M, b, m, n, eta_OV, eta_QK = (PUBLISHED[k] for k in ("M", "b", "m", "n", "eta_OV", "eta_QK"))
    attention = m * np.exp(q) / (m * np.exp(q) + n)
    denominator = np.exp(attention * v) + M - 1
    d_v = eta_OV * attention / (b * denominator)
    d_q = eta_QK * (M - 1) * attention * (1 - attention) * v / (M * b**2 * denominator)
    return d_v, d_q, np.log1p((M - 1) * np.exp(-attention * v)), attention


def relative(found: Any, exact: Any) -> float:
    return float(np.max(np.abs(np.asarray(found) / np.asarray(exact) - 1)))


def exact_values(v: Any, q: Any) -> list[Any]:
    """At 40 digits, free of cancellation."""
    import mpmath

    M, b, m, n, eta_OV, eta_QK = (mpmath.mpf(PUBLISHED[k]) for k in ("M", "b", "m", "n", "eta_OV", "eta_QK"))
    rows = []
    with mpmath.workdps(40):
        for x, y in zip(v, q, strict=True):
            grown = m * mpmath.exp(mpmath.mpf(float(y)))
            a = grown / (grown + n)
            e = mpmath.exp(a * mpmath.mpf(float(x))) + M - 1
            d_q = eta_QK * (M - 1) * a * (n / (grown + n)) * mpmath.mpf(float(x)) / (M * b**2 * e)
            rows.append([eta_OV * a / (b * e), d_q, mpmath.log1p((M - 1) / (e - M + 1)), a])
    return [np.array([float(r[k]) for r in rows]) for k in range(4)]


def kernel_calls(v: Any, q: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """All ways to evaluate the published system on arrays."""
    flow = derive(AttentionModel(TokenTask(noise=sympy.oo)))
    values = tuple(PUBLISHED[s.name] for s in flow.parameters)
    yield "NumPy by hand", lambda: by_hand(v, q)
    numbers = dict(zip(flow.parameters, map(sympy.Float, values), strict=True))
    outputs = [e.xreplace(numbers) for e in (*flow.velocity.values(), flow.loss, flow.attention)]
    lambdified = sympy.lambdify(flow.states, outputs, "numpy", cse=True)
    yield "sympy.lambdify(cse=True)", lambda: lambdified(v, q)
    for backend in ("numpy", "numba", "c"):
        try:
            kernel = numerics.compile_kernel(flow, backend=backend)
            kernel(0.0, 0.0, *values)
        except GradlineError as error:
            print(f"SKIPPED {backend}: {error}", file=sys.stderr)
            continue
        out = tuple(np.empty(v.size) for _ in kernel.outputs)
        yield f"gradline, {backend}", lambda kernel=kernel: kernel(v, q, *values)
        yield f"gradline, {backend}, out=", lambda kernel=kernel, out=out: kernel(v, q, *values, out=out)
    if shutil.which(os.environ.get("CXX", "g++")) is None:
        print("SKIPPED torch.compile: no C++ compiler", file=sys.stderr)
        return
    compiled = torch_call(flow, values)
    yield "gradline, torch.compile", lambda: compiled(v, q)


def torch_call(flow: Any, values: tuple[float, ...]) -> Callable[[Any, Any], Any]:
    import torch

    torch.set_num_threads(1)
    kernel = numerics.compile_kernel(flow, backend="torch")
    compiled = torch.compile(kernel.function)
    fixed = [torch.tensor(x, dtype=torch.float64) for x in values]
    return lambda v, q: [x.numpy() for x in compiled(torch.from_numpy(v), torch.from_numpy(q), *fixed)]


def checked(name: str, error: float, bound: float | None = None) -> float:
    """The error beside a time; gradline's own must keep its promise, and everyone's must be a number."""
    if not error < (bound or (PROMISED if name.startswith("gradline") else math.inf)):
        raise SystemExit(f"{name}: relative error {error:.1e}: this is not what is compared here")
    return error


def kernel_table() -> list[str]:
    """The lines of the table of kernels."""
    v, q = states(STATES)
    exact = exact_values(v[:2000], q[:2000])
    names, calls, errors = ["practical limit, in L1 cache"], [], ["below 1e-11"]
    with tempfile.TemporaryDirectory() as folder:
        loop, passed = limit_loop(Path(folder))
        for name, call in kernel_calls(v, q):
            error = checked(name, max(relative(a[:2000], b) for a, b in zip(call(), exact, strict=True)))
            names.append(name)
            calls.append(call)
            errors.append(f"{error:.1e}")
        measured = in_turns([loop, *calls], 20.0, 200)
    lines = [
        "| | min, ns a state | median, ns a state | to the limit | page faults a call | largest relative error |",
        "|---|---:|---:|---:|---:|---|",
    ]
    counts = [passed, *[STATES] * len(calls)]
    base = measured[0][0] / passed
    for name, (least, middle, faults), error, count in zip(names, measured, errors, counts, strict=True):
        own = f"{least / count * 1e9:.3g} | {middle / count * 1e9:.3g} | {least / count / base:.2f}"
        lines.append(f"| {name} | {own} | {faults:.0f} | {error} |")
    return lines


@cache
def exact_ends() -> list[tuple[float, float, float]]:
    """(t, mu_OV, mu_QK) at loss 1e-4 by quadrature of the first integral, at 25 digits."""
    import mpmath

    M, b, m, n = 20, 50, 5, 50
    found = []
    for ratio in RATIOS:
        with mpmath.workdps(25):
            r = mpmath.mpf(str(ratio))
            kappa = r * (M - 1) / (M * b)

            def attention(q: Any) -> Any:
                return m * mpmath.exp(q) / (m * mpmath.exp(q) + n)

            def output(q: Any, kappa: Any = kappa) -> Any:
                return mpmath.sqrt(2 * (mpmath.mpf(m) / n * mpmath.expm1(q) + q) / kappa)

            def per_root(s: Any, r: Any = r, output: Any = output) -> Any:
                a, x = attention(s * s), output(s * s)
                return 2 * s * M * b * b * (mpmath.exp(a * x) + M - 1) / (r * (M - 1) * a * (1 - a) * x)

            goal = mpmath.log((M - 1) / mpmath.expm1(mpmath.mpf("1e-4")))
            q = mpmath.findroot(lambda x, o=output, g=goal: attention(x) * o(x) - g, (0.05, 12), solver="anderson")
            low = mpmath.mpf("1e-12")
            t = mpmath.quad(per_root, mpmath.linspace(low, mpmath.sqrt(q), 20)) + low * per_root(low)
            found.append((float(t), float(output(q)), float(q)))
    return found


def sweep_rows() -> list[Row]:
    task = TokenTask(classes=20, block=50, queries=50, noise=sympy.oo, informative_slots=5, noise_slots=50)
    flow, exact = derive(AttentionModel(task)), exact_ends()
    rates = {"eta_OV": 1, "eta_QK": RATIOS}

    def simulated(fast: bool) -> list[tuple[float, float, float]]:
        end: Any = numerics.simulate(flow, rates, until_loss=1e-4, fast=fast).end
        return list(zip(end.t, end.mu_OV, end.mu_QK, strict=True))

    ways: list[tuple[str, Callable[[], Any]]] = [
        ("gradline.simulate, Numba (integrates twice)", lambda: simulated(True)),
        ("gradline.simulate, SciPy (integrates twice)", lambda: simulated(False)),
        ("scipy.solve_ivp DOP853, log time, rtol 1e-10", scipy_sweep),
    ]
    heyoka = heyoka_sweep()
    if heyoka is not None:
        ways.append(("heyoka 1e-16, event on the loss", heyoka))
    rows: list[Row] = []
    for name, call in ways:
        error = checked(name, max(relative(a, b) for a, b in zip(call(), exact, strict=True)))
        rows.append((name, *timed(call, 2.0), f"{error:.1e}"))
    return rows


def _right_side(ratio: float) -> Callable[[float, Any], list[float]]:
    def velocity(u: float, y: Any) -> list[float]:
        a = 1 / (1 + 10 * math.exp(-y[1]))
        pace = math.exp(u) * a / (math.exp(a * y[0]) + 19)
        return [pace / 50, pace * ratio * 19 * (1 - a) * y[0] / 50_000]

    return velocity


def scipy_sweep() -> list[tuple[float, float, float]]:
    from scipy.integrate import solve_ivp

    found = []
    for ratio in RATIOS:

        def reached(u: float, y: Any) -> float:
            return math.log(math.log1p(19 * math.exp(-y[0] / (1 + 10 * math.exp(-y[1]))))) - math.log(1e-4)

        reached.terminal = True  # type: ignore[attr-defined]
        run = solve_ivp(_right_side(ratio), (0.0, 40.0), [0.0, 0.0], "DOP853", events=reached, rtol=1e-10, atol=1e-10)
        found.append((math.expm1(run.t[-1]), run.y[0, -1], run.y[1, -1]))
    return found


def heyoka_sweep() -> Callable[[], list[tuple[float, float, float]]] | None:
    try:
        import heyoka as hy
    except ImportError:
        print("SKIPPED heyoka: not installed", file=sys.stderr)
        return None
    v, q = hy.make_vars("v", "q")
    a = 1.0 / (1.0 + 10.0 * hy.exp(-q))
    share = a / (hy.exp(a * v) + 19.0)
    system = [(v, share / 50.0), (q, hy.par[0] * 19.0 * (1.0 - a) * v * share / 50_000.0)]
    goal = math.log(19 / math.expm1(1e-4))
    event = hy.t_event(a * v - goal)
    integrator = hy.taylor_adaptive(system, [0.0, 0.0], pars=[1.0], t_events=[event], compact_mode=False)

    def sweep() -> list[tuple[float, float, float]]:
        found = []
        for ratio in RATIOS:
            integrator.time, integrator.state[:], integrator.pars[:] = 0.0, 0.0, ratio
            integrator.reset_cooldowns()
            integrator.propagate_until(1e12)
            found.append((integrator.time, *integrator.state))
        return found

    return sweep


def batch_row() -> Row:
    random, runs = np.random.default_rng(0), 10_000
    model = AttentionModel(TokenTask(noise=sympy.oo))
    sizes = {"M": (2, 1000), "b": (1, 100), "K": (1, 100), "m": (1, 50), "n": (1, 200)}
    values: dict[str, Any] = {name: random.integers(*bounds, runs) for name, bounds in sizes.items()}
    values |= {"eta_OV": 1.0, "eta_QK": 10 ** random.uniform(-2, 2, runs)}
    batch: Any = numerics.simulate(model, values, until_loss=1e-4, fast=True)
    some = {k: (x[:20] if np.ndim(x) else x) for k, x in values.items()}
    other: Any = numerics.simulate(model, some, until_loss=1e-4, fast=False)
    error = max(relative(getattr(batch.end, n)[:20], getattr(other.end, n)) for n in ("t", "mu_OV", "mu_QK"))
    checked("random parameter sets", error, PROMISED)
    least, middle = timed(lambda: numerics.simulate(model, values, until_loss=1e-4, fast=True), 5.0)
    return "10,000 random parameter sets to loss 1e-4", least, middle, f"{error:.1e} (20 sets, against SciPy)"


def new_process() -> Row:
    code = (
        "import time; t = time.perf_counter()\n"
        "from theory import AttentionModel, TokenTask\nfrom numerics import simulate\n"
        "task = TokenTask(classes=20, block=50, queries=50, noise=float('inf'), informative_slots=5, noise_slots=50)\n"
        f"r = simulate(AttentionModel(task), {{'eta_OV': 1, 'eta_QK': {RATIOS}}}, until_loss=1e-4, fast=True)\n"
        "print(time.perf_counter() - t, *r.end.t)"
    )
    times, error = [], 0.0
    for _ in range(6):
        done = subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=HERE.parents[1]
        )
        seconds, *ends = map(float, done.stdout.split())
        times.append(seconds)
        error = max(error, relative(ends, [t for t, *_ in exact_ends()]))
    checked("new process", error, PROMISED)
    return "the five ratios in a new process, imports included", min(times), median(times), f"{error:.1e}"


def table(rows: list[Row], scale: float, unit: str) -> list[str]:
    lines = [f"| | min, {unit} | median, {unit} | largest relative error |", "|---|---:|---:|---|"]
    for name, least, middle, error in rows:
        lines.append(f"| {name} | {least * scale:.3g} | {middle * scale:.3g} | {error} |")
    return lines


def main() -> None:
    lines = [
        "# Benchmarks", "",
        f"Written by `make bench` in one run on {platform.machine()}, {os.cpu_count()} cores, load "
        f"{os.getloadavg()[0]:.1f} at the end, Python {platform.python_version()}, NumPy {np.__version__}, SymPy "
        f"{sympy.__version__}. Only ratios within a table compare.", "",
        f"## Kernels of the published system, {STATES:,} states, one core", "",
        "Velocities, loss and attention; errors against 40 digits. With `out=` results go into arrays that are there; "
        "without, into new ones, which the system may have to provide page by page.", "",
        *kernel_table(), "",
        "## The five published ratios, from zero to loss 1e-4", "",
        "Errors of the end time and of both coordinates against a quadrature at 25 digits.", "",
        *table(sweep_rows(), 1e3, "ms"), "",
        "## Batches and new processes", "",
        *table([batch_row(), new_process()], 1.0, "s"), "",
    ]  # fmt: skip
    text = "\n".join(lines)
    print(text)
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
