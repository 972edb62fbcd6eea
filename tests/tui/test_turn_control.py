"""Messages reach the agent in order, a dead turn is noticed and resumed, an ended one says why (S10, C13, C14)."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from tests.tui.stage import SESSION, Stage, opened, rehearsal

from punchlist.app import Services
from punchlist.config import load
from punchlist.conversations.message_queue import MessageQueue
from punchlist.conversations.model import MessageRole, Scope
from punchlist.kernel.events import Actor, Role
from punchlist.surfaces.tui.backend import Backend
from punchlist.surfaces.tui.home_screen import HomeScreen
from punchlist.surfaces.tui.list_changes import list_change_words
from punchlist.surfaces.tui.status_text import StatusValues, status_content
from punchlist.views.conversations import read_status

pytestmark = pytest.mark.anyio
PLAN = {"calls": [{"tool": "create_todo", "arguments": {"items": [{"title": "Write notes"}, {"title": "Run it"}]}}]}
AGENT = Scope(SESSION, Actor(Role.SUPERVISOR, "supervisor"))


def said(services: Services) -> list[str]:
    recent = services.conversations.recent(SESSION, 1_000)
    return [one.content for one in recent if one.role == MessageRole.USER and one.kind == "text"]


def kill_turn(stage: Stage) -> None:
    """Kill the process of the open turn."""
    state = stage.conversation.state
    assert state is not None
    assert state.turn is not None
    assert state.turn.owner is not None
    os.kill(int(state.turn.owner.split(":")[1]), signal.SIGKILL)


@pytest.mark.spec("S10")
async def test_messages_that_are_sent_quickly_arrive_in_their_order(services: Services, project: Path) -> None:
    model = rehearsal(project, *({"text": f"Reply {number}."} for number in range(4)))
    async with opened(services, model) as stage:
        for text in ("one", "two", "three"):
            await stage.pilot.press(*text, "enter")
        await stage.until(lambda: said(services) == ["one", "two", "three"])
        await stage.until(lambda: "❯ three" in stage.history)
        await stage.ended()
        assert [line for line in stage.history.splitlines() if line.startswith("❯")] == ["❯ one", "❯ two", "❯ three"]
        assert not stage.app._notifications
        assert stage.conversation.composer.text == ""


@pytest.mark.spec("S10")
async def test_a_message_joins_the_queue_of_a_turn_that_another_window_began(services: Services, project: Path) -> None:
    model = rehearsal(project, {"text": "Slow.", "delay": 2}, {"text": "Next."})
    other = Services(load(cwd=project))
    async with opened(services, model) as stage:
        first = Backend(other, stage.backend.options)
        await stage.app.in_thread(first.send, SESSION, "from the other window")
        assert not first.send(SESSION, "from here")
        await stage.until(lambda: said(services) == ["from the other window", "from here"])
        await stage.ended()
    other.close()


@pytest.mark.spec("S10", "C14")
async def test_a_queue_that_was_left_is_sent_by_enter_and_before_newer_messages(
    services: Services, project: Path
) -> None:
    model = rehearsal(project, *({"text": f"Reply {number}."} for number in range(4)))
    for text in ("first", "second"):
        MessageQueue(services.store).add(Backend(services).scope(SESSION), text)
    async with opened(services, model) as stage:
        await stage.until(lambda: "Queued 2 · Enter on an empty prompt sends the first" in stage.text)
        await stage.type("third")
        await stage.pilot.press("enter")
        await stage.until(lambda: said(services) == ["first", "second", "third"])
        await stage.ended()
    MessageQueue(services.store).add(Backend(services).scope(SESSION), "fourth")
    async with opened(services, model) as stage:
        await stage.until(lambda: "Enter on an empty prompt sends the first" in stage.text)
        await stage.pilot.press("enter")
        await stage.until(lambda: said(services)[-1] == "fourth")
        await stage.ended()


@pytest.mark.spec("C14", "T14")
async def test_a_turn_whose_process_died_is_shown_as_interrupted_and_resumed_by_enter(
    services: Services, project: Path
) -> None:
    model = rehearsal(project, {"text": "Slow.", "delay": 30})
    async with opened(services, model, goal="Begin.") as stage:
        await stage.until(lambda: said(services) == ["Begin."] and "working" in stage.text)
        kill_turn(stage)
        await stage.until(lambda: "✗ interrupted · Enter resumes it" in stage.text, 10)
        await stage.pilot.press("enter")
        await stage.until(lambda: "working" in stage.text)
        kill_turn(stage)
        await stage.until(lambda: "✗ interrupted" in stage.text, 10)
        await stage.type("/continue")
        await stage.pilot.press("enter")
        await stage.until(lambda: "working" in stage.text)
        stage.backend.interrupt(SESSION)
        await stage.ended()
        await stage.until(lambda: "· cancelled" in stage.text)


@pytest.mark.spec("C13")
async def test_a_turn_that_ends_early_says_why_and_what_is_left(services: Services, project: Path) -> None:
    model = rehearsal(project, PLAN, *({"text": "No."} for _ in range(30)))
    async with opened(services, model, goal="Plan.") as stage:
        await stage.ended()
        await stage.until(lambda: "◇ stalled: no progress" in stage.text)
        lines = stage.history.splitlines()
        end = next(place for place, line in enumerate(lines) if line.startswith("◇ Ended as stalled"))
        assert lines[end + 1 : end + 3] == ["  ○ Write notes", "  ○ Run it"]
        assert not any(line.startswith("  · supervisor: The whole request") for line in lines)


@pytest.mark.spec("C13")
async def test_a_turn_that_began_earlier_has_worked_since_then(services: Services) -> None:
    turn = services.conversations.begin_turn(AGENT, reason="test")
    seconds = StatusValues(state="working", seconds=3_725.0)
    assert "working 1 h 2 min" in status_content(seconds, 120).plain
    async with opened(services) as stage:
        state = stage.conversation.state
        assert state is not None
        assert state.turn is not None
        assert state.turn.started_at == turn.started_at


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("completed: all done", "✓ completed"),
        ("error: the model did not answer", "✗ error: the model did not answer"),
        ("capped: 10 continuations", "◇ capped: 10 continuations"),
        ("cancelled: a person interrupted it", "· cancelled"),
    ],
)
def test_the_status_line_says_how_the_last_turn_ended(reason: str, shown: str) -> None:
    assert status_content(StatusValues(reason=reason), 120).plain.startswith(shown)


def message(*lines: str) -> str:
    return "\n".join(["Todo list updated:", *(f"  {line}" for line in lines)])


@pytest.mark.spec("W9")
@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ((), ("○ a", "○ b"), "added “a”, “b”"),
        (("○ a", "○ b"), ("▶ doing a", "○ b"), "started “doing a”"),
        (("▶ doing a", "○ b"), ("✓ a", "▶ doing b"), "done “a” · started “doing b”"),
        (("○ a", "○ b"), ("○ a", "○ c"), "changed “c”"),
        (("○ a", "○ b"), ("○ b",), "removed “a”"),
        (("○ a", "○ b"), ("○ b", "○ a"), "list moved"),
        (("○ a",), (), "removed “a”"),
        (("○ a", "○ b"), ("✗ a (cancelled: Too (very) large.)", "○ b"), "cancelled “a”"),
        (("✗ a (cancelled)", "○ b"), ("○ a", "! b (dropped)"), "reopened “a” · dropped “b”"),
    ],
)
def test_a_change_of_the_list_is_told_as_its_difference(
    before: tuple[str, ...], after: tuple[str, ...], words: str
) -> None:
    assert list_change_words(message(*before), message(*after)) == words


@pytest.mark.spec("S8", "X13")
async def test_a_conversation_that_is_opened_late_shows_what_was_streamed_before(
    services: Services, project: Path
) -> None:
    command = "echo first; touch begun; until test -e go_on; do sleep 0.05; done"
    model = rehearsal(project, {"calls": [{"tool": "run_command", "arguments": {"command": command}}]}, {"text": "Ok."})
    async with opened(services, model, goal="Work.", mode="yolo") as stage:
        await stage.until(lambda: "│ first" in stage.history)
        await stage.pilot.press("ctrl+b")
        await stage.until(lambda: isinstance(stage.app.screen, HomeScreen) and "Work." in stage.text)
        await stage.pilot.press("enter")
        await stage.until(lambda: stage.in_conversation and "│ first" in stage.history, 15)
        (project / "go_on").touch()
        await stage.until(lambda: "Ok." in stage.history)
        assert stage.history.count("first") == stage.history.count("echo first") + 1


@pytest.mark.spec("W9")
async def test_successive_changes_of_the_list_are_one_line(services: Services) -> None:
    scope = Backend(services).scope(SESSION)
    services.todos.add(scope, ["Read it"], reason="test")
    async with opened(services) as stage:
        await stage.until(lambda: "· list: added “Read it”" in stage.history)
        services.todos.add(scope, ["Fix it"], reason="test")
        await stage.until(lambda: "· list: added “Read it”, “Fix it”" in stage.history)
        services.todos.complete(scope, "1", reason="test")
        await stage.until(lambda: "· list: done “Read it” · added “Fix it”" in stage.history)
        assert stage.history.count("list:") == 1


@pytest.mark.spec("C15", "S10")
async def test_a_mode_chosen_during_a_turn_holds_in_every_window_and_for_queued_messages(
    services: Services, project: Path
) -> None:
    model = rehearsal(project, {"text": "Slow.", "delay": 3}, {"text": "Next."})
    other = Services(load(cwd=project))
    async with opened(services, model) as first, opened(other, model) as second:
        await first.pilot.press(*"one", "enter")
        await second.until(lambda: second.conversation.state is not None and second.conversation.state.is_running)
        await first.until(lambda: first.conversation.state is not None and first.conversation.state.is_running)
        await first.pilot.press("shift+tab", "shift+tab")
        await second.until(lambda: "default, then plan" in second.text)
        assert "default, then plan" in first.text
        async with opened(other, model) as third:
            await third.until(lambda: "default, then plan" in third.text)
        await first.pilot.press(*"two", "enter")
        await first.until(lambda: "Next." in first.history)
        await first.ended()
        status = read_status(services.store, SESSION).status
        assert status is not None
        assert status.mode == "plan"
        # A later window begins with its own mode.
        async with opened(other, model) as later:
            await later.until(lambda: "completed" in later.text)
            assert later.backend.options.mode == "default"
    other.close()


@pytest.mark.spec("C15")
async def test_the_mode_of_the_configuration_holds_without_a_flag(project: Path) -> None:
    (project / "punchlist.toml").write_text('[policy]\nmode = "plan"\n')
    services = Services(load(cwd=project))
    async with opened(services, mode="") as stage:
        await stage.until(lambda: "· plan ·" in stage.text)
    services.close()
