"""Runs the calls of a reply. In a resumed turn, finds stored results and resumes interrupted calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from punchlist.errors import Conflict
from punchlist.kernel.cancellation import CancelSignal
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
from punchlist.toolcalls.stored_call import StoredCall
from punchlist.toolcalls.tool import Arguments
from punchlist.tools.tool_session import ToolSession

INTERRUPTED: Final = "interrupted"
SUSPENDED: Final = "suspended"
"""Error code of a call that cannot finish now, such as a delegation whose worker waits for a person."""


@runtime_checkable
class ResumableTool(Protocol):
    """A tool that can resume an interrupted call."""

    def resume_call(self, arguments: Arguments, call_id: str) -> None:
        """The next call with these arguments resumes the interrupted call `call_id`."""


@dataclass(frozen=True, slots=True)
class CallResults:
    """Results of the calls of a reply, and descriptions of those that wait."""

    results: Sequence[CallReturn]
    waiting: Sequence[str]


class ToolExecution:
    def __init__(self, session: ToolSession, bridge: AsyncBridge, *, waits: bool) -> None:
        """`waits`: wait for approvals instead of returning the calls as waiting."""
        self._scheduler = session.scheduler
        self._service = session.calls
        self._tools = session.tools
        self._bridge = bridge
        self._waits = waits

    async def run(self, calls: Sequence[RequestedCall], signal: CancelSignal) -> CallResults:
        batch = self._scheduler.schedule([_request(call, call.id) for call in calls], signal)
        return _results(calls, await self._finished(batch))

    async def _finished(self, batch: CallBatch) -> Sequence[ToolCall]:
        return await batch if self._waits else await batch.settled()

    async def resume(self, calls: Sequence[RequestedCall], signal: CancelSignal) -> CallResults:
        """Like `run`, for calls that may have run before the program ended."""
        results: list[CallReturn] = []
        waiting: list[str] = []
        for call in calls:
            done = await self._resume_one(call, signal)
            results += done.results
            waiting += done.waiting
        return CallResults(results, waiting)

    async def _resume_one(self, call: RequestedCall, signal: CancelSignal) -> CallResults:
        found = await self._bridge(self._service.find, call.id)
        if found is None:
            return await self.run([call], signal)
        tool: object = self._tools.get(call.tool)
        if found.error_code in (INTERRUPTED, SUSPENDED) and isinstance(tool, ResumableTool):
            tool.resume_call(_arguments(call), call.id)
            batch = self._scheduler.schedule(_request(call, new_id()), signal)
            return _results([call], await self._finished(batch))
        match found.status:
            case CallStatus.SUCCESS | CallStatus.ERROR | CallStatus.CANCELLED:
                return CallResults([_stored_result(call, found)], ())
            case CallStatus.AWAITING_APPROVAL:
                return _results([call], await self._finished(await self._reopen_question(found, signal)))
        raise Conflict(f"Call {call.id} ({call.tool}) is owned by process {found.owner}.")

    async def _reopen_question(self, found: StoredCall, signal: CancelSignal) -> CallBatch:
        """Resume a call that awaits approval; the answer may have been given meanwhile."""
        owned = await self._bridge(self._service.take_over, found.id)
        approval = await self._bridge(self._service.approval, found.id)
        if owned is None or approval is None:
            raise Conflict(f"Call {found.id} ({found.tool}) is owned by process {found.owner}.")
        batch = self._scheduler.resume(owned.request, approval.as_question)
        batch.cancel_on(signal)
        if (answer := approval.answer) and not signal.is_set:
            payload = {"by": answer.actor, "reason": answer.reason, "arguments": answer.arguments}
            await self._scheduler.handle_confirmation_response(found.id, None, answer.outcome, payload=payload)
        return batch


def _request(call: RequestedCall, id: str) -> ToolCallRequest:
    return ToolCallRequest(call.tool, _arguments(call), id)


def _arguments(call: RequestedCall) -> Arguments:
    # The scheduler rejects anything but an object, with a message that the model can act on.
    return call.arguments  # type: ignore[return-value]


def _results(calls: Sequence[RequestedCall], done: Sequence[ToolCall]) -> CallResults:
    results, waiting = [], []
    for call, state in zip(calls, done, strict=True):
        match state:
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
                waiting.append(f"{call.tool}: depends on a call that waits")
    return CallResults(results, waiting)


def _stored_result(call: RequestedCall, found: StoredCall) -> CallReturn:
    if found.status == CallStatus.SUCCESS:
        return CallReturn(call.id, call.tool, found.result or "")
    return CallReturn(call.id, call.tool, found.explanation or found.status, failed=True)
