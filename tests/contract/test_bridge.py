"""The bridge between asynchronous code and the services."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest
from tests.sessions import start_session

from punchlist.conversations.model import Scope
from punchlist.conversations.service import Conversations
from punchlist.storage.async_bridge import make_bridge
from punchlist.storage.open import open_store
from punchlist.storage.store import Store


def test_a_service_is_reached_from_asynchronous_code(store: Store, agent: Scope) -> None:
    async def scene() -> None:
        started = await make_bridge(store)(start_session, store, agent, title="By bridge")
        assert started.title == "By bridge"

    asyncio.run(scene())


def test_an_error_of_the_service_is_the_callers(store: Store) -> None:
    def fails() -> None:
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        asyncio.run(make_bridge(store)(fails))


def test_while_another_process_writes_the_loop_goes_on_and_the_service_waits(tmp_path: Path, agent: Scope) -> None:
    path = tmp_path / "punchlist.db"
    store = open_store(f"sqlite:///{path}")
    conversations = Conversations(store)
    other = sqlite3.connect(path, isolation_level=None)
    threads: list[str] = []

    def start() -> None:
        threads.append(threading.current_thread().name)
        start_session(store, agent)

    async def scene() -> None:
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.ensure_future(make_bridge(store)(start))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not waiting.done()
        other.execute("ROLLBACK")
        await asyncio.wait_for(waiting, 20)

    asyncio.run(scene())
    assert len(threads) == 2
    assert threads[0] == threading.main_thread().name != threads[1]
    assert conversations.get("s").id == "s"
    other.close()
    store.close()
