"""A server may change its tools. Whoever said always said it of the old ones (trust test 27)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from punchlist.conversations.model import Scope
from punchlist.storage.store import Store
from punchlist.toolcalls.approvals import ApprovalOutcome
from punchlist.toolcalls.batch_writer import BatchWriter
from punchlist.toolcalls.lifecycle import CallStatus
from punchlist.toolcalls.model import ToolCall, ToolCallRequest
from punchlist.toolcalls.policy import Mode, Policy, Rule, Verdict
from punchlist.toolcalls.scheduler import CoreToolScheduler
from punchlist.toolcalls.service import ToolCallService
from punchlist.toolcalls.validation import CallValidator
from punchlist.tools.function_tool import FunctionTool


class Served(FunctionTool):
    """A tool as if it came from a server."""

    def __init__(self, fingerprint: str) -> None:
        async def look(city: str) -> str:
            """The weather."""
            return f"sunny in {city}"

        super().__init__(look, name="weather__look")
        self.server = "weather"
        self.fingerprint = fingerprint


async def call(
    store: Store, agent: Scope, tool: Served, *rules: Rule, answer: ApprovalOutcome | None = None
) -> ToolCall:
    """One call in a process of its own, as it were."""
    ledger = ToolCallService(store, agent, "/")
    validator = CallValidator(
        {tool.name: tool},
        Policy(Mode.DEFAULT, rules, ledger.session_rules()),
        fingerprints=ledger.fingerprints([tool.name]),
    )
    journal = BatchWriter(ledger, store)
    scheduler = CoreToolScheduler(validator=validator, journal=journal)
    batch = scheduler.schedule(ToolCallRequest(tool.name, {"city": "Oslo"}))
    (found,) = await batch.settled()
    if found.status is CallStatus.AWAITING_APPROVAL and answer is not None:
        await scheduler.handle_confirmation_response(found.request.call_id, None, answer)
        (found,) = await batch
    await scheduler.close()
    journal.close()
    return found


ALWAYS: list[Any] = [ApprovalOutcome.PROCEED_ALWAYS_TOOL, ApprovalOutcome.PROCEED_ALWAYS_SERVER]


@pytest.mark.spec("S4")
@pytest.mark.parametrize("always", ALWAYS)
def test_a_tool_whose_description_changed_is_asked_about_again(
    store: Store, agent: Scope, always: ApprovalOutcome
) -> None:
    first = asyncio.run(call(store, agent, Served("old"), answer=always))
    assert first.status is CallStatus.SUCCESS
    assert asyncio.run(call(store, agent, Served("old"))).status is CallStatus.SUCCESS
    changed = asyncio.run(call(store, agent, Served("new")))
    assert changed.status is CallStatus.AWAITING_APPROVAL


@pytest.mark.spec("S4")
def test_so_is_one_that_the_settings_allow(store: Store, agent: Scope) -> None:
    allow = Rule(Verdict.ALLOW, "weather__*")
    assert asyncio.run(call(store, agent, Served("old"), allow)).status is CallStatus.SUCCESS
    changed = asyncio.run(call(store, agent, Served("new"), allow))
    assert changed.status is CallStatus.AWAITING_APPROVAL
    assert "has changed" in changed.question.why
    assert (
        asyncio.run(call(store, agent, Served("new"), allow, answer=ApprovalOutcome.PROCEED_ONCE)).status
        is CallStatus.SUCCESS
    )
    assert asyncio.run(call(store, agent, Served("new"), allow)).status is CallStatus.SUCCESS


@pytest.mark.spec("S4")
def test_that_a_tool_only_reads_is_not_taken_from_its_server(store: Store, agent: Scope) -> None:
    tool = Served("old")
    tool.effect = type(tool.effect).READ
    assert asyncio.run(call(store, agent, tool)).status is CallStatus.AWAITING_APPROVAL
