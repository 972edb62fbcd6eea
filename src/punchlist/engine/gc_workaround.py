"""Run the garbage collector from the event loop on Python 3.11.

Before 3.12, Python may collect garbage while it allocates an object and then run finalizers, during which other
threads continue. If the object being allocated is the `__dict__` of an instance, another thread can create a second
`__dict__` over the same values. As soon as an entry is added to one of the two, the other reads freed memory, and the
process dies with SIGSEGV.

This needs several threads that create the `__dict__` of the same object at the same moment and then add to it. A
worker does exactly that at start: SQLAlchemy caches compiled types on the columns of DBOS's tables, and several
threads query the same tables. It happened in practice (`tests/faults/test_gc_workaround.py`).

Python 3.12 and later collect between bytecode instructions, where this cannot happen.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

COLLECTS_DURING_ALLOCATION: Final = sys.version_info[:2] < (3, 12)
_INTERVAL: Final = 0.1


@asynccontextmanager
async def collect_from_event_loop() -> AsyncIterator[None]:
    """Disable automatic collection; the event loop collects when Python's thresholds are exceeded."""
    if not COLLECTS_DURING_ALLOCATION or not gc.isenabled():
        yield
        return
    gc.disable()
    collector = asyncio.get_running_loop().create_task(_collect())
    try:
        yield
    finally:
        collector.cancel()
        gc.enable()


async def _collect() -> None:
    while True:
        await asyncio.sleep(_INTERVAL)
        counts, limits = gc.get_count(), gc.get_threshold()
        due = [generation for generation in range(3) if counts[generation] > limits[generation] > 0]
        if due:
            gc.collect(due[-1])
