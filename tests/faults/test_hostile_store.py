"""Hostile text that is in the store already, whoever put it there, never acts on a terminal (trust test 21)."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from tests.faults.processes import Answer, punchlist, together
from tests.faults.screen import ESCAPES, acting
from tests.faults.script import Script
from tests.trusted import own

from punchlist.checklist import repository as checklist_repository
from punchlist.checklist.lifecycle import ChecklistStatus
from punchlist.checklist.model import Checklist, ChecklistItem
from punchlist.conversations.model import MessageRole
from punchlist.kernel.events import Change
from punchlist.plan.lifecycle import PlanStatus
from punchlist.plan.model import TurnTodo
from punchlist.plan.repository import TurnTodoRepository
from punchlist.storage import event_log
from punchlist.storage.store import Transaction

EVIL: Final = "".join(ESCAPES.values())
SESSION: Final = "default"

READING: Final = {
    "todos": ("todos",),
    "todos --json": ("todos", "--json"),
    "log": ("log",),
    "log --json": ("log", "--json"),
    "sessions": ("sessions",),
    "sessions --json": ("sessions", "--json"),
    "sessions show": ("sessions", "show"),
    "sessions show --json": ("sessions", "show", "--json"),
    "inbox": ("inbox",),
    "overview": (),
}
CHANGING: Final = {
    "todos done": ("todos", "done", "2"),
    "todos cancel --json": ("todos", "cancel", "2", "--json"),
    "sessions end": ("sessions", "end"),
    "db check": ("db", "check"),
    "db check --json": ("db", "check", "--json"),
}
"""Commands that may find fault with the store, and say so."""


def _plant(tx: Transaction, turn: str) -> None:
    """Go around every rule, with checksums and hashes as they should be."""
    before = checklist_repository.find_checklist(tx, SESSION)
    items = tuple(ChecklistItem(f"{number}{EVIL}", EVIL, EVIL, status) for number, status in enumerate(ChecklistStatus))
    checklist_repository.save_checklist(
        tx, SESSION, Checklist(items, before.revision + 1, before.undo_to, before.updated_at)
    )
    repository = TurnTodoRepository(tx)
    counts, _, _ = repository.verified_counts(SESSION, turn)
    for number, status in enumerate(set(PlanStatus) - {PlanStatus.IN_PROGRESS}, sum(counts.values())):
        repository.create(
            TurnTodo(
                id=f"{number}{EVIL}",
                conversation_id=SESSION,
                turn_id=turn,
                title=EVIL,
                context=EVIL,
                completion_criteria=EVIL,
                agent_type=EVIL,
                status=status,
                priority=number,
                outcome=EVIL,
                created_at=EVIL,
                started_at=EVIL,
                completed_at=EVIL,
            )
        )
    for data in ({"title": EVIL}, {"items": [{"status": EVIL, "content": EVIL}]}, {EVIL: EVIL}):
        # The reason is checked on the way in; `_poison` sees to it.
        event_log.append(tx, Change(EVIL, SESSION, EVIL, EVIL, EVIL, EVIL, EVIL, "", data))


def _poison(path: Path, value: str | bytes) -> None:
    """Put a value wherever there is no checksum that would notice."""
    with closing(sqlite3.connect(path)) as connection:
        given = {"value": value, "session": SESSION}
        connection.execute("UPDATE conversations SET title = :value, metadata = :value, created_at = :value", given)
        connection.execute("UPDATE turns SET agent_id = :value, started_at = :value", given)
        connection.execute("UPDATE messages SET content = :value, kind = :value, created_at = :value", given)
        connection.execute("UPDATE events SET at = :value, actor = :value, reason = :value", given)
        connection.execute("INSERT INTO conversations VALUES (:value, :value, :value, :value)", given)
        connection.execute(
            "INSERT INTO turns VALUES (:value, :session, NULL, :value, :value, :value, :value, NULL, NULL)",
            given,
        )
        connection.commit()


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("planted") / "punchlist.db"
    script = Script(str(path), SESSION)
    script.perform_all(4)
    script.house.conversations.add_message(script.scope, MessageRole.USER, "hello")
    turn = script.house.conversations.open_turn(script.scope).id
    with script.house.store.write() as tx:
        _plant(tx, turn)
    script.close()
    return path


def _ask(project: Path, environment: dict[str, str], database: Path, *commands: tuple[str, ...]) -> list[Answer]:
    """Run each command over a copy of its own, since some change it."""
    calls = []
    for number, command in enumerate(commands):
        folder = project / str(number)
        (folder / ".punchlist").mkdir(parents=True)
        shutil.copy(database, folder / ".punchlist" / "punchlist.db")
        own(folder / ".punchlist" / "punchlist.db", Path(environment["HOME"]))
        calls.append(partial(punchlist, folder, environment, *command))
    return together(*calls)


@pytest.mark.spec("W10")
def test_text_planted_in_the_store_never_reaches_a_terminal_raw(
    project: Path, environment: dict[str, str], planted: Path
) -> None:
    poisoned = project / "poisoned.db"
    shutil.copy(planted, poisoned)
    _poison(poisoned, EVIL)
    answers = _ask(project, environment, poisoned, *READING.values(), *CHANGING.values())
    raw = {
        name: " ".join(sorted({*acting(answer.out), *acting(answer.err)}))
        for name, answer in zip([*READING, *CHANGING], answers, strict=True)
    }
    assert {name: found for name, found in raw.items() if found} == {}
    wrong = [answer for answer in answers if b"Traceback" in answer.err or b"unexpected" in answer.err]
    assert wrong == []
    # It was there to be shown: what is read is spelled out, not left away.
    silent = [name for name, answer in zip(READING, answers, strict=False) if b"\\x1b" not in answer.out.lower()]
    # Nothing in this store needs a person.
    assert [name for name in silent if "--json" not in name] == ["inbox"]
    told = dict(zip(READING, map(_json, answers), strict=False))
    items = told["todos --json"]["items"]
    assert {item["title"] for item in items if item["list"] == "checklist"} == {EVIL}
    assert EVIL in {item.get("outcome") for item in items}


def _json(answer: Answer) -> Any:
    return json.loads(answer.out) if answer.out.startswith((b"{\n", b"[\n")) else None


def test_items_of_ten_megabytes_are_shown_as_fast_as_others(
    project: Path, environment: dict[str, str], home: Path, planted: Path
) -> None:
    # Nobody can store them; a stranger, or a program of another version, might have.
    huge = project / "huge.db"
    shutil.copy(planted, huge)
    own(huge, home)
    script = Script(str(huge), "huge")
    script.house.checklists.add(script.scope, "x", reason="test")
    words, word = "many words " * 1_000_000, "oneword" * 1_500_000
    items = tuple(ChecklistItem(status.value, words, word, status) for status in ChecklistStatus)
    with script.house.store.write() as tx:
        checklist_repository.save_checklist(tx, "huge", Checklist(items, 2, 1, "2026"))
    script.close()
    began = time.monotonic()
    (answer,) = _ask(project, environment, huge, ("todos", "--session", "huge"))
    assert time.monotonic() - began < 20
    assert answer.code == 0
    assert len(answer.out) < 10_000


def test_values_of_another_type_than_text_are_refused_with_a_sentence(
    project: Path, environment: dict[str, str], planted: Path
) -> None:
    poisoned = project / "poisoned.db"
    shutil.copy(planted, poisoned)
    _poison(poisoned, EVIL.encode() + b"\xff")
    commands = {name: READING[name] for name in ("log", "log --json", "sessions", "sessions show")}
    commands["db check"] = CHANGING["db check"]
    named = dict(zip(commands, _ask(project, environment, poisoned, *commands.values()), strict=True))
    wrong = {name: answer for name, answer in named.items() if b"unexpected" in answer.err or acting(answer.out)}
    assert list(wrong) == [], wrong
    assert named["db check"].code == 1
