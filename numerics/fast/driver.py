"""The integrator, in plain Python: `numerics.fast.source` prints it behind the functions of one flow, for Numba.

The coordinate ``x`` of ``mu_OV`` is the independent variable. It is monotone along a flow, and in it the curve
``y(x)``, the coordinate of ``mu_QK``, is smooth where time is not: the loss cancels from ``dy/dx``.

    dy/dx = (dy/dt)/(dx/dt)   by DOP853, adaptive;      t = int dx/(dx/dt)   by Gauss quadrature on its dense output

Each run is integrated a second time with steps twice as long, and both are compared at equal times. `LANES` runs
go side by side, so that the loops over ``lane`` become vector instructions; rows of ``work`` are `LANES` long.

Source: Hairer, Norsett, Wanner, Solving Ordinary Differential Equations I, section II.10 (DOP853).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

# stand-ins for what `numerics.fast.source` prints in front of this text
LANES, COUNT = 8, 2
NODES = WEIGHTS = (0.5,) * 8


def compiled(function: Any) -> Any:
    """Compile a function."""
    return function


entry = inlined = compiled


def _stand_in(*_: Any) -> Any:
    raise NotImplementedError("printed for each flow by numerics.fast.source")


numbers = slope_at = pace_at = loss_at = attention_at = stretch_OV = stretch_QK = try_steps = measure_steps = _stand_in

# --- below this line the text is printed into the integrator of each flow

# rows of ``work``
X, Y, K, H, RTOL, ATOL = 0, LANES, 2 * LANES, 3 * LANES, 4 * LANES, 5 * LANES
Z, KZ, FACTOR, PACE, LOSS, TIME = 6 * LANES, 7 * LANES, 8 * LANES, 9 * LANES, 10 * LANES, 11 * LANES
STAGES, SHAPE, GIVEN = 12 * LANES, 19 * LANES, 26 * LANES
SIZE = (26 + COUNT) * LANES

# columns of ``ends`` and values of its status
END_X, END_Y, END_T, END_LOSS, END_ATTENTION, END_STEPS, END_ERROR, END_STATUS = 0, 1, 2, 3, 4, 5, 6, 7
END_UNIT = 8
DONE, LATE, FAILED, GOING = 0.0, 1.0, 2.0, -1.0

# the state of a lane: its run or -1, phase, steps of the first integration, how it ends, attempts, next node to compare
RUN, PHASE, COUNT_OF, FINAL, TRIES, NODE = 0, 1, 2, 3, 4, 5
LOOSE = 1  # the phase of the second integration
BY_LOSS, BY_TIME = 1, 2
NOW, ERROR = 0, 1  # its clock: time, largest deviation

SMALLEST = 1e-14  # of a step, relative to 1 + |x|
STEEPEST = 2.5  # a step changes dt/dx by at most this power of e: the quadrature is good to rounding


@inlined
def interpolate(s: Any, y: Any, f: Any) -> Any:
    """Dense output of a step at its fraction ``s``."""
    r = 1.0 - s
    return y + s * (f[0] + r * (f[1] + s * (f[2] + r * (f[3] + s * (f[4] + r * (f[5] + s * f[6]))))))


@inlined
def duration(s: Any, x: Any, y: Any, h: Any, f: Any, q: Any) -> Any:
    """Time from the beginning of a step to its fraction ``s``."""
    total = 0.0
    for i in range(8):
        part = s * NODES[i]
        total += WEIGHTS[i] * pace_at(x + part * h, interpolate(part, y, f), q)
    return total * s * h


@inlined
def shape(work: Any, lane: Any) -> Any:
    """Coefficients of the dense output of the step in a lane."""
    return (
        work[SHAPE + lane],
        work[SHAPE + LANES + lane],
        work[SHAPE + 2 * LANES + lane],
        work[SHAPE + 3 * LANES + lane],
        work[SHAPE + 4 * LANES + lane],
        work[SHAPE + 5 * LANES + lane],
        work[SHAPE + 6 * LANES + lane],
    )


@compiled
def fraction_to_loss(work: Any, lane: Any, target: Any) -> Any:
    """The fraction of the step in a lane at which the loss is the target: regula falsi on its logarithm."""
    q, f = numbers(work, lane), shape(work, lane)
    x, y, h = work[X + lane], work[Y + lane], work[H + lane]
    low, high = 0.0, 1.0
    above, below = math.log(loss_at(x, y, q) / target), math.log(work[LOSS + lane] / target)
    for _ in range(80):
        s = high - below * (high - low) / (below - above)
        if not low < s < high:
            s = 0.5 * (low + high)
        if not low < s < high:
            return high
        gap = math.log(loss_at(x + s * h, interpolate(s, y, f), q) / target)
        if abs(gap) < 1e-15:
            return s
        if gap > 0:
            low, above, below = s, gap, 0.5 * below
        else:
            high, below, above = s, gap, 0.5 * above
    return high


@compiled
def fraction_to_time(time: Any, x: Any, y: Any, h: Any, f: Any, q: Any, whole: Any) -> Any:
    """The fraction of a step after which a time has passed; ``whole``, the duration of the step."""
    low, high = 0.0, 1.0
    first = pace_at(x, y, q) * h
    power = math.log(pace_at(x + h, interpolate(1.0, y, f), q) * h / first)
    s = time / whole if abs(power) < 1e-3 else math.log1p(time / whole * math.expm1(power)) / power
    for _ in range(60):
        if not low < s < high:
            s = 0.5 * (low + high)
        if not low < s < high:
            return s
        rest = time - duration(s, x, y, h, f, q)
        if rest > 0:
            low = s
        else:
            high = s
        change = rest / (pace_at(x + s * h, interpolate(s, y, f), q) * h)
        s += change
        if abs(change) <= 1e-15 * s:
            return min(max(s, 0.0), 1.0)
    return s


@compiled
def onto_loss(x: Any, y: Any, slope: Any, target: Any, q: Any) -> Any:
    """The distance in ``x``, about as short as its spacing, to where the loss is the target to rounding."""
    moved = 0.0
    probe = 1e-6 / max(1.0, abs(slope))
    for _ in range(3):
        gap = math.log(loss_at(x + moved, y + moved * slope, q) / target)
        ahead = math.log(loss_at(x + moved + probe, y + (moved + probe) * slope, q) / target)
        if gap in (0.0, ahead):
            break
        moved -= gap * probe / (ahead - gap)
    return moved


@inlined
def deviation(x: Any, y: Any, dx: Any, dy: Any, q: Any) -> Any:
    """The change of the coordinates ``mu``, relative to ``1 + |mu|``, that belongs to changes of ``x`` and ``y``."""
    mu_OV, stretch = stretch_OV(x, q)
    output = abs(dx * stretch) / (1.0 + abs(mu_OV))
    mu_QK, stretch = stretch_QK(y, q)
    return max(output, abs(dy * stretch) / (1.0 + abs(mu_QK)))


@compiled
def begin(work: Any, lane: Any, settings: Any, steps: Any) -> Any:
    """Put a lane at the start of a run; returns dy/dx there."""
    work[X + lane], work[Y + lane] = settings[0], settings[1]
    q = numbers(work, lane)
    slope = slope_at(settings[0], settings[1], q)
    work[K + lane] = slope
    steps[0, 0], steps[0, 1], steps[0, 2] = settings[0], settings[1], 0.0
    steps[0, 3] = pace_at(settings[0], settings[1], q)
    return slope


@compiled
def compare(work: Any, lane: Any, node: Any, x: Any, y: Any, t: Any, unit: Any, last: Any) -> Any:
    """Deviation of the second integration from a node of the first: at equal times, and of the end from the end."""
    q = numbers(work, lane)
    slope, pace = slope_at(node[0], node[1], q), pace_at(node[0], node[1], q)
    shift = (node[2] - t) / pace
    error = deviation(node[0], node[1], x + shift - node[0], y + slope * shift - node[1], q)
    if last:
        error = max(error, deviation(node[0], node[1], x - node[0], y - node[1], q))
        error = max(error, abs(t - node[2]) / (node[2] + unit))
    return error


@compiled
def accept(work: Any, lane: Any, steps: Any, n: Any, t: Any) -> Any:
    """Store the step of a lane as step ``n`` and go to its end."""
    x = work[X + lane] + work[H + lane]
    f = shape(work, lane)
    for i in range(7):
        steps[n, 4 + i] = f[i]
    steps[n + 1, 0], steps[n + 1, 1], steps[n + 1, 2], steps[n + 1, 3] = x, work[Z + lane], t, work[PACE + lane]
    work[X + lane], work[Y + lane], work[K + lane] = x, work[Z + lane], work[KZ + lane]


@compiled
def finish(work: Any, lane: Any, steps: Any, n: Any, target: Any, limit: Any, by_loss: Any) -> Any:
    """Move the last node onto the end of the run."""
    q = numbers(work, lane)
    x, y, t, slope = steps[n, 0], steps[n, 1], steps[n, 2], work[K + lane]
    pace = pace_at(x, y, q)
    moved = onto_loss(x, y, slope, target, q) if by_loss else (limit - t) / pace
    steps[n, 0], steps[n, 1] = x + moved, y + moved * slope
    steps[n, 2] = t + moved * pace if by_loss else limit


@compiled
def second(work: Any, lane: Any, steps: Any, n: Any, j: Any) -> Any:
    """Set the next step of the second integration: two steps of the first, or half of the only one."""
    if n == 1:
        work[H + lane] = 0.5 * (steps[1, 0] - steps[0, 0])
        return j + 1
    after = min(j + 2, n)
    work[H + lane] = steps[after, 0] - work[X + lane]
    return after


@compiled
def take(work: Any, lane: Any, state: Any, clock: Any, i: Any, settings: Any, given: Any, ends: Any, steps: Any) -> Any:
    """Give run ``i`` to a lane."""
    state[RUN], state[PHASE], state[COUNT_OF], state[FINAL], state[TRIES] = i, 0, 0, 0, 0
    clock[NOW] = clock[ERROR] = 0.0
    for c in range(COUNT):
        work[GIVEN + c * LANES + lane] = given[c]
    work[RTOL + lane], work[ATOL + lane] = settings[4], settings[5]
    slope = begin(work, lane, settings, steps)
    pace = steps[0, 3]
    work[H + lane] = math.copysign(0.1 / max(1.0, abs(slope)), pace)
    ends[END_UNIT] = abs(pace) / max(1.0, abs(slope))
    if not loss_at(settings[0], settings[1], numbers(work, lane)) > settings[2]:
        state[TRIES] = 2 * steps.shape[0]  # no run: the target lies behind, or the start is no number


@compiled
def again(work: Any, lane: Any, state: Any, clock: Any, settings: Any, ends: Any, steps: Any) -> Any:
    """A step of the second integration; returns the status of the run, `GOING` or `DONE`."""
    n = state[COUNT_OF]
    clock[NOW] += work[TIME + lane]
    work[X + lane] += work[H + lane]
    work[Y + lane], work[K + lane] = work[Z + lane], work[KZ + lane]
    if n == 1 and state[NODE] == 1:
        state[NODE] = 2
        return GOING
    at = min(state[NODE], n)
    node, x, y, t = steps[at], steps[at, 0], work[Y + lane], clock[NOW]
    if at == n and state[FINAL] == BY_LOSS:
        moved = onto_loss(x, y, work[K + lane], settings[2], numbers(work, lane))
        x, y, t = x + moved, y + moved * work[K + lane], t + moved * work[PACE + lane]
    error = compare(work, lane, node, x, y, t, ends[END_UNIT], at == n)
    if not error <= clock[ERROR]:
        clock[ERROR] = error
    if at == n:
        return DONE
    state[NODE] = second(work, lane, steps, n, state[NODE])
    return GOING


@compiled
def approach(work: Any, lane: Any, state: Any, clock: Any, settings: Any) -> Any:
    """Shorten a step that passes the end of the run, so that it ends there."""
    by_loss = by_time = 2.0
    if work[LOSS + lane] <= settings[2]:
        by_loss = fraction_to_loss(work, lane, settings[2])
    whole = work[TIME + lane]
    if clock[NOW] + whole >= settings[3]:
        x, y, h, q = work[X + lane], work[Y + lane], work[H + lane], numbers(work, lane)
        by_time = fraction_to_time(settings[3] - clock[NOW], x, y, h, shape(work, lane), q, whole)
    state[FINAL] = BY_LOSS if by_loss <= by_time else BY_TIME
    work[H + lane] *= min(by_loss, by_time)


@compiled
def forward(work: Any, lane: Any, state: Any, clock: Any, settings: Any, steps: Any) -> Any:
    """A step of the first integration: accept it, shorten it or try again; returns the status of the run."""
    state[TRIES] += 1
    if state[COUNT_OF] >= steps.shape[0] - 1 or state[TRIES] >= 2 * steps.shape[0]:
        return FAILED
    n, factor, after = state[COUNT_OF], work[FACTOR + lane], clock[NOW] + work[TIME + lane]
    growth = abs(math.log(work[PACE + lane] / steps[n, 3]))
    if state[FINAL] == 0 and not (factor > 0.9 and growth <= STEEPEST and after < math.inf):
        factor = factor if factor < 0.9 else 0.5
        work[H + lane] *= max(0.2, min(factor, 2.0 / growth) if growth > STEEPEST else factor)
        return FAILED if abs(work[H + lane]) < SMALLEST * (1.0 + abs(work[X + lane])) else GOING
    if state[FINAL] == 0 and (after >= settings[3] or work[LOSS + lane] <= settings[2]):
        approach(work, lane, state, clock, settings)
        return GOING
    accept(work, lane, steps, n, after)
    clock[NOW] = after
    state[COUNT_OF] = n + 1
    if state[FINAL] == 0:
        work[H + lane] *= min(factor, 10.0, 2.0 / max(growth, 0.2))
        return GOING
    finish(work, lane, steps, n + 1, settings[2], settings[3], state[FINAL] == BY_LOSS)
    if state[FINAL] == BY_TIME and settings[2] > 0:
        return LATE
    state[PHASE], clock[NOW] = LOOSE, 0.0
    begin(work, lane, settings, steps)
    state[NODE] = second(work, lane, steps, n + 1, 0)
    return GOING


@compiled
def close(work: Any, lane: Any, end: Any, steps: Any, error: Any, status: Any, ends: Any) -> Any:
    """Write the end of a run."""
    q = numbers(work, lane)
    ends[END_X], ends[END_Y], ends[END_T] = end[0], end[1], end[2]
    ends[END_LOSS], ends[END_ATTENTION] = loss_at(end[0], end[1], q), attention_at(end[0], end[1], q)
    ends[END_STEPS], ends[END_ERROR], ends[END_STATUS] = steps, error, status


@entry
def integrate(settings: Any, given: Any, ends: Any, steps: Any) -> Any:
    """Integrate runs twice, `LANES` at a time.

    Parameters: ``settings`` (runs, 6): x, y, target loss or 0, time limit or inf, rtol, atol; ``given`` (runs, COUNT),
    the numbers of both charts and of the flow; ``ends`` (runs, 9), filled; ``steps`` (LANES, capacity, 11), those of
    the run last in each lane: x, y, t, dt/dx at its beginning, and seven coefficients of its dense output.
    """
    work, state, clock = np.zeros(SIZE), np.zeros((LANES, 6), np.int64), np.zeros((LANES, 2))
    state[:, RUN] = -1
    upcoming = closed = 0
    while closed < settings.shape[0]:
        for lane in range(LANES):
            if state[lane, RUN] < 0 and upcoming < settings.shape[0]:
                i = upcoming
                take(work, lane, state[lane], clock[lane], i, settings[i], given[i], ends[i], steps[lane])
                upcoming += 1
        try_steps(work)
        measure_steps(work)
        for lane in range(LANES):
            i = state[lane, RUN]
            if i < 0:
                continue
            if state[lane, PHASE] == LOOSE:
                status = again(work, lane, state[lane], clock[lane], settings[i], ends[i], steps[lane])
            else:
                status = forward(work, lane, state[lane], clock[lane], settings[i], steps[lane])
            if status != GOING:
                n = state[lane, COUNT_OF]
                close(work, lane, steps[lane, n], n, clock[lane, ERROR], status, ends[i])
                state[lane, RUN] = -1
                closed += 1


@entry
def states(times: Any, steps: Any, n: Any, given: Any, found: Any) -> Any:
    """Coordinates ``x`` and ``y`` at sorted or unsorted times within a run of ``n`` steps; ``found`` (2, times)."""
    q = numbers(given, 0)
    for k in range(times.size):
        time = times[k]
        low, high = 0, n - 1
        while low < high:
            middle = (low + high + 1) // 2
            if steps[middle, 2] <= time:
                low = middle
            else:
                high = middle - 1
        x, y, h = steps[low, 0], steps[low, 1], steps[low + 1, 0] - steps[low, 0]
        f = (
            steps[low, 4], steps[low, 5], steps[low, 6], steps[low, 7], steps[low, 8], steps[low, 9], steps[low, 10],
        )  # fmt: skip
        s = fraction_to_time(time - steps[low, 2], x, y, h, f, q, steps[low + 1, 2] - steps[low, 2])
        found[0, k], found[1, k] = x + s * h, interpolate(s, y, f)
