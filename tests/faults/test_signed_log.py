"""A signed event log tells of every change that was made without the key (trust test 30)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.contract.migrations import made_at

from punchlist.audit.check import check
from punchlist.checklist.service import Checklists
from punchlist.conversations.model import Scope, TurnScope
from punchlist.conversations.service import Conversations
from punchlist.kernel.events import GENESIS, Actor, Chain, Change, Event, Role, chain_hash
from punchlist.plan import validation as plan_validation
from punchlist.plan.service import Plans
from punchlist.storage import event_log
from punchlist.storage.event_log import find_anchor
from punchlist.storage.maintenance import backup, restore
from punchlist.storage.migrate import migrate
from punchlist.storage.open import connect, open_store
from punchlist.storage.rechain import DATABASE_STREAM, rechain
from punchlist.storage.schema_version import SCHEMA_VERSION
from punchlist.storage.statements import Statement
from punchlist.storage.store import Store

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
ADA = Scope("s", Actor(Role.SUPERVISOR, "ada"))


@pytest.fixture
def signed(database: str) -> Iterator[Store]:
    opened = open_store(database)
    opened.sign_with(KEY)
    _write_history(opened)
    assert _problems(opened) == []
    yield opened
    opened.close()


def _write_history(store: Store, session: str = "s") -> None:
    """A plan, a checklist, and another session after them."""
    conversations, scope = Conversations(store), Scope(session, ADA.actor)
    turn = TurnScope(session, ADA.actor, conversations.open_turn(scope).id)
    plans = Plans(store)
    created = plans.create(turn, plan_validation.parse_items([{"title": "Write"}, {"title": "Test"}]))
    plans.start(turn, created.todos[0].id)
    plans.end(turn, created.todos[0].id, "done")
    checklists = Checklists(store, conversations)
    checklists.add(scope, "One", reason="first")
    checklists.add(scope, "Two", reason="second")
    checklists.add(Scope(f"{session}-2", ADA.actor), "Three", reason="third")
    # The anchor is recorded at most once a second, and when the store is closed.
    store.close()


def _problems(store: Store) -> list[str]:
    return check(store, SCHEMA_VERSION).problems


def _execute(store: Store, *statements: str) -> None:
    with closing(store.database.connect()) as connection:
        if store.database.kind == "sqlite":
            connection.execute("PRAGMA foreign_keys = OFF")
        for statement in statements:
            assert connection.execute(statement).rowcount, "nothing was changed"


def _events(store: Store, kind: str) -> list[Event]:
    with store.read() as tx:
        return next(events for events in event_log.streams(tx) if events[0].stream.startswith(kind))


def _rewrite(store: Store, events: Sequence[Event], key: bytes | None = None) -> None:
    """Store events with a chain that was recomputed, as a program can that knows this code but not the key."""
    chain, previous = Chain(key) if key else None, GENESIS
    with store.write() as tx:
        for event in events:
            fields = (previous, event.version, event.at, event, event.data)
            previous = chain.sign_event(event.seq - 1, *fields) if chain else chain_hash(*fields)
            tx.run(
                Statement("UPDATE events SET actor = :actor, reason = :reason, hash = :hash WHERE seq = :seq"),
                actor=event.actor,
                reason=event.reason,
                hash=previous,
                seq=event.seq,
            )


def _forged(event: Event, **changes: Any) -> Event:
    return Event(**{name: changes.get(name, getattr(event, name)) for name in Event.__dataclass_fields__})


@pytest.mark.spec("X5")
@pytest.mark.parametrize("change", [{"actor": "person:eve"}, {"reason": "a better one"}], ids=["actor", "reason"])
@pytest.mark.parametrize("key", [None, OTHER_KEY], ids=["a plain chain", "another key"])
def test_the_check_tells_when_an_event_was_rewritten_with_its_chain_recomputed(
    signed: Store, change: dict[str, str], key: bytes | None
) -> None:
    first, *rest = _events(signed, "checklist:")
    _rewrite(signed, [_forged(first, **change), *rest], key)
    problems = "\n".join(_problems(signed))
    assert ("were signed with another key" if key else "are not signed") in problems


@pytest.mark.spec("X5")
@pytest.mark.parametrize("change", [{"actor": "person:eve"}, {"reason": "a better one"}], ids=["actor", "reason"])
def test_a_signature_does_not_fit_a_changed_event(signed: Store, change: dict[str, str]) -> None:
    event = _events(signed, "plan:")[1]
    ((name, value),) = change.items()
    _execute(signed, f"UPDATE events SET {name} = '{value}' WHERE seq = {event.seq}")
    assert any(f"event 2 (seq {event.seq}) is not what was written" in problem for problem in _problems(signed))


REMOVED = {
    "a stream in the middle, with its rows": (
        "DELETE FROM checklists WHERE conversation_id = 's'",
        "DELETE FROM messages WHERE conversation_id = 's'",
        "DELETE FROM events WHERE stream = 'checklist:s'",
    ),
    "the end of a stream": ("DELETE FROM events WHERE stream = 'checklist:s' AND version = 2",),
    "the newest events": (
        "DELETE FROM checklists WHERE conversation_id = 's-2'",
        "DELETE FROM messages WHERE conversation_id = 's-2'",
        "DELETE FROM conversations WHERE id = 's-2'",
        "DELETE FROM events WHERE conversation_id = 's-2'",
    ),
    "a plan, with its rows": ("DELETE FROM turn_todos", "DELETE FROM events WHERE stream LIKE 'plan:%'"),
}


@pytest.mark.spec("X5")
@pytest.mark.parametrize("removed", REMOVED)
def test_the_check_tells_when_events_and_their_rows_were_removed(signed: Store, removed: str) -> None:
    _execute(signed, *REMOVED[removed])
    problems = [problem for problem in _problems(signed) if problem.startswith("events:")]
    assert problems
    assert all("is missing" in problem or "removed from its end" in problem for problem in problems), problems


@pytest.mark.spec("X5")
@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("DELETE FROM chain_anchor", "the anchor of the log is missing"),
        ("UPDATE chain_anchor SET seq = seq - 1", "the anchor of the log is not what was written"),
        ("UPDATE chain_anchor SET signed_from = 1000", "the anchor of the log is not what was written"),
        ("UPDATE chain_anchor SET key_id = 'abcd1234'", "was signed with another key (abcd1234)"),
    ],
)
def test_the_check_tells_when_the_anchor_was_changed(signed: Store, statement: str, told: str) -> None:
    _execute(signed, statement)
    assert any(told in problem for problem in _problems(signed)), _problems(signed)
    # A later write does not cover it up.
    _write_history(signed, "later")
    assert any(told in problem for problem in _problems(signed)), _problems(signed)


@pytest.mark.spec("X5")
def test_events_removed_from_the_end_are_missed_after_later_writes_too(signed: Store) -> None:
    _execute(signed, *REMOVED["the newest events"])
    _write_history(signed, "later")
    assert [problem for problem in _problems(signed) if problem.startswith("events:")]


@pytest.mark.spec("X5")
def test_a_log_of_another_user_is_named_and_can_be_signed_after_adoption(signed: Store, database: str) -> None:
    mine = open_store(database)
    mine.sign_with(OTHER_KEY)
    (count,) = [len(_all_events(mine))]
    other = Chain(KEY).id
    problems = _problems(mine)
    assert problems[0].startswith(f"events: numbers 1 to {count} were signed with another key ({other})")
    assert len(problems) == 1
    assert rechain(mine, OTHER_KEY, actor="person:ada", reason="adopted") == count
    assert _problems(mine) == []
    (event,) = _events(mine, DATABASE_STREAM)
    assert (event.actor, event.reason, json.loads(event.data)) == ("person:ada", "adopted", {"events": count})
    _write_history(mine, "later")
    assert _problems(mine) == []
    mine.close()


def _all_events(store: Store) -> list[Event]:
    with store.read() as tx:
        return [event for events in event_log.streams(tx) for event in events]


def test_a_log_that_was_adopted_with_gaps_is_complete_from_then_on(signed: Store) -> None:
    _execute(signed, *REMOVED["the newest events"])
    rechain(signed, KEY, actor="person:ada", reason="adopted")
    assert _problems(signed) == []


def _append_event(older: Store) -> None:
    """Services write columns that an older schema does not have yet; the event log has not changed."""
    with older.write() as tx:
        event_log.append(
            tx, Change(DATABASE_STREAM, "", "person:ada", "add", "x", None, "open", "first", {"title": "x"})
        )


def test_an_older_database_keeps_its_unsigned_events_and_signs_new_ones(empty_database: str, tmp_path: Path) -> None:
    older = made_at(empty_database, "0004", tmp_path)
    _append_event(older)
    plain = len(_all_events(older))
    older.close()
    upgraded = connect(empty_database)
    upgraded.sign_with(KEY)
    migrate(upgraded)
    Checklists(upgraded, Conversations(upgraded)).add(ADA, "One", reason="first")
    assert _problems(upgraded) == []
    hashes = [event.hash for event in sorted(_all_events(upgraded), key=lambda event: event.seq)]
    assert [("." in hash) for hash in hashes] == [False] * plain + [True] * (len(hashes) - plain)
    _rewrite(upgraded, _events(upgraded, "checklist:"))
    assert any("are not signed" in problem for problem in _problems(upgraded))
    upgraded.close()


def test_writers_of_different_lists_do_not_break_the_log(signed: Store, database: str) -> None:
    def work(number: int) -> None:
        mine = open_store(database)
        mine.sign_with(KEY)
        lists = Checklists(mine, Conversations(mine))
        for item in range(10):
            lists.add(Scope(f"w{number}", ADA.actor), f"Item {item}", reason="work")
        mine.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert _problems(signed) == []
    _execute(signed, "DELETE FROM events WHERE stream = 'checklist:w1' AND version = 4")
    assert _problems(signed)


def test_the_anchor_follows_the_log_without_a_statement_per_write(signed: Store) -> None:
    with signed.read() as tx:
        before = find_anchor(tx)
    assert before is not None
    assert before.seq == max(event.seq for event in _all_events(signed))
    lists = Checklists(signed, Conversations(signed))
    for number in range(5):
        lists.add(ADA, f"More {number}", reason="more")
    with signed.read() as tx:
        behind = find_anchor(tx)
    signed.close()
    with signed.read() as tx:
        after = find_anchor(tx)
    assert behind is not None
    assert after is not None
    assert before.seq <= behind.seq < after.seq == max(event.seq for event in _all_events(signed))
    assert _problems(signed) == []


def test_a_reader_without_the_key_says_that_it_did_not_verify(signed: Store, database: str) -> None:
    keyless = open_store(database)
    report = check(keyless, SCHEMA_VERSION)
    assert report.problems == []
    assert [f"signed with the key {Chain(KEY).id}" in warning for warning in report.warnings] == [True]
    keyless.close()


def test_a_restored_backup_of_an_older_schema_is_signed_from_then_on(tmp_path: Path) -> None:
    older = made_at(f"sqlite:///{tmp_path}/older.db", "0004", tmp_path)
    _append_event(older)
    backup(older, tmp_path / "backup.db")
    older.close()
    address = f"sqlite:///{tmp_path}/store/punchlist.db"
    target = connect(address)
    target.sign_with(KEY)
    restore(target, tmp_path / "backup.db")
    restored = open_store(address)
    restored.sign_with(KEY)
    Checklists(restored, Conversations(restored)).add(ADA, "One", reason="first")
    assert _problems(restored) == []
    restored.close()
