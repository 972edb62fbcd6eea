"""`punchlist approvals`: list and answer the tool calls that wait for approval."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from punchlist.errors import NotAllowed
from punchlist.kernel.text import visible, visible_block
from punchlist.surfaces.cli.agent_guard import refuse_for_agents
from punchlist.surfaces.cli.context import (
    CliContext,
    ListByDefault,
    SessionOption,
    format_time,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from punchlist.app import Services
    from punchlist.toolcalls.approvals import ApprovalAnswer, ApprovalOutcome
    from punchlist.toolcalls.stored_call import StoredApproval, StoredCall

app = typer.Typer(help="List and answer the tool calls that wait for approval.", cls=ListByDefault)


class LifetimeChoice(StrEnum):
    RUN = "run"
    SESSION = "session"
    PERMANENT = "permanent"


class AlwaysChoice(StrEnum):
    TOOL = "tool"
    PREFIX = "prefix"
    SERVER = "server"


CallArgument = Annotated[
    str, typer.Argument(metavar="CALL", help="The end of its id; in the inbox also its number.", show_default=False)
]
AlwaysOption = Annotated[
    AlwaysChoice | None,
    typer.Option("--always", help="Also approve later calls of this tool, prefix or server, as `approvals` shows."),
]
LifetimeOption = Annotated[LifetimeChoice, typer.Option("--for", help="How long --always holds, in this project only.")]
DenialOption = Annotated[str, typer.Option("--reason", "-r", metavar="TEXT", help="Why; the model sees it.")]
ArgumentsArgument = Annotated[
    str, typer.Argument(metavar="JSON", help="The arguments to use; - reads them from stdin.")
]


@app.command("list")
def list_waiting(cli: CliContext, session: SessionOption = None) -> None:
    """List the waiting calls, of all sessions unless one is named."""
    services = cli.services(session)
    waiting = services.approvals.waiting(session)
    shown = [services.approvals.as_json(approval) for approval in waiting]
    cli.show(shown, map(_lines, waiting, shown), empty="No call waits for approval.")


def _lines(approval: StoredApproval, shown: Mapping[str, Any]) -> str:
    late = "  escalated" if approval.status == "escalated" else ""
    until = f"  until {format_time(approval.expires_at)}" if approval.expires_at else ""
    question = "\n".join(f"  │ {line}" for line in visible_block(approval.question).splitlines()[:20])
    always = "".join(f"  --always {name} covers {visible(covers)}\n" for name, covers in shown["always"].items())
    return (
        f"{approval.call_id[-8:]}  {visible(shown['tool'])}  since {format_time(approval.asked_at)}{until}{late}\n"
        f"  session {visible(approval.conversation_id)}: {visible(approval.why)}\n"
        f"  in {visible(shown['workspace'])}\n{question}\n{always}"
    )


def add_answer_commands(app: typer.Typer, find: Callable[[CliContext, str], tuple[Services, str]]) -> None:
    """Add `approve`, `deny` and `modify`; `find` returns the id of the call that a person names."""

    @app.command()
    def approve(
        cli: CliContext,
        call: CallArgument,
        always: AlwaysOption = None,
        lifetime: LifetimeOption = LifetimeChoice.SESSION,
    ) -> None:
        """Approve a call. If the process that asked has died and no run has the call, it runs in this process."""
        from punchlist.toolcalls.approvals import ApprovalOutcome
        from punchlist.toolcalls.policy import RuleLifetime

        refuse_for_agents("approve")
        outcome = ApprovalOutcome(f"proceed_always_{always}") if always else ApprovalOutcome.PROCEED_ONCE
        _answer(cli, *find(cli, call), outcome, lifetime=RuleLifetime(lifetime))

    @app.command()
    def deny(cli: CliContext, call: CallArgument, reason: DenialOption = "") -> None:
        """Deny a call."""
        refuse_for_agents("deny")
        from punchlist.toolcalls.approvals import ApprovalOutcome

        _answer(cli, *find(cli, call), ApprovalOutcome.CANCEL, reason=reason)

    @app.command()
    def modify(cli: CliContext, call: CallArgument, arguments: ArgumentsArgument) -> None:
        """Approve a call with other arguments."""
        refuse_for_agents("modify")
        from punchlist.surfaces.cli.tools import parse_arguments
        from punchlist.toolcalls.approvals import ApprovalOutcome

        parsed = parse_arguments(arguments)
        _answer(cli, *find(cli, call), ApprovalOutcome.MODIFY, arguments=parsed)


def _find(cli: CliContext, end_of_id: str) -> tuple[Services, str]:
    services = cli.services()
    return services, services.approvals.find(end_of_id).call_id


add_answer_commands(app, _find)


def _answer(cli: CliContext, services: Services, call_id: str, outcome: ApprovalOutcome, **details: Any) -> None:
    """Record an answer. If the process that asked has died and no run has the call, run or deny it in this process."""
    from punchlist.kernel.processes import is_running
    from punchlist.toolcalls.approvals import ApprovalAnswer
    from punchlist.toolcalls.lifecycle import CallStatus

    approval = services.approvals.find(call_id)
    call = services.approvals.call(approval.call_id)
    answer = ApprovalAnswer(outcome, cli.user_scope(services).actor, **details)
    # The worker that has the run continues with the call, also if the worker that asked has died.
    of_run = services.approvals.run_of(call.id) is not None
    awaiting = call.status == CallStatus.AWAITING_APPROVAL and not of_run
    orphaned = awaiting and is_running(call.owner) is not True
    code = _take_over(cli, services, call, approval, answer) if orphaned else None
    if code is None:
        services.approvals.answer(call.id, answer)
        code = 0
        cli.show(
            {**services.approvals.call(call.id).as_json(), "answer": outcome.value},
            "Answered. A worker continues its run."
            if of_run
            else f"Answered. The process that asked ({visible(call.owner)}) continues.",
        )
    raise typer.Exit(code)


def _take_over(
    cli: CliContext, services: Services, call: StoredCall, approval: StoredApproval, answer: ApprovalAnswer
) -> int | None:
    """Finish a call whose process has died; None if another process took it first."""
    from punchlist.conversations.model import Scope
    from punchlist.surfaces.cli.tool_call import deny_call, resume_call
    from punchlist.toolcalls import approvals

    if Path(call.workspace).resolve() != services.workspace.resolve():
        raise NotAllowed(
            f"The call was made in {visible(call.workspace)}, and its process has ended. Answer it from there, so that "
            "it runs where it was asked for."
        )
    site = services.site(Scope(call.conversation_id, answer.actor), services.workspace, call.turn_id)
    # An answer that this user gave before, while no process could act on it, counts.
    earlier = site.call_service().approval(call.id)
    given = (earlier and earlier.answer) or answer
    approvals.validate_answer(approval.as_question, given)
    if given.proceeds:
        return resume_call(site, call.tool, call.id, approval.as_question, given, as_json=cli.json)
    return deny_call(site, call.id, given, as_json=cli.json)
