"""Who changed what, when and why: one event for every change, and the lists can be replayed from them (X5)."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

import pytest
from tests.contract.front import todo, trail
from tests.contract.scenario import Scenario

from punchlist.checklist.replay import replay_checklist
from punchlist.checklist.service import Checklists
from punchlist.conversations.model import Scope, TurnScope
from punchlist.kernel.events import GENESIS, Event
from punchlist.plan.lifecycle import PlanStatus
from punchlist.plan.replay import replay_todos as replay_plan
from punchlist.plan.service import Plans
from punchlist.storage import event_log
from punchlist.storage.store import Store


def told(events: list[Event]) -> list[tuple[str, str, str | None, str | None, str]]:
    return [(event.actor, event.action, event.from_status, event.to_status, event.reason) for event in events]


@pytest.mark.spec("X5")
def test_every_change_says_who_what_and_why(store: Store, scenario: Scenario) -> None:
    agent, person = "supervisor:test", "person:ada"
    conversation, checklist, plan = (told(trail(store, stream)) for stream in scenario.streams)
    assert conversation == [
        (agent, "start", None, None, "first use"),
        (agent, "begin_turn", None, "open", "first use"),
        (person, "say", None, None, "message of user"),
        (agent, "trace", None, None, "model call"),
        (person, "end_turn", "open", "ended", "a new prompt"),
    ]
    assert checklist == [
        (agent, "rewrite", None, None, "TodoWrite"),
        (person, "rewrite", None, None, "saw it work"),
        (person, "rewrite", None, None, "clearer"),
        (person, "rewrite", None, None, "not needed"),
        (person, "undo", None, None, "needed after all"),
    ]
    assert plan == [
        (agent, "create", None, "pending", "create_todo"),
        (agent, "create", None, "pending", "create_todo"),
        (agent, "create", None, "pending", "create_todo"),
        (agent, "create", None, "pending", "create_todo"),
        (agent, "start", "pending", "in_progress", "start_todo"),
        (agent, "complete", "in_progress", "completed", "went well"),
        (agent, "cancel", "pending", "cancelled", "not needed"),
    ]


@pytest.mark.spec("X5")
def test_every_change_says_when(store: Store, scenario: Scenario) -> None:
    events = trail(store)
    assert [event.at for event in events] == sorted(event.at for event in events)
    began = datetime.fromisoformat(events[0].at)
    seconds = Counter((datetime.fromisoformat(event.at) - began) // timedelta(seconds=1) for event in events)
    assert seconds == {0: 2, **dict.fromkeys(range(1, 8), 1), 8: 3, **dict.fromkeys(range(9, 14), 1)}


@pytest.mark.spec("X5")
def test_every_event_belongs_to_its_session_and_follows_the_one_before(store: Store, scenario: Scenario) -> None:
    assert {event.conversation_id for event in trail(store)} == {"s"}
    for stream in scenario.streams:
        events = trail(store, stream)
        assert [event.version for event in events] == list(range(1, len(events) + 1))
        assert list(event_log.broken_links(events)) == []
        assert len({GENESIS, *(event.hash for event in events)}) == len(events) + 1


@pytest.mark.spec("X5")
def test_a_checklist_event_says_what_became_of_each_item(store: Store, checklists: Checklists, agent: Scope) -> None:
    checklists.rewrite(agent, [todo("A", id="a"), todo("B", id="b"), todo("C", id="c"), todo("Z", "completed", id="z")])
    checklists.rewrite(agent, [todo("A", "in_progress", id="a"), todo("B!", id="b"), todo("D", id="d")])
    steps = trail(store, "checklist:s")[-1].payload()["steps"]
    assert [(step["id"], step["action"], step["from_status"], step["to_status"]) for step in steps] == [
        ("a", "start", "pending", "in_progress"),
        ("b", "edit", "pending", "pending"),
        ("d", "add", None, "pending"),
        ("c", "drop", "pending", "dropped"),
        ("z", "remove", "completed", None),
    ]


@pytest.mark.spec("X5")
def test_the_checklist_is_what_its_events_made_of_it(store: Store, checklists: Checklists, scenario: Scenario) -> None:
    events = trail(store, "checklist:s")
    assert replay_checklist(events) == checklists.get("s")
    assert [[item.content for item in replay_checklist(events[:count]).items] for count in (1, 3, 4, 5)] == [
        ["A", "B", "C"],
        ["A", "B, but better", "C"],
        ["A", "B, but better"],
        ["A", "B, but better", "C"],
    ]


@pytest.mark.spec("X5")
def test_the_plan_is_what_its_events_made_of_it(store: Store, plans: Plans, scenario: Scenario, agent: Scope) -> None:
    events = trail(store, f"plan:{scenario.turn_id}")
    rows = plans.list(TurnScope("s", agent.actor, scenario.turn_id), frozenset(PlanStatus)).items
    assert replay_plan(scenario.turn_id, events) == {todo.id: todo for todo in rows}
    assert [todo.id for todo in rows] == scenario.todo_ids
    early = replay_plan(scenario.turn_id, events[:3])
    assert [(todo.title, todo.priority) for todo in early.values()] == [("first", 0), ("second", 1), ("third", 2)]


@pytest.mark.spec("X5")
def test_the_trail_is_read_by_session_from_either_end(
    store: Store, checklists: Checklists, agent: Scope, scenario: Scenario
) -> None:
    checklists.rewrite(Scope("another", agent.actor), [todo("A")])
    with store.read() as tx:
        everything = event_log.after(tx, 0)
        ours = event_log.after(tx, 0, conversation_id="s")
        assert event_log.newest(tx, 3) == everything[-3:]
        assert event_log.newest(tx, 3, "s") == ours[-3:]
        assert event_log.after(tx, ours[4].seq, limit=2, conversation_id="s") == ours[5:7]
    assert len(everything) == len(ours) + 2
