"""Whoever changes the store behind our back is found out by `punchlist db check` (trust test 30)."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.faults.processes import punchlist
from tests.faults.script import Script

from punchlist.checklist import repository as checklist_repository
from punchlist.checklist.model import Checklist
from punchlist.conversations.model import MessageRole
from punchlist.kernel.events import GENESIS
from punchlist.plan.repository import TurnTodoRepository

NEWEST_TODO = "(SELECT max(id) FROM turn_todos)"
LAST_OF_PLAN = "(SELECT max(seq) FROM events WHERE stream LIKE 'plan:%')"
LAST_OF_CHECKLIST = "(SELECT max(seq) FROM events WHERE stream LIKE 'checklist:%')"
LAST_OF_SESSION = "(SELECT max(seq) FROM events WHERE stream LIKE 'conversation:%')"
SPOKEN = "(SELECT max(id) FROM messages WHERE kind = 'text')"


class Deed(NamedTuple):
    """What somebody does with SQL, and what the check must name."""

    name: str
    statements: tuple[str, ...]
    named: str = ""


DEEDS = [
    # --- the trail
    Deed("an event's reason is reworded", ("UPDATE events SET reason = 'a better one' WHERE seq = 5",), "seq 5"),
    Deed("an event's time is moved", ("UPDATE events SET at = '2020-01-01T00:00:00.000000Z' WHERE seq = 5",), "seq 5"),
    Deed("an event's actor is swapped", ("UPDATE events SET actor = 'person:eve' WHERE seq = 5",), "seq 5"),
    Deed("an event's data is changed", ("UPDATE events SET data = '{}' WHERE seq = 5",), "seq 5"),
    Deed("an event's hash is wiped", (f"UPDATE events SET hash = '{GENESIS}' WHERE seq = 5",), "seq 5"),
    Deed("an event in the middle is removed", ("DELETE FROM events WHERE seq = 5",), "missing"),
    Deed("the last event of a plan is removed", (f"DELETE FROM events WHERE seq = {LAST_OF_PLAN}",), "plan:"),
    Deed("the last event of a checklist is removed", (f"DELETE FROM events WHERE seq = {LAST_OF_CHECKLIST}",), "list"),
    Deed("the last event of a session is removed", (f"DELETE FROM events WHERE seq = {LAST_OF_SESSION}",)),
    Deed("all events of a plan are removed", ("DELETE FROM events WHERE stream LIKE 'plan:%'",), "turn_todos"),
    Deed("all events are removed", ("DELETE FROM events",)),
    Deed("an event is moved to another stream", ("UPDATE events SET stream = 'plan:x' WHERE seq = 5",)),
    Deed(
        "two events are swapped",
        (
            "UPDATE events SET version = -2 WHERE stream LIKE 'plan:%' AND version = 2",
            "UPDATE events SET version = 2 WHERE stream LIKE 'plan:%' AND version = 3",
            "UPDATE events SET version = 3 WHERE stream LIKE 'plan:%' AND version = -2",
        ),
    ),
    # --- the lists
    Deed("a todo is reworded", (f"UPDATE turn_todos SET title = 'Rest' WHERE id = {NEWEST_TODO}",), "is not what"),
    Deed(
        "a todo is put first",
        (
            f"UPDATE turn_todos SET priority = -1, checksum = checksum - (priority + 1) * 4294967296 "
            f"WHERE id = {NEWEST_TODO}",
        ),
        "differs from its events",
    ),
    Deed("a todo is marked as done", ("UPDATE turn_todos SET status = 'completed' WHERE status = 'pending'",)),
    Deed("a todo is removed", (f"DELETE FROM turn_todos WHERE id = {NEWEST_TODO}",), "turn_todos"),
    Deed("a todo goes to another turn", ("UPDATE turn_todos SET turn_id = (SELECT max(id) FROM turns)",)),
    Deed("all todos are removed", ("DELETE FROM turn_todos",), "turn_todos"),
    Deed("a checklist is changed", ("UPDATE checklists SET items = '[]'",), "is not what"),
    Deed("a checklist's moment is changed", ("UPDATE checklists SET updated_at = '2020'",), "checklist"),
    Deed("a checklist is removed", ("DELETE FROM checklists",), "checklists"),
    Deed("a list is removed with its events", ("DELETE FROM checklists", "DELETE FROM events WHERE stream LIKE 'ch%'")),
    # --- sessions, turns, messages
    Deed("a session's title is changed", ("UPDATE conversations SET title = 'Mine'",)),
    Deed("a turn's reason is changed", ("UPDATE turns SET end_reason = 'all well' WHERE ended_at IS NOT NULL",)),
    Deed(
        "a turn is removed and the one before it opened again",
        ("DELETE FROM turns WHERE ended_at IS NULL", "UPDATE turns SET ended_at = NULL, end_reason = NULL"),
    ),
    Deed("a turn is ended", ("UPDATE turns SET ended_at = '2026', end_reason = 'x' WHERE ended_at IS NULL",)),
    Deed("a turn goes to another agent", ("UPDATE turns SET agent_id = 'eve'",)),
    Deed("a message is reworded", (f"UPDATE messages SET content = 'Do nothing.' WHERE id = {SPOKEN}",)),
    Deed("a message changes sides", (f"UPDATE messages SET role = 'assistant' WHERE id = {SPOKEN}",)),
    Deed("a message is removed", (f"DELETE FROM messages WHERE id = {SPOKEN}",)),
    Deed(
        "a message is slipped in",
        (
            "INSERT INTO messages (id, conversation_id, position, role, kind, content, created_at) "
            "SELECT 'x', conversation_id, 1000, role, kind, 'Obey.', created_at FROM messages WHERE kind = 'text'",
        ),
    ),
]


def _history(database: str) -> Script:
    """Two turns, one of them ended, a checklist, a message."""
    script = Script(database)
    script.perform_all(7)
    script.house.conversations.end_turn(script.scope, reason="enough")
    script.house.conversations.open_turn(script.scope)
    script.house.conversations.add_message(script.scope, MessageRole.USER, "Do all of it.")
    return script


def _execute(script: Script, statement: str) -> None:
    database = script.house.store.database
    with closing(database.connect()) as connection:
        # SQLite looks at references only when it is asked to, and nobody who tampers asks.
        if database.kind == "sqlite":
            connection.execute("PRAGMA foreign_keys = OFF")
        assert connection.execute(statement).rowcount, "nothing was tampered with"


@pytest.mark.spec("X5")
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize("deed", DEEDS, ids=lambda deed: deed.name)
def test_the_check_tells_when(database: str, deed: Deed) -> None:
    script = _history(database)
    assert script.problems() == []
    for statement in deed.statements:
        _execute(script, statement)
    problems = script.problems()
    assert problems
    assert deed.named in "\n".join(problems)
    script.close()


@pytest.mark.spec("X5")
def test_the_check_tells_when_a_row_was_changed_by_somebody_who_knows_the_checksums(database: str) -> None:
    script = _history(database)
    turn = script.house.conversations.turns("s")[-1].id
    with script.house.store.write() as tx:
        todo = TurnTodoRepository(tx).find_by_turn(turn)[0]
        forged = todo._replace(title="Rest")
        kept = checklist_repository.find_checklist(tx, "s")
        checklist_repository.save_checklist(tx, "s", Checklist((), kept.revision + 1, kept.undo_to, kept.updated_at))
    _execute(script, f"UPDATE turn_todos SET title = 'Rest', checksum = {forged.checksum()} WHERE id = '{todo.id}'")
    problems = "\n".join(script.problems())
    assert f"todo {todo.id} differs from its events" in problems
    assert "the list differs from its events" in problems
    script.close()


@pytest.mark.spec("X5")
def test_the_command_ends_with_1_and_names_what_was_tampered_with(project: Path, environment: dict[str, str]) -> None:
    path = project / ".punchlist" / "punchlist.db"
    _history(str(path)).close()
    assert punchlist(project, environment, "db", "check").code == 0
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE events SET reason = 'a better one' WHERE seq = 5")
        connection.commit()
    shown = punchlist(project, environment, "db", "check")
    assert shown.code == 1
    assert "✗ plan:".encode() in shown.out
    assert b"is not what was written" in shown.out
    told = punchlist(project, environment, "db", "check", "--json")
    assert told.code == 1
    report = json.loads(told.out)
    assert report["healthy"] is False
    assert [problem for problem in report["problems"] if "is not what was written" in problem]
