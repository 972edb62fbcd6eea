"""What a call costs in the database."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from punchlist.conversations.model import Scope
from punchlist.errors import Conflict
from punchlist.storage.store import Store
from punchlist.toolcalls.approvals import ApprovalOutcome
from punchlist.toolcalls.batch_writer import BatchWriter
from punchlist.toolcalls.lifecycle import CallStatus
from punchlist.toolcalls.model import ToolCallRequest
from punchlist.toolcalls.policy import Mode, Policy
from punchlist.toolcalls.scheduler import CoreToolScheduler
from punchlist.toolcalls.service import ToolCallService
from punchlist.tools.function_tool import tool

MOST_COMMITS = 3


@tool
async def double(n: int) -> int:
    """Twice a number."""
    return 2 * n


@pytest.mark.spec("S9")
@pytest.mark.parametrize("mode", [Mode.YOLO, Mode.DEFAULT], ids=["allowed", "asked about"])
def test_all_transitions_of_a_call_take_at_most_three_commits(
    store: Store, agent: Scope, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = 0
    commit = store.database.commit

    def counted(cursor: Any) -> None:
        nonlocal commits
        commits += 1
        commit(cursor)

    monkeypatch.setattr(store.database, "commit", counted)

    async def one_call() -> None:
        journal = BatchWriter(ToolCallService(store, agent, "/"), store)
        scheduler = CoreToolScheduler([double], Policy(mode), journal=journal)
        batch = scheduler.schedule(ToolCallRequest("double", {"n": 4}))
        (call,) = await batch.settled()
        if call.status is CallStatus.AWAITING_APPROVAL:
            await scheduler.handle_confirmation_response(call.request.call_id, None, ApprovalOutcome.PROCEED_ONCE)
        (ended,) = await batch
        assert ended.status is CallStatus.SUCCESS
        await scheduler.close()
        journal.close()

    asyncio.run(one_call())
    assert 2 <= commits <= MOST_COMMITS


@pytest.mark.spec("S9")
def test_many_calls_share_their_commits(store: Store, agent: Scope, monkeypatch: pytest.MonkeyPatch) -> None:
    async def many_calls() -> int:
        ledger = ToolCallService(store, agent, "/")
        written = 0
        record = ledger.record

        def counted(*notes: Any) -> dict[str, Conflict]:
            nonlocal written
            written += 1
            return record(*notes)

        monkeypatch.setattr(ledger, "record", counted)
        journal = BatchWriter(ledger, store)
        scheduler = CoreToolScheduler([double], Policy(Mode.YOLO), journal=journal, ordered=False)
        await scheduler.schedule([ToolCallRequest("double", {"n": n}) for n in range(200)])
        await scheduler.close()
        journal.close()
        return written

    assert asyncio.run(many_calls()) <= 2 * 200 // 10
