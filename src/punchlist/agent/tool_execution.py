"""Runs the calls of a reply. In a resumed turn, finds stored results and resumes interrupted calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol, runtime_checkable

from punchlist.agent.work_log import LIST_TOOLS
from punchlist.errors import Conflict
from punchlist.kernel.cancellation import CancelSignal
from punchlist.kernel.text import without_tags
from punchlist.models.model import CallReturn, RequestedCall
from punchlist.storage.async_bridge import AsyncBridge
from punchlist.toolcalls.approvals import ApprovalAnswer, ApprovalQuestion
from punchlist.toolcalls.batch import CallBatch
from punchlist.toolcalls.call_table import NotWaiting
from punchlist.toolcalls.lifecycle import ENDED, CallStatus, UnfinishedCode
from punchlist.toolcalls.model import (
    CancelledToolCall,
    ErroredToolCall,
    SuccessfulToolCall,
    ToolCall,
    ToolCallRequest,
    WaitingToolCall,
)
from punchlist.toolcalls.policy import Verdict
from punchlist.toolcalls.stored_call import StoredApproval, StoredCall
from punchlist.toolcalls.tool import Arguments, Effect
from punchlist.tools.tool_session import ToolSession

CHECK_SUFFIX: Final = ".check"
"""In the ids of calls that run a check. Models cannot choose ids."""
_UNFINISHED: Final = frozenset(UnfinishedCode)


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
    codes: Mapping[str, str] = field(default_factory=dict)
    """Codes of the errors, by call id."""
    refused: Sequence[str] = ()
    """Why claims of completion were refused, in one line each."""


class ToolExecution:
    def __init__(self, session: ToolSession, bridge: AsyncBridge, *, waits: bool) -> None:
        """`waits`: wait for approvals instead of returning the calls as waiting."""
        self._scheduler = session.scheduler
        self._service = session.calls
        self._tools = session.tools
        self._policy = session.policy
        self._bridge = bridge
        self._waits = waits

    async def run(self, calls: Sequence[RequestedCall], signal: CancelSignal) -> CallResults:
        if self._policy.session_rules:
            # One of them can have been revoked.
            self._policy.session_rules = await self._bridge(self._service.session_rules)
        batch = self._scheduler.schedule([_request(call, call.id) for call in calls], signal)
        return _results(calls, await self._finished(batch))

    async def _finished(self, batch: CallBatch) -> Sequence[ToolCall]:
        return await batch if self._waits else await batch.settled()

    async def resume(self, calls: Sequence[RequestedCall], signal: CancelSignal) -> CallResults:
        """Like `run`, for calls that may have run before the program ended. Those that have not run in their order."""
        results: dict[str, CallReturn] = {}
        unfinished = _Unfinished([], [], {}, {}, {})
        for call in calls:
            attempt, found = await self._last_attempt(call)
            done = await self._resume_one(call, attempt, found, unfinished)
            if done is not None:
                results[call.id] = done
        batch = self._scheduler.schedule(unfinished.requests, signal, questions=unfinished.questions)
        await self._apply_answers(unfinished.answers, signal)
        done_now = _results(unfinished.calls, await self._finished(batch))
        results |= {result.call_id: result for result in done_now.results}
        codes = {**unfinished.stored_codes, **done_now.codes}
        return CallResults([results[call.id] for call in calls if call.id in results], done_now.waiting, codes)

    def may_change_files(self, call: RequestedCall) -> bool:
        """Whether a call can have changed what a check looks at. The calls of a worker are its own turn's."""
        tool = self._tools.get(call.tool)
        return tool is not None and tool.effect not in (Effect.READ, Effect.LIST)

    def needs_person(self, call: RequestedCall) -> bool:
        """Whether a call would wait for an approval, and this run does not."""
        tool = self._tools.get(call.tool)
        if self._waits or tool is None:
            return False
        return self._policy.decide(tool, _arguments(call)).verdict is Verdict.ASK

    async def run_check(self, call: RequestedCall, signal: CancelSignal) -> CallResults:
        """Run the command of a check, or find its result from before."""
        if call.tool not in self._tools:
            return CallResults([CallReturn(call.id, call.tool, "This agent cannot run commands.", failed=True)], ())
        return await self.resume([call], signal)

    async def _last_attempt(self, call: RequestedCall) -> tuple[int, StoredCall | None]:
        """The last attempt to run a call, and its number. Each attempt that was not finished is followed by another."""
        number, found = 1, await self._bridge(self._service.find, call.id)
        while found is not None and found.error_code in _UNFINISHED:
            following = await self._bridge(self._service.find, _attempt_id(call, number + 1))
            if following is None:
                break
            number, found = number + 1, following
        return number, found

    async def _resume_one(
        self, call: RequestedCall, attempt: int, found: StoredCall | None, unfinished: _Unfinished
    ) -> CallReturn | None:
        """The stored result of a call; None if it is not finished."""
        request = _request(call, call.id if found is None else _attempt_id(call, attempt + 1))
        tool: object = self._tools.get(call.tool)
        if found is None:
            pass
        elif found.error_code == UnfinishedCode.NOT_STARTED:
            # It can have been approved before.
            approval = await self._bridge(self._service.approval, found.id)
            unfinished.add_answer(request.call_id, approval)
        elif found.error_code in _UNFINISHED and isinstance(tool, ResumableTool):
            tool.resume_call(_arguments(call), call.id)
        elif found.status in ENDED:
            if found.error_code:
                unfinished.stored_codes[call.id] = found.error_code
            return _stored_result(call, found)
        elif found.status == CallStatus.AWAITING_APPROVAL:
            request, approval = await self._reopen_question(found)
            unfinished.questions[found.id] = approval.as_question
            unfinished.add_answer(found.id, approval)
        else:
            raise Conflict(f"Call {found.id} ({call.tool}) is owned by process {found.owner}.")
        unfinished.calls.append(call)
        unfinished.requests.append(request)
        return None

    async def _reopen_question(self, found: StoredCall) -> tuple[ToolCallRequest, StoredApproval]:
        owned = await self._bridge(self._service.take_over, found.id)
        approval = await self._bridge(self._service.approval, found.id)
        if owned is None or approval is None:
            raise Conflict(f"Call {found.id} ({found.tool}) is owned by process {found.owner}.")
        return owned.request, approval

    async def _apply_answers(self, answers: Mapping[str, ApprovalAnswer], signal: CancelSignal) -> None:
        """Apply the answers that were given while no process waited for them."""
        for call_id, answer in answers.items():
            if not signal.is_set:
                payload = answer.payload
                # The call may need no answer now, and the scheduler finds stored answers itself.
                with suppress(NotWaiting):
                    await self._scheduler.handle_confirmation_response(call_id, None, answer.outcome, payload=payload)


