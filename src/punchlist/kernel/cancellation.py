"""A cancellation signal, and waiting that stops when it is set."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Callback = Callable[[str], None]
T = TypeVar("T")


class CancelSignal:
    """Set once, from the thread of the event loop. Setting a parent sets its children."""

    __slots__ = ("_callbacks", "reason", "suspends")

    def __init__(self, parent: CancelSignal | None = None) -> None:
        self.reason: str | None = None
        self.suspends = False
        """The cancelled work will be resumed later."""
        self._callbacks: list[Callback] = []
        if parent is not None:
            parent.on_set(lambda reason: self.set(reason, suspends=parent.suspends))

    @property
    def is_set(self) -> bool:
        return self.reason is not None

    def set(self, reason: str = "cancelled", *, suspends: bool = False) -> None:
        if self.reason is None:
            self.reason = reason
            self.suspends = suspends
            callbacks, self._callbacks = self._callbacks, []
            for callback in callbacks:
                callback(reason)

    def on_set(self, callback: Callback) -> Callable[[], None]:
        """Call `callback` when the signal is set, at once if it already is. Returns a function that unregisters it."""
        if self.reason is not None:
            callback(self.reason)
            return lambda: None
        self._callbacks.append(callback)

        def unregister() -> None:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

        return unregister


async def run_unless_cancelled(signal: CancelSignal, work: Coroutine[Any, Any, T]) -> T | None:
    """The result of `work`, or None if the signal cancelled it.

    Creates no task for the work, since every step of every turn calls this.
    """
    if signal.is_set:
        work.close()
        return None
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None
    waiting, cancelled = True, False

    def cancel() -> None:
        nonlocal cancelled
        cancelled = waiting and task.cancel()

    def cancel_soon(_: str) -> None:
        # From the event loop, the task is certainly suspended in `await work`.
        loop.call_soon(cancel)

    unregister = signal.on_set(cancel_soon)
    try:
        result = await work
    except asyncio.CancelledError:
        # Cancelled by the signal, by another caller, or by both.
        if not cancelled or task.uncancel():
            raise
        return None
    finally:
        waiting = False
        unregister()
    if cancelled:
        task.uncancel()
    return result


async def sleep_unless_cancelled(signal: CancelSignal, seconds: float) -> None:
    if not seconds:
        return
    done = asyncio.Event()
    unregister = signal.on_set(lambda _: done.set())
    try:
        async with asyncio.timeout(seconds):
            await done.wait()
    except TimeoutError:
        pass
    finally:
        unregister()
