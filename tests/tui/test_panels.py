"""Panels: the board of a mission, a todo, metrics, runs, plans, and the session picker (M15)."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Input, OptionList, Static

from punchlist.app import Services
from punchlist.config import load
from punchlist.conversations.model import MessageRole, Scope
from punchlist.kernel.events import Actor, Role
from punchlist.missions.config.file import parse_mission
from punchlist.missions.model import MissionScope, NewMissionTodo
from punchlist.missions.todos.lifecycle import TodoAction, TodoStatus
from punchlist.surfaces.tui.agent_options import AgentOptions
from punchlist.surfaces.tui.app import PunchlistApp
from punchlist.surfaces.tui.backend import Backend
from punchlist.surfaces.tui.copy_screen import CopyScreen
from punchlist.surfaces.tui.dialogs import ConfirmDialog
from punchlist.surfaces.tui.panels.board_moves import plan_move
from punchlist.surfaces.tui.panels.board_screen import BoardColumn, BoardScreen
from punchlist.surfaces.tui.panels.runs_screen import RunsScreen
from punchlist.surfaces.tui.panels.todo_screen import TodoScreen
from punchlist.surfaces.tui.slash_commands.model import DialogName
from punchlist.views.board import read_board
from punchlist.views.home import read_home

pytestmark = pytest.mark.anyio
ADA = Actor(Role.PERSON, "ada")
MISSION = json.dumps(
    {
        "name": "Fast [bold]builds[/]",
        "slug": "fast",
        "description": "d",
        "todo": {"activeTodoLimit": 2, "backlogTodoLimit": 5},
        "pillars": [
            {
                "name": "Build",
                "slug": "build",
                "description": "d",
                "metrics": [
                    {
                        "name": "Build time",
                        "slug": "time",
                        "unit": "s",
                        "target": 60,
                        "direction": "down",
                        "collector": {"type": "manual"},
                    }
                ],
            }
        ],
    }
)


@pytest.fixture
def services(project: Path, database: str) -> Iterator[Services]:
    built = Services(load(environment={**os.environ, "PUNCHLIST_DATABASE_URL": database}, cwd=project))
    scope = Scope("s", ADA)
    built.missions.apply(scope, parse_mission(MISSION), MISSION)
    for title in ("Cache the loaders", "Split the bundle", "Drop the polyfills"):
        new = NewMissionTodo("build", title, "d", "j", "c", deadline="2099-01-01")
        built.mission_todos.create(MissionScope("s", ADA), "fast", new)
    for value in (90, 80, 70):
        built.metrics.record(MissionScope("s", ADA), "fast", "time", value)
    yield built
    built.close()


@asynccontextmanager
async def panel(
    services: Services, dialog: DialogName, argument: str = "", size: tuple[int, int] = (120, 36)
) -> AsyncIterator[tuple[PunchlistApp, Pilot[str]]]:
    app = PunchlistApp(lambda: Backend(services, AgentOptions()))
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.is_ready)
        app.open_panel(dialog, argument, "s")
        await until(pilot, lambda: len(app.screen_stack) > 2 and getattr(app.screen, "data", None) is not None)
        yield app, pilot


SECONDS = 30


async def until(pilot: Pilot[str], holds: Callable[[], bool]) -> None:
    end = monotonic() + SECONDS
    while not holds():
        assert monotonic() < end, f"not within {SECONDS} s: {told(pilot.app)}"
        await pilot.pause(0.02)


def told(app: App[str]) -> str:
    return "\n".join(each.message for each in app._notifications)


def titles(app: PunchlistApp) -> list[list[str]]:
    return [[todo.title for todo in column.todos] for column in app.screen.query(BoardColumn)]


@pytest.mark.spec("M15")
async def test_cards_are_moved_by_key_and_impossible_moves_say_why(services: Services) -> None:
    async with panel(services, DialogName.MISSIONS) as (app, pilot):
        assert isinstance(app.screen, BoardScreen)
        assert titles(app) == [["Drop the polyfills"], ["Cache the loaders", "Split the bundle"], [], []]
        await pilot.press("left", "shift+right")
        await until(pilot, lambda: "limit" in told(app))
        await pilot.press("right", "right", "shift+left")
        await until(pilot, lambda: "There is no card here" in told(app))
        await pilot.press("left", "shift+right")
        await until(pilot, lambda: titles(app)[2] == ["Cache the loaders"])
        await pilot.press("shift+left")
        await until(pilot, lambda: "cannot go back to pending" in told(app))
        await pilot.press("c", *"done", "enter")
        await until(pilot, lambda: titles(app)[3] == ["Cache the loaders"])
        await pilot.press("x")
        await until(pilot, lambda: "stays ended" in told(app))


@pytest.mark.spec("M15")
async def test_a_card_that_is_started_without_a_worker_says_so(services: Services) -> None:
    async with panel(services, DialogName.MISSIONS) as (app, pilot):
        notice = app.screen.query_one("#board-notice")
        assert not notice.display
        await pilot.press("s")
        await until(pilot, lambda: bool(titles(app)[2]) and notice.display)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, TodoScreen) and app.screen.data is not None)
        text = str(app.screen.query_one("#text", Static).content)
        assert "in progress" in text
        assert "in_progress" not in text


@pytest.mark.spec("M11", "M15")
async def test_runs_are_named_by_their_todo_and_controlled_by_keys(services: Services) -> None:
    scope = MissionScope("s", ADA)
    [todo] = [one for one in read_board(services.store, "fast").todos.items if one.title == "Cache the loaders"]
    services.mission_todos.update(scope, "fast", todo.id, TodoAction.START, "test")
    assert [line.title for line in read_home(services).working] == ["execute: Cache the loaders"]

    async with panel(services, DialogName.RUNS) as (app, pilot):

        def row() -> str:
            return str(app.screen.query_one(OptionList).get_option_at_index(0).prompt)

        assert "queued" in row()
        assert "Cache the loaders" in row()
        await pilot.press("r")
        await until(pilot, lambda: "nothing to resume" in told(app))
        await pilot.press("p")
        await until(pilot, lambda: "pause requested" in row())
        await pilot.press("r")
        await until(pilot, lambda: "requested" not in row())
        await pilot.press("e", *"Hurry", "enter")
        await until(pilot, lambda: "gets your message" in told(app))
        await pilot.press("x")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen) and "No open runs" in row())
        await pilot.press("a")
        await until(pilot, lambda: "stopped" in row())


@pytest.mark.spec("M15")
async def test_the_board_follows_changes_of_other_processes_and_fits_40_columns(services: Services) -> None:
    async with panel(services, DialogName.MISSIONS, "fast", (40, 20)) as (app, pilot):
        visible = [column.status for column in app.screen.query(BoardColumn) if column.display]
        assert visible == [TodoStatus.PENDING]
        todo = next(column.todos[0] for column in app.screen.query(BoardColumn) if column.todos and column.display)
        services.mission_todos.update(MissionScope("s", ADA), "fast", todo.id, TodoAction.CANCEL, "no need")
        await until(pilot, lambda: todo.title in titles(app)[3])


@pytest.mark.spec("M15")
async def test_a_todo_opens_in_detail_and_metrics_are_plotted(services: Services) -> None:
    async with panel(services, DialogName.MISSIONS) as (app, pilot):
        await pilot.press("enter")
        await until(pilot, lambda: "Done when" in shown_text(app))
        assert "due in" in shown_text(app)
        assert "No work yet" in shown_text(app)
        await pilot.press("escape", "m")
        await until(pilot, lambda: "Build time" in shown_text(app))
        assert "┤" in shown_text(app)


def shown_text(app: PunchlistApp) -> str:
    found = app.screen.query("#text").results(Static)
    return "\n".join(str(each.content) for each in found)


@pytest.mark.spec("X13")
async def test_a_session_is_found_by_its_words_and_opened(services: Services) -> None:
    for session, text in (("one", "Fix the parser"), ("two", "Write the [red]notes[/]")):
        scope = Scope(session, ADA)
        services.conversations.open_turn(scope)
        services.conversations.add_message(scope, MessageRole.USER, text)
    async with panel(services, DialogName.RESUME) as (app, pilot):
        await pilot.press(*"note")
        await until(pilot, lambda: app.screen.query_one(OptionList).option_count == 1)
        await until(pilot, lambda: "[red]notes[/]" in str(app.screen.query_one("#preview", Static).content))
        assert app.screen.query_one(Input).value == "note"
        await pilot.press("enter")
        await until(pilot, lambda: app.conversation is not None and app.conversation.session == "two")


@pytest.mark.spec("X13")
async def test_text_is_selected_and_copied_with_the_keyboard(services: Services) -> None:
    scope = Scope("one", ADA)
    services.conversations.open_turn(scope)
    services.conversations.add_message(scope, MessageRole.USER, "Fix the parser")
    async with panel(services, DialogName.RESUME, "one") as (app, pilot):
        await until(pilot, lambda: app.screen.query_one(OptionList).option_count == 1)
        await pilot.press("enter")
        await until(pilot, lambda: app.conversation is not None and bool(app.conversation.history.entries))
        await pilot.press("f2")
        await until(pilot, lambda: isinstance(app.screen, CopyScreen))
        assert app.clipboard == "", "opening it copies nothing"
        await pilot.press("home", "space", "end", "enter")
        await until(pilot, lambda: app.clipboard == "Fix the parser")


@pytest.mark.spec("M15")
def test_every_move_is_a_step_of_the_lifecycle_or_explained() -> None:
    from punchlist.missions.todos.lifecycle import MISSION as TABLE

    for status in TodoStatus:
        for step in (-1, 1):
            move = plan_move(status, step)
            if isinstance(move, TodoAction):
                TABLE.advance(status, move, Role.PERSON)
            else:
                assert len(move) > 20


async def test_home_names_the_mission_and_how_to_open_its_board(services: Services) -> None:
    app = PunchlistApp(lambda: Backend(services, AgentOptions()))
    async with app.run_test(size=(120, 36)) as pilot:
        title = app.screen.query_one("#home-title", Static)
        await until(pilot, lambda: "mission fast: ^p /mission" in str(title.content))
