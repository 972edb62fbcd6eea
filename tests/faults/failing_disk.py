"""Performs the script while the disk refuses to write, and prints what happened as JSON.

    python -m tests.faults.failing_disk every-write ADDRESS CHANGES
    python -m tests.faults.failing_disk growing ADDRESS CHANGES
    python -m tests.faults.failing_disk full ADDRESS CHANGES      (in a file system that is small)

A limit on the size of files (RLIMIT_FSIZE) stands for a disk that fails: a write beyond it is cut
short, then refused. Only this process is hit.
"""

from __future__ import annotations

import json
import resource
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from tests.faults.script import Script, expected

from punchlist.errors import StoreError

HALF_A_FRAME: Final = 2_060
"""Of the write-ahead log: SQLite writes a head of 24 bytes and a page of 4096, one after the other."""

LOG_INDEX: Final = 32_768
"""SQLite creates this file before it can read. Whether it exists depends on when the garbage collector closes a failed
connection, so the limit leaves room for it."""


@dataclass
class Outcome:
    failures: int = 0
    messages: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)

    def print(self) -> None:
        print(json.dumps({**asdict(self), "messages": sorted(self.messages)}))


@contextmanager
def files_end_at(size: int) -> Iterator[None]:
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, hard))


def attempt(script: Script, change: int, outcome: Outcome) -> bool:
    """Make one change; whatever comes of it, the lists must be all before or all after it."""
    try:
        script.perform(change)
    except StoreError as error:
        outcome.failures += 1
        outcome.messages.add(f"{type(error).__name__}: {error}")
        made = False
    except Exception as error:
        outcome.wrong.append(f"change {change}: {type(error).__name__}: {error}")
        made = False
    else:
        made = True
    try:
        if script.lists() != expected(change + made):
            outcome.wrong.append(f"change {change}: {'made' if made else 'refused'}, but the lists say otherwise")
    except StoreError as error:
        outcome.wrong.append(f"change {change}: reading stopped: {error}")
    return made


def every_write(script: Script, file: Path, changes: int, outcome: Outcome) -> None:
    """Every change fails at its first write, its second and so on, before it is let through."""
    script.lists()
    with closing(sqlite3.connect(file)) as neighbour:
        # Somebody else has the database open too: the log stays, and reading needs no new file.
        neighbour.execute("SELECT count(*) FROM events").fetchone()
        for change in range(changes):
            neighbour.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            limit, made = 0, False
            while not made and not outcome.wrong:
                with files_end_at(limit):
                    made = attempt(script, change, outcome)
                limit += HALF_A_FRAME


def growing(script: Script, file: Path, changes: int, outcome: Outcome) -> None:
    """Nobody else is there: the log is brought into the database whenever a connection is given up."""
    script.lists()
    limit = max(file.stat().st_size, LOG_INDEX)
    for change in range(changes):
        made = False
        while not made and not outcome.wrong:
            with files_end_at(limit):
                made = attempt(script, change, outcome)
            if not made:
                limit += HALF_A_FRAME


def full(script: Script, file: Path, changes: int, outcome: Outcome) -> None:
    """Something else fills the disk to the last byte, again and again, and goes away again."""
    ballast = file.with_name("ballast")
    script.lists()
    for change in range(changes):
        _fill(ballast)
        made = attempt(script, change, outcome)
        while not made and not outcome.wrong:
            size = ballast.stat().st_size
            with ballast.open("rb+") as filled:
                filled.truncate(max(0, size - 4096))
            made = attempt(script, change, outcome)
            if not made and not size:
                outcome.wrong.append(f"change {change}: no recovery though there is space again")
        ballast.unlink()


def _fill(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass


FAULTS: Final = {"every-write": every_write, "growing": growing, "full": full}


def main(fault: str, address: str, changes: str) -> None:
    script = Script(address)
    outcome = Outcome()
    FAULTS[fault](script, Path(address.removeprefix("sqlite:///")), int(changes), outcome)
    if not outcome.wrong:
        # The same process goes on, without having been started again.
        script.perform(int(changes))
        if script.lists() != expected(int(changes) + 1):
            outcome.wrong.append("afterwards: the lists are not what was written")
        outcome.wrong += [f"afterwards: {problem}" for problem in script.problems()]
    outcome.print()


if __name__ == "__main__":
    main(*sys.argv[1:])
