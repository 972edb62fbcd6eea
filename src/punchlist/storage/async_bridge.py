"""The one bridge from asynchronous code to the services, which are synchronous and short.

On SQLite a service takes less time than a thread needs to be woken, so it is called where we are,
as long as no other process is writing: then it is called again in a thread, which may wait. Nothing
has begun at that moment, so nothing is done twice; but what is given to the bridge must write in at
most one transaction. On PostgreSQL every call waits for the server, and goes to a thread.
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
    """Call a service where we are; raises `WouldWait`, and nothing has begun, when another process is writing."""
    token = NO_WAIT.set(True)
    try:
        return work(*args, **kwargs)
    finally:
        NO_WAIT.reset(token)


def is_remote(store: Store) -> bool:
    """Whether every call takes its time, so that it must not be made on an event loop."""
    return store.database.kind != "sqlite"


async def run_in_thread(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """For what takes its time whatever the database is."""
    return await asyncio.to_thread(work, *args, **kwargs)


def make_bridge(store: Store) -> AsyncBridge:
    async def here(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return call_without_waiting(work, *args, **kwargs)
        except WouldBlock:
            pass
        return await asyncio.to_thread(work, *args, **kwargs)

    return run_in_thread if is_remote(store) else here