class _Unfinished(NamedTuple):
    """The calls to run, with their requests; the questions about them and the answers so far, by call id."""

    calls: list[RequestedCall]
    requests: list[ToolCallRequest]
    questions: dict[str, ApprovalQuestion]
    answers: dict[str, ApprovalAnswer]
    stored_codes: dict[str, str]
    """Error codes of calls that had ended before."""

    def add_answer(self, call_id: str, approval: StoredApproval | None) -> None:
        if approval is not None and approval.answer is not None:
            self.answers[call_id] = approval.answer


def _attempt_id(call: RequestedCall, number: int) -> str:
    return call.id if number == 1 else f"{call.id}.{number}"


def _request(call: RequestedCall, id: str) -> ToolCallRequest:
    return ToolCallRequest(call.tool, _arguments(call), id, by_loop=CHECK_SUFFIX in id)


def _arguments(call: RequestedCall) -> Arguments:
    # The scheduler rejects anything but an object, with a message that the model can act on.
    return call.arguments  # type: ignore[return-value]


def _results(calls: Sequence[RequestedCall], done: Sequence[ToolCall]) -> CallResults:
    results: list[CallReturn] = []
    waiting: list[str] = []
    codes: dict[str, str] = {}
    for call, state in zip(calls, done, strict=True):
        match state:
            case SuccessfulToolCall(result=result):
                results.append(_returned(call, result.text))
            case ErroredToolCall(error=error) if error.code == UnfinishedCode.SUSPENDED:
                waiting.append(error.message)
            case CancelledToolCall(not_started=True):
                waiting.append(f"{call.tool}: comes after a call that waits")
            case ErroredToolCall(error=error):
                codes[call.id] = error.code
                results.append(_returned(call, error.message, failed=True))
            case CancelledToolCall(reason=reason):
                results.append(_returned(call, reason, failed=True))
            case WaitingToolCall(request=request, question=question):
                waiting.append(f"{call.tool} ({request.call_id[-8:]}): {question.why}")
            case _:
                waiting.append(f"{call.tool}: comes after a call that waits")
    return CallResults(results, waiting, codes)


def _stored_result(call: RequestedCall, found: StoredCall) -> CallReturn:
    if found.status == CallStatus.SUCCESS:
        return _returned(call, found.result or "")
    return _returned(call, found.explanation or found.status, failed=True)


def _returned(call: RequestedCall, text: str, *, failed: bool = False) -> CallReturn:
    """A result for the model. Those of list tools repeat titles, which may look like tags."""
    return CallReturn(call.id, call.tool, without_tags(text) if call.tool in LIST_TOOLS else text, failed=failed)
