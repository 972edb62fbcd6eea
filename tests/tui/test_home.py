"""Home: agents that run beside it, lists that no agent has worked on, approvals, and an unexpected error."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.tui.stage import SESSION, Stage, opened, rehearsal

from punchlist.app import Services
from punchlist.surfaces.tui.backend import Backend
from punchlist.surfaces.tui.home_rows import request_row
from punchlist.surfaces.tui.home_screen import HomeScreen
from punchlist.surfaces.tui.screen_state import HomeState, PendingApproval
from punchlist.surfaces.tui.todo_panel import TodoPanel
from punchlist.views.home import read_home
from punchlist.views.inbox_model import InboxItem, RequestKind

pytestmark = pytest.mark.anyio
HOST = """
import json, subprocess, sys
for line in sys.stdin:
    event, payload = json.loads(line)
    command = [sys.executable, "-m", "punchlist", "hook", event, "--for", "claude-code"]
    print(subprocess.run(command, input=json.dumps(payload), text=True, capture_output=True).stdout.strip(), flush=True)
"""


class Host:
    """A process that calls hooks, as Claude Code does while it runs."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOST],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def hook(self, event: str, **payload: Any) -> dict[str, Any]:
        """Call one hook; its answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        fields = {"cwd": str(self._folder), "session_id": "host-1", **payload}
        self.process.stdin.write(json.dumps([event, fields]) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline() or "{}")
        return answer


@contextmanager
def claude_code(folder: Path, environment: dict[str, str]) -> Iterator[Host]:
    host = Host(folder, environment)
    try:
        yield host
    finally:
        host.process.kill()
        host.process.communicate()


def todo_write(*items: tuple[str, str]) -> dict[str, Any]:
    todos = [{"content": title, "activeForm": f"{title} now", "status": status} for title, status in items]
    return {"tool_name": "TodoWrite", "tool_input": {"todos": todos}, "tool_response": {}}


@pytest.mark.spec("W9", "X9")
async def test_an_agent_that_starts_beside_home_appears_and_its_list_is_edited(
    services: Services, project: Path, environment: dict[str, str]
) -> None:
    async with opened(services, session=None) as stage:
        with claude_code(project, environment) as host:
            host.hook("session-start", source="startup")
            await stage.until(lambda: "no request yet" in stage.text and "claude-code" in stage.text)
            host.hook("prompt", prompt="Fix the parser")
            host.hook("tool", **todo_write(("Read it", "in_progress"), ("Fix it", "pending")))
            await stage.until(lambda: "Read it now" in stage.text and "0/2 · auto 0/10" in stage.text)
            await stage.pilot.press("enter")
            await stage.until(lambda: stage.in_conversation and "○ 2 Fix it" in stage.text)
            assert "▷ claude-code runs" in stage.text
            assert "claude-code works here. What you send starts an agent of Punchlist" in stage.text
            await _edit_the_items(stage)
            told = host.hook("stop")
            assert told["decision"] == "block"
            assert "2 items are still open" in told["reason"]
            # The same count as on Home.
            await stage.until(lambda: "claude-code runs · auto 1/10" in stage.text)
            assert "Check it" in [item.title for item in stage.conversation.state.todos.open_items]  # type: ignore[union-attr]
            await stage.pilot.press("escape", "ctrl+b")
            await stage.until(lambda: isinstance(stage.app.screen, HomeScreen) and "auto 1/10" in stage.text)
            host.hook("prompt", prompt="Now the tests")
            await stage.until(lambda: "another prompt followed" in stage.text)
        services.todos.add(Backend(services).scope("other"), ["Begun by a person"], reason="test")
        await stage.until(lambda: "claude-code" not in stage.text.partition("Done")[0])


async def _edit_the_items(stage: Stage) -> None:
    panel = stage.conversation.query_one(TodoPanel)
    await stage.pilot.press("ctrl+l", "a")
    await stage.type("Check it")
    await stage.pilot.press("enter")
    await stage.until(lambda: panel.selected is not None and panel.selected.title == "Check it")
    await stage.pilot.press("up", "e")
    await stage.type(" well")
    await stage.pilot.press("enter")
    await stage.until(lambda: "○ 2 Fix it well" in stage.text)
    await stage.pilot.press("x")
    await stage.until(lambda: "✓ 2 Fix it well" in stage.text)


@pytest.mark.spec("W9")
async def test_a_list_that_no_agent_has_worked_on_is_on_home(services: Services) -> None:
    services.todos.add(Backend(services).scope("shopping"), ["Buy milk"], reason="test")
    async with opened(services, session=None) as stage:
        await stage.until(lambda: "Buy milk" in stage.text and "not begun" in stage.text)
        await stage.pilot.press("enter")
        await stage.until(lambda: stage.in_conversation and stage.conversation.session == "shopping")


@pytest.mark.spec("W9")
async def test_the_conversation_that_was_left_is_selected_on_home(services: Services) -> None:
    for session in ("bread", "milk"):
        services.todos.add(Backend(services).scope(session), [f"Buy {session}"], reason="test")
    async with opened(services, session="bread") as stage:
        await stage.until(lambda: "Buy bread" in stage.text)
        await stage.pilot.press("ctrl+b")
        await stage.until(lambda: isinstance(stage.app.screen, HomeScreen) and "Buy milk" in stage.text)
        home = stage.app.screen
        assert isinstance(home, HomeScreen)
        await stage.until(lambda: home.row is not None and home.row.session == "bread", 10)


@pytest.mark.spec("W9")
async def test_a_turn_that_waits_for_approval_is_on_home_once(services: Services, project: Path) -> None:
    (project / "a.py").write_text("one = 1\n")
    call = {"tool": "edit_file", "arguments": {"path": "a.py", "old": "one = 1", "new": "one = 2"}}
    read = {"tool": "read_file", "arguments": {"path": "a.py"}}
    model = rehearsal(project, {"calls": [read]}, {"calls": [call]}, {"text": "Done."})
    async with opened(services, model, goal="Edit it.") as stage:
        await stage.until(lambda: stage.panel.approval is not None)
        home = read_home(services)
        assert [item.session for item in home.needs_you] == [SESSION]
        assert home.working == []
        assert Backend(services).home().rows[0].title == "edit a.py (+1 -1)"
        await stage.pilot.press("ctrl+b")
        for width in (80, 100, 60):
            await stage.pilot.resize_terminal(width, 24)
            await stage.until(lambda: isinstance(stage.app.screen, HomeScreen) and "edit a.py (+1 -1)" in stage.text)
            await stage.pilot.press("space")
            await stage.until(lambda: "always every call of edit_file" in stage.text)
            await stage.pilot.press("escape")
        stage.backend.interrupt(SESSION)
        await stage.until(lambda: "Working  nothing" in stage.text and "Needs you  nothing" in stage.text)


def test_the_approval_of_a_command_is_named_by_the_command() -> None:
    item = InboxItem(1, RequestKind.APPROVAL, "c", "run_command", "make release\nin /project", "2026-01-01T00:00:00Z")
    asked = PendingApproval("c", "s", "run_command", {"command": "make"}, item.question, "", "/project", item.asked_at)
    assert request_row(item, asked).title == "run_command: make release"


async def test_an_unexpected_error_prints_one_sentence_and_no_values(
    services: Services, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))

    def fail(_: object) -> HomeState:
        secret = "swordfish"
        raise RuntimeError(f"broken by {len(secret)} letters")

    monkeypatch.setattr(Backend, "home", fail)
    with pytest.raises(Exception, match="broken by 9 letters"):
        async with opened(services, session=None) as stage:
            await stage.until(lambda: False, 5)
    [log] = (tmp_path / "data" / "punchlist" / "crashes").iterdir()
    assert "in fail" in log.read_text()
    assert "swordfish" not in log.read_text().replace('secret = "swordfish"', "")
