"""A worker: takes runs from the queue, executes them, and recovers the runs of dead workers.

Any number of workers share one database, and each does all of this. What must happen once is decided by the
database: which worker dispatches a run, starts a cycle, or recovers a dead worker's runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from punchlist.agent.definitions import AgentDefinition
from punchlist.conversations.message_queue import MessageQueue
from punchlist.conversations.model import NoticeKind, Scope
from punchlist.engine.active_runs import ActiveRuns, RunStopped
from punchlist.engine.durable import DurableEngine, WorkflowState, retry_while_unavailable, retrying_bridge
from punchlist.engine.gc_workaround import collect_from_event_loop
from punchlist.engine.liveness import Leases, liveness_locks
from punchlist.engine.periodic import PeriodicTasks
from punchlist.engine.runtime_factory import RuntimeFactory
from punchlist.engine.turns import TurnSteps
from punchlist.engine.workflow_context import WorkflowContext
from punchlist.engine.workflows.chat import chat
from punchlist.engine.workflows.cycle import collect, cycle, plan
from punchlist.engine.workflows.execute import delegate, execute
from punchlist.errors import PunchlistError
from punchlist.kernel.clock import timestamp
from punchlist.kernel.events import Actor, Role
from punchlist.kernel.processes import current_process, is_running
from punchlist.kernel.text import excerpt, visible
from punchlist.missions.chats import post_once
from punchlist.missions.planning.retries import RETRY_PERIOD, is_retried
from punchlist.missions.run_control import apply_stop, end_claim, end_work
from punchlist.models.model import Model
from punchlist.runs import repository as run_repository
from punchlist.runs.lifecycle import ControlRequest, RunStatus
from punchlist.runs.model import DELEGATED_WORK, Run, RunKind
from punchlist.runs.queue import RunNotOwned, RunQueue
from punchlist.runs.workers import WorkerRegistration
from punchlist.storage.async_bridge import make_bridge
from punchlist.toolcalls.policy import Mode

if TYPE_CHECKING:
    from punchlist.app import Services

DEFAULT_SLOTS: Final = 8
"""Agents that work at the same time."""
MAX_ATTEMPTS: Final = 500
"""A run that kills its worker every time fails after this many."""
RETENTION: Final = timedelta(days=7)
_POLL_INTERVAL: Final = 0.1
_RECOVERY_INTERVAL: Final = 1.0
_NOTIFY_INTERVAL: Final = 5.0
_CLEANUP_INTERVAL: Final = 3_600.0
_RECONNECT_SECONDS: Final = 3.0
_IDLE_POLLS: Final = 5
"""Polls without work after which the worker is idle: a run that just woke may find more to do."""
_MAX_RUNS: Final = 1_000
_LOST: Final = "the durable engine lost the run"
_REPLAYED_ERROR: Final = "PortableWorkflowError"
"""DBOS raises this in place of the recorded error of a step."""

Workflow = Callable[[Run, WorkflowContext], Awaitable[str]]
WORKFLOWS: Final[dict[RunKind, Workflow]] = {
    RunKind.EXECUTE: execute,
    RunKind.CYCLE: cycle,
    RunKind.PLAN: plan,
    RunKind.CHAT: chat,
    RunKind.DELEGATE: delegate,
    RunKind.COLLECT: collect,
}


class Worker:
    def __init__(
        self,
        services: Services,
        model_for: Callable[[AgentDefinition], Model],
        mode: Mode | None = None,
        *,
        slots: int = DEFAULT_SLOTS,
        report: Callable[[str], None] = lambda _: None,
        periodic: Callable[[], object] = lambda: None,
    ) -> None:
        """`periodic` is called in a thread now and then: it sends notifications."""
        self._extra_work = periodic
        self.executor = current_process()
        self._services = services
        self._slots = slots
        self._report = report
        self._call = make_bridge(services.store)
        self._retry = retrying_bridge(self._call)
        self._locks = liveness_locks(services.store)
        self._leases = Leases()
        self._durable = DurableEngine(services.store, self.executor, services.trust)
        self._queue = RunQueue(services.store, self.executor)
        self._active_runs = ActiveRuns()
        self._runtimes = RuntimeFactory(services, model_for, mode)
        turns = TurnSteps(services, self._durable, self._queue, self._active_runs, self._runtimes, slots)
        self._context = WorkflowContext(services, self._durable, turns, self._queue)
        self._periodic = PeriodicTasks(services, self.executor)
        self._registration = WorkerRegistration(services.store, self.executor, slots)
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Suspend all runs and shut down; the next worker continues them."""
        self._stopping.set()

    async def run(self, *, until_idle: bool = False) -> None:
        # Before the first thread starts.
        async with collect_from_event_loop():
            await asyncio.to_thread(self._locks.acquire, self.executor)
            try:
                await self._run(until_idle)
            finally:
                self._runtimes.live.close()
                self._locks.close()

    async def _run(self, until_idle: bool) -> None:
        if set_aside := await self._durable.open(self._execute):
            self._report(f"the engine's file was not created by you: it is now {set_aside.name}, and a new one is used")
        await self._retry(self._registration.renew)
        self._report(f"worker {self.executor} is ready")
        for problem in await self._call(self._runtimes.price_problems):
            self._report(problem)
        async with asyncio.TaskGroup() as group:
            loops = [
                group.create_task(self._repeat(self._dispatch, _POLL_INTERVAL)),
                group.create_task(self._repeat(self._apply_requests, _POLL_INTERVAL)),
                group.create_task(self._repeat(self._recover, _RECOVERY_INTERVAL)),
                group.create_task(self._repeat(self._periodic.run, _RECOVERY_INTERVAL)),
                group.create_task(self._repeat(self._renew, _RECOVERY_INTERVAL)),
                group.create_task(self._repeat(self._notify, _NOTIFY_INTERVAL)),
                group.create_task(self._repeat(self._delete_old_workflows, _CLEANUP_INTERVAL)),
            ]
            await (self._wait_until_idle() if until_idle else self._stopping.wait())
            await self._suspend()
            for loop in loops:
                loop.cancel()
        with suppress(PunchlistError):
            await self._call(self._registration.end)
        await self._durable.close()

    async def _repeat(self, work: Callable[[], Awaitable[None]], interval: float) -> None:
        while True:
            try:
                await work()
            except Exception as error:
                # No error may end the loop: it concerns one attempt, and an unavailable database comes back.
                self._report(str(error) or type(error).__name__)
                await asyncio.sleep(_RECOVERY_INTERVAL)
            await asyncio.sleep(interval)

    async def _wait_until_idle(self) -> None:
        idle_polls = 0
        while not self._stopping.is_set() and idle_polls < _IDLE_POLLS:
            await retry_while_unavailable(self._periodic.run)
            idle_polls = idle_polls + 1 if await self._retry(self._is_idle) else 0
            await asyncio.sleep(_POLL_INTERVAL)

    def _is_idle(self) -> bool:
        ready = {run.id for run in self._queue.ready(_MAX_RUNS)}
        runs = self._services.runs.list(limit=_MAX_RUNS)
        delegated = {run.todo_id for run in (*runs, *self._to_retry()) if run.kind is RunKind.DELEGATE}
        return all(self._is_at_rest(run, ready) and not _has_results(run, delegated) for run in runs)

    def _to_retry(self) -> list[Run]:
        store = self._services.store
        with store.read() as tx:
            failed = run_repository.failed_answers(tx, 1, "", timestamp(store.clock() - RETRY_PERIOD))
        return [run for run in failed if is_retried(run.kind, run.why, run.leg)]

    def _is_at_rest(self, run: Run, ready: set[str]) -> bool:
        if run.wish is not None or run.message is not None:
            return run.wish is ControlRequest.PAUSE
        if run.status is RunStatus.QUEUED:
            # Another run of its chat may be at rest.
            return run.id not in ready
        if run.status is not RunStatus.WAITING or run.executor is None:
            return False
        if run.executor == self.executor and run.id not in self._active_runs:
            # Taken over or recovered: it has not looked yet whether it can continue.
            return False
        return is_running(run.executor) is not False

    async def _suspend(self) -> None:
        self._active_runs.close()
        for _ in range(100):
            if not self._active_runs.busy:
                return
            await asyncio.sleep(0.05)

    # --- loops --------------------------------------------------------------------------------------------

    async def _dispatch(self) -> None:
        """Dispatch no more runs than this worker has free slots, so that other workers find the rest."""
        for run in await self._call(self._queue.ready, self._slots - self._active_runs.slots_needed):
            if dispatched := await self._call(self._queue.dispatch, run):
                await self._durable.enqueue(dispatched)

    async def _notify(self) -> None:
        await asyncio.to_thread(self._extra_work)

    async def _renew(self) -> None:
        await self._call(self._registration.renew)

    async def _apply_requests(self) -> None:
        if len(self._active_runs):
            for run in await self._call(self._queue.with_requests):
                self._active_runs.apply_request(run)

    async def _recover(self) -> None:
        """Requeue the runs of dead workers, and runs that never reached the durable engine."""
        if not await asyncio.to_thread(self._locks.is_held):
            # The database server restarted and released all locks. Runs that others recovered meanwhile stay theirs;
            # the pause lets the other workers acquire their locks again.
            await asyncio.to_thread(self._locks.acquire, self.executor)
            await asyncio.sleep(_RECONNECT_SECONDS)
        working = await self._durable.other_executors()
        others = working | await self._call(self._registration.silent)
        frozen = self._leases.expired(await self._call(self._registration.renewals, others))
        dead = [name for name in others if name in frozen or await asyncio.to_thread(self._locks.is_free, name)]
        shut_down = await self._call(self._registration.ended, dead)
        if dead:
            await self._call(self._registration.end, dead)
        for name in (name for name in dead if name in working):
            count = await self._durable.recover([name])
            taken = f"{count} {'run' if count == 1 else 'runs'} of worker {name}"
            self._report(
                f"continues {taken}, which has shut down" if name in shut_down else f"recovered {taken}, which died"
            )
        for run in await self._call(self._queue.dispatched):
            if run.id in self._active_runs:
                continue
            match await self._durable.workflow_state(run):
                case WorkflowState.UNKNOWN:
                    # A worker died between dispatch and enqueue, or the engine's database was lost.
                    await self._durable.enqueue(run)
                case WorkflowState.ENDED:
                    if await self._call(self._queue.fail_lost, run, _LOST):
                        await self._announce_failure(run, _LOST)

    async def _delete_old_workflows(self) -> None:
        await self._durable.delete_ended_before(timestamp(self._services.store.clock() - RETENTION))

    # --- one run ------------------------------------------------------------------------------------------

    async def _execute(self, run_id: str) -> str:
        while self._active_runs.supersede(run_id):
            await asyncio.sleep(_POLL_INTERVAL)
        run = await self._retry(self._queue.begin, run_id)
        if run is None:
            return "The run has already ended."
        self._active_runs.track(run_id)
        self._report_run(run, "started")
        try:
            await self._context.turns.check_requests(run)
            if run.attempts > MAX_ATTEMPTS:
                return await self._fail(run, f"Its worker died in each of {run.attempts} attempts.")
            result = await WORKFLOWS[run.kind](run, self._context)
            await self._retry(self._write, end_claim, run)
            await self._retry(self._queue.finish, run_id, result)
            await self._retry(self._requeue_message, run_id)
            self._report_run(run, "done")
            return excerpt(result, 500)
        except RunNotOwned as error:
            return str(error)
        except RunStopped:
            return await self._stop(run)
        except PunchlistError as error:
            return await self._fail(run, str(error))
        except Exception as error:
            if type(error).__name__ == _REPLAYED_ERROR:
                # The step failed before, and its worker died before it could fail the run.
                return await self._fail(run, str(error))
            if type(error).__module__.startswith("dbos"):
                # For example: another worker executes the workflow.
                raise
            return await self._fail(run, f"{type(error).__name__}: {error}")
        finally:
            self._active_runs.discard(run_id)

    def _requeue_message(self, run_id: str) -> None:
        """A message that arrived after the agent's last reply goes to the queue of the chat."""
        run = self._services.runs.get(run_id)
        if run.message is not None:
            scope = Scope(_chat_of(run), Actor(Role.PERSON, "person"))
            MessageQueue(self._services.store).add(scope, run.message)

    async def _stop(self, run: Run) -> str:
        why = (await self._retry(self._services.runs.get, run.id)).why or "the run was stopped"
        await self._retry(self._queue.stop, run.id, why, lambda tx: apply_stop(tx, run, why))
        self._report_run(run, "stopped")
        return why

    async def _fail(self, run: Run, why: str) -> str:
        self._report_run(run, f"failed: {why}")
        await self._announce_failure(run, why)
        await self._retry(self._queue.fail, run.id, why)
        return why

    async def _announce_failure(self, run: Run, why: str) -> None:
        """Post the failure to the chat; escalate a todo that has no run any more (M9)."""
        text = f"[run {run.workflow_id}]\nThe run failed: {visible(why)}"
        scope, kind = self._context.scope(run), NoticeKind.TODO_ERROR
        await self._retry(post_once, self._services.store, scope, _chat_of(run), kind, text, run.todo_id)
        if run.kind is RunKind.EXECUTE:
            if is_retried(run.kind, why, run.leg):
                await self._retry(self._write, end_claim, run)
            else:
                await self._retry(self._write, end_work, run, f"Its run failed: {why}")

    def _write(self, change: Callable[..., None], *values: object) -> None:
        with self._services.store.write() as tx:
            change(tx, *values)

    def _report_run(self, run: Run, event: str) -> None:
        self._report(f"{run.kind} {run.id[-8:]} {event}")


def _has_results(run: Run, delegated: Collection[str | None]) -> bool:
    """Whether the run is about to continue, because the work that it waits for has ended."""
    return run.status is RunStatus.WAITING and run.why.startswith(DELEGATED_WORK) and run.todo_id not in delegated


def _chat_of(run: Run) -> str:
    chat: str = run.parameters.get("origin", run.conversation_id)
    return chat
