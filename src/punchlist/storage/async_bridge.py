"""Calls the synchronous services from asynchronous code.

On SQLite a service call takes less time than waking a thread, so it runs on the event loop as long as no other process
is writing; otherwise it runs again in a thread, which may wait. No transaction was begun in the first attempt, so
nothing happens twice; but a call through the bridge must write in at most one transaction. On PostgreSQL every call
waits for the server and runs in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeVar

from punchlist.storage.sqlite import NO_WAIT, WouldBlock
from punchlist.storage.store import Store

P = ParamSpec("P")
T = TypeVar("T")


class AsyncBridge(Protocol):
    async def __call__(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...


def call_without_waiting(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a service on this thread; raises `WouldBlock` before it begins if another process is writing."""
    token = NO_WAIT.set(True)
    try:
        return work(*args, **kwargs)
    finally:
        NO_WAIT.reset(token)


def is_remote(store: Store) -> bool:
    """Whether every call waits for a server and must not run on an event loop."""
    return store.database.kind != "sqlite"


async def run_in_thread(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    return await asyncio.to_thread(work, *args, **kwargs)


def make_bridge(store: Store) -> AsyncBridge:
    async def here(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return call_without_waiting(work, *args, **kwargs)
        except WouldBlock:
            pass
        return await asyncio.to_thread(work, *args, **kwargs)

    return run_in_thread if is_remote(store) else here
