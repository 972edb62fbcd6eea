"""DBOS, configured for runs: one workflow type, one queue.

DBOS restarts an interrupted workflow and replays the results of the steps that had finished. It does not notice that
a worker died (`liveness.py` and `recover` do), and its defaults do not fit several workers or SQLite (`database.py`).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Collection, Coroutine
from enum import Enum, auto
from pathlib import Path
from time import monotonic
from typing import Any, Final, NoReturn, ParamSpec, TypeVar

from dbos import DBOS, DBOSConfig, SetWorkflowID
from dbos._serialization import DBOSPortableJSONSerializer, DefaultSerializer

from punchlist.engine.database import POOL_SIZE, SCHEMA, check_stored_values, claim_engine_file, engine_database
from punchlist.errors import NotAllowed, StoreBusy, StoreUnavailable
from punchlist.runs.model import Run
from punchlist.storage.async_bridge import AsyncBridge
from punchlist.storage.store import Store
from punchlist.trust import Trust

QUEUE: Final = "punchlist-runs"
WORKFLOW: Final = "punchlist.run"
_NAME: Final = "punchlist"
_VERSION: Final = "1"
"""Version of the workflow code. DBOS lets a worker recover only workflows of its own version."""
_MAX_RECOVERY_ATTEMPTS: Final = 1_000_000
"""Effectively unlimited: the worker enforces its own limit."""
_PENDING: Final = "PENDING"
_OPEN: Final = (_PENDING, "ENQUEUED", "DELAYED")
_POLL_INTERVAL: Final = 0.1
_IDLE_SECONDS: Final = 20.0
"""How long PostgreSQL keeps the locks of a worker that froze inside a transaction of DBOS."""
_RETRY_TIMEOUT: Final = 3_600.0
"""Seconds to wait for an unavailable database."""

P = ParamSpec("P")
T = TypeVar("T")
Work = Callable[[str], Awaitable[str]]
"""From the id of a run to its result."""


async def retry_while_unavailable(work: Callable[[], Awaitable[T]]) -> T:
    deadline = monotonic() + _RETRY_TIMEOUT
    while True:
        try:
            return await work()
        except (StoreUnavailable, StoreBusy):
            if monotonic() > deadline:
                raise
        await asyncio.sleep(_POLL_INTERVAL)


def retrying_bridge(bridge: AsyncBridge) -> AsyncBridge:
    """A bridge that retries while the database is unavailable. The calls must be idempotent."""

    async def call(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await retry_while_unavailable(lambda: bridge(work, *args, **kwargs))

    return call


def _refuse_pickle(_: DefaultSerializer, __: str) -> NoReturn:
    """Replaces the decoder of pickles in DBOS, for rows that are written after the start."""
    raise NotAllowed("The engine's tables hold a pickle, which Punchlist did not write. It is not decoded.")


class WorkflowState(Enum):
    UNKNOWN = auto()
    OPEN = auto()
    ENDED = auto()


class DurableEngine:
    """One per process, because DBOS is a singleton."""

    def __init__(self, store: Store, executor: str, trust: Trust) -> None:
        self._store = store
        self._trust = trust
        self._executor = executor
        self._workflow: Any = None

    async def open(self, work: Work) -> Path | None:
        """Start DBOS; from now on workflows run on this event loop. Returns the new name of an engine file of another
        author, if there was one."""
        set_aside = claim_engine_file(self._store, self._trust)
        check_stored_values(self._store)
        DefaultSerializer.deserialize = _refuse_pickle  # type: ignore[method-assign,assignment]
        database = engine_database(self._store)
        level = "DEBUG" if os.environ.get("PUNCHLIST_DEBUG") else "CRITICAL"
        config: DBOSConfig = {
            "name": _NAME,
            "system_database_url": database.url,
            "dbos_system_schema": SCHEMA,
            "executor_id": self._executor,
            "application_version": _VERSION,
            "enable_patching": True,
            "serializer": DBOSPortableJSONSerializer(),
            "notification_listener_polling_interval_sec": 0.05,
            "scheduler_polling_interval_sec": 3_600.0,
            "log_level": level,
            "console_log_level": level,
        }
        if database.engine is not None:
            config["system_database_engine"] = database.engine
        else:
            config["sys_db_pool_size"] = POOL_SIZE
            config["sys_db_idle_transaction_timeout_sec"] = _IDLE_SECONDS
            config["db_engine_kwargs"] = {"connect_args": {**database.parameters, "application_name": "punchlist"}}
        DBOS(config=config)

        async def run(run_id: str) -> str:
            return await work(run_id)

        self._workflow = DBOS.workflow(name=WORKFLOW, max_recovery_attempts=_MAX_RECOVERY_ATTEMPTS)(run)
        # Not in a thread: DBOS runs asynchronous workflows on the event loop of the launching thread.
        with database.begin_immediate.enabled():
            DBOS.launch()
        await DBOS.register_queue_async(QUEUE, polling_interval_sec=_POLL_INTERVAL)
        return set_aside

    async def enqueue(self, run: Run) -> None:
        """Idempotent per workflow id."""
        with SetWorkflowID(run.workflow_id):
            await DBOS.enqueue_workflow_async(QUEUE, self._workflow, run.id)

    async def workflow_state(self, run: Run) -> WorkflowState:
        found = await DBOS.get_workflow_status_async(run.workflow_id)
        if found is None:
            return WorkflowState.UNKNOWN
        return WorkflowState.OPEN if found.status in _OPEN else WorkflowState.ENDED

    async def step(self, name: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a step once; a recovered workflow gets the recorded result."""

        # DBOS inspects the function: it must be a coroutine function, not a lambda.
        async def once() -> T:
            return await retry_while_unavailable(work)

        return await DBOS.run_step_async({"name": name}, once)

    async def other_executors(self) -> set[str]:
        """Other workers that have pending workflows."""
        pending = await DBOS.list_workflows_async(status=_PENDING, load_input=False, load_output=False)
        return {workflow.executor_id for workflow in pending if workflow.executor_id} - {self._executor}

    async def recover(self, dead: Collection[str]) -> int:
        """Return the workflows of dead workers to the queue; how many."""
        return len(await asyncio.to_thread(DBOS._recover_pending_workflows, list(dead)))

    async def delete_ended_before(self, before: str) -> None:
        """Delete the records of ended workflows; the run list keeps what matters."""
        ended = await DBOS.list_workflows_async(
            completed_before=before, status=["SUCCESS", "ERROR", "CANCELLED"], limit=1_000, load_input=False
        )
        if ended:
            await DBOS.delete_workflows_async([workflow.workflow_id for workflow in ended])

    async def close(self) -> None:
        await asyncio.to_thread(DBOS.destroy, destroy_registry=True)
