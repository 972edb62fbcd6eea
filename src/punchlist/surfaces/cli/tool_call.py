"""Runs one tool call from the command line."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from punchlist.kernel.text import visible_block
from punchlist.surfaces.cli.approval_prompt import ApprovalPrompt
from punchlist.surfaces.cli.context import echo, echo_error, echo_json, supports_ansi
from punchlist.toolcalls import approvals
from punchlist.toolcalls.lifecycle import CallAction, CallStatus
from punchlist.toolcalls.listeners import Listeners
from punchlist.toolcalls.model import (
    CancelledToolCall,
    ErroredToolCall,
    SuccessfulToolCall,
    ToolCall,
    ToolCallRequest,
    Transition,
    WaitingToolCall,
)
from punchlist.tools.tool_session import open_tool_session

if TYPE_CHECKING:
    from punchlist.toolcalls.approvals import ApprovalAnswer, ApprovalQuestion
    from punchlist.toolcalls.batch import CallBatch
    from punchlist.toolcalls.policy import Mode
    from punchlist.tools.tool_session import ToolSite

EXIT_CODES: Final = {
    CallStatus.SUCCESS: 0,
    CallStatus.ERROR: 1,
    CallStatus.CANCELLED: 3,
    CallStatus.AWAITING_APPROVAL: 4,
}


def run_call(site: ToolSite, request: ToolCallRequest, mode: Mode | None, *, as_json: bool) -> int:
    """Run a call; returns the exit code."""
    terminal = ApprovalPrompt.from_terminal()

    async def run() -> int:
        live = _Live.wanted(as_json)
        ask = terminal.ask if terminal else None
        async with open_tool_session(
            site.for_tool(request.tool), mode=mode, ask=ask, listeners=live.listeners
        ) as bench:
            for note in bench.notes:
                echo_error(note)
            batch = bench.scheduler.schedule(request)
            _cancel_on_interrupt(batch)
            # Without a terminal, a call that needs approval stays waiting for a later answer.
            calls = await (batch.ended() if terminal else batch.settled())
        return _report(calls[0], as_json, live)

    return asyncio.run(run())


def resume_call(
    site: ToolSite, tool: str, call_id: str, question: ApprovalQuestion, answer: ApprovalAnswer, *, as_json: bool
) -> int | None:
    """Run an answered call whose process has died; None if another process took it."""

    async def run() -> int | None:
        live = _Live.wanted(as_json)
        async with open_tool_session(site.for_tool(tool), listeners=live.listeners) as bench:
            call = bench.calls.take_over(call_id)
            if call is None:
                return None
            batch = bench.scheduler.resume(call.request, question)
            _cancel_on_interrupt(batch)
            await bench.scheduler.handle_confirmation_response(call_id, None, answer.outcome, payload=answer.payload)
            # It waits again if it would do something else than what was approved.
            calls = await batch.settled()
        return _report(calls[0], as_json, live)

    return asyncio.run(run())


def deny_call(site: ToolSite, call_id: str, answer: ApprovalAnswer, *, as_json: bool) -> int | None:
    """Deny a call whose process has died; None if another process took it."""
    ledger = site.call_service()
    call = ledger.take_over(call_id)
    if call is None:
        return None
    denied = CancelledToolCall(call.request, approvals.denial_message(answer), site.store.clock())
    came_from = CallStatus.AWAITING_APPROVAL
    step = Transition(denied.ended_at, CallAction.DENY, came_from, denied, answer.actor, answer.reason, answer)
    if ledger.record([step]):
        return None
    return _report(denied, as_json, _Live())


def _cancel_on_interrupt(batch: CallBatch) -> None:
    with suppress(NotImplementedError):
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, batch.cancel, "A person pressed Ctrl-C.")
        loop.add_signal_handler(signal.SIGTERM, batch.cancel, "The process received SIGTERM.")


class _Live:
    """Streams the output to stderr; stdout is for the result."""

    def __init__(self, wanted: bool = False) -> None:
        self._wanted = wanted
        self.shown = False

    @classmethod
    def wanted(cls, as_json: bool) -> _Live:
        return cls(not as_json and supports_ansi(sys.stderr))

    @property
    def listeners(self) -> Listeners:
        return Listeners(on_output=self._show if self._wanted else None)

    def _show(self, call_id: str, text: str) -> None:  # noqa: ARG002 - there is one call
        self.shown = True
        print(visible_block(text), end="", file=sys.stderr, flush=True)


def _report(call: ToolCall, as_json: bool, live: _Live) -> int:
    if as_json:
        echo_json(call_json(call))
        return EXIT_CODES[call.status]
    match call:
        case SuccessfulToolCall(result=result):
            if not (live.shown and sys.stdout.isatty()):
                echo(visible_block(result.text.removesuffix("\n")))
        case ErroredToolCall(error=error):
            echo_error(error.message)
        case CancelledToolCall(reason=reason):
            echo_error(reason)
        case WaitingToolCall(question=question):
            echo_error(
                f"{call.request.tool} waits for approval ({question.why}). It has not run.\n"
                f"Approve it with: punchlist approvals approve {call.request.call_id[-8:]}"
            )
    return EXIT_CODES[call.status]


def call_json(call: ToolCall) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "callId": call.request.call_id,
        "tool": call.request.tool,
        "status": call.status.value,
    }
    match call:
        case SuccessfulToolCall(result=result):
            shown["result"] = result.text if result.data is None else result.data
        case ErroredToolCall(error=error):
            shown["error"] = {"code": error.code, "message": error.message}
        case CancelledToolCall(reason=reason):
            shown["error"] = {"code": call.status.value, "message": reason}
    return shown
