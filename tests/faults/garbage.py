"""What happens when Python looks for rubbish, in a process that may die of it; told as JSON."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Final

from tests.faults.mission_project import mission_project
from tests.faults.mission_worker import begin

from punchlist.agent.model_resolver import ModelResolver
from punchlist.engine.gc_workaround import collect_from_event_loop
from punchlist.toolcalls.policy import Mode

MEMOS: Final = 40
_NEVER: Final = 1_000_000


class Shared:
    """Something that several threads use, and remember things in."""

    def __init__(self) -> None:
        self.length = "as it was"


class Rubbish:
    """Its finalizer stands for another thread, which goes on while a finalizer runs."""

    def __init__(self, used: Shared) -> None:
        self.itself = self
        self.used = used

    def __del__(self) -> None:
        for number in range(MEMOS):
            self.used.__dict__[f"memo {number}"] = number


async def a_dictionary() -> object:
    """Made by us while rubbish waits to be found."""
    gc.set_threshold(_NEVER)
    gc.collect()
    shared = Shared()
    Rubbish(shared)
    async with collect_from_event_loop():
        # None is left that could be used again, so that memory is asked for.
        others = [{number: number} for number in range(500)]
        gc.set_threshold(1)
        ours = shared.__dict__
        gc.set_threshold(10)
        for _ in range(300):
            if len(shared.__dict__) > MEMOS:
                break
            await asyncio.sleep(0.01)
    return {"ours": ours is shared.__dict__, "entries": len(ours), "length": ours["length"], "others": len(others)}


async def a_worker(folder: str) -> object:
    """With nothing to do; how often looking began in a thread that is not the event loop's."""
    task = mission_project(Path(folder), f"sqlite:///{folder}/store/punchlist.db")
    house = task.house()
    begin(house, cycles=False)
    began: Counter[int] = Counter()

    def look_begins(phase: str, _info: object) -> None:
        began[threading.get_ident()] += phase == "start"

    def tell(_line: str) -> None:
        """That it is ready: there is nothing else to tell."""
        gc.set_threshold(10)
        gc.callbacks.append(look_begins)

    casting = ModelResolver(f"rehearsal:{folder}/rehearsal.yaml", os.environ)
    await house.worker(casting, Mode.YOLO, slots=1, report=tell).run(until_idle=True)
    gc.callbacks.remove(look_begins)
    house.store.close()
    del began[threading.get_ident()]
    return began.total()


if __name__ == "__main__":
    print(json.dumps(asyncio.run(a_worker(sys.argv[1]) if sys.argv[1:] else a_dictionary())))
