"""`list_todo`: what remains, or what was asked for, in the plan's order (T3)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conftest import StoppedClock
from tests.contract.front import call, plan

from punchlist.conversations.model import TurnScope
from punchlist.conversations.service import Conversations
from punchlist.errors import InvalidInput, NotFound
from punchlist.plan.service import Plans


@pytest.fixture
def four(plans: Plans, turn: TurnScope) -> dict[str, str]:
    """A plan with an item in each state; their ids by state."""
    names = ["completed", "in_progress", "cancelled", "pending"]
    ids = dict(zip(names, plan(plans, turn, *names), strict=True))
    call(plans, turn, "complete_todo", todoId=ids["completed"], outcome="done")
    call(plans, turn, "start_todo", todoId=ids["in_progress"])
    call(plans, turn, "complete_todo", todoId=ids["cancelled"], outcome="not needed", status="cancelled")
    return ids


@pytest.mark.spec("T3")
def test_what_remains_is_listed_unless_a_status_is_asked_for(
    plans: Plans, turn: TurnScope, four: dict[str, str]
) -> None:
    def titles(status: str | None) -> list[str]:
        listed = call(plans, turn, "list_todo", status=status)
        assert listed["summary"] == {"total": 4, "pending": 1, "inProgress": 1, "completed": 1, "cancelled": 1}
        return [item["title"] for item in listed["items"]]

    assert titles(None) == ["in_progress", "pending"]
    assert titles("all") == ["completed", "in_progress", "cancelled", "pending"]
    for status in four:
        assert titles(status) == [status]


@pytest.mark.spec("T3")
def test_an_item_has_every_field_of_the_seed(plans: Plans, turn: TurnScope, clock: StoppedClock) -> None:
    sent = {"title": "A", "context": "why", "completionCriteria": "how to tell", "agentType": "researcher"}
    created = call(plans, turn, "create_todo", items=[{"title": "B"}, {**sent, "order": 1}])["created"]
    clock.advance(minutes=1)
    call(plans, turn, "start_todo", todoId=created[1]["id"])
    clock.advance(minutes=1)
    call(plans, turn, "complete_todo", todoId=created[1]["id"], outcome="three sources")
    first, second = call(plans, turn, "list_todo", status="all")["items"]
    assert first == {
        **sent,
        "id": created[1]["id"],
        "status": "completed",
        "priority": 0,
        "outcome": "three sources",
        "mark": "claimed",
        "createdAt": "2026-02-21T09:00:00.000000Z",
        "startedAt": "2026-02-21T09:01:00.000000Z",
        "completedAt": "2026-02-21T09:02:00.000000Z",
    }
    assert second == {
        "id": created[0]["id"],
        "title": "B",
        "context": "",
        "completionCriteria": "",
        "agentType": None,
        "status": "pending",
        "priority": 1,
        "outcome": None,
        "createdAt": "2026-02-21T09:00:00.000000Z",
        "startedAt": None,
        "completedAt": None,
    }


@pytest.mark.spec("T3")
def test_an_empty_plan_is_listed_as_such(plans: Plans, turn: TurnScope) -> None:
    assert call(plans, turn, "list_todo") == {
        "items": [],
        "summary": {"total": 0, "pending": 0, "inProgress": 0, "completed": 0, "cancelled": 0},
    }


@pytest.mark.spec("T3")
def test_an_unknown_status_is_refused(plans: Plans, turn: TurnScope) -> None:
    with pytest.raises(InvalidInput, match=r"^status: must be one of pending, .*, all, got 'open'$"):
        call(plans, turn, "list_todo", status="open")


@pytest.mark.spec("T3", "T7")
def test_a_turn_of_another_session_cannot_be_listed(plans: Plans, turn: TurnScope, other_turn: TurnScope) -> None:
    plan(plans, other_turn, "secret")
    borrowed = TurnScope(turn.conversation_id, turn.actor, other_turn.turn_id)
    with pytest.raises(NotFound):
        call(plans, borrowed, "list_todo")


# --- pages --------------------------------------------------------------------------------------------------------


def pages(plans: Plans, turn: TurnScope, **arguments: Any) -> list[list[str]]:
    """The titles of each page, from the first to the last."""
    found, cursor = [], None
    while True:
        listed = call(plans, turn, "list_todo", **arguments, **({"cursor": cursor} if cursor else {}))
        found.append([item["title"] for item in listed["items"]])
        assert listed["summary"]["total"] == call(plans, turn, "list_todo", limit=1)["summary"]["total"]
        cursor = listed.get("nextCursor")
        if cursor is None:
            return found


@pytest.mark.spec("T3", "C16")
@pytest.mark.parametrize("waits", [False, True])
def test_a_list_comes_in_pages_and_says_whether_there_is_more(plans: Plans, turn: TurnScope, waits: bool) -> None:
    ids = plan(plans, turn, *"abcdefg")
    if waits:
        call(plans, turn, "wait_todo", todoId=ids[6], **{"for": {"person": "Which?"}})
    call(plans, turn, "start_todo", todoId=ids[2])
    call(plans, turn, "complete_todo", todoId=ids[0], outcome="done")
    assert pages(plans, turn, limit=3) == [["b", "c", "d"], ["e", "f", "g"]]
    assert pages(plans, turn, limit=4, status="all") == [["a", "b", "c", "d"], ["e", "f", "g"]]
    assert pages(plans, turn, limit=2, status="pending") == [["b", "d"], ["e", "f"], ["g"]]
    assert pages(plans, turn, limit=7, status="all") == [list("abcdefg")]
    assert pages(plans, turn, status="in_progress", limit=1) == [["c"]]
    assert "nextCursor" not in call(plans, turn, "list_todo")


@pytest.mark.spec("T3", "C16")
def test_a_page_has_two_hundred_todos_unless_another_number_is_asked_for(plans: Plans, turn: TurnScope) -> None:
    plan(plans, turn, *map(str, range(450)))
    assert [len(page) for page in pages(plans, turn)] == [200, 200, 50]
    assert [title for page in pages(plans, turn) for title in page] == [str(number) for number in range(450)]
    assert len(pages(plans, turn, limit=10_000)) == 1


@pytest.mark.spec("T3")
def test_a_page_begins_after_the_last_todo_of_the_page_before_wherever_that_is_now(
    plans: Plans, turn: TurnScope
) -> None:
    ids = plan(plans, turn, *"abcd")
    first = call(plans, turn, "list_todo", limit=2)
    call(plans, turn, "create_todo", items=[{"title": "new", "order": 1}])
    call(plans, turn, "complete_todo", todoId=ids[1], outcome="done")
    following = call(plans, turn, "list_todo", cursor=first["nextCursor"])
    assert [item["title"] for item in following["items"]] == ["c", "d"]


@pytest.mark.spec("T3")
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"limit": 0}, "limit: must be a whole number from 1 to 10,000, got 0"),
        ({"limit": 10_001}, "limit: must be"),
        ({"limit": True}, "limit: must be"),
        ({"limit": "5"}, "limit: must be"),
        ({"cursor": "nowhere"}, "cursor: 'nowhere' is not a nextCursor of this plan. Leave it out"),
        ({"cursor": 5}, "cursor: "),
    ],
)
def test_a_wrong_page_is_refused_with_what_to_do(
    plans: Plans, turn: TurnScope, arguments: dict[str, Any], problem: str
) -> None:
    plan(plans, turn, "a")
    with pytest.raises(InvalidInput, match=problem):
        call(plans, turn, "list_todo", **arguments)


@pytest.mark.spec("T3", "T7")
def test_a_cursor_of_another_turn_is_refused(plans: Plans, turn: TurnScope, conversations: Conversations) -> None:
    (id,) = plan(plans, turn, "a")
    other = TurnScope("s", turn.actor, conversations.begin_turn(turn, reason="next").id)
    with pytest.raises(InvalidInput, match="not a nextCursor of this plan"):
        call(plans, other, "list_todo", cursor=id)
