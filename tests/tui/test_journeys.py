"""A person watches an agent plan and work, and steers it: approvals, the list, the queue, interruption."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.cells import cell_len
from tests.tui.stage import SESSION, Stage, opened, rehearsal
from textual.widgets import Input

from punchlist.app import Services
from punchlist.config import load
from punchlist.conversations.message_queue import MessageQueue
from punchlist.surfaces.tui.approval_panel import ApprovalPanel
from punchlist.surfaces.tui.backend import Backend
from punchlist.surfaces.tui.status_line import StatusLine
from punchlist.surfaces.tui.todo_panel import TodoPanel

pytestmark = pytest.mark.anyio

PLAN = {
    "text": "I plan **two** steps.",
    "calls": [{"tool": "create_todo", "arguments": {"items": [{"title": "Write notes"}, {"title": "Run it"}]}}],
}
START = {"tool": "start_todo", "arguments": {"todoId": "{{ created[0].id }}"}}


@pytest.fixture
def services(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Services]:
    monkeypatch.setattr(ApprovalPanel, "arm_seconds", 0.0)
    monkeypatch.chdir(project)
    built = Services(load(cwd=project))
    yield built
    built.close()


def _write(path: str, content: str) -> dict[str, object]:
    return {"tool": "write_file", "arguments": {"path": path, "content": content}}


@pytest.mark.spec("W9", "S10", "X9", "C15")
async def test_a_person_approves_denies_modifies_and_edits_the_list(services: Services, project: Path) -> None:
    model = rehearsal(
        project,
        PLAN,
        {"calls": [START, _write("a.txt", "one\n")]},
        {"calls": [_write("b.txt", "two\n")]},
        {"calls": [_write("c.txt", "three\n")]},
        {"text": "That is all."},
    )
    async with opened(services, model, goal="Write the notes.") as stage:
        await stage.asked_for("write_file")
        await stage.until(lambda: "│ one" in stage.text)
        assert "changing files needs approval in mode default" in stage.text
        assert "auto 0/" in stage.text
        await stage.until(lambda: "▶ 1 Write notes" in stage.text)
        await stage.pilot.press("y")
        await stage.until((project / "a.txt").exists)

        await stage.until(lambda: stage.panel.approval and stage.panel.approval.arguments["path"] == "b.txt")
        await _edit_the_list(stage)
        await stage.asked_for("write_file")
        await stage.pilot.press("n")
        await stage.until(lambda: stage.panel.query_one(Input).has_focus)
        await stage.type("not now")
        await stage.pilot.press("enter")

        await stage.until(lambda: stage.panel.approval and stage.panel.approval.arguments["path"] == "c.txt")
        await stage.asked_for("write_file")
        await stage.pilot.press("e")
        await stage.until(lambda: type(stage.app.screen).__name__ == "ArgumentsDialog")
        stage.app.screen.query_one("TextArea").text = '{"path": "d.txt", "content": "four\\n"}'  # type: ignore[attr-defined]
        await stage.pilot.press("ctrl+s")
        await stage.until(lambda: "will run as edited" in stage.text and "+four" in stage.text)
        assert not (project / "d.txt").exists()
        await stage.pilot.press("y")
        await stage.until((project / "d.txt").exists)
        await stage.until(lambda: "That is all." in stage.history)
        assert "not now" in stage.history
        # The call that ran, and who changed it.
        ran = f"d.txt  edited by {stage.backend.person.name}"
        await stage.until(lambda: ran in stage.history and "c.txt" not in stage.history)
    assert not (project / "b.txt").exists()
    assert not (project / "c.txt").exists()
    assert (project / "d.txt").read_text() == "four\n"
    async with opened(services, model) as stage:
        await stage.until(lambda: ran in stage.history)
    assert "Check the spelling" in [item.title for item in services.todos.list(stage.backend.scope(SESSION)).items]


async def _edit_the_list(stage: Stage) -> None:
    await stage.pilot.press("ctrl+l", "a")
    await stage.type("Check the spelling")
    await stage.pilot.press("enter")
    await stage.until(lambda: "○ 3 Check the spelling" in stage.text)
    panel = stage.conversation.query_one(TodoPanel)
    await stage.pilot.press("K")
    await stage.until(lambda: stage.text.index("3 Check") < stage.text.index("2 Run it"))
    assert panel.selected is not None
    assert panel.selected.number == 3
    await stage.until(lambda: "A person changed the plan: moved “Check the spelling” to place 2." in stage.history)
    assert "A person changed the plan: added “Check the spelling”." in stage.history
    await stage.pilot.press("escape")


@pytest.mark.spec("C14", "S10", "T14")
async def test_a_person_queues_edits_interrupts_and_resumes(services: Services, project: Path) -> None:
    model = rehearsal(
        project,
        PLAN,
        {"calls": [START, {"tool": "run_command", "arguments": {"command": "sleep 60"}}]},
        {"text": "Ok."},
    )
    async with opened(services, model, goal="Work.", mode="yolo") as stage:
        await stage.until(lambda: "▶ run_command" in stage.history)
        for text in ("first", "second", "third"):
            await stage.type(text)
            await stage.pilot.press("enter")
        queue = MessageQueue(services.store)
        await stage.until(lambda: [one.content for one in queue.pending(SESSION)] == ["first", "second", "third"])
        await stage.until(lambda: "2 second" in stage.text)
        await stage.pilot.press("alt+up")
        await stage.until(lambda: stage.conversation.composer.queue.has_focus)
        # From the prompt upwards, and not around the end.
        chosen = []
        for _ in range(4):
            chosen.append(stage.conversation.composer.queue.highlighted)
            await stage.pilot.press("up")
        assert chosen == [2, 1, 0, 0]
        await stage.pilot.press("down", "enter")
        await stage.until(lambda: "Changing queued message 2" in stage.text)
        await stage.type(" thought")
        await stage.pilot.press("enter")
        await stage.until(lambda: [one.content for one in queue.pending(SESSION)][1] == "second thought")

        await stage.pilot.press("escape")
        await stage.ended()
        assert stage.conversation.state is not None
        assert stage.conversation.state.turn is not None
        assert str(stage.conversation.state.turn.end_reason).startswith("cancelled")
        assert len(queue.pending(SESSION)) == 3
    # The process goes on with nothing: the list is as it was, and a new instance shows it.
    async with opened(services, model) as stage:
        await stage.until(lambda: "◇ 1 Write notes" in stage.text and "3 third" in stage.text)


@pytest.mark.spec("X13")
async def test_a_storm_of_resizes_leaves_a_screen_that_fits(services: Services, project: Path) -> None:
    command = "for i in $(seq 100); do echo line 漢字 $i; done; touch begun; until test -e go_on; do sleep 0.05; done"
    call = {"tool": "run_command", "arguments": {"command": command}}
    model = rehearsal(project, {"calls": [call]}, {"text": "All of it fits."})
    async with opened(services, model, goal="Print.", mode="yolo", size=(80, 24)) as stage:
        await stage.until((project / "begun").exists)
        sizes = [(16 + number * 37 % 235, 4 + number * 13 % 60) for number in range(80)]
        await asyncio.gather(*(stage.pilot.resize_terminal(*size) for size in sizes))
        (project / "go_on").touch()
        await stage.pilot.resize_terminal(80, 24)
        await stage.until(lambda: "All of it fits." in stage.text)
        lines = stage.text.split("\n")
        assert len(lines) == 24
        assert all(cell_len(line) <= 80 for line in lines)
        parts = [stage.conversation.composer.region, stage.conversation.query_one(StatusLine).region]
        assert parts[0].bottom <= parts[1].y
        assert parts[1].bottom == 24


@pytest.mark.spec("W10")
async def test_hostile_text_is_displayed_as_text(services: Services, project: Path) -> None:
    hostile = "[bold red]x[/] \x1b[31mred\x1b]2;title\x07 \u202eright to left <script>alert(1)</script>"
    model = rehearsal(project, {"text": f"{hostile}\n\n{'y' * 100_000}"})
    async with opened(services, model, goal="[link=file:///etc/passwd]click[/link] \u202e") as stage:
        await stage.ended()
        await stage.until(lambda: "[bold red]x[/]" in stage.history)
        assert "[link=file:///etc/passwd]click[/link] \\u202e" in stage.history
        assert "\\x1b[31mred" in stage.history
        assert "<script>alert(1)</script>" in stage.history
        assert "more characters; /export" in stage.history
        assert not any(ord(letter) < 32 and letter != "\n" for letter in stage.text)


@pytest.mark.spec("X9")
async def test_a_change_of_another_process_is_on_the_screen(services: Services, project: Path) -> None:
    other = Services(load(cwd=project))
    async with opened(services) as first, opened(other) as second:
        services.todos.add(first.backend.scope(SESSION), ["Seen by both"], reason="test")
        await first.until(lambda: "Seen by both" in first.text, 5)
        await second.until(lambda: "Seen by both" in second.text, 5)
    other.close()


async def test_keys_typed_before_a_question_appeared_do_not_answer_it(
    services: Services, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ApprovalPanel, "arm_seconds", 3600.0)
    model = rehearsal(project, {"calls": [_write("a.txt", "one\n")]}, {"text": "Done."})
    async with opened(services, model, goal="Write.") as stage:
        await stage.asked_for("write_file")
        for key in ("y", "a", "d"):
            await stage.pilot.press(key)
            await stage.until(lambda: not stage.panel.holds_key)
        assert stage.panel.approval is not None
        monkeypatch.setattr(ApprovalPanel, "arm_seconds", 0.0)
        await stage.pilot.press("d")
        await stage.until(lambda: stage.panel.approval is None)
    assert not (project / "a.txt").exists()


async def test_home_shows_what_needs_a_person_and_answers_in_place(services: Services, project: Path) -> None:
    model = rehearsal(project, {"calls": [_write("a.txt", "one\n")]}, {"text": "Done."})
    async with opened(services, model, goal="Write it.") as stage:
        await stage.until(lambda: stage.panel.approval is not None)
        await stage.pilot.press("ctrl+b")
        await stage.until(lambda: "Needs you  1" in stage.text and "write_file" in stage.text)
        await stage.pilot.press("space")
        await stage.until(lambda: "│ one" in stage.text)
        await stage.pilot.pause()
        await stage.pilot.press("y")
        await stage.until((project / "a.txt").exists)
        await stage.until(lambda: "Needs you  nothing" in stage.text)


async def test_slash_commands_and_search(services: Services, project: Path) -> None:
    del project
    services.todos.add(Backend(services).scope(SESSION), ["Find the needle"], reason="test")
    async with opened(services) as stage:
        await stage.type("/mode plan")
        await stage.pilot.press("enter")
        await stage.until(lambda: stage.backend.options.mode == "plan")
        await stage.pilot.press("shift+tab")
        assert stage.backend.options.mode == "default"
        await stage.type("/search needle")
        await stage.pilot.press("enter")
        await stage.until(lambda: type(stage.app.screen).__name__ == "SearchScreen" and "Find the needle" in stage.text)
        await stage.pilot.press("escape", "ctrl+c", "ctrl+c")
        await stage.until(lambda: not stage.app.is_running)


@pytest.mark.spec("S11")
async def test_a_command_of_the_person_runs_at_once_unless_the_policy_denies_it(
    services: Services, project: Path
) -> None:
    async with opened(services) as stage:
        await stage.type("!touch made.txt; echo first; echo last")
        await stage.pilot.press("enter")
        await stage.until((project / "made.txt").exists)
        await stage.until(lambda: "✓ run_command" in stage.history and "last" in stage.history)
        assert stage.panel.approval is None
        await stage.pilot.press("shift+tab", "shift+tab")
        assert stage.backend.options.mode == "plan"
        await stage.type("!touch other.txt")
        await stage.pilot.press("enter")
        await stage.until(lambda: "✗ run_command" in stage.history)
    assert not (project / "other.txt").exists()


@pytest.mark.spec("S11")
async def test_the_goal_of_a_session_is_told_in_words(services: Services) -> None:
    async with opened(services) as stage:
        await stage.type("/goal All tests pass")
        await stage.pilot.press("enter")
        await stage.until(lambda: "· the goal is: All tests pass" in stage.history)
        await stage.type("/goal clear")
        await stage.pilot.press("enter")
        await stage.until(lambda: "· the goal was removed" in stage.history)
        assert "criteria" not in stage.history
