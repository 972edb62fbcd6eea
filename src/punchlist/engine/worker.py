"""A worker: it takes runs from the list, sees them through, and looks after what others have left.

Several can work on one database. Each does all of this; whatever must happen once is decided by the
database: who takes a run off the queue, who begins a cycle, who goes on with what a dead worker left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from punchlist.conversations.message_queue import MessageQueue
from punchlist.conversations.model import NoticeKind, Scope
from punchlist.engine.active_runs import ActiveRuns, RunStopped
from punchlist.engine.durable import DurableEngine, WorkflowState, retry_while_unavailable
from punchlist.engine.gc_workaround import collect_from_event_loop
from punchlist.engine.liveness import locks
from punchlist.engine.periodic import PeriodicTasks
from punchlist.engine.turns import TurnSteps
from punchlist.engine.worker_services import WorkerServices
from punchlist.engine.workflow_context import WorkflowContext
from punchlist.engine.workflows.chat import chat
from punchlist.engine.workflows.collect import collect
from punchlist.engine.workflows.cycle import cycle, plan, stop_planning
from punchlist.engine.workflows.delegate import delegate
from punchlist.engine.workflows.execute import ask_a_person, execute
from punchlist.errors import PunchlistError
from punchlist.kernel.actors import Actor, Role
from punchlist.kernel.clock import timestamp
from punchlist.kernel.process_id import lives, this_process
from punchlist.kernel.text import excerpt, visible
from punchlist.missions.chats.post_once import post_once
from punchlist.runs.lifecycle import ControlRequest, RunStatus
from punchlist.runs.model import Run, RunKind
from punchlist.runs.queue import RunNotOwned, RunQueue
from punchlist.storage.async_bridge import bridge

SLOTS: Final = 8
"""Agents that work at the same time."""
MOST_ATTEMPTS: Final = 500
"""A run that ends its worker every time is given up."""
KEPT: Final = timedelta(days=7)
_LOOK: Final = 0.1
_QUIET: Final = 5
"""Looks in a row at which there is nothing to do."""
_MANY: Final = 1_000
_REAP: Final = 1.0
_GRACE: Final = 3.0
_FORGET: Final = 3_600.0
_GIVEN_UP: Final = "the engine gave it up"
_KNOWN_ERROR: Final = "PortableWorkflowError"
"""What the engine raises in place of the error that a step has ended with before."""

Workflow = Callable[[Run, WorkflowContext], Awaitable[str]]
FLOWS: Final[dict[RunKind, Workflow]] = {
    RunKind.EXECUTE: execute,
    RunKind.CYCLE: cycle,
    RunKind.PLAN: plan,
    RunKind.CHAT: chat,
    RunKind.DELEGATE: delegate,
    RunKind.COLLECT: collect,
}
Tell = Callable[[str], None]


class Worker:
    def __init__(self, premises: WorkerServices, *, slots: int = SLOTS, tell: Tell = lambda _: None) -> None:
        self.executor = this_process()
        self._premises = premises
        self._slots = slots
        self._tell = tell
        self._aside = bridge(premises.store)
        self._locks = locks(premises.store)
        self._durable = DurableEngine(premises.store, self.executor)
        self._book = RunQueue(premises.store, self.executor)
        self._hands = ActiveRuns()
        self._shop = WorkflowContext(
            premises, self._durable, TurnSteps(premises, self._durable, self._book, self._hands, slots), self._book
        )
        self._clockwork = PeriodicTasks(premises)
        self._ending = asyncio.Event()

    def stop(self) -> None:
        """Come to rest; what is not finished goes on elsewhere, or here when there is a worker again."""
        self._ending.set()

    async def run(self, *, until_idle: bool = False) -> None:
        # From before the first of our threads.
        async with collect_from_event_loop():
            await self._work(until_idle)

    async def _work(self, until_idle: bool) -> None:
        await asyncio.to_thread(self._locks.hold, self.executor)
        try:
            await self._durable.open(self._see_through)
            self._tell(f"worker {self.executor} is ready")
            async with asyncio.TaskGroup() as group:
                loops = [
                    group.create_task(self._again(self._give, _LOOK)),
                    group.create_task(self._again(self._heed, _LOOK)),
                    group.create_task(self._again(self._reap, _REAP)),
                    group.create_task(self._again(self._clockwork.tick, _REAP)),
                    group.create_task(self._again(self._forget, _FORGET)),
                ]
                await (self._idle() if until_idle else self._ending.wait())
                await self._rest()
                for loop in loops:
                    loop.cancel()
            await self._durable.close()
        finally:
            self._locks.close()

    async def _again(self, work: Callable[[], Awaitable[None]], seconds: float) -> None:
        """Over and over; a database that is gone for a while comes back."""
        while True:
            try:
                await work()
            except Exception as error:
                # Whatever it is, the other runs and the next attempt have nothing to do with it.
                self._tell(str(error) or type(error).__name__)
                await asyncio.sleep(_REAP)
            await asyncio.sleep(seconds)

    async def _idle(self) -> None:
        """Until nothing is left that could be worked on now, and has not been for a moment: what was just taken up
        may find that what it waited for has come."""
        quiet = 0
        while not self._ending.is_set() and quiet < _QUIET:
            await retry_while_unavailable(self._clockwork.tick)
            quiet = quiet + 1 if await retry_while_unavailable(lambda: self._aside(self._nothing_to_do)) else 0
            await asyncio.sleep(_LOOK)

    def _nothing_to_do(self) -> bool:
        ready = {run.id for run in self._book.ready(_MANY)}
        return all(self._at_rest(run, ready) for run in self._premises.runs.list(limit=_MANY))

    def _at_rest(self, run: Run, ready: set[str]) -> bool:
        if run.wish is not None or run.message is not None:
            return run.wish is ControlRequest.PAUSE
        if run.status is RunStatus.QUEUED:
            # Others of its chat may rest.
            return run.id not in ready
        return run.status is RunStatus.WAITING and run.executor is not None and lives(run.executor) is not False

    async def _rest(self) -> None:
        self._hands.close()
        for _ in range(100):
            if not self._hands.busy:
                return
            await asyncio.sleep(0.05)

    # --- the list -----------------------------------------------------------------------------------------

    async def _give(self) -> None:
        """From the list to the engine: as many as can be begun now, so that other workers find the rest."""
        for run in await self._aside(self._book.ready, self._slots - self._hands.engaged):
            if given := await self._aside(self._book.dispatch, run):
                await self._durable.enqueue(given)

    async def _heed(self) -> None:
        """What people want of the runs in our hands."""
        if len(self._hands):
            for run in await self._aside(self._book.with_requests):
                self._hands.heed(run)

    async def _reap(self) -> None:
        """What a dead worker has left goes back to the queue; what never reached the engine is given again."""
        if not await asyncio.to_thread(self._locks.held):
            # A server that was gone has let it go, and others may have taken us for dead. What they took, they keep.
            await asyncio.to_thread(self._locks.hold, self.executor)
            # They have lost theirs as well, and need a moment to come back.
            await asyncio.sleep(_GRACE)
        others = await self._durable.other_executors()
        dead = [one for one in others if await asyncio.to_thread(self._locks.free, one)]
        if dead:
            count = await self._durable.recover(dead)
            self._tell(f"{', '.join(dead)} is no more; {count} of its runs go on")
        for run in await self._aside(self._book.dispatched):
            if run.id in self._hands:
                continue
            match await self._durable.workflow_state(run):
                case WorkflowState.UNKNOWN:
                    # We died before the engine knew of it, or what the engine knew is gone.
                    await self._durable.enqueue(run)
                case WorkflowState.ENDED:
                    if await self._aside(self._book.fail_lost, run, _GIVEN_UP):
                        await self._tell_of_failure(run, _GIVEN_UP)

    async def _forget(self) -> None:
        await self._durable.delete_ended_before(timestamp(self._premises.store.clock() - KEPT))

    # --- one run ------------------------------------------------------------------------------------------

    async def _see_through(self, run_id: str) -> str:
        while self._hands.supersede(run_id):
            await asyncio.sleep(_LOOK)
        run = await retry_while_unavailable(lambda: self._aside(self._book.begin, run_id))
        if run is None:
            return "It has ended already."
        self._hands.take(run_id)
        self._tell(f"{run.kind} {run_id[-8:]} begins")
        try:
            await self._shop.turns.heed(run)
            if run.attempts > MOST_ATTEMPTS:
                return await self._failed(run, f"It was begun {run.attempts} times, and its worker died each time.")
            came = await FLOWS[run.kind](run, self._shop)
            await retry_while_unavailable(lambda: self._aside(self._book.finish, run_id, came))
            await retry_while_unavailable(lambda: self._aside(self._pass_on, run_id))
            self._tell(f"{run.kind} {run_id[-8:]} is done")
            return excerpt(came, 500)
        except RunNotOwned as error:
            return str(error)
        except RunStopped:
            return await self._stopped(run)
        except PunchlistError as error:
            return await self._failed(run, str(error))
        except Exception as error:
            if type(error).__name__ == _KNOWN_ERROR:
                # A step had failed, and we died before we could say so.
                return await self._failed(run, str(error))
            if type(error).__module__.startswith("dbos"):
                # Such as: another worker has it.
                raise
            return await self._failed(run, f"{type(error).__name__}: {error}")
        finally:
            self._hands.let_go(run_id)

    def _pass_on(self, run_id: str) -> None:
        """What somebody said to the agent when it had said its last: whoever works next in the chat hears it."""
        run = self._premises.runs.get(run_id)
        if run.message is not None:
            scope = Scope(run.parameters.get("origin", run.conversation_id), Actor(Role.PERSON, "person"))
            MessageQueue(self._premises.store).add(scope, run.message)

    async def _stopped(self, run: Run) -> str:
        now = await retry_while_unavailable(lambda: self._aside(self._premises.runs.get, run.id))
        why = now.why or "somebody stopped it"
        if run.kind is RunKind.CYCLE:
            await retry_while_unavailable(lambda: self._aside(stop_planning, run, self._shop, why))
        await retry_while_unavailable(lambda: self._aside(self._book.stop, run.id, why))
        if run.kind is RunKind.EXECUTE:
            await retry_while_unavailable(
                lambda: self._aside(ask_a_person, run, self._shop, f"Its run was stopped: {why}")
            )
        self._tell(f"{run.kind} {run.id[-8:]} was stopped")
        return why

    async def _failed(self, run: Run, why: str) -> str:
        self._tell(f"{run.kind} {run.id[-8:]} failed: {why}")
        await self._tell_of_failure(run, why)
        await retry_while_unavailable(lambda: self._aside(self._book.fail, run.id, why))
        return why

    async def _tell_of_failure(self, run: Run, why: str) -> None:
        """In the chat; and a person is asked what is to become of a todo that nobody works on any more (M9)."""
        chat = run.parameters.get("origin", run.conversation_id)
        told = f"[run {run.workflow_id}]\nIt failed: {visible(why)}"
        await retry_while_unavailable(
            lambda: self._aside(
                post_once, self._premises.store, self._shop.scope(run), chat, NoticeKind.TODO_ERROR.value, told
            )
        )
        if run.kind is RunKind.EXECUTE:
            await retry_while_unavailable(lambda: self._aside(ask_a_person, run, self._shop, f"Its run failed: {why}"))
