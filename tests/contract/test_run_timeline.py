"""The timeline of several turns: counted, divided into pages and intervals by the database (X4)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from punchlist.conversations.model import Scope, StoredTurn
from punchlist.conversations.service import Conversations
from punchlist.kernel.clock import timestamp
from punchlist.kernel.events import Actor, Role
from punchlist.storage.statements import Statement
from punchlist.storage.store import Store
from punchlist.views.run_timeline import RunTimeline, TimelinePage, read_turn_timeline

SCOPE = Scope("s", Actor(Role.SUPERVISOR, "supervisor"))
BEGIN = datetime(2026, 3, 1, 23, 59, 59, 900_000, tzinfo=UTC)
CALLS = 60
STEP = timedelta(seconds=7, microseconds=300)
MODEL = Statement(
    "INSERT INTO traces (id, conversation_id, turn_id, kind, name, output, error, started_at, ended_at) "
    "VALUES (:id, 's', :turn, 'model', 'fast', :output, :error, :start, :end)"
)
TOOL = Statement(
    "INSERT INTO tool_calls (id, conversation_id, turn_id, position, tool, arguments, status, workspace, owner, "
    "result, created_at, started_at, ended_at, checksum) "
    "VALUES (:id, 's', :turn, :position, 'read_file', '{}', :status, "
    "'/', 'p', 'text', :start, :start, :end, 0)"
)


@pytest.fixture
def turn(store: Store) -> StoredTurn:
    """Two turns, the second below the first, with calls of both kinds in turns; every tenth failed."""
    conversations = Conversations(store)
    parent = conversations.open_turn(SCOPE)
    child = conversations.begin_turn(SCOPE, reason="delegated", parent=parent.id)
    with store.write() as tx:
        for number in range(CALLS):
            start = BEGIN + number * STEP
            of = parent if number % 4 < 2 else child
            row = {"id": f"call-{number:03}", "turn": of.id, "start": timestamp(start), "end": timestamp(start + STEP)}
            failed = number % 10 == 9
            if number % 2:
                tx.run(TOOL, **row, position=number, status="error" if failed else "success")
            else:
                tx.run(MODEL, **row, output='{"tokens": [9, 1]}', error=None)
    return parent


def read(store: Store, turn: StoredTurn, place: TimelinePage) -> RunTimeline:
    return read_turn_timeline(store, turn.id, place)


@pytest.mark.spec("X4")
@pytest.mark.parametrize("failed", [False, True])
def test_pages_by_number_and_by_cursor_have_every_call_once_in_order(
    store: Store, turn: StoredTurn, failed: bool
) -> None:
    expected = [number for number in range(1, CALLS + 1) if not failed or number % 10 == 0]
    for size in (1, 7, 60, 100):
        pages = -(-len(expected) // size)
        found = [read(store, turn, TimelinePage(failed, page, size)) for page in range(1, pages + 1)]
        assert [step.number for timeline in found for step in timeline.steps] == expected
        assert [timeline.more for timeline in found] == [True] * (pages - 1) + [False]
        assert {(each.total, each.failures, each.models, each.shown, each.pages) for each in found} == {
            (CALLS, 6, CALLS // 2, len(expected), pages)
        }
        after, numbers = 0, []
        while (timeline := read(store, turn, TimelinePage(failed, size=size, after=after))).steps:
            numbers += [step.number for step in timeline.steps]
            after = numbers[-1]
            assert timeline.more is (after != expected[-1])
        assert numbers == expected
    late = read(store, turn, TimelinePage(failed, 999, 7))
    assert (late.page, late.steps[-1].number) == (late.pages, expected[-1])


@pytest.mark.spec("X4")
def test_intervals_count_every_call_and_every_failure(store: Store, turn: StoredTurn) -> None:
    timeline = read(store, turn, TimelinePage(bins=6))
    assert timeline.seconds == pytest.approx((CALLS * STEP).total_seconds())
    # A call at the end of an interval may belong to the next one: SQLite rounds times to milliseconds.
    assert all(9 <= calls <= 11 for calls, _ in timeline.bins)
    assert [failed for _, failed in timeline.bins] == [1] * 6
    assert read(store, turn, TimelinePage()).bins == ()
    for count in (1, 7, 240):
        bins = read(store, turn, TimelinePage(bins=count)).bins
        assert (len(bins), sum(calls for calls, _ in bins), sum(failed for _, failed in bins)) == (count, CALLS, 6)


@pytest.mark.spec("X4")
def test_calls_at_one_moment_are_in_one_interval_and_no_calls_in_none(store: Store) -> None:
    turn = Conversations(store).open_turn(SCOPE)
    assert read(store, turn, TimelinePage(bins=5)).bins == ()
    with store.write() as tx:
        for number in range(3):
            at = timestamp(BEGIN)
            tx.run(MODEL, id=f"m{number}", turn=turn.id, start=at, end=at, output="", error="busy")
    timeline = read(store, turn, TimelinePage(bins=5))
    assert timeline.bins == [(3, 3), *[(0, 0)] * 4]
    assert [(step.number, step.failed, step.summary) for step in timeline.steps] == [
        (n, True, "busy") for n in (1, 2, 3)
    ]
