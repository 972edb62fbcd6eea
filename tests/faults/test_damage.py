"""A damaged store is detected and said, never served as truth (trust test 5)."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import fields
from pathlib import Path

import pytest
from tests.faults import damage
from tests.faults.damage import LISTS, Finding, Original
from tests.faults.script import Script, position

from punchlist.errors import StoreError
from punchlist.kernel.events import Event
from punchlist.plan.model import TurnTodo, todo_from_row
from punchlist.plan.repository import BY_STATUS

Damages = Callable[[bytes, int], Iterator[tuple[str, bytes]]]


BROUGHT_IN, IN_THE_LOG = 20, 40
"""Changes that are in the database file itself, and in all."""


def _killed_in_the_middle(path: Path) -> tuple[bytes, bytes]:
    """The files of a database whose log was not brought in yet, as a `kill -9` leaves them."""
    script = Script(str(path))
    script.perform_all(BROUGHT_IN)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for change in range(BROUGHT_IN, IN_THE_LOG):
        script.perform(change)
    files = path.read_bytes(), path.with_name("punchlist.db-wal").read_bytes()
    script.close()
    return files


def _cut(log: bytes, choose: random.Random) -> bytes:
    return log[: choose.randrange(len(log))]


def _flip(log: bytes, choose: random.Random) -> bytes:
    torn = bytearray(log)
    torn[choose.randrange(len(torn))] ^= 1 << choose.randrange(8)
    return bytes(torn)


def _recovered(path: Path, file: bytes, log: bytes | None) -> tuple[int | None, list[str]]:
    """After how many changes the lists are, None when they are refused; and what the check finds."""
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    # In place: a file of another inode would not be the user's own.
    path.write_bytes(file)
    if log is not None:
        path.with_name("punchlist.db-wal").write_bytes(log)
    script = Script(str(path))
    try:
        lists = script.lists()
    except StoreError:
        return None, []
    found = position(lists)
    assert found is not None, lists
    problems = script.problems()
    script.close()
    return found, problems


def _kinds(seconds: int, full: int, damages: Damages) -> list[object]:
    name = damages.__name__.replace("_", " ")
    return [
        pytest.param((damages, seconds), id=f"{name} seconds"),
        pytest.param((damages, full), id=f"{name} full", marks=pytest.mark.soak),
    ]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory, shared_data_folder: Path) -> Original:
    return damage.make_original(tmp_path_factory.mktemp("damage") / "sound", shared_data_folder)


@pytest.fixture(
    scope="module",
    params=[
        *_kinds(60, 5_000, damage.flips_anywhere),
        *_kinds(100, 10_000, damage.flips_in_lists),
        *_kinds(60, 5_000, damage.flips_around_lists),
        *_kinds(40, 400, damage.cuts),
    ],
)
def findings(request: pytest.FixtureRequest, original: Original) -> list[Finding]:
    damages, count = request.param
    return [original.find(what, content) for what, content in damages(original.content, count)]


def _told(wrong: list[tuple[str, list[str]]], of: int) -> str:
    """All that went wrong, most frequent first, each with one damage that shows it."""
    counts = Counter(lie for _, lies in wrong for lie in lies)
    examples = {lie: what for what, lies in wrong for lie in lies}
    lines = [f"{count} of {of}  {lie}  (e.g. {examples[lie]})" for lie, count in counts.most_common()]
    return "\n".join(["", *lines])


def test_a_damaged_list_is_refused_or_exactly_what_was_written(findings: list[Finding]) -> None:
    wrong = [(finding.damage, finding.lies(LISTS)) for finding in findings]
    assert not any(lies for _, lies in wrong), _told(wrong, len(findings))


@pytest.mark.spec("X5")
def test_a_schema_with_a_value_that_is_no_text_is_damaged(original: Original) -> None:
    """A seed that the full numbers found: one bit makes the type of an object a BLOB."""
    place = original.content.index(b"indexsqlite_autoindex_")
    header = bytearray(original.content[place - 5 : place])
    assert header[0] == 2 * len("index") + 13
    damaged = bytearray(original.content)
    damaged[place - 5] -= 1
    finding = original.find("the type of an index", bytes(damaged))
    assert {*finding.answers.values(), finding.check} == {"refused", "tells"}


def test_damage_never_ends_in_an_error_that_is_not_explained(findings: list[Finding]) -> None:
    wrong = [
        (
            finding.damage,
            [
                f"{what}: {answer}"
                for what, answer in {**finding.answers, "check": finding.check}.items()
                if answer.startswith("raised")
            ],
        )
        for finding in findings
    ]
    assert not any(lies for _, lies in wrong), _told(wrong, len(findings))


@pytest.mark.spec("X5")
def test_whatever_damage_changes_the_check_tells_of_it(findings: list[Finding]) -> None:
    wrong = [
        (
            finding.damage,
            [f"check: {finding.check} about {', '.join(w for w, a in finding.answers.items() if a != 'true')}"],
        )
        for finding in findings
        if finding.content_differs and finding.check != "tells"
    ]
    assert not wrong, _told(wrong, len(findings))


def test_a_store_that_was_cut_to_nothing_is_not_served_as_an_empty_list(original: Original) -> None:
    finding = original.find("cut to nothing", b"")
    assert finding.lies(LISTS) == []
    assert finding.check == "tells"


@pytest.mark.parametrize("tear", [_cut, _flip], ids=["cut", "flipped"])
@pytest.mark.parametrize("times", [30, pytest.param(2_000, marks=pytest.mark.soak)], ids=["seconds", "full"])
def test_a_torn_log_leaves_the_lists_as_they_were_at_some_moment(
    tmp_path: Path, times: int, tear: Callable[[bytes, random.Random], bytes]
) -> None:
    # The end of a log that was torn cannot be told from a crash before it was written. What must
    # not happen is anything between two changes.
    path = tmp_path / "punchlist.db"
    file, log = _killed_in_the_middle(path)
    choose = random.Random(5)
    for _ in range(times):
        found, problems = _recovered(path, file, tear(log, choose))
        assert found is None or BROUGHT_IN <= found <= IN_THE_LOG
        assert problems == []


def test_a_log_that_is_gone_leaves_the_lists_as_they_were_when_it_began(tmp_path: Path) -> None:
    path = tmp_path / "punchlist.db"
    file, _ = _killed_in_the_middle(path)
    assert _recovered(path, file, None) == (BROUGHT_IN, [])


ONE_TODO = "WHERE id = (SELECT max(id) FROM turn_todos WHERE status = 'pending')"
CHANGES = {
    "a title was changed": f"UPDATE turn_todos SET title = 'Rest' {ONE_TODO}",
    "a state was changed": f"UPDATE turn_todos SET status = 'cancelled' {ONE_TODO}",
    "a time was changed": f"UPDATE turn_todos SET created_at = '2026' {ONE_TODO}",
    "the order was changed": f"UPDATE turn_todos SET priority = 1000 {ONE_TODO}",
    "nothing became a blob": f"UPDATE turn_todos SET agent_type = x'' {ONE_TODO}",
    "no outcome became a blob": f"UPDATE turn_todos SET outcome = x'' {ONE_TODO}",
    "the time of the list was changed": "UPDATE checklists SET updated_at = '2027-11-18T03:47:51.140068Z'",
    "the index of the list leads nowhere": "DELETE FROM checklists",
    "the items were changed": "UPDATE checklists SET items = '[]'",
    "the revision was changed": "UPDATE checklists SET revision = revision - 1",
    "the way back was changed": "UPDATE checklists SET undo_to = 0",
}
"""What a flipped bit can do, done on purpose. A row that an index no longer leads to is as good as missing."""


@pytest.mark.parametrize("column", [TurnTodo._fields.index(name) for name in ("agent_type", "outcome", "started_at")])
def test_a_number_in_the_place_of_nothing_is_refused(tmp_path: Path, column: int) -> None:
    """One bit makes a NULL a zero, which no SQL statement can write into a column for text."""
    script = Script(str(tmp_path / "punchlist.db"))
    script.perform_all(2)
    with script.house.store.read() as tx:
        rows = tx.all(BY_STATUS, turn_id=script.house.conversations.turns("s")[0].id, status="pending")
    script.close()
    assert todo_from_row(rows[0])
    with pytest.raises(StoreError):
        todo_from_row((*rows[0][:column], 0, *rows[0][column + 1 :]))


@pytest.mark.spec("X5")
@pytest.mark.parametrize("value", ["x'00ff'", "1.5", "''", "-1"])
@pytest.mark.parametrize("column", [field.name for field in fields(Event) if field.name != "seq"])
def test_the_check_ends_whatever_an_event_contains(tmp_path: Path, column: str, value: str) -> None:
    path = tmp_path / "punchlist.db"
    script = Script(str(path))
    script.perform_all(8)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"UPDATE events SET {column} = {value} WHERE seq = 4")
        connection.commit()
    assert script.problems()
    script.close()


@pytest.mark.parametrize("change", CHANGES)
def test_a_list_is_refused_after(tmp_path: Path, change: str) -> None:
    path = tmp_path / "punchlist.db"
    script = Script(str(path))
    script.perform_all(20)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(CHANGES[change]).rowcount == 1
        connection.commit()
    with pytest.raises(StoreError):
        script.lists()
    script.close()
