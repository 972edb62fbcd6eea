"""The journal on a ledger: many notes, few commits.

Notes that come while a commit runs go into the next one together. A call waits for its own to be on
record before it runs, and for nobody else's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from punchlist.errors import Conflict
from punchlist.kernel.actors import Actor
from punchlist.storage.changes import Watch
from punchlist.storage.store import Store
from punchlist.toolcalls.approvals import Answer
from punchlist.toolcalls.ledger import Ledger
from punchlist.toolcalls.policy import Rule
from punchlist.toolcalls.states import Transition, WaitingToolCall


class Recorder:
    """A `Journal`. Belongs to one event loop."""

    def __init__(self, ledger: Ledger, store: Store) -> None:
        self._ledger = ledger
        self._watch = Watch(store)
        self._watching = False
        self._pending: list[Transition] = []
        self._rules: list[tuple[Rule, Actor]] = []
        self._escalations: list[str] = []
        self._noted = 0
        self._recorded = 0
        self._lost: set[str] = set()
        self._flush: asyncio.Task[Exception | None] | None = None

    def note(self, transition: Transition) -> None:
        if transition.call.request.call_id in self._lost:
            return
        self._pending.append(transition)
        self._noticed()

    def note_rules(self, rules: Sequence[Rule], by: Actor) -> None:
        self._rules += [(rule, by) for rule in rules]
        self._noticed()

    def escalate(self, call: WaitingToolCall) -> None:
        self._escalations.append(call.request.call_id)
        self._noticed()

    def _noticed(self) -> None:
        self._noted += 1
        if self._flush is None:
            # It begins when the event loop has its turn again, with all that was noted until then.
            self._flush = asyncio.get_running_loop().create_task(self._write())

    async def settled(self, call_id: str | None = None) -> None:
        mark = self._noted
        while self._recorded < mark:
            if self._flush is None:
                self._flush = asyncio.get_running_loop().create_task(self._write())
            # Whoever stops waiting must not stop the commit.
            failure = await asyncio.shield(self._flush)
            if failure is not None:
                raise failure
        if call_id in self._lost:
            raise Conflict(f"Another process has call {call_id!r} in hand, or it was answered there.")

    async def _write(self) -> Exception | None:
        try:
            while self._recorded < self._noted:
                mark, steps, rules = self._noted, self._pending, self._rules
                escalations = self._escalations
                self._pending, self._rules, self._escalations = [], [], []
                try:
                    lost = await asyncio.to_thread(self._commit, steps, rules, escalations)
                except Exception as error:
                    # They stay noted, in their order, for when the database is back.
                    self._pending, self._rules = steps + self._pending, rules + self._rules
                    self._escalations = escalations + self._escalations
                    return error
                self._recorded = mark
                self._lost |= lost
            return None
        finally:
            self._flush = None

    def _commit(
        self, steps: Sequence[Transition], rules: Sequence[tuple[Rule, Actor]], escalations: Sequence[str]
    ) -> set[str]:
        lost = self._ledger.record(steps, rules) if steps or rules else set()
        for call_id in escalations:
            self._ledger.escalate(call_id)
        return lost

    async def answers(self, call_ids: Sequence[str]) -> Sequence[tuple[str, Answer]]:
        return await asyncio.to_thread(self._look, call_ids)

    def _look(self, call_ids: Sequence[str]) -> Sequence[tuple[str, Answer]]:
        # The first look reads in any case: the answer may be older than our watching.
        if not self._watch.changed() and self._watching:
            return []
        self._watching = True
        return self._ledger.answers(call_ids)

    def close(self) -> None:
        self._watch.__exit__(None, None, None)
