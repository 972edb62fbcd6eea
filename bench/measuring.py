"""Timing that holds on a noisy machine, and what is made of it: figures, their limits, a table, JSON.

The machine's speed changes from second to second, so no time means much by itself. What is compared
takes turns in one run; each round gives one pair of times from the same moment, and a figure is the
median over the pairs' own ratios (or differences), never the ratio of two medians.
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
    """How much is measured: rows of a small and a large table, rounds of quick calls, processes started."""

    few: int
    many: int
    rounds: int
    spawns: int


FULL: Final = Sizes(few=1_000, many=1_000_000, rounds=1_000, spawns=25)
QUICK: Final = Sizes(few=1_000, many=20_000, rounds=100, spawns=4)


@dataclass(frozen=True, slots=True)
class Bench:
    """What a subject is given: sizes, and a folder for its files, on the disk that is measured."""

    sizes: Sizes
    folder: Path


class Skipped(Exception):
    """A subject that this machine cannot run; the message says why."""


def interleave(*operations: Operation, rounds: int, each: int = 1) -> list[list[float]]:
    """Seconds per run of each operation, one value a round; a tenth more rounds go before, to warm up.

    Another operation goes first in each round, since the first may find colder caches.
    """
    times: list[list[float]] = [[] for _ in operations]
    line = list(range(len(operations)))
    for number in range(-(rounds // 10 + 1), rounds):
        line.append(line.pop(0))
        for index in line:
            operation = operations[index]
            begin = perf_counter()
            for _ in range(each):
                operation()
            taken = perf_counter() - begin
            if number >= 0:
                times[index].append(taken / each)
    return times


def runs(rounds: int, each: int = 1) -> int:
    """How often `interleave` runs an operation, for those that use something up."""
    return (rounds + rounds // 10 + 1) * each


@dataclass(frozen=True, slots=True)
class Limits:
    """What is allowed; None where nothing is promised."""

    times: float | None = None
    """Of the raw limit."""
    above: float | None = None
    """Seconds above the raw limit."""
    seconds: float | None = None
    best: float | None = None
    """Seconds, in the best round: what the other guests of a machine take is not ours."""

    def __str__(self) -> str:
        parts = [
            f"{self.times:g}x" if self.times is not None else "",
            f"+{shown(self.above)}" if self.above is not None else "",
            shown(self.seconds) if self.seconds is not None else "",
            f"{shown(self.best)} at best" if self.best is not None else "",
        ]
        return ", ".join(filter(None, parts))


@dataclass(frozen=True, slots=True)
class Figure:
    """One thing measured: our times and, pair by pair, those of the raw limit."""

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
        """None where nothing is promised."""
        promised = [
            (self.times, self.limits.times),
            (self.above, self.limits.above),
            (median(self.ours), self.limits.seconds),
            (min(self.ours), self.limits.best),
        ]
        kept = [value <= limit for value, limit in promised if value is not None and limit is not None]
        return all(kept) if kept else None

    def row(self) -> list[str]:
        compared = [f"{self.times:.2f}x" if self.times is not None else ""]
        if self.above is not None and self.limits.above is not None:
            compared.append(f"{'-' if self.above < 0 else '+'}{shown(abs(self.above))}")
        return [
            self.name,
            shown(median(self.ours)),
            shown(min(self.ours)),
            shown(median(self.raw)) if self.raw else "",
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


def shown(seconds: float) -> str:
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.1f} ms" if seconds < 0.01 else f"{seconds * 1e3:.0f} ms"
    return f"{seconds:.2f} s"


HEADER: Final = ["", "ours", "best", "raw limit", "ratio", "allowed", ""]


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines of a table under the header: names to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(HEADER, *rows, strict=True)]
    for name, *cells in [HEADER, *rows]:
        numbers = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        yield f"{name.ljust(widths[0])}  {'  '.join(numbers)}".rstrip()


def fsync_probe(folder: Path, times: int = 50) -> float:
    """Seconds that the disk takes to keep 4 KiB: what durable figures depend on, whoever's they are."""
    with tempfile.TemporaryFile(dir=folder) as file:

        def keep() -> None:
            os.pwrite(file.fileno(), b"\0" * 4096, 0)
            os.fsync(file.fileno())

        return median(interleave(keep, rounds=times)[0])


def machine() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "system": platform.platform(),
        "cores": os.cpu_count(),
    }


def load() -> float:
    """How many processes wanted a core in the last minute; above the number of cores, times mean little."""
    return round(os.getloadavg()[0], 2)
