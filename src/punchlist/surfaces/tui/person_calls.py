"""Tool calls that a person makes from the prompt (`/shell`, `/tool`): checked and recorded like an agent's."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from punchlist.kernel.ids import new_id
from punchlist.kernel.process_runner import ProcessStartError
from punchlist.surfaces.tui.entries import CallEntry
from punchlist.toolcalls.approvals import ApprovalAnswer, ApprovalOutcome
from punchlist.toolcalls.listeners import Listeners
from punchlist.toolcalls.model import (
    CancelledToolCall,
    ErroredToolCall,
    SuccessfulToolCall,
    ToolCall,
    ToolCallRequest,
    WaitingToolCall,
)
from punchlist.toolcalls.policy import Mode

if TYPE_CHECKING:
    from punchlist.app import Services
    from punchlist.conversations.model import Scope

COMMAND_SECONDS: Final = 60.0
MAX_OUTPUT: Final = 100_000


def call_tool(
    services: Services,
    scope: Scope,
    tool: str,
    arguments: Mapping[str, Any],
    mode: str,
    show: Callable[[CallEntry], None],
    *,
    approved: bool = False,
) -> None:
    """Run one call. Blocks until it has ended; `show` gets each state of it, in this thread.

    `approved`: the person has written out the call, so it runs once without a question.
    """
    request = ToolCallRequest(tool, dict(arguments), f"call_{new_id()[-12:]}")
    asyncio.run(_call(services, scope, request, mode, show, approved=approved))


async def _call(
    services: Services,
    scope: Scope,
    request: ToolCallRequest,
    mode: str,
    show: Callable[[CallEntry], None],
    *,
    approved: bool,
) -> None:
    from punchlist.tools.tool_session import open_tool_session

    printed: list[str] = []

    def changed(call: ToolCall) -> None:
        show(_entry(call, "".join(printed)))

    def print_more(call_id: str, text: str) -> None:
        printed.append(text)
        show(CallEntry(call_id, request.tool, dict(request.arguments), "executing", "".join(printed)))

    async def approve(_: WaitingToolCall, problem: str | None) -> ApprovalAnswer | None:
        return ApprovalAnswer(ApprovalOutcome.PROCEED_ONCE, scope.actor) if problem is None else None

    ask = approve if approved else None
    site = services.site(scope, services.workspace).for_tool(request.tool)
    listeners = Listeners(on_transition=lambda step: changed(step.call), on_output=print_more)
    async with open_tool_session(site, mode=Mode(mode), ask=ask, listeners=listeners) as session:
        await session.scheduler.schedule(request).ended()


def _entry(call: ToolCall, printed: str) -> CallEntry:
    output, seconds = printed, None
    match call:
        case SuccessfulToolCall(result=result):
            output = result.text
        case ErroredToolCall(error=error):
            output = error.message
        case CancelledToolCall(reason=reason):
            output = reason
    request = call.request
    return CallEntry(request.call_id, request.tool, dict(request.arguments), call.status.value, output, seconds)


def run_commands(services: Services, commands: Sequence[str]) -> dict[str, str]:
    """The output of shell commands that the person has confirmed, by command.

    A model reads it. So they get the environment and the sandbox of `run_command`, and their output has no secrets.
    """
    return {command: _run(services, command) for command in commands}


def _run(services: Services, command: str) -> str:
    from punchlist.kernel.secrets import Redactor
    from punchlist.tools.command import run_shell
    from punchlist.tools.workspace import Workspace

    settings = services.tool_settings
    workspace = Workspace(services.workspace, settings.extra_folders)
    try:
        done = run_shell(command, workspace, settings.sandbox, COMMAND_SECONDS, MAX_OUTPUT)
    except ProcessStartError as error:
        return f"It was not run: {error}"
    return Redactor(os.environ).text(done.output.decode("utf-8", "replace"))
