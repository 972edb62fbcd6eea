"""Lists that clients follow: whatever becomes of one client, the others are told of changes (X1)."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from punchlist.app import Services
from punchlist.config import load
from punchlist.conversations.model import Scope
from punchlist.kernel.events import Actor, Role
from punchlist.storage.change_watch import ChangeWatch
from punchlist.surfaces.mcp.capabilities import CHECKLIST_URI, Capabilities
from punchlist.surfaces.mcp.protocol import ClientConnection
from punchlist.surfaces.mcp.subscriptions import ChangeNotifier

SCOPE = Scope("default", Actor(Role.SUPERVISOR, "mcp"))
UPDATED = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": CHECKLIST_URI}}


@pytest.fixture
def desk(project: Path, environment: dict[str, str]) -> Iterator[Services]:
    house = Services(load(environment=environment, cwd=project))
    before = set(threading.enumerate())
    yield house
    ended(before)
    house.store.close()


def ended(before: set[threading.Thread]) -> None:
    """Wait for the threads that were begun since."""
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive()


def ask(connection: ClientConnection, method: str, **params: Any) -> Any:
    answer = connection.answer({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    assert isinstance(answer, dict)
    return answer["result"]


def write(connection: ClientConnection, *items: str) -> None:
    todos = [{"content": item, "activeForm": item, "status": "pending"} for item in items]
    assert not ask(connection, "tools/call", name="TodoWrite", arguments={"todos": todos})["isError"]


@pytest.mark.spec("X1")
@pytest.mark.parametrize("error", [BrokenPipeError("gone"), ValueError("write to closed file")])
def test_a_client_that_cannot_be_told_keeps_nobody_else_from_being_told(desk: Services, error: Exception) -> None:
    capabilities = Capabilities(desk, SCOPE)
    notifier = ChangeNotifier(capabilities)
    tried: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def fail(message: Any) -> None:
        tried.put(message)
        raise error

    told = [queue.SimpleQueue[Any]() for _ in range(3)]
    sends: list[Callable[[Any], None]] = [fail, *(each.put for each in told)]
    clients = [ClientConnection(capabilities, send, notifier) for send in sends]
    for client in clients:
        ask(client, "resources/subscribe", uri=CHECKLIST_URI)
    for items in (["one"], ["one", "two"]):
        write(clients[0], *items)
        assert [each.get(timeout=10) for each in (tried, *told)] == [UPDATED] * 4
    for client in clients:
        client.close()


class Hindered(Capabilities):
    """One that the first attempt to watch fails for, in a way that nobody has foreseen."""

    hindrances = 1

    def watch(self) -> ChangeWatch:
        if self.hindrances:
            self.hindrances -= 1
            raise OSError("Too many open files")
        return super().watch()


@pytest.mark.spec("X1")
def test_when_watching_has_failed_whoever_follows_next_has_it_tried_again(
    desk: Services, caplog: pytest.LogCaptureFixture
) -> None:
    capabilities = Hindered(desk, SCOPE)
    notifier = ChangeNotifier(capabilities)
    told = [queue.SimpleQueue[Any]() for _ in range(2)]
    first, second = (ClientConnection(capabilities, each.put, notifier) for each in told)
    before = set(threading.enumerate())
    ask(first, "resources/subscribe", uri=CHECKLIST_URI)
    ended(before)
    assert "watching for changes failed" in caplog.text
    ask(second, "resources/subscribe", uri=CHECKLIST_URI)
    write(first, "one")
    assert [each.get(timeout=10) for each in told] == [UPDATED] * 2
    first.close()
    second.close()
