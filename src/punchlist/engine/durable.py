"""DBOS, set up as we need it: one kind of workflow, which is a run, and its steps.

What it gives us: a workflow that is interrupted begins again, and every step that had finished gives its
result instead of running once more. What it does not do by itself is notice that a worker has died
(`liveness.py`, `take_over`), and its defaults do not fit several workers or SQLite (`database.py`).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Collection, Coroutine
from enum import Enum, auto
from time import monotonic
from typing import Any, Final, ParamSpec, TypeVar

from punchlist.engine.database import SCHEMA, engine_database
from punchlist.errors import StoreBusy, StoreUnavailable
from punchlist.runs.model import Run
from punchlist.storage.async_bridge import AsyncBridge
from punchlist.storage.store import Store

QUEUE: Final = "punchlist-runs"
WORKFLOW: Final = "punchlist.run"
_NAME: Final = "punchlist"
_VERSION: Final = "1"
"""Of what a workflow's steps mean. A run is only ever gone on with by a worker that knows them."""
_MOST_ATTEMPTS: Final = 1_000_000
"""How often a run may be taken up again is decided by us."""
_PENDING: Final = "PENDING"
_OPEN: Final = (_PENDING, "ENQUEUED", "DELAYED")
_POLL: Final = 0.1
_PATIENCE: Final = 3_600.0
"""Seconds that a database may be gone."""

P = ParamSpec("P")
T = TypeVar("T")
Work = Callable[[str], Awaitable[str]]
"""From the id of a run to what came of it."""


async def retry_while_unavailable(work: Callable[[], Awaitable[T]], tell: Callable[[str], None] = lambda _: None) -> T:
    """A database that is gone for a while comes back: what could not be done is done then."""
    until = monotonic() + _PATIENCE
    while True:
        try:
            return await work()
        except (StoreUnavailable, StoreBusy) as error:
            if monotonic() > until:
                raise
            tell(str(error))
        await asyncio.sleep(_POLL)


def retrying_bridge(aside: AsyncBridge) -> AsyncBridge:
    """A bridge that waits for a database that is gone for a while; for what may be done twice."""

    async def call(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await retry_while_unavailable(lambda: aside(work, *args, **kwargs))

    return call


class WorkflowState(Enum):
    UNKNOWN = auto()
    OPEN = auto()
    ENDED = auto()


class DurableEngine:
    """One per process: DBOS knows no more."""

    def __init__(self, store: Store, executor: str) -> None:
        self._store = store
        self._executor = executor
        self._workflow: Any = None

    async def open(self, work: Work) -> None:
        """From now on runs are worked on here, on this event loop."""
        from dbos import DBOS, DBOSConfig
        from dbos._serialization import DBOSPortableJSONSerializer

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
        DBOS(config=config)

        async def run(run_id: str) -> str:
            return await work(run_id)

        self._workflow = DBOS.workflow(name=WORKFLOW, max_recovery_attempts=_MOST_ATTEMPTS)(run)
        # On this thread, so that runs are worked on by this event loop.
        with database.opening.whole():
            DBOS.launch()
        await DBOS.register_queue_async(QUEUE, polling_interval_sec=_POLL)

    async def enqueue(self, run: Run) -> None:
        """To whichever worker comes first. One that was given before is not given twice."""
        from dbos import DBOS, SetWorkflowID

        with SetWorkflowID(run.workflow_id):
            await DBOS.enqueue_workflow_async(QUEUE, self._workflow, run.id)

    async def workflow_state(self, run: Run) -> WorkflowState:
        """What has become of a run that was given."""
        from dbos import DBOS

        found = await DBOS.get_workflow_status_async(run.workflow_id)
        if found is None:
            return WorkflowState.UNKNOWN
        return WorkflowState.OPEN if found.status in _OPEN else WorkflowState.ENDED

    async def step(self, name: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Once: when its run is taken up again, what came of it is known."""
        from dbos import DBOS

        # The engine looks at the function, not at what it gives.
        async def once() -> T:
            return await retry_while_unavailable(work)

        return await DBOS.run_step_async({"name": name}, once)

    async def other_executors(self) -> set[str]:
        """Workers that have runs in hand, but for ourselves."""
        from dbos import DBOS

        found = await DBOS.list_workflows_async(status=_PENDING, load_input=False, load_output=False)
        return {one.executor_id for one in found if one.executor_id} - {self._executor}

    async def recover(self, dead: Collection[str]) -> int:
        """What these have left goes back to the queue, for whoever comes first; how many."""
        from dbos import DBOS

        handles = await asyncio.to_thread(DBOS._recover_pending_workflows, list(dead))
        return len(handles)

    async def delete_ended_before(self, before: str) -> None:
        """What ended before a moment, and is on our own list."""
        from dbos import DBOS

        old = await DBOS.list_workflows_async(
            completed_before=before, status=["SUCCESS", "ERROR", "CANCELLED"], limit=1_000, load_input=False
        )
        if old:
            await DBOS.delete_workflows_async([one.workflow_id for one in old])

    async def close(self) -> None:
        from dbos import DBOS

        await asyncio.to_thread(DBOS.destroy, destroy_registry=True)
