"""Claims shared between this process and a second one.

The second process takes claims from the end of the list, this one from the front, until they meet. Claims hold
functions, so only their ids travel: claims of a user are checked here. Every claim has random numbers of its
own, so that it does not matter who checks it.
"""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import TypeVar

from theory.registry import Claim, claims, find, reference_claims

__all__ = ["shared"]

Result = TypeVar("Result")
#: Claims in the hands of the second process: one at work and one to go on with.
_AHEAD = 2


def _start() -> None:
    """End without a word when interrupted: the first process speaks for both."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))


def _call(work: Callable[[Claim, int], Result], identity: str, seed: int) -> Result:
    return work(find(identity), seed)


def shared(
    work: Callable[[Claim, int], Result],
    away_work: Callable[[Claim, int], Result],
    chosen: Sequence[Claim],
    seed: int,
    report: Callable[[int, str], None],
) -> list[Result]:
    """Return ``work(claim, seed)`` for each claim, in order; should the second process end, this one does all.

    Parameters: ``work``, done here; ``away_work``, the same for the second process, a function of a module whose
    results can be pickled; ``chosen``, the claims; ``seed``;
    ``report``, called with the number done and the id at hand.
    """
    known = {id(c) for c in (*claims(), *reference_claims())}
    found: dict[int, Result] = {}
    here = deque(range(len(chosen)))
    away: deque[tuple[int, Future[Result]]] = deque()
    pool = ProcessPoolExecutor(1, get_context("spawn"), _start)
    try:
        while here or away:
            while here and len(away) < _AHEAD and id(chosen[here[-1]]) in known:
                index = here.pop()
                away.append((index, pool.submit(_call, away_work, chosen[index].id, seed)))
            if away and (not here or away[0][1].done()):
                index, task = away.popleft()
                report(len(found), chosen[index].id)
                found[index] = task.result()
            elif here:
                index = here.popleft()
                report(len(found), chosen[index].id)
                found[index] = work(chosen[index], seed)
    except BrokenProcessPool:
        for index in range(len(chosen)):
            if index not in found:
                report(len(found), chosen[index].id)
                found[index] = work(chosen[index], seed)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    return [found[i] for i in range(len(chosen))]
