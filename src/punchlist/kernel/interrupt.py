"""Waiting for something, but not for longer than somebody wants it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from punchlist.kernel.cancel_signal import CancelSignal

T = TypeVar("T")


async def run_unless_cancelled(signal: CancelSignal, work: Coroutine[Any, Any, T]) -> T | None:
    """What comes of `work`; None when the signal was set first, and the work was cancelled for it.

    Without a task of its own for the work: it is done in every step of every turn.
    """
    if signal.is_set:
        work.close()
        return None
    us, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert us is not None
    waits, stopped = True, False

    def stop() -> None:
        nonlocal stopped
        stopped = waits and us.cancel()

    def stop_soon(_: str) -> None:
        # When the event loop has its turn: then we are sure to be where we wait, and nowhere else.
        loop.call_soon(stop)

    forget = signal.on_set(stop_soon)
    try:
        came = await work
    except asyncio.CancelledError:
        # By the signal; or somebody cancels us, as well or instead.
        if not stopped or us.uncancel():
            raise
        return None
    finally:
        waits = False
        forget()
    if stopped:
        us.uncancel()
    return came


async def sleep_unless_cancelled(signal: CancelSignal, seconds: float) -> None:
    if not seconds:
        return
    over = asyncio.Event()
    forget = signal.on_set(lambda _: over.set())
    try:
        async with asyncio.timeout(seconds):
            await over.wait()
    except TimeoutError:
        pass
    finally:
        forget()
