"""The calls of a reply: run, or, in a turn that was taken up again, found on record or gone on with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from punchlist.errors import Conflict
from punchlist.kernel.cancel_signal import CancelSignal
from punchlist.kernel.ids import new_id
from punchlist.models.model import CallReturn, RequestedCall
from punchlist.storage.async_bridge import AsyncBridge
from punchlist.toolcalls.batch import CallBatch
from punchlist.toolcalls.lifecycle import CallStatus
from punchlist.toolcalls.model import (
    CancelledToolCall,
    ErroredToolCall,
    SuccessfulToolCall,
    ToolCall,
    ToolCallRequest,
    WaitingToolCall,
)
from punchlist.toolcalls.scheduler import CoreToolScheduler
from punchlist.toolcalls.service import ToolCallService
from punchlist.toolcalls.stored_call import StoredCall
from punchlist.toolcalls.tool import AgentTool, Arguments

INTERRUPTED: Final = "interrupted"
SUSPENDED: Final = "suspended"
"""The code of a call that waits for something inside of it, such as a worker's question."""


@runtime_checkable
class ResumableTool(Protocol):
    """A tool whose work can be gone on with after it was left in the middle."""

    def resume_call(self, arguments: Arguments, call_id: str) -> None:
        """The next call with these arguments goes on with what was left, which was called by that id."""


@dataclass(frozen=True, slots=True)
class CallResults:
    """What came of a reply's calls: results, and what is still waited for."""

    results: Sequence[CallReturn]
    waiting: Sequence[str]


class ToolExecution:
    def __init__(
        self,
        scheduler: CoreToolScheduler,
        ledger: ToolCallService,
        tools: Mapping[str, AgentTool],
        aside: AsyncBridge,
        *,
        waits: bool,
    ) -> None:
        """`waits`: a call that needs approval is waited for, since somebody is at hand to be asked."""
        self._scheduler = scheduler
        self._ledger = ledger
        self._tools = tools
        self._aside = aside
        self._waits = waits

    async def run(self, calls: Sequence[RequestedCall], signal: CancelSignal) -> CallResults:
        batch = self._scheduler.schedule([_request(call, call.id) for call in calls], signal)
        return _came(calls, await self._finished(batch))

    async def _finished(self, batch: CallBatch) -> Sequence[ToolCall]:
        return await batch if self._waits else await batch.settled()

    async def resume(self, calls: Sequence[RequestedCall], signal: CancelSignal) -> CallResults:
        """As `run`, for calls of which some may have been run before the program ended."""
        results: list[CallReturn] = []
        waiting: list[str] = []
        for call in calls:
            came = await self._take_up(call, signal)
            results += came.results
            waiting += came.waiting
        return CallResults(results, waiting)

    async def _take_up(self, call: RequestedCall, signal: CancelSignal) -> CallResults:
        found = await self._aside(self._ledger.find, call.id)
        if found is None:
            return await self.run([call], signal)
        tool: object = self._tools.get(call.tool)
        if found.error_code in (INTERRUPTED, SUSPENDED) and isinstance(tool, ResumableTool):
            tool.resume_call(_arguments(call), call.id)
            batch = self._scheduler.schedule(_request(call, new_id()), signal)
            return _came([call], await self._finished(batch))
        match found.status:
            case CallStatus.SUCCESS | CallStatus.ERROR | CallStatus.CANCELLED:
                return CallResults([_from_record(call, found)], ())
            case CallStatus.AWAITING_APPROVAL:
                return _came([call], await self._finished(await self._asked(found, signal)))
        raise Conflict(f"Call {call.id} ({call.tool}) is in the hand of process {found.owner}.")

    async def _asked(self, found: StoredCall, signal: CancelSignal) -> CallBatch:
        """A call that was left waiting for a person, who may have answered in the meantime."""
        ours = await self._aside(self._ledger.take_over, found.id)
        approval = await self._aside(self._ledger.approval, found.id)
        if ours is None or approval is None:
            raise Conflict(f"Call {found.id} ({found.tool}) is in the hand of process {found.owner}.")
        batch = self._scheduler.resume(ours.request, approval.as_question)
        batch.cancel_on(signal)
        if (answer := approval.answer) and not signal.is_set:
            payload = {"by": answer.actor, "reason": answer.reason, "arguments": answer.arguments}
            await self._scheduler.handle_confirmation_response(found.id, None, answer.outcome, payload=payload)
        return batch


def _request(call: RequestedCall, id: str) -> ToolCallRequest:
    return ToolCallRequest(call.tool, _arguments(call), id)


def _arguments(call: RequestedCall) -> Arguments:
    # What is no object is refused by the scheduler, with a sentence that the model can act on.
    return call.arguments  # type: ignore[return-value]


def _came(calls: Sequence[RequestedCall], done: Sequence[ToolCall]) -> CallResults:
    results, waiting = [], []
    for call, one in zip(calls, done, strict=True):
        match one:
            case SuccessfulToolCall(result=result):
                results.append(CallReturn(call.id, call.tool, result.text))
            case ErroredToolCall(error=error) if error.code == SUSPENDED:
                waiting.append(error.message)
            case ErroredToolCall(error=error):
                results.append(CallReturn(call.id, call.tool, error.message, failed=True))
            case CancelledToolCall(reason=reason):
                results.append(CallReturn(call.id, call.tool, reason, failed=True))
            case WaitingToolCall(question=question):
                waiting.append(f"{call.tool} ({call.id[-8:]}): {question.why}")
            case _:
                waiting.append(f"{call.tool}: it depends on a call that waits")
    return CallResults(results, waiting)


def _from_record(call: RequestedCall, found: StoredCall) -> CallReturn:
    if found.status == CallStatus.SUCCESS:
        return CallReturn(call.id, call.tool, found.result or "")
    return CallReturn(call.id, call.tool, found.explanation or found.status, failed=True)
