"""What arrives from the terminal and what leaves it: pastes, the editor, toasts (X13)."""

from __future__ import annotations

import os
import signal
import stat
from pathlib import Path

import pytest
from tests.tui.stage import opened
from tests.tui.test_terminal import application
from textual import events

from punchlist.app import Services
from punchlist.surfaces.tui.terminal_app import MAX_TOASTS
from punchlist.surfaces.tui.terminal_driver import PASTE_END, PASTE_START, PasteParser

pytestmark = pytest.mark.anyio
LOG = "build \x1b[31mfailed\x1b[0m\nsecond line\n\x1b[Athird line"


def parsed(*reads: str) -> list[tuple[str, str]]:
    parser = PasteParser()
    found = [event for read in reads for event in parser.feed(read)]
    return [
        ("paste", event.text) if isinstance(event, events.Paste) else ("key", event.key)
        for event in found
        if isinstance(event, events.Paste | events.Key)
    ]


@pytest.mark.spec("X13")
def test_a_paste_is_whole_whatever_it_contains_and_however_it_arrives() -> None:
    stream = f"a{PASTE_START}{LOG}{PASTE_END}b"
    expected = [("key", "a"), ("paste", LOG), ("key", "b")]
    assert parsed(stream) == expected
    for at in range(1, len(stream)):
        assert parsed(stream[:at], stream[at:]) == expected, at
    assert parsed(*stream) == expected
    assert parsed(f"{PASTE_START}one{PASTE_END}{PASTE_START}two\r{PASTE_END}\r") == [
        ("paste", "one"),
        ("paste", "two\r"),
        ("key", "enter"),
    ]


@pytest.mark.spec("X13")
def test_ctrl_c_ends_a_paste_whose_end_got_lost() -> None:
    assert parsed(f"{PASTE_START}one\r", "two", "\x03", "x") == [("paste", "one\rtwo"), ("key", "x")]


@pytest.mark.spec("X13")
def test_a_pasted_log_waits_in_the_prompt_until_enter(project: Path, environment: dict[str, str]) -> None:
    terminal = application(project, environment)
    terminal.until(lambda text: "A new conversation" in text)
    terminal.type(PASTE_START + LOG.replace("\n", "\r") + PASTE_END)
    terminal.until(lambda text: "third line" in text)
    terminal.type("!")
    terminal.until(lambda text: "third line!" in text)
    text = "\n".join(terminal.screen.display)
    terminal.kill()
    assert "build \\x1b[31mfailed\\x1b[0m" in text
    assert "❯" not in text, "nothing was sent"


@pytest.mark.spec("X13")
@pytest.mark.parametrize(
    ("editor", "told"),
    [("no-such-editor", "was not found"), ("./broken", "could not be started"), ("./failing", "")],
)
def test_an_editor_that_does_not_work_leaves_the_application_usable(
    project: Path, environment: dict[str, str], editor: str, told: str
) -> None:
    for name, content in (("broken", "#!/no/such/interpreter\n"), ("failing", "#!/bin/sh\nexit 3\n")):
        (project / name).write_text(content)
        (project / name).chmod(stat.S_IRWXU)
    terminal = application(project, {**environment, "EDITOR": editor, "VISUAL": ""})
    terminal.until(lambda text: "A new conversation" in text)
    terminal.type("draft")
    terminal.until(lambda text: "draft" in text)
    terminal.type("\x07")
    terminal.until(lambda text: told in text)
    terminal.type(" and more")
    terminal.until(lambda text: "draft and more" in text)
    terminal.kill()


@pytest.mark.spec("X13")
def test_ctrl_c_in_the_editor_does_not_end_the_application(project: Path, environment: dict[str, str]) -> None:
    (project / "editor").write_text("#!/bin/sh\necho EDITING\nread line\n")
    (project / "editor").chmod(stat.S_IRWXU)
    terminal = application(project, {**environment, "EDITOR": "./editor", "VISUAL": ""})
    terminal.until(lambda text: "A new conversation" in text)
    terminal.type("draft")
    terminal.until(lambda text: "draft" in text)
    terminal.type("\x07")
    terminal.until(lambda text: "EDITING" in text)
    os.killpg(terminal.process.pid, signal.SIGINT)
    terminal.until(lambda text: "draft" in text and "EDITING" not in text)
    terminal.type(" on")
    terminal.until(lambda text: "draft on" in text)
    terminal.kill()


async def test_toasts_are_few_leave_the_prompt_free_and_go_with_the_next_key(services: Services) -> None:
    async with opened(services, size=(80, 24)) as stage:
        for number in range(5):
            stage.app.say(f"Message {number}.")
        await stage.until(lambda: "Message 4." in stage.text)
        assert sum(f"Message {number}." in stage.text for number in range(5)) == MAX_TOASTS
        assert "Message" in "\n".join(stage.text.splitlines()[:8])
        assert "Message" not in "\n".join(stage.text.splitlines()[8:])
        for toast in stage.app._notifications:
            toast.raised_at -= 5.0
        await stage.pilot.press("x")
        await stage.until(lambda: "Message" not in stage.text)
