"""`chat --inline` and `chat --plain` in a real terminal: a clean scrollback, and lines of words (X13, S10)."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyte
import pytest

from punchlist.app import Services
from punchlist.config import load
from punchlist.conversations.message_queue import MessageQueue
from punchlist.surfaces.tui.backend import Backend
from punchlist.surfaces.tui.line_modes.answers import QUIET_SECONDS
from punchlist.surfaces.tui.line_modes.line_editor import LineEditor
from punchlist.surfaces.tui.line_modes.plain_chat import markdown_words
from punchlist.surfaces.tui.line_modes.terminal_keys import KeyDecoder, TypedKey

COLUMNS, LINES = 80, 24
SCRIPT = """\
- calls: [{tool: create_todo, arguments: {items: [{title: Look}, {title: Check}]}}]
- text: "I look first. \\e[31mred\\e[0m [bold]x[/]"
  calls: [{tool: list_directory}, {tool: complete_todo, arguments: {todoId: '{{ created[0].id }}', outcome: seen}}]
- calls: [{tool: run_command, arguments: {command: "echo hello"}}]
- calls:
  - {tool: find_files, arguments: {pattern: '*.yaml'}}
  - {tool: complete_todo, arguments: {todoId: '{{ created[1].id }}', outcome: checked}}
