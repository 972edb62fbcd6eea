"""Keys and pastes that arrive before their screen is there."""

from __future__ import annotations

import threading

import pytest
from tests.tui.stage import SESSION, Stage
from textual import events

from punchlist.app import Services
from punchlist.surfaces.tui.app import PunchlistApp
from punchlist.surfaces.tui.backend import Backend
from punchlist.surfaces.tui.prompt_text import PromptText

pytestmark = pytest.mark.anyio


def burst(app: PunchlistApp, *keys: str) -> None:
    """Keys of a terminal that come at once."""
    for key in keys:
        app.post_message(events.Key(key, key if len(key) == 1 else None))


@pytest.mark.parametrize("session", [None, SESSION])
async def test_keys_typed_while_the_application_loads_count_when_it_is_ready(
    services: Services, session: str | None
) -> None:
    opens, backend = threading.Event(), Backend(services)

    def open_backend() -> Backend:
        opens.wait(30)
        return backend

    app = PunchlistApp(open_backend, session=session)
    async with app.run_test(size=(100, 40)) as pilot:
        stage = Stage(app, pilot, backend)
        # From Home, n begins a conversation.
        burst(app, *("n" if session is None else ""), "q", "u", "i")
        await pilot.pause()
        app.post_message(events.Paste("ck fox"))
        assert "loading" in stage.text
        opens.set()
        await stage.until(lambda: stage.in_conversation and stage.conversation.composer.text == "quick fox")


async def test_keys_typed_at_once_after_a_conversation_was_opened_are_in_its_prompt(services: Services) -> None:
    backend = Backend(services)
    app = PunchlistApp(lambda: backend)
    async with app.run_test(size=(100, 40)) as pilot:
        stage = Stage(app, pilot, backend)
        await stage.until(lambda: "Nothing here yet" in stage.text)
        burst(app, "n", "q", "u", "i", "c", "k")
        await stage.until(lambda: stage.in_conversation and stage.conversation.composer.text == "quick")


async def test_an_early_enter_sends_the_message(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no part of a paste, whose keys are typed within milliseconds."""
    monkeypatch.setattr(PromptText, "paste_seconds", 0.003)
    opens, backend, sent = threading.Event(), Backend(services), list[str]()

    def send(_: str, text: str) -> bool:
        sent.append(text)
        return True

    monkeypatch.setattr(backend, "send", send)

    def open_backend() -> Backend:
        opens.wait(30)
        return backend

    app = PunchlistApp(open_backend, session=SESSION)
    async with app.run_test(size=(100, 40)) as pilot:
        burst(app, "g", "o")
        await pilot.pause(0.02)
        burst(app, "enter")
        await pilot.pause()
        opens.set()
        stage = Stage(app, pilot, backend)
        await stage.until(lambda: sent == ["go"])


async def test_control_c_quits_while_the_application_loads(services: Services) -> None:
    opens, backend = threading.Event(), Backend(services)

    def open_backend() -> Backend:
        opens.wait(30)
        return backend

    app = PunchlistApp(open_backend)
    async with app.run_test(size=(100, 40)) as pilot:
        await pilot.pause()
        burst(app, "ctrl+c", "ctrl+c")
        stage = Stage(app, pilot, backend)
        await stage.until(lambda: not app.is_running or app._exit)
        opens.set()
