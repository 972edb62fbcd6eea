"""Chats and runs as views: pages in both directions, filters, and what waits."""

from __future__ import annotations

import pytest
from tests.conftest import StoppedClock
from tests.contract.missions import SLUG, Team, developer_experience

from punchlist.conversations.message_queue import MessageQueue
from punchlist.conversations.model import NoticeKind, Scope
from punchlist.conversations.service import Conversations
from punchlist.errors import InvalidInput, NotFound
from punchlist.missions import chats
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.runs.lifecycle import RunStatus
from punchlist.runs.model import RunKind
from punchlist.runs.service import Runs
from punchlist.storage.store import Store
from punchlist.views.chat import read_chat
from punchlist.views.runs import read_runs


@pytest.fixture
def team(store: Store) -> Team:
    return developer_experience(store)


@pytest.mark.spec("M10")
@pytest.mark.spec("M15")
def test_a_chat_is_read_before_and_after_a_message(store: Store, team: Team) -> None:
    chat = team.mission.conversation_id
    with store.write() as tx:
        for number in range(1, 8):
            chats.post(tx, team.system, chat, NoticeKind.NOTE, f"note {number}")

    def positions(**place: int) -> tuple[list[int], bool, bool]:
        page = read_chat(store, chat, limit=3, **place)
        return [entry.message.position for entry in page.entries], page.earlier, page.later

    assert positions() == ([5, 6, 7], True, False)
    assert positions(before=5) == ([2, 3, 4], True, True)
    assert positions(before=2) == ([1], False, True)
    assert positions(after=0) == ([1, 2, 3], False, True)
    assert positions(after=4) == ([5, 6, 7], True, False)
    with pytest.raises(InvalidInput, match="only one"):
        read_chat(store, chat, before=1, after=1)
    with pytest.raises(NotFound):
        read_chat(store, "nothing")


@pytest.mark.spec("M10")
def test_a_chat_shows_its_open_run_and_queued_messages(store: Store, team: Team) -> None:
    todo = team.todo_in(TodoStatus.IN_PROGRESS)
    [run] = Runs(store).for_todo(todo.id)
    scope = Scope(run.conversation_id, team.person.actor)
    MessageQueue(store, Conversations(store)).add(scope, "look at the cache first")
    page = read_chat(store, run.conversation_id)
    assert [each.id for each in page.runs] == [run.id]
    assert [message.content for message in page.queued] == ["look at the cache first"]
    shown = page.as_json()
    assert (shown["runs"][0]["todoId"], shown["waiting"][0]["saidBy"]) == (todo.id, "person:ada")


@pytest.mark.spec("M15")
def test_runs_are_filtered_and_paged(store: Store, team: Team, clock: StoppedClock) -> None:
    started = []
    for number in range(3):
        started.append(team.todo_in(TodoStatus.IN_PROGRESS, f"todo {number}"))
        clock.advance(seconds=1)
    [stopped] = Runs(store).for_todo(started[0].id)
    Runs(store).stop(team.person, stopped.id)
    assert [run.id for run in read_runs(store, status=RunStatus.STOPPED).runs] == [stopped.id]
    assert [run.todo_id for run in read_runs(store, todo_id=started[1].id).runs] == [started[1].id]
    assert read_runs(store, mission=SLUG, kind=RunKind.CYCLE).runs == []
    first = read_runs(store, mission=SLUG, limit=2)
    second = read_runs(store, mission=SLUG, limit=2, cursor=first.cursor)
    assert [run.todo_id for run in (*first.runs, *second.runs)] == [todo.id for todo in reversed(started)]
    assert (second.cursor, len(first.as_json()["items"])) == (None, 2)
    with pytest.raises(InvalidInput, match="cursor"):
        read_runs(store, cursor="x")