- "All done."
- "Second answer."
"""
STALLS = "\n".join(
    ["- calls: [{tool: create_todo, arguments: {items: [{title: Look}, {title: Check}]}}]", *['- "No."'] * 30]
)


class Terminal:
    """A program in a pseudo-terminal; `screen` has the lines that scrolled away, too."""

    def __init__(self, fd: int, pid: int) -> None:
        self._fd = fd
        self._pid = pid
        self.raw = ""
        self._screen = pyte.HistoryScreen(COLUMNS, LINES, history=10_000)
        self._stream = pyte.ByteStream(self._screen)

    @property
    def screen(self) -> list[str]:
        above = ["".join(row[column].data for column in range(COLUMNS)) for row in self._screen.history.top]
        return [line.rstrip() for line in (*above, *self._screen.display)]

    def send(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def answer(self, text: str) -> None:
        """Answer a question that a person has had time to read."""
        select.select([], [], [], QUIET_SECONDS + 0.1)
        self.send(text)

    def interrupt(self) -> None:
        """As Ctrl+C does."""
        os.kill(self._pid, signal.SIGINT)

    def until(self, words: str, seconds: float = 40.0) -> None:
        """Read until the screen contains the words."""
        end = time.monotonic() + seconds
        while not any(words in line for line in self.screen):
            left = end - time.monotonic()
            assert left > 0, "\n".join([f"{words!r} did not appear:", *self.screen])
            if select.select([self._fd], [], [], min(left, 0.5))[0] and not self._read():
                assert any(words in line for line in self.screen), "\n".join(self.screen)

    def drain(self) -> None:
        while self._read():
            pass

    def _read(self) -> bool:
        try:
            data = os.read(self._fd, 65_536)
        except OSError:
            return False
        self.raw += data.decode(errors="replace")
        self._stream.feed(data)
        return bool(data)


@contextmanager
def chat(project: Path, environment: dict[str, str], *arguments: str) -> Iterator[Terminal]:
    (project / "script.yaml").write_text(SCRIPT)
    source, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    env = {name: value for name, value in environment.items() if name not in ("COLUMNS", "LINES")}
    command = [sys.executable, "-m", "punchlist", "chat", "--model", "rehearsal:script.yaml", *arguments]
    process = subprocess.Popen(
        command,
        cwd=project,
        env={**env, "TERM": "xterm"},
        stdin=inside,
        stdout=inside,
        stderr=inside,
    )
    os.close(inside)
    terminal = Terminal(source, process.pid)
    try:
        yield terminal
        terminal.drain()
        assert process.wait(20) == 0, "\n".join(terminal.screen)
    finally:
        process.kill()
        process.wait()
        os.close(source)


@pytest.mark.spec("X13", "S10")
def test_inline_leaves_a_clean_transcript_in_the_scrollback(project: Path, environment: dict[str, str]) -> None:
    with chat(project, environment, "--inline", "Do it.") as terminal:
        terminal.until("no, or no and a reason")
        terminal.send("and then")
        terminal.until("? and then")
        terminal.send("\r")
        terminal.until("Queued as number 1. A question waits: type yes, no, always or edit.")
        terminal.answer("yes\r")
        terminal.until("Second answer.")
        terminal.send("\x03")
        terminal.until("Press Ctrl+C again")
        terminal.send("\x03")
    shown = [line for line in terminal.screen if line]
    assert "\x1b[?1049h" not in terminal.raw, "the alternate screen would take the scrollback away"
    assert sum(line == "All done." for line in shown) == 1
    assert sum(line.startswith("✓ run_command") for line in shown) == 1
    assert "I look first. \\x1b[31mred\\x1b[0m [bold]x[/]" in shown
    order = ["❯ Do it.", "I look first.", "✓ run_command", "All done.", "❯ and then", "Second answer."]
    places = [next(place for place, line in enumerate(shown) if line.startswith(words)) for words in order]
    assert places == sorted(places)
    assert not any("tokens" in line for line in shown), "nothing of the live area is left"


@pytest.mark.spec("S4", "X13")
@pytest.mark.parametrize("mode", ["--plain", "--inline"])
def test_arguments_are_edited_and_asked_about_again(project: Path, environment: dict[str, str], mode: str) -> None:
    editor = project / "editor.sh"
    editor.write_text("#!/bin/sh\nsed -i 's/hello/changed/' \"$1\"\n")
    editor.chmod(0o755)
    end = "\n" if mode == "--plain" else "\r"
    with chat(project, {**environment, "EDITOR": str(editor)}, mode, "Do it.") as terminal:
        terminal.until("edit: change the arguments")
        edit = 'edit {"command": "echo changed"}' if mode == "--plain" else "edit"
        terminal.answer(edit + end)
        terminal.until("command: echo changed")
        terminal.answer("yes" + end)
        terminal.until("edited by")
        terminal.until("All done.")
        if mode == "--plain":
            terminal.send("/quit\n")
        else:
            terminal.send("\x03")
            terminal.until("Press Ctrl+C again")
            terminal.send("\x03")
    assert any("echo changed" in line and "edited by" in line for line in terminal.screen)


@pytest.mark.spec("X13")
def test_plain_has_words_only_and_never_moves_the_cursor(project: Path, environment: dict[str, str]) -> None:
    with chat(project, environment, "--plain", "Do it.") as terminal:
        terminal.until("no, or no and a reason")
        terminal.answer("no use make instead\n")
        terminal.until("Agent: All done.")
        terminal.until("Ready.")
        terminal.send("/todos\n")
        terminal.until("2 of 2 completed.")
        terminal.send("/quit\n")
    assert re.search(r"\x1b", terminal.raw) is None
    text = " ".join(terminal.screen)
    assert "Tool create_todo, 2 planned: Look; Check, finished" in text
    assert "Approval needed: run_command." in text
    assert "use make instead" in text


@pytest.mark.spec("X13")
def test_an_answer_to_a_question_that_is_gone_begins_no_turn(project: Path, environment: dict[str, str]) -> None:
    with chat(project, environment, "--plain", "-s", "s1", "Do it.") as terminal:
        terminal.until("no, or no and a reason")
        services = Services(load(cwd=project))
        backend = Backend(services)
        backend.answer_approval(backend.approvals("s1")[0], "deny")
        terminal.until("Agent: All done.")
        terminal.until("Ready.")
        terminal.send("no use make instead\n")
        terminal.until("nothing was sent")
        assert len([turn for turn in services.conversations.turns("s1") if turn.parent_turn_id is None]) == 1
        services.close()
        terminal.send("/quit\n")


@pytest.mark.spec("S10", "C14")
def test_a_queue_that_was_left_is_told_and_sent_by_continue(project: Path, environment: dict[str, str]) -> None:
    services = Services(load(cwd=project))
    MessageQueue(services.store).add(Backend(services).scope("s1"), "Do it.")
    services.close()
    with chat(project, environment, "--plain", "-s", "s1") as terminal:
        terminal.until("Queued and not sent: 1. /continue sends the first.")
        terminal.send("/continue\n")
        terminal.until("no, or no and a reason")
        terminal.answer("no\n")
        terminal.until("Agent: All done.")
        terminal.send("/quit\n")


@pytest.mark.spec("C14", "X13")
def test_plain_does_not_quit_at_the_first_key_while_a_turn_begins(project: Path, environment: dict[str, str]) -> None:
    with chat(project, environment, "--plain", "-s", "s1", "Do it.") as terminal:
        terminal.until("Working.")
        terminal.interrupt()
        terminal.until("Press Ctrl+C again")
        if not any("Interrupted." in line for line in terminal.screen):
            terminal.until("no, or no and a reason")
            terminal.answer("no\n")
            terminal.until("Agent: All done.")
        terminal.send("/resume\n")
        terminal.until("s1  Do it.")
        terminal.send("/quit\n")


@pytest.mark.spec("C13")
def test_plain_tells_all_that_a_turn_left_open(project: Path, environment: dict[str, str]) -> None:
    (project / "stalls.yaml").write_text(STALLS)
    with chat(project, environment, "--plain", "Do it.", "--model", "rehearsal:stalls.yaml") as terminal:
        terminal.until("Turn ended: Ended as stalled")
        terminal.until("- Check")
        terminal.send("/quit\n")
    lines = [line for line in terminal.screen if line]
    end = next(place for place, line in enumerate(lines) if line.startswith("Turn ended: Ended as stalled"))
    assert "Not finished:" in " ".join(lines[end : end + 2])
    assert [line for line in lines[end:] if line.startswith("- ")] == ["- Look", "- Check"]
    assert any(line.startswith("Worker ended: Ended as stalled") for line in lines[:end])


@pytest.mark.spec("X13")
def test_plain_reads_markdown_without_its_marks() -> None:
    text = """\
