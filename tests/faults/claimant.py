"""A process that takes todos of a plan until none is left, and writes down those that it has completed.

Most of its work is short, some takes longer than its lease: then somebody else may have the todo, and
what it did does not count.
"""

from __future__ import annotations

import os
import random
import sys
from threading import Event

from tests.faults.processes import spin
from tests.parent_death import end_with_parent

from punchlist.claims.model import ClaimGranted
from punchlist.conversations.model import TurnScope
from punchlist.errors import Conflict, IllegalTransition, NotAllowed, StoreBusy
from punchlist.kernel.events import Actor, Role
from punchlist.kernel.processes import current_process
from punchlist.plan.model import TurnTodo
from punchlist.plan.service import Plans
from punchlist.storage.open import open_store

LEASE = 1
LATE = (Conflict, IllegalTransition, NotAllowed)
"""What is said to somebody who was overtaken."""


class Worker:
    def __init__(self, address: str, session: str, turn_id: str, number: int, file: str) -> None:
        self._plans = Plans(open_store(address))
        self._scope = TurnScope(session, Actor(Role.SUPERVISOR, f"claimant-{number}"), turn_id)
        self._choice = random.Random(number)
        self._file = os.open(file, os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    def drain(self) -> None:
        while True:
            try:
                claimed = self._plans.claim(self._scope, current_process(), seconds=LEASE)
            except StoreBusy:
                continue
            if isinstance(claimed, ClaimGranted):
                self._work(claimed)
            elif claimed.claimed or claimed.unavailable:
                Event().wait(self._choice.uniform(0, 0.1))
            else:
                return

    def _work(self, claimed: ClaimGranted[TurnTodo]) -> None:
        todo_id, fence = claimed.todo.id, claimed.claim.fence
        try:
            if self._choice.random() < 0.01:
                Event().wait(LEASE + 0.2)
            spin(self._choice.uniform(0, 0.003))
            if self._choice.random() < 0.1:
                self._plans.renew_claim(self._scope, current_process(), todo_id, fence, LEASE)
            if self._choice.random() < 0.05:
                self._plans.release_claim(self._scope, current_process(), todo_id, fence)
                return
            self._plans.end(self._scope, todo_id, "done", fence=fence)
        except (*LATE, StoreBusy):
            return
        os.write(self._file, f"{todo_id}\n".encode())


def main() -> None:
    address, session, turn_id, number, file = sys.argv[1:]
    worker = Worker(address, session, turn_id, int(number), file)
    print("ready", flush=True)
    sys.stdin.readline()
    worker.drain()


if __name__ == "__main__":
    end_with_parent()
    main()
