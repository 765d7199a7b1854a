"""Functions that sweeps of the tests run in other processes, and the script that is killed."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

from numerics.sweep import grid, sweep


def square(x: float, shift: float = 0.0) -> dict[str, float]:
    return {"square": x * x + shift}


def picky(x: float) -> float:
    if x == 2:
        raise ArithmeticError("two is not allowed")
    return x


def deadly(x: int) -> int:
    """One point takes its process with it."""
    if x == 1:
        time.sleep(0.05)
        os._exit(3)
    return x


def logged(x: int, log: str) -> int:
    """Note the start of a point in a file, then work for a while."""
    with Path(log).open("a") as file:
        file.write(f"{x}\n")
    time.sleep(0.03)
    return x * x


def points(log: str) -> Any:
    return grid(x=range(24), log=[log])


if __name__ == "__main__":
    import sweep_functions  # under this name the functions are the same in every process

    sweep(sweep_functions.logged, points(sys.argv[2]), sys.argv[1], workers=2)
