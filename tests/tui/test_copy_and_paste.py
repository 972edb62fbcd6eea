"""Copy mode, pastes without brackets, toasts and the sheet of keys on a narrow terminal."""

from __future__ import annotations

import pytest
from tests.tui.stage import SESSION, opened
from textual import events

from punchlist.app import Services
from punchlist.conversations.message_queue import MessageQueue
from punchlist.surfaces.tui.copy_screen import transcript_text
from punchlist.surfaces.tui.entries import CallEntry, ReplyEntry, SaidEntry
from punchlist.surfaces.tui.entry_text import code_block, entry_text
from punchlist.surfaces.tui.key_sheet import KeyLine, key_lines
from punchlist.surfaces.tui.prompt_text import PromptText

pytestmark = pytest.mark.anyio
LONG = "word " * 60 + "end"


def test_copied_text_has_no_gutters_and_no_line_ends_of_the_screen() -> None:
    call = CallEntry("c1", "run_command", {"command": "x" * 300}, "success", "y" * 300, edited_by="ada")
    assert entry_text(call).split("\n") == ["run_command success (edited by ada)", f"command: {'x' * 300}", "y" * 300]
    assert transcript_text([SaidEntry("m1", "Why?"), ReplyEntry("m2", LONG)]) == f"Why?\n\n{LONG}"
    lines = ["Look:", "```python", "a = 1", "b = 2", "```", "Done."]
    assert code_block(lines, 2) == code_block(lines, 1) == "a = 1\nb = 2"
    assert code_block(lines, 5) == ""


@pytest.mark.spec("X13")
async def test_a_card_is_copied_by_a_key(services: Services) -> None:
    async with opened(services) as stage:
        history = stage.conversation.history
        history.extend([CallEntry("c1", "run_command", {"command": "make"}, "success", "built\n")])
        await stage.pilot.press("ctrl+up", "c")
        await stage.until(lambda: stage.app.clipboard == "run_command success\ncommand: make\nbuilt")


@pytest.mark.spec("S10")
async def test_a_paste_without_brackets_is_one_text(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PromptText, "paste_seconds", 0.003)
    async with opened(services) as stage:
        keys = [events.Key("enter" if letter == "\n" else letter, letter) for letter in "one\ntwo\nthree\n"]
        for key in keys:
            key.time = keys[0].time
            stage.app.post_message(key)
        await stage.until(lambda: stage.conversation.composer.text == "one\ntwo\nthree\n")
        assert MessageQueue(services.store).pending(SESSION) == []


@pytest.mark.spec("S10", "S11")
async def test_the_queue_is_cleared_after_a_question(services: Services) -> None:
    async with opened(services) as stage:
        queue = MessageQueue(services.store)
        for text in ("first", "second"):
            queue.add(stage.backend.scope(SESSION), text)
        await stage.until(lambda: "2 second" in stage.text)
        stage.app.run_slash(SESSION, "/queue clear")
        await stage.until(lambda: "Remove all 2 queued messages?" in stage.text)
        assert len(queue.pending(SESSION)) == 2
        await stage.pilot.press("y")
        await stage.until(lambda: queue.pending(SESSION) == [])


@pytest.mark.parametrize("size", [(40, 16), (57, 20), (80, 24), (140, 30)])
@pytest.mark.parametrize("length", [51, 86, 128])
async def test_a_toast_is_shown_in_full(services: Services, size: tuple[int, int], length: int) -> None:
    text = ("word " * 40)[:length] + " finis."
    async with opened(services, size=size) as stage:
        stage.app.say(text)
        await stage.until(lambda: "▌ word" in stage.text, 20)
        await stage.pilot.pause()
        rows = [row for row in stage.text.split("\n") if "▌" in row]
        assert "finis." in rows[-1]
        # At the top, and on the left: not on the list, the prompt or the status line.
        assert "\n".join(rows) in "\n".join(stage.text.split("\n")[:8])
        assert all(row.startswith("▌") for row in rows)


def test_the_sheet_of_keys_fits_narrow_terminals() -> None:
    lines = [
        KeyLine(("shift+enter", "ctrl+j", "alt+enter"), "New line", True),
        KeyLine(("up",), "Previous prompt, or the line above", True),
        KeyLine(("ctrl+r",), "Search earlier prompts", False, "no earlier prompts in this project"),
    ]
    for width in (20, 36, 70):
        shown = [each.plain.rstrip() for each in key_lines(lines, width)]
        assert all(len(each) <= width for each in shown)
        text = " ".join(" ".join(shown).split())
        assert "New line" in text
        assert "Previous prompt, or the line above" in text
