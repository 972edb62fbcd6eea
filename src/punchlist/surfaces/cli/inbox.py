"""`punchlist inbox`: everything that needs a person, answered by number."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from punchlist.errors import InvalidInput
from punchlist.kernel.text import visible, visible_block
from punchlist.surfaces.cli.approvals import AlwaysChoice, answer_approval
from punchlist.surfaces.cli.context import (
    CliContext,
    JsonOption,
    WatchOption,
    cli_context,
    echo,
    echo_json,
    terminal_width,
)

if TYPE_CHECKING:
    from punchlist.surfaces.services import Services
    from punchlist.views.inbox import InboxItem, RequestKind

app = typer.Typer(help="List what needs you, and answer it by number.", invoke_without_command=True)

NumberArgument = Annotated[str, typer.Argument(metavar="N", help="The request's number, or the end of its id.")]
EMPTY = "The inbox is empty."
MAX_QUESTION_LINES = 10


@app.callback()
def group(context: typer.Context, watch: WatchOption = False, as_json: JsonOption = False) -> None:
    """List what needs you, and answer it by number: approvals, agents' questions, escalations of missions."""
    if context.invoked_subcommand is not None:
        return
    services = cli_context(context).services(as_json=as_json)
    view = InboxView(services)
    if watch:
        from punchlist.surfaces.cli.watch import watch as run_watch

        run_watch(services.store, view, as_json=as_json)
    elif as_json:
        echo_json(view.json(view.load()))
    else:
        echo(view.text(view.load()))


class InboxView:
    """The open requests, printed or watched."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def load(self) -> list[InboxItem]:
        return self._services.inbox.list()

    def lines(self, value: list[InboxItem], columns: int) -> Sequence[str]:
        return [line for item in value for line in self._item(item, columns)] or [EMPTY]

    def text(self, value: list[InboxItem]) -> str:
        return "\n".join(self.lines(value, terminal_width()))

    def json(self, value: list[InboxItem]) -> Any:
        return {"items": [self._json(item) for item in value]}

    def _item(self, item: InboxItem, columns: int) -> list[str]:
        place = f"mission {item.mission}" if item.mission else f"session {item.session}"
        head = f"{item.number:>3}  {item.kind}  {item.subject}  {place}  {format_age(self._age(item))}"
        answers = " | ".join(f"{answer} {item.number}" if " " not in answer else answer for answer in item.answers)
        if item.kind == "escalation":
            answers = f"answer {item.number} extend DATE | cancel | keep, or acknowledge {item.number}"
        question = [
            part
            for line in visible_block(item.question).splitlines()[:MAX_QUESTION_LINES]
            for part in textwrap.wrap(line, max(columns - 8, 20), break_on_hyphens=False) or [""]
        ]
        reason = [f"     {visible(item.reason)}"] if item.reason else []
        return [visible(head), *reason, *(f"     │ {line}" for line in question), f"     punchlist inbox {answers}", ""]

    def _json(self, item: InboxItem) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "number": item.number,
            "id": item.id,
            "kind": item.kind,
            "subject": item.subject,
            "question": item.question,
            "askedAt": item.asked_at,
            "ageSeconds": self._age(item),
            "answers": sorted({answer.split()[0] for answer in item.answers}),
        }
        optional = {
            "session": item.session,
            "mission": item.mission,
            "todoId": item.todo_id,
            "reason": item.reason,
            "expiresAt": item.expires_at,
        }
        return {**shown, **{key: value for key, value in optional.items() if value is not None}}

    def _age(self, item: InboxItem) -> int:
        from punchlist.kernel.clock import parse_timestamp

        return max(0, int((self._services.store.clock() - parse_timestamp(item.asked_at)).total_seconds()))


def format_age(seconds: int) -> str:
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return "just now"


@app.command()
def approve(
    context: typer.Context,
    number: NumberArgument,
    always: Annotated[
        AlwaysChoice | None,
        typer.Option("--always", help="Also approve later calls in its session: of this tool, prefix or server."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Approve a tool call."""
    from punchlist.toolcalls.approvals import ApprovalOutcome

    cli, services, item = _find(context, number, as_json, "approval")
    outcome = ApprovalOutcome(f"proceed_always_{always}") if always else ApprovalOutcome.PROCEED_ONCE
    answer_approval(cli, services, item.id, as_json, outcome)


