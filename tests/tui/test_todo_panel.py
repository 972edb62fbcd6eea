"""The docked list: more items than fit, its keys, and why an item cannot be changed (W9, X9)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.tui.stage import SESSION, opened, rehearsal

from punchlist.app import Services
from punchlist.conversations.model import Scope, TurnScope
from punchlist.kernel.events import Actor, Role
from punchlist.plan.validation import parse_items
from punchlist.surfaces.tui.backend import Backend
from punchlist.surfaces.tui.todo_lines import progress_line
from punchlist.surfaces.tui.todo_panel import TodoPanel
from punchlist.views.home import read_home

pytestmark = pytest.mark.anyio
PLAN = {"calls": [{"tool": "create_todo", "arguments": {"items": [{"title": "Write notes"}, {"title": "Run it"}]}}]}


@pytest.mark.spec("W9", "X9")
@pytest.mark.parametrize("size", [(100, 30), (60, 16), (130, 18)])
async def test_a_list_that_does_not_fit_is_edited_where_one_can_see_it(
    services: Services, size: tuple[int, int]
) -> None:
    services.todos.add(Backend(services).scope(SESSION), [f"Item number {n}" for n in range(1, 19)], reason="test")
    async with opened(services, size=size) as stage:
        await stage.until(lambda: "Item number 1" in stage.text)
        await stage.pilot.press("ctrl+l")
        panel = stage.conversation.query_one(TodoPanel)
        await stage.until(lambda: "a add · e edit" in stage.text)
        await stage.pilot.press("a")
        await stage.type("A new one")
        await stage.until(lambda: "A new one" in stage.text)
        await stage.pilot.press("enter")
        await stage.until(lambda: "○ 19 A new one" in stage.text)
        assert panel.selected is not None
        assert panel.selected.title == "A new one"


@pytest.mark.spec("X9")
async def test_the_list_says_why_an_item_cannot_be_changed(services: Services, project: Path) -> None:
    model = rehearsal(project, PLAN, *({"text": "No."} for _ in range(30)))
    async with opened(services, model, goal="Plan.") as stage:
        await stage.ended()
        await stage.until(lambda: "Write notes" in stage.text)
        await stage.pilot.press("ctrl+l")
        panel = stage.conversation.query_one(TodoPanel)
        await stage.until(lambda: panel.has_focus_within)
        await stage.pilot.press("K")
        await stage.until(lambda: "It is the first item of its list." in stage.text)
        await stage.pilot.press("x")
        await stage.until(lambda: "/continue" in stage.text)
        await stage.pilot.press("question_mark")
        await stage.until(lambda: "Keys valid here" in stage.text)
        assert "Edit  (this item is of a turn that has ended" in stage.text


@pytest.mark.spec("X9")
async def test_a_person_takes_back_changes_of_a_plan(services: Services) -> None:
    agent = Scope(SESSION, Actor(Role.SUPERVISOR, "supervisor"))
    turn = services.conversations.begin_turn(agent, reason="test")
    items = parse_items([{"title": title} for title in ("Read it", "Test it")])
    services.plans.create(TurnScope(SESSION, agent.actor, turn.id), items, reason="test")
    async with opened(services) as stage:
        await stage.until(lambda: "○ 1 Read it" in stage.text)
        await stage.pilot.press("ctrl+l", "c")
        await stage.until(lambda: "○ 1 Read it" not in stage.text)
        await stage.pilot.press("u")
        await stage.until(lambda: "○ 1 Read it" in stage.text)
        await stage.pilot.press("u")
        await stage.until(lambda: "no person has changed the plan" in stage.text.replace("\n", " "))


@pytest.mark.spec("W9")
def test_the_progress_leaves_out_what_was_cancelled_everywhere(services: Services) -> None:
    scope = Backend(services).scope(SESSION)
    services.todos.add(scope, ["A", "B", "C", "D"], reason="test")
    services.todos.complete(scope, "1", reason="test")
    services.todos.cancel(scope, "2")
    todos = services.todos.list(scope)
    assert todos.progress == (1, 3)
    assert "1/3 (33%)" in progress_line(todos, 60).plain
    [row] = read_home(services).working
    assert (row.items.done, row.items.total, row.items.open) == (1, 3, 2)


@pytest.mark.spec("W9", "T14")
async def test_an_item_of_a_turn_that_has_ended_is_not_shown_as_running(services: Services) -> None:
    agent = Scope(SESSION, Actor(Role.SUPERVISOR, "supervisor"))
    turn = services.conversations.begin_turn(agent, reason="test")
    scope = TurnScope(SESSION, agent.actor, turn.id)
    created = services.plans.create(scope, parse_items([{"title": "Read it"}]), reason="test")
    services.plans.start(scope, created.todos[0].id)
    async with opened(services) as stage:
        await stage.until(lambda: "▶ 1 Read it" in stage.text)
        services.conversations.end_turn(agent, reason="cancelled")
        await stage.until(lambda: "◇ 1 Read it" in stage.text)
