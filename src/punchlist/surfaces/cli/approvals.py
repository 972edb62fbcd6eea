"""`punchlist approvals`: list and answer the tool calls that wait for approval."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from punchlist.extras import require_agent
from punchlist.kernel.text import visible, visible_block
from punchlist.surfaces.cli.context import (
    CliContext,
    JsonOption,
    SessionOption,
    cli_context,
    echo,
    echo_json,
    format_time,
)

if TYPE_CHECKING:
    from punchlist.surfaces.services import Services
    from punchlist.toolcalls.approvals import ApprovalAnswer, ApprovalOutcome
    from punchlist.toolcalls.stored_call import StoredApproval, StoredCall

app = typer.Typer(help="List and answer the tool calls that wait for approval.", invoke_without_command=True)

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The call's id, or the end of it.", show_default=False)]


class AlwaysChoice(StrEnum):
    TOOL = "tool"
    PREFIX = "prefix"
    SERVER = "server"


@app.callback()
def group(context: typer.Context, session: SessionOption = None, as_json: JsonOption = False) -> None:
    """List and answer the tool calls that wait for approval."""
    if context.invoked_subcommand is None:
        _list(context, session, as_json)


@app.command("list")
def list_waiting(context: typer.Context, session: SessionOption = None, as_json: JsonOption = False) -> None:
    """List the waiting calls, of all sessions unless one is named."""
    _list(context, session, as_json)


def _list(context: typer.Context, session: str | None, as_json: bool) -> None:
    services = cli_context(context).services(session, as_json=as_json)
    waiting = services.approvals.waiting(session)
    if as_json:
        echo_json([_json(services, approval) for approval in waiting])
        return
    if not waiting:
        echo("No call waits for approval.")
    for approval in waiting:
        late = "  escalated" if approval.status == "escalated" else ""
        until = f"  until {format_time(approval.expires_at)}" if approval.expires_at else ""
        call = services.approvals.call(approval.call_id)
        echo(f"{approval.call_id[-8:]}  {visible(call.tool)}  since {format_time(approval.asked_at)}{until}{late}")
        echo(f"  session {visible(approval.conversation_id)}: {visible(approval.why)}")
        echo("\n".join(f"  │ {line}" for line in visible_block(approval.question).splitlines()[:20]) + "\n")


def _json(services: Services, approval: StoredApproval) -> dict[str, Any]:
    call = services.approvals.call(approval.call_id)
    return {
        "callId": approval.call_id,
        "session": approval.conversation_id,
        "tool": call.tool,
        "status": approval.status,
        "question": approval.question,
        "why": approval.why,
        "outcomes": [outcome.value for outcome in approval.as_question.outcomes],
        "askedAt": approval.asked_at,
        "expiresAt": approval.expires_at,
        "onExpiry": approval.on_expiry,
    }


@app.command()
def approve(
    context: typer.Context,
    call: IdArgument,
    always: Annotated[
        AlwaysChoice | None,
        typer.Option("--always", help="Also approve later calls in its session: of this tool, prefix or server."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Approve a call. If the process that asked has died, the call runs in this process."""
    from punchlist.toolcalls.approvals import ApprovalOutcome

    outcome = ApprovalOutcome(f"proceed_always_{always}") if always else ApprovalOutcome.PROCEED_ONCE
    _answer(context, call, as_json, outcome)


@app.command()
def deny(
    context: typer.Context,
    call: IdArgument,
    reason: Annotated[str, typer.Option("--reason", "-r", metavar="TEXT", help="Why; the model sees it.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Deny a call."""
    from punchlist.toolcalls.approvals import ApprovalOutcome

    _answer(context, call, as_json, ApprovalOutcome.CANCEL, reason=reason)


@app.command()
def modify(
    context: typer.Context,
    call: IdArgument,
    arguments: Annotated[str, typer.Argument(metavar="JSON", help="The arguments to use; - reads them from stdin.")],
    as_json: JsonOption = False,
) -> None:
    """Approve a call with other arguments."""
    from punchlist.surfaces.cli.tools import parse_arguments
    from punchlist.toolcalls.approvals import ApprovalOutcome

    _answer(context, call, as_json, ApprovalOutcome.MODIFY, arguments=parse_arguments(arguments))


def _answer(context: typer.Context, call_id: str, as_json: bool, outcome: ApprovalOutcome, **details: Any) -> None:
    cli = cli_context(context)
    services = cli.services(as_json=as_json)
    answer_approval(cli, services, call_id, as_json, outcome, **details)


def answer_approval(
    cli: CliContext, services: Services, call_id: str, as_json: bool, outcome: ApprovalOutcome, **details: Any
) -> None:
    """Record an answer. If the process that asked has died, run or deny the call in this process."""
    from punchlist.kernel.processes import is_running
    from punchlist.toolcalls.approvals import ApprovalAnswer
    from punchlist.toolcalls.lifecycle import CallStatus

    approval = services.approvals.find(call_id)
    call = services.approvals.call(approval.call_id)
    answer = ApprovalAnswer(outcome, cli.scope(services).actor, **details)
    orphaned = call.status == CallStatus.AWAITING_APPROVAL and is_running(call.owner) is not True
    code = _take_over(services, call, approval, answer, as_json) if orphaned else None
    if code is None:
        services.approvals.answer(call.id, answer)
        code = 0
        if as_json:
            echo_json({**services.approvals.call(call.id).as_json(), "answer": outcome.value})
        else:
            echo(f"Answered. The process that asked ({visible(call.owner)}) continues.")
    raise typer.Exit(code)


def _take_over(
    services: Services, call: StoredCall, approval: StoredApproval, answer: ApprovalAnswer, as_json: bool
) -> int | None:
    """Finish a call whose process has died; None if another process took it first."""
    require_agent()
    from punchlist.conversations.model import Scope
    from punchlist.surfaces.cli.tool_call import deny_call, resume_call
    from punchlist.toolcalls import approvals

    site = services.site(Scope(call.conversation_id, answer.actor), Path(call.workspace), call.turn_id)
    # An answer that was given before, while no process could act on it, counts.
    given = approval.answer or answer
    approvals.validate_answer(approval.as_question, given)
    if given.proceeds:
        return resume_call(site, call.tool, call.id, approval.as_question, given, as_json=as_json)
    return deny_call(site, call.id, given, as_json=as_json)