# Result

It is **slow** in
`save`.

- [x] found
- next

```py
x = 1
```

---

| a | b |
|---|---|
| 1 | 2 |"""
    assert markdown_words(text).splitlines() == [
        *("Result", "It is slow in save.", "✓ found", "- next", "x = 1"),
        *("a │ b", "1 │ 2"),
    ]


@pytest.mark.spec("X13")
def test_keys_of_a_terminal_are_decoded_also_in_pieces() -> None:
    keys = KeyDecoder()
    assert keys.feed("é日".encode()[:2]) == [TypedKey("text", "é")]
    assert keys.feed("é日".encode()[2:] + b"\x1b[") == [TypedKey("text", "日")]
    assert keys.feed(b"A\r\n\x7f") == [TypedKey(name) for name in ("up", "enter", "newline", "backspace")]
    assert keys.feed(b"\x1b[200~one\r") == []
    assert keys.feed(b"two\x1b[201~x") == [TypedKey("paste", "one\rtwo"), TypedKey("text", "x")]
    assert keys.feed(b"\x1b") == []
    assert keys.is_incomplete
    assert keys.flush() == [TypedKey("escape")]


@pytest.mark.spec("X13")
def test_the_line_editor_edits() -> None:
    editor = LineEditor()
    editor.insert("one two\nthree")
    for key in ("kill_word", "backspace", "kill_word", "home", "delete"):
        assert editor.press(key)
    assert editor.text == "ne "
    assert not editor.press("unknown")
    editor.set("one two\nthree")
    editor.press("up")
    assert editor.line_before_cursor == "one t"
    editor.press("kill_start")
    editor.press("down")
    editor.insert("!")
    assert editor.text == "wo\n!three"
