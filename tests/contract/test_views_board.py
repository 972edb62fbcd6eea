"""The board of a mission and a todo in detail, as services below the surfaces."""

from __future__ import annotations

import pytest
from tests.conftest import StoppedClock
from tests.contract.missions import BUILD, ONBOARDING, SLUG, Team, developer_experience

from punchlist.conversations.model import NoticeKind
from punchlist.conversations.service import Conversations
from punchlist.errors import InvalidInput, NotFound
from punchlist.kernel.clock import timestamp
from punchlist.missions import chats
from punchlist.missions.model import NewMissionTodo
from punchlist.missions.todos.lifecycle import TodoAction, TodoPriority, TodoStatus
from punchlist.runs.service import Runs
from punchlist.storage.store import Store
from punchlist.views.board import BoardFilter, board_json, read_board
from punchlist.views.conversations import read_conversations
from punchlist.views.todo_detail import history_json, read_detail
from punchlist.views.todo_history import read_history
from punchlist.views.todo_transcript import read_todo_transcript


@pytest.fixture
def team(store: Store) -> Team:
    return developer_experience(store)


@pytest.mark.spec("M15")
def test_columns_have_counts_of_all_pages(store: Store, team: Team) -> None:
    for status in TodoStatus:
        team.todo_in(status, f"one {status}")
    team.todo_in(TodoStatus.COMPLETED, "another")
    board = read_board(store, SLUG, limit=2)
    assert [todo.status for todo in board.todos.items] == ["in_progress", "pending"]
    assert board.counts == {"backlog": 1, "pending": 1, "in_progress": 1, "completed": 2, "cancelled": 1}
    assert (board.todos.capacity.active, board.todos.capacity.backlog) == (2, 1)
    seen, cursor = [todo.id for todo in board.todos.items], board.todos.cursor
    while cursor is not None:
        page = read_board(store, SLUG, limit=2, cursor=cursor)
        seen += [todo.id for todo in page.todos.items]
        cursor = page.todos.cursor
    assert len(seen) == len(set(seen)) == 6


@pytest.mark.spec("M15")
def test_filters_and_search_select_open_and_ended_todos(store: Store, team: Team) -> None:
    team.create("Measure 100% of Bundles")
    team.create("Write a guide", ONBOARDING, priority=TodoPriority.HIGH)
    done = team.create("Cache bundles")
    team.update(done, TodoAction.START)
    team.todos.complete(team.lead, SLUG, done.id, "done")

    def titles(**filter: object) -> list[str]:
        board = read_board(store, SLUG, BoardFilter(**filter))  # type: ignore[arg-type]
        assert sum(board.counts.values()) == len(board.todos.items)
        return [todo.title for todo in board.todos.items]

    assert titles(search="bundles") == ["Measure 100% of Bundles", "Cache bundles"]
    assert titles(search="0%") == ["Measure 100% of Bundles"]
    assert titles(search="_") == []
    assert titles(pillar=ONBOARDING) == ["Write a guide"]
    assert titles(priority=TodoPriority.HIGH) == ["Write a guide"]
    assert titles(pillar=BUILD, search="cache") == ["Cache bundles"]
    with pytest.raises(NotFound, match="no pillar"):
        titles(pillar="nothing")
    with pytest.raises(InvalidInput, match="cursor"):
        read_board(store, SLUG, cursor="x")


@pytest.mark.spec("M15")
def test_a_card_shows_its_run_and_what_it_waits_for(store: Store, team: Team) -> None:
    todo = team.todo_in(TodoStatus.IN_PROGRESS)
    board = read_board(store, SLUG)
    run = board.runs[todo.id]
    assert (run.status, dict(board.waits)) == ("queued", {})
    Runs(store).stop(team.person, run.id, "wrong way")
    board = read_board(store, SLUG)
    [wait] = board.waits[todo.id]
    assert (wait.kind, wait.id, wait.text) == ("run", run.id, "wrong way")
    [card] = board_json(board)["pillars"][0]["todos"]
    assert card["run"]["status"] == "stopped"
    assert card["waits"] == [{"kind": "run", "id": run.id, "text": "wrong way"}]


@pytest.mark.spec("M15")
def test_the_last_activity_of_a_missions_chat_is_what_was_said_in_it(
    store: Store, team: Team, clock: StoppedClock
) -> None:
    chat, said = team.mission.conversation_id, clock.now
    with store.write() as tx:
        chats.post(tx, team.lead, chat, NoticeKind.NOTE, "Hello.")
    clock.advance(hours=1)
    team.create("A change of the mission, and nothing that was said")
    lines = {line.id: line for line in read_conversations(store).conversations}
    assert lines[chat].active_at == timestamp(said)


@pytest.mark.spec("M15")
@pytest.mark.spec("X5")
def test_a_todo_has_its_history_with_actor_and_reason(store: Store, team: Team, clock: StoppedClock) -> None:
    todo = team.todos.create(team.owner, SLUG, NewMissionTodo(BUILD, "Cache", justification="slow")).todo
    team.create("Another")
    team.update(todo, TodoAction.START, "it is urgent")
    detail = read_detail(store, todo.id)
    assert [
        (entry["action"], entry["actor"], entry["reason"], entry["toStatus"]) for entry in history_json(detail)
    ] == [
        ("create", "owner:pillar-owner", "slow", "pending"),
        ("start", "lead:mission-lead", "it is urgent", "in_progress"),
    ]
    first, second = detail.history
    assert read_history(store, todo, limit=1) == [first]
    assert read_history(store, todo, after=first.version) == [second]
    assert read_todo_transcript(store, todo.id).entries == []
    with pytest.raises(InvalidInput, match="cursor"):
        read_todo_transcript(store, todo.id, cursor="nothing:1")
    assert Conversations(store).get(detail.conversation_id).id == detail.conversation_id
