"""When objects that nobody needs any more are looked for, in a process whose threads share many others.

Before 3.12 Python may look while it makes an object, and call finalizers then, at which other threads go on. If what
it makes is the `__dict__` of an instance, another thread makes a second one over the same values. Once something is
added to one of the two, the other reads memory that is not its own any more, and the process dies of a SIGSEGV.

That needs threads which come to the `__dict__` of the same object first, at the same moment, and remember something in
it. So does a worker that begins: SQLAlchemy remembers in each type of the engine's tables how it is compiled, and
several threads ask for the same rows. It happened (`tests/faults/test_rubbish.py`).

Python 3.12 and later look between two steps of a program. Here that is done for those before.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

COLLECTS_DURING_ALLOCATION: Final = sys.version_info[:2] < (3, 12)
_LOOK: Final = 0.1


@asynccontextmanager
async def collect_from_event_loop() -> AsyncIterator[None]:
    """Nothing is looked for while objects are made; the event loop looks, when Python would have."""
    if not COLLECTS_DURING_ALLOCATION or not gc.isenabled():
        yield
        return
    gc.disable()
    looking = asyncio.get_running_loop().create_task(_look())
    try:
        yield
    finally:
        looking.cancel()
        gc.enable()


async def _look() -> None:
    while True:
        await asyncio.sleep(_LOOK)
        counts, limits = gc.get_count(), gc.get_threshold()
        due = [generation for generation in range(3) if counts[generation] > limits[generation] > 0]
        if due:
            gc.collect(due[-1])
