"""A store whose content is known, damaged copies of it, and what is made of them.

Everything that the services can be asked is asked of the sound store once and of every damaged
copy. An answer is `true`, `refused` (a `StoreError`, or the file is not the user's any more), `false`,
or `raised` when it ended in an error that is none of ours.
`db check` either `tells` that something is wrong or is `silent`.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from tests.faults.script import Script
from tests.sessions import newest_sessions

from punchlist.conversations.model import MessageRole, TurnScope
from punchlist.errors import PunchlistError, StoreError
from punchlist.plan.lifecycle import PlanStatus
from punchlist.storage.trusted_files import UntrustedDatabase

SESSIONS: Final = ("first", "second", "third")
CHANGES: Final = 70
LISTS: Final = ("checklist", "plan", "remaining")
PAGE: Final = 4096
INTERIOR: Final = (2, 5)
"""The kinds of pages that point to further pages, of indexes and of tables."""

Damage = Callable[[bytes], bytes]


class Finding(NamedTuple):
    """What came of one damaged copy: each answer by what was asked, and the verdict of the check."""

    damage: str
    answers: dict[str, str]
    check: str

    def lies(self, asked: tuple[str, ...]) -> list[str]:
        return [f"{what}: {self.answers[what]}" for what in asked if self.answers[what] not in ("true", "refused")]

    @property
    def content_differs(self) -> bool:
        return any(answer != "true" for answer in self.answers.values())


REFUSED: Final = (StoreError, UntrustedDatabase)
"""The number by which a file is known as the user's own can be damaged too."""


@dataclass(frozen=True)
class Original:
    home: Path
    """Of the user whose database it is."""
    folder: Path
    content: bytes
    turns: tuple[tuple[str, str], ...]
    truth: dict[str, Any]

    def find(self, damage: str, content: bytes) -> Finding:
        """Ask everything of the store after its file got this content."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_DATA_HOME", str(self.home))
            return self._find(damage, content)

    def _find(self, damage: str, content: bytes) -> Finding:
        path = self.folder / "punchlist.db"
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        # In place, beside whatever else the program keeps there: the file stays the user's own.
        path.write_bytes(content)
        answers = {}
        for what, ask in questions(str(path), self.turns):
            try:
                answers[what] = "true" if ask() == self.truth[what] else "false"
            except REFUSED:
                answers[what] = "refused"
            except PunchlistError:
                # "There is no such turn" is as false as a wrong list.
                answers[what] = "false"
            except Exception as error:
                answers[what] = f"raised {type(error).__name__}"
        return Finding(damage, answers, _check(str(path)))


def questions(address: str, turns: tuple[tuple[str, str], ...]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every way to read, by name."""
    script = Script(address)
    house = script.house

    def plans(states: frozenset[PlanStatus] | None) -> list[Any]:
        found = [house.plans.list(TurnScope(session, script.scope.actor, turn), states) for session, turn in turns]
        return [(plan.items, plan.counts) for plan in found]

    yield "checklist", lambda: [house.checklists.get(session) for session in SESSIONS]
    yield "plan", lambda: plans(frozenset(PlanStatus))
    yield "remaining", lambda: plans(None)
    yield "sessions", lambda: [*newest_sessions(house.store)]
    yield "turns", lambda: [house.conversations.turns(session) for session in SESSIONS]
    yield "open turn", lambda: [house.conversations.current_turn(session) for session in SESSIONS]
    yield "messages", lambda: [house.conversations.messages(session) for session in SESSIONS]
    if "store" in house.__dict__:
        house.store.close()


def _check(address: str) -> str:
    script = Script(address)
    try:
        verdict = "tells" if script.problems() else "silent"
        script.close()
    except REFUSED:
        return "tells"
    except Exception as error:
        return f"raised {type(error).__name__}"
    return verdict


def make_original(folder: Path, home: Path) -> Original:
    """Made in a new folder, by the user with this `XDG_DATA_HOME`."""
    path = folder / "punchlist.db"
    scripts = [Script(str(path), session) for session in SESSIONS]
    for change in range(CHANGES):
        for script in scripts:
            script.perform(change)
    for script in scripts:
        script.house.conversations.add_message(script.scope, MessageRole.USER, "Please do all of it. " * 5)
    found = {
        script.scope.conversation_id: script.house.conversations.turns(script.scope.conversation_id)
        for script in scripts
    }
    turns = tuple((session, turn.id) for session, opened in found.items() for turn in opened)
    for script in scripts:
        script.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    truth = {what: ask() for what, ask in questions(str(path), turns)}
    return Original(home, folder, path.read_bytes(), turns, truth)


def flips_anywhere(content: bytes, count: int) -> Iterator[tuple[str, bytes]]:
    return _flips(content, list(range(len(content))), count)


def flips_in_lists(content: bytes, count: int) -> Iterator[tuple[str, bytes]]:
    return _flips(content, _places(content, "turn_todos", "checklists"), count)


def flips_around_lists(content: bytes, count: int) -> Iterator[tuple[str, bytes]]:
    return _flips(content, _places(content, "conversations", "turns", "messages", "punchlist_schema"), count)


def cuts(content: bytes, count: int) -> Iterator[tuple[str, bytes]]:
    choose = random.Random(5)
    borders = [1, 15, 16, 99, 100, 101, 511, 512, PAGE - 1, PAGE, PAGE + 1, len(content) - PAGE, len(content) - 1]
    pages = [PAGE * page for page in range(2, len(content) // PAGE)]
    lengths = borders + choose.sample(pages, min(count // 2, len(pages)))
    lengths += [choose.randrange(1, len(content)) for _ in range(count - len(lengths))]
    for length in lengths:
        yield f"cut to {length} bytes", content[:length]


def _flips(content: bytes, places: list[int], count: int) -> Iterator[tuple[str, bytes]]:
    choose = random.Random(5)
    for _ in range(count):
        place, bit = choose.choice(places), choose.randrange(8)
        changed = bytearray(content)
        changed[place] ^= 1 << bit
        yield f"bit {bit} of byte {place} flipped", bytes(changed)


def _places(content: bytes, *tables: str) -> list[int]:
    """Where the rows of these tables and the entries of their indexes are: the bytes of their pages in use."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(content[:18] + b"\x01\x01" + content[20:])
        marks = ", ".join("?" * len(tables))
        rows = connection.execute(f"SELECT rootpage FROM sqlite_master WHERE tbl_name IN ({marks})", tables).fetchall()
    return [place for (root,) in rows for place in _in_use(content, root)]


def _in_use(content: bytes, page: int) -> Iterator[int]:
    """The bytes in use of a b-tree's pages, from its root down (https://sqlite.org/fileformat2.html)."""
    start = PAGE * (page - 1)
    kind = content[start]
    cells = int.from_bytes(content[start + 3 : start + 5], "big")
    filled_from = int.from_bytes(content[start + 5 : start + 7], "big") or 65_536
    head = 12 if kind in INTERIOR else 8
    yield from range(start, start + head + 2 * cells)
    yield from range(start + filled_from, start + PAGE)
    if kind in INTERIOR:
        pointers = [start + head + 2 * cell for cell in range(cells)]
        children = [start + int.from_bytes(content[at : at + 2], "big") for at in pointers]
        for at in [*children, start + 8]:
            yield from _in_use(content, int.from_bytes(content[at : at + 4], "big"))