@app.command()
def deny(
    context: typer.Context,
    number: NumberArgument,
    reason: Annotated[str, typer.Option("--reason", "-r", metavar="TEXT", help="Why; the model sees it.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Deny a tool call."""
    from punchlist.toolcalls.approvals import ApprovalOutcome

    cli, services, item = _find(context, number, as_json, "approval")
    answer_approval(cli, services, item.id, as_json, ApprovalOutcome.CANCEL, reason=reason)


@app.command()
def modify(
    context: typer.Context,
    number: NumberArgument,
    arguments: Annotated[str, typer.Argument(metavar="JSON", help="The arguments to use; - reads them from stdin.")],
    as_json: JsonOption = False,
) -> None:
    """Approve a tool call with other arguments."""
    from punchlist.surfaces.cli.tools import parse_arguments
    from punchlist.toolcalls.approvals import ApprovalOutcome

    parsed = parse_arguments(arguments)
    cli, services, item = _find(context, number, as_json, "approval")
    answer_approval(cli, services, item.id, as_json, ApprovalOutcome.MODIFY, arguments=parsed)


@app.command()
def answer(
    context: typer.Context,
    number: NumberArgument,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="ANSWER...", help="The answer, - for stdin; to an escalation: extend DATE, cancel or keep."
        ),
    ],
    as_json: JsonOption = False,
) -> None:
    """Answer an agent's question, or an escalation of a mission."""
    cli, services, item = _find(context, number, as_json, "question", "escalation")
    if item.kind == "question":
        text = sys.stdin.read() if words == ["-"] else " ".join(words)
        blocked = services.plans.resolve(item.session or "", item.id, text, cli.scope(services).actor)
        given = blocked.condition.answer or ""
    else:
        if len(words) > 2:
            raise typer.BadParameter("must be: extend DATE, cancel or keep", param_hint="ANSWER")
        deadline = words[1] if len(words) == 2 else None
        scope = _mission_scope(cli, services)
        given = services.escalations.answer(scope, item.id, words[0], deadline=deadline).answer or ""
    if as_json:
        echo_json({"number": item.number, "id": item.id, "kind": item.kind, "answer": given})
    else:
        resume = " `punchlist run --resume` continues the work." if item.kind == "question" else ""
        echo(f"Answered request {item.number}: {visible(given)}.{resume}")


@app.command()
def acknowledge(context: typer.Context, number: NumberArgument, as_json: JsonOption = False) -> None:
    """Stop the reminders of an escalation. It stays open."""
    cli, services, item = _find(context, number, as_json, "escalation")
    services.escalations.acknowledge(_mission_scope(cli, services), item.id)
    if as_json:
        echo_json({"number": item.number, "id": item.id, "kind": item.kind, "status": "acknowledged"})
    else:
        echo(f"Request {item.number} stays open, without reminders.")


def _find(
    context: typer.Context, number: str, as_json: bool, *kinds: RequestKind
) -> tuple[CliContext, Services, InboxItem]:
    cli = cli_context(context)
    services = cli.services(as_json=as_json)
    item = services.inbox.find(number)
    if item.kind not in kinds:
        raise InvalidInput(
            f"Request {item.number} is of the kind {item.kind}. It can be answered with: {', '.join(item.answers)}."
        )
    return cli, services, item


def _mission_scope(cli: CliContext, services: Services) -> Any:
    from punchlist.missions.model import MissionScope

    scope = cli.scope(services)
    return MissionScope(scope.conversation_id, scope.actor)
