"""A server on a database, a browser, and people in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page
from tests.contract.missions import FILE
from tests.web.site import Server, chromium, has_chromium, log_in

from punchlist.app import Services
from punchlist.config import Settings
from punchlist.kernel.events import Actor, Role
from punchlist.missions.config import file
from punchlist.missions.model import Mission, MissionScope

PERSON = Actor(Role.PERSON, "ada")
Serve = Callable[..., Server]
LogIn = Callable[..., Page]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not has_chromium():
        for item in items:
            if item.path.parent == Path(__file__).parent:
                item.add_marker(pytest.mark.skip(reason="Chromium is not installed (apt install chromium)"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Not of the session: while it is open, Playwright's event loop runs in this thread, and no other one can."""
    with chromium() as started:
        yield started


@pytest.fixture
def serve(project: Path, environment: dict[str, str], database: str) -> Iterator[Serve]:
    """Start a server on the test's database."""
    started: list[Server] = []

    def start(*arguments: str) -> Server:
        server = Server(project, {**environment, "PUNCHLIST_DATABASE_URL": database}, *arguments)
        started.append(server)
        server.start()
        return server

    yield start
    for server in started:
        server.stop()


@pytest.fixture
def services(database: str, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Services]:
    """The services in this process: what agents and other programs do meanwhile."""
    monkeypatch.setenv("HOME", environment["HOME"])
    opened = Services(Settings(database, "s", "normal", None))
    yield opened
    opened.close()


@pytest.fixture
def mission(services: Services) -> Mission:
    import json

    text = json.dumps(FILE)
    return services.missions.apply(MissionScope("s", PERSON), file.parse_mission(text), text).mission


@pytest.fixture
def person(browser: Browser) -> Iterator[LogIn]:
    """A browser of their own, logged in. What a page reports as an error fails the test."""
    contexts, errors = [], list[str]()

    def enter(server: Server, **options: Any) -> Page:
        context = browser.new_context(**options)
        contexts.append(context)
        context.on("weberror", lambda error: errors.append(str(error.error)))
        page = log_in(context, server)
        page.on("console", lambda said: errors.append(said.text) if "Content Security Policy" in said.text else None)
        return page

    yield enter
    for context in contexts:
        if folder := os.environ.get("PUNCHLIST_TEST_PICTURES"):
            for number, page in enumerate(context.pages):
                page.screenshot(path=f"{folder}/{os.getpid()}-{number}.png")
        context.close()
    assert not errors
