"""Measurements that are reliable on a noisy machine, and their results: figures with limits, a table, JSON.

The speed of the machine changes from second to second, so a single time means little. Compared operations alternate in
one run: each round yields a pair of times from the same moment, and a figure is the median of the pairs' ratios (or
differences), never the ratio of two medians.
"""

from __future__ import annotations

import os
import platform
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Final

Operation = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Rows of a small and of a large table, rounds of fast calls, and started processes."""

    few: int
    many: int
    rounds: int
    spawns: int


FULL: Final = Sizes(few=1_000, many=1_000_000, rounds=1_000, spawns=25)
QUICK: Final = Sizes(few=1_000, many=20_000, rounds=100, spawns=4)


@dataclass(frozen=True, slots=True)
class Bench:
    """The arguments of a subject: sizes, and a folder on the measured disk."""

    sizes: Sizes
    folder: Path


class Skipped(Exception):
    """This machine cannot run the subject; the message says why."""


def interleave(*operations: Operation, rounds: int, each: int = 1) -> list[list[float]]:
    """Seconds per run of each operation, one value per round, after 10% more rounds as warm-up.

    The operation that runs first changes with each round, since the first may find cold caches.
    """
    times: list[list[float]] = [[] for _ in operations]
    order = list(range(len(operations)))
    for number in range(-(rounds // 10 + 1), rounds):
        order.append(order.pop(0))
        for index in order:
            operation = operations[index]
            begin = perf_counter()
            for _ in range(each):
                operation()
            taken = perf_counter() - begin
            if number >= 0:
                times[index].append(taken / each)
    return times


def runs(rounds: int, each: int = 1) -> int:
    """How often `interleave` runs an operation, for operations that consume prepared data."""
    return (rounds + rounds // 10 + 1) * each


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a figure; None means no limit."""

    times: float | None = None
    """Multiple of the raw time."""
    above: float | None = None
    """Seconds above the raw time."""
    seconds: float | None = None
    best: float | None = None
    """Seconds in the best round, which excludes the load of other processes."""

    def __str__(self) -> str:
        parts = [
            f"{self.times:g}x" if self.times is not None else "",
            f"+{format_seconds(self.above)}" if self.above is not None else "",
            format_seconds(self.seconds) if self.seconds is not None else "",
            f"{format_seconds(self.best)} at best" if self.best is not None else "",
        ]
        return ", ".join(filter(None, parts))


@dataclass(frozen=True, slots=True)
class Figure:
    """Our times and, in pairs with them, the times of the raw operation."""

    name: str
    ours: Sequence[float]
    raw: Sequence[float] = ()
    limits: Limits = Limits()

    @property
    def times(self) -> float | None:
        return median(a / b for a, b in zip(self.ours, self.raw, strict=True)) if self.raw else None

    @property
    def above(self) -> float | None:
        return median(a - b for a, b in zip(self.ours, self.raw, strict=True)) if self.raw else None

    @property
    def within(self) -> bool | None:
        """Whether all limits are met; None without limits."""
        limited = [
            (self.times, self.limits.times),
            (self.above, self.limits.above),
            (median(self.ours), self.limits.seconds),
            (min(self.ours), self.limits.best),
        ]
        met = [value <= limit for value, limit in limited if value is not None and limit is not None]
        return all(met) if met else None

    def row(self) -> list[str]:
        compared = [f"{self.times:.2f}x" if self.times is not None else ""]
        if self.above is not None and self.limits.above is not None:
            compared.append(f"{'-' if self.above < 0 else '+'}{format_seconds(abs(self.above))}")
        return [
            self.name,
            format_seconds(median(self.ours)),
            format_seconds(min(self.ours)),
            format_seconds(median(self.raw)) if self.raw else "",
            ", ".join(compared),
            str(self.limits),
            {True: "ok", False: "OVER", None: ""}[self.within],
        ]

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "rounds": len(self.ours),
            "ours": {"median": median(self.ours), "min": min(self.ours)},
            "raw": {"median": median(self.raw), "min": min(self.raw)} if self.raw else None,
            "times": self.times,
            "above": self.above,
            "limits": asdict(self.limits),
            "within": self.within,
        }


def format_seconds(seconds: float) -> str:
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.1f} ms" if seconds < 0.01 else f"{seconds * 1e3:.0f} ms"
    return f"{seconds:.2f} s"


HEADER: Final = ["", "ours", "best", "raw limit", "ratio", "allowed", ""]


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines of a table with header: names left-aligned, numbers right-aligned."""
    widths = [max(map(len, column)) for column in zip(HEADER, *rows, strict=True)]
    for name, *cells in [HEADER, *rows]:
        numbers = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        yield f"{name.ljust(widths[0])}  {'  '.join(numbers)}".rstrip()


def fsync_probe(folder: Path, times: int = 50) -> float:
    """Seconds for an fsync of 4 KiB, on which all durable figures depend."""
    with tempfile.TemporaryFile(dir=folder) as file:

        def write() -> None:
            os.pwrite(file.fileno(), b"\0" * 4096, 0)
            os.fsync(file.fileno())

        return median(interleave(write, rounds=times)[0])


def machine() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "system": platform.platform(),
        "cores": os.cpu_count(),
    }


def load() -> float:
    """The load average of the last minute; above the number of cores, times mean little."""
    return round(os.getloadavg()[0], 2)
