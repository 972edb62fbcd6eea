"""The composer: sending, queueing, history, completion, attachments, the queue above the prompt (S10, X13)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.app import App, ComposeResult
from textual.message import Message
from textual.pilot import Pilot

from punchlist.app import Services
from punchlist.config import load
from punchlist.conversations.message_queue import MessageQueue
from punchlist.conversations.model import Scope
from punchlist.kernel.events import Actor, Role
from punchlist.surfaces.tui.composer import Composer
from punchlist.surfaces.tui.composer_source import SessionSource
from punchlist.surfaces.tui.key_sheet import valid_keys
from punchlist.surfaces.tui.keymap import UserKeys
from punchlist.surfaces.tui.prompt_history import PromptHistory
from punchlist.surfaces.tui.slash_commands.builtin import open_registry
from punchlist.surfaces.tui.slash_commands.model import SlashContext

pytestmark = pytest.mark.anyio
PERSON = Scope("s", Actor(Role.PERSON, "ada"))


@pytest.fixture
def services(project: Path) -> Iterator[Services]:
    built = Services(load(cwd=project))
    yield built
    built.close()


class ComposerApp(App[None]):
    def __init__(self, services: Services) -> None:
        super().__init__()
        registry, _ = open_registry(services, os.environ)
        source = SessionSource(services, PERSON, lambda: registry, lambda: SlashContext(services, PERSON))
        history = PromptHistory.of_project(services.workspace, os.environ)
        self.now = 0.0
        self.composer = Composer(source, history, monotonic=lambda: self.now)
        self.posted: list[Any] = []

    def compose(self) -> ComposeResult:
        yield self.composer

    def on_mount(self) -> None:
        self.composer.focus_prompt()

    def on_event_of_composer(self, event: Message) -> None:
        self.posted.append(event)

    on_composer_submitted = on_composer_queued = on_composer_slash_entered = on_event_of_composer
    on_composer_interrupted = on_composer_rewind_requested = on_event_of_composer
    on_composer_back_requested = on_composer_keys_requested = on_event_of_composer

    @property
    def said(self) -> list[tuple[str, str]]:
        return [(type(one).__name__, getattr(one, "text", getattr(one, "line", ""))) for one in self.posted]


@asynccontextmanager
async def composing(services: Services, **options: Any) -> AsyncIterator[tuple[ComposerApp, Pilot[None]]]:
    app = ComposerApp(services)
    async with app.run_test(**options) as pilot:
        yield app, pilot


async def settle(pilot: Pilot[None]) -> None:
    await pilot.pause()
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


async def write(pilot: Pilot[None], text: str) -> None:
    await pilot.press(*("space" if letter == " " else letter for letter in text))
    await settle(pilot)


@pytest.mark.spec("X13")
async def test_enter_sends_and_other_keys_break_the_line(services: Services) -> None:
    async with composing(services) as (app, pilot):
        await write(pilot, "one")
        await pilot.press("ctrl+j")
        await write(pilot, "two\\")
        await pilot.press("enter")
        await write(pilot, "three")
        await pilot.press("enter")
        await settle(pilot)
    assert app.said == [("Submitted", "one\ntwo\nthree")]
    assert app.composer.text == ""


@pytest.mark.spec("S10")
async def test_messages_are_queued_while_a_turn_runs_and_can_be_changed_and_removed(services: Services) -> None:
    queue = MessageQueue(services.store)
    for text in ("first", "second", "third"):
        queue.add(PERSON, text)
    async with composing(services) as (app, pilot):
        app.composer.running = True
        await settle(pilot)
        assert app.composer.queue.option_count == 3
        await write(pilot, "also this")
        await pilot.press("enter")
        await write(pilot, "and that")
        await pilot.press("tab")
        assert app.said == [("Queued", "also this"), ("Queued", "and that")]
        await pilot.press("up", "up", "e")
        assert app.composer.text == "second"
        await write(pilot, " thoughts")
        await pilot.press("enter")
        await settle(pilot)
        assert [message.content for message in queue.pending("s")] == ["first", "second thoughts", "third"]
        await pilot.press("alt+up", "d")
        await settle(pilot)
    assert len(queue.pending("s")) == 2
    assert app.composer.text == ""


@pytest.mark.spec("S10")
async def test_a_message_that_was_delivered_meanwhile_is_not_lost_when_it_is_changed(services: Services) -> None:
    queue = MessageQueue(services.store)
    added = queue.add(PERSON, "first")
    async with composing(services) as (app, pilot):
        await settle(pilot)
        await pilot.press("alt+up", "enter")
        queue.withdraw(PERSON, added.id)
        await write(pilot, " version 2")
        await pilot.press("enter")
        await settle(pilot)
        assert app.composer.text == "first version 2"


@pytest.mark.spec("S11", "X13")
async def test_tab_completes_a_slash_command_and_enter_runs_it(services: Services) -> None:
    async with composing(services) as (app, pilot):
        await write(pilot, "/mod")
        assert app.composer.popup.is_open
        await pilot.press("tab")
        assert app.composer.text == "/mode "
        await settle(pilot)
        await pilot.press("down", "tab")
        assert app.composer.text == "/mode default"
        await settle(pilot)
        await pilot.press("enter")
        await write(pilot, "/qui")
        await pilot.press("enter")
        await write(pilot, "/usr/bin is a folder")
        await pilot.press("enter")
        await write(pilot, "!make test")
        await pilot.press("enter")
        await settle(pilot)
    assert app.said == [
        ("SlashEntered", "/mode default"),
        ("SlashEntered", "/quit"),
        ("Submitted", "/usr/bin is a folder"),
        ("SlashEntered", "/shell make test"),
    ]


@pytest.mark.spec("X13")
async def test_paths_and_items_are_completed(services: Services, project: Path) -> None:
    (project / ".git").rmdir()
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    (project / ".gitignore").write_text("build/\n")
    for name in ("src/parser.py", "src/printer.py", "build/parser.py", "docs/ünïcode 日本.md"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("x")
    services.todos.add(PERSON, ["Write the [bold]notes[/]"], reason="test")
    async with composing(services) as (app, pilot):
        await write(pilot, "fix @pars")
        assert app.composer.popup.option_count == 1
        await pilot.press("tab")
        await settle(pilot)
        await write(pilot, "for #no")
        await pilot.press("tab")
        await settle(pilot)
        assert app.composer.text == "fix @src/parser.py for “Write the [bold]notes[/]” (#1) "


@pytest.mark.spec("X13")
async def test_a_long_paste_is_an_attachment_that_is_sent_in_full(services: Services) -> None:
    log = "\n".join(f"line {number} \x1b[31mred" for number in range(214))
    async with composing(services) as (app, pilot):
        await write(pilot, "see ")
        app.composer.prompt.post_message(events.Paste(log))
        await settle(pilot)
        assert app.composer.text == "see [pasted 214 lines]"
        app.composer.prompt.post_message(events.Paste("x\n" * 213 + "y"))
        await settle(pilot)
        await pilot.press("backspace")
        assert app.composer.text == "see [pasted 214 lines]"
        await pilot.press("enter")
        await settle(pilot)
    [(kind, sent)] = app.said
    assert kind == "Submitted"
    assert sent.startswith("see line 0 \\x1b[31mred\nline 1")
    assert sent.count("\n") == 213


@pytest.mark.spec("X13")
async def test_earlier_prompts_are_recalled_and_searched_in_the_next_start(services: Services) -> None:
    async with composing(services) as (app, pilot):
        for text in ("build it", "test it", "ship\\it"):
            await write(pilot, text)
            await pilot.press("enter")
        await settle(pilot)
    async with composing(services) as (app, pilot):
        await write(pilot, "draft")
        await pilot.press("up", "up")
        assert app.composer.text == "test it"
        await pilot.press("down", "down")
        assert app.composer.text == "draft"
        await pilot.press("ctrl+r")
        await pilot.press(*["backspace"] * 5)
        await write(pilot, "buil")
        assert app.composer.popup.option_count == 1
        await pilot.press("escape")
        assert app.composer.text == "draft"
        await pilot.press("ctrl+r", *["backspace"] * 5)
        await write(pilot, "it te")
        await pilot.press("enter")
        assert app.composer.text == "test it"
        assert app.said == []


@pytest.mark.spec("C14", "X13")
async def test_escape_interrupts_and_twice_asks_for_an_earlier_message(services: Services) -> None:
    async with composing(services) as (app, pilot):
        app.composer.running = True
        await pilot.press("escape")
        app.composer.running = False
        app.now = 10.0
        await pilot.press("escape", "escape")
        app.now = 20.0
        await pilot.press("escape")
        app.now = 22.0
        await pilot.press("escape", "left", "?")
        await settle(pilot)
    names = [name for name, _ in app.said]
    assert names == ["Interrupted", "RewindRequested", "BackRequested", "KeysRequested"]


@pytest.mark.spec("X13")
async def test_the_editor_gets_the_prompt_and_returns_it(
    services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf " and more" >> "$1"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(editor))
    monkeypatch.delenv("VISUAL", raising=False)
    async with composing(services) as (app, pilot):
        from contextlib import nullcontext

        monkeypatch.setattr(app, "suspend", nullcontext)
        await write(pilot, "this")
        await pilot.press("ctrl+g")
        await settle(pilot)
        assert app.composer.text == "this and more"


@pytest.mark.spec("X13")
async def test_keys_can_be_rebound_and_unavailable_actions_say_why(services: Services) -> None:
    async with composing(services) as (app, pilot):
        app.set_keymap(UserKeys({"composer.send": ("ctrl+s",), "composer.newline": ("enter",)}).textual_keymap)
        await write(pilot, "one")
        await pilot.press("enter")
        await write(pilot, "two")
        lines = {line.description: line for line in valid_keys(app.screen)}
        await pilot.press("ctrl+s")
        await settle(pilot)
    assert app.said == [("Submitted", "one\ntwo")]
    assert lines["Send"].keys == ("ctrl+s",)
    assert lines["Search earlier prompts"].reason == "no earlier prompts in this project"


async def test_keys_take_effect_in_the_order_in_which_they_were_pressed(services: Services) -> None:
    """A fast typist, or a slow connection: all keys are there before the first one is handled."""
    async with composing(services) as (app, pilot):
        driver = app._driver
        assert driver is not None
        for key, character in [("a", "a"), ("b", "b"), ("backspace", "\x7f"), ("c", "c"), ("enter", "\r"), ("d", "d")]:
            driver.send_message(events.Key(key, character))
        await settle(pilot)
        assert app.said == [("Submitted", "ac")]
        assert app.composer.text == "d"
