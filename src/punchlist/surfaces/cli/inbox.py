"""`punchlist inbox`: everything that needs a person, answered by number."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from punchlist.errors import InvalidInput
from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.text import visible, visible_block
from punchlist.surfaces.cli.agent_guard import refuse_for_agents
from punchlist.surfaces.cli.approvals import add_answer_commands
from punchlist.surfaces.cli.context import (
    CliContext,
    WatchOption,
    terminal_width,
)
from punchlist.surfaces.cli.options import mission_scope

if TYPE_CHECKING:
    from punchlist.app import Services
    from punchlist.views.inbox import InboxItem, RequestKind

app = typer.Typer(help="List what needs you, and answer it by number.", invoke_without_command=True)

NumberArgument = Annotated[str, typer.Argument(metavar="N", help="The request's number, or the end of its id.")]
EMPTY = "The inbox is empty."
MAX_QUESTION_LINES = 10


@app.callback()
def group(cli: CliContext, watch: WatchOption = False) -> None:
    """List what needs you, and answer it by number: approvals, agents' questions, escalations and failed cycles."""
    if cli.invoked_subcommand is not None:
        return
    services = cli.services()
    view = InboxView(services)
    if watch:
        from punchlist.surfaces.cli.watch import watch as run_watch

        run_watch(services.store, view, as_json=cli.json)
    else:
        items = view.load()
        cli.show(view.json(items), view.text(items))


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
        kinds = [item.kind for item in value]
        return {
            "items": [self._json(item) for item in value],
            "counts": {kind: kinds.count(kind) for kind in sorted(set(kinds))},
        }

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
        optional = camel_json(item, "session", "mission", "todo_id", "reason", "expires_at", "run_id", "requester")
        return {
            **camel_json(item, "number", "id", "kind", "subject", "question", "asked_at"),
            "ageSeconds": self._age(item),
            "answers": sorted({answer.split()[0] for answer in item.answers}),
            **{key: value for key, value in optional.items() if value is not None},
        }

    def _age(self, item: InboxItem) -> int:
        from punchlist.kernel.clock import parse_timestamp

        return max(0, int((self._services.store.clock() - parse_timestamp(item.asked_at)).total_seconds()))


def format_age(seconds: int) -> str:
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return "just now"


def _find_approval(cli: CliContext, number: str) -> tuple[Services, str]:
    services, item = _find(cli, number, "approval")
    return services, item.id


add_answer_commands(app, _find_approval)


@app.command()
def answer(
    cli: CliContext,
    number: NumberArgument,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="ANSWER...", help="The answer, - for stdin; to an escalation: extend DATE, cancel or keep."
        ),
    ],
) -> None:
    """Answer an agent's question, or an escalation of a mission."""
    refuse_for_agents("inbox answer")
    services, item = _find(cli, number, "question", "escalation")
    if item.kind == "question":
        text = sys.stdin.read() if words == ["-"] else " ".join(words)
        blocked = services.plans.resolve(item.session or "", item.id, text, cli.user_scope(services).actor)
        given = blocked.condition.answer or ""
    else:
        if len(words) > 2:
            raise typer.BadParameter("must be: extend DATE, cancel or keep", param_hint="ANSWER")
        deadline = words[1] if len(words) == 2 else None
        scope = mission_scope(cli, services)
        given = services.escalations.answer(scope, item.id, words[0], deadline=deadline).answer or ""
    resume = " `punchlist run --resume` continues the work." if item.kind == "question" else ""
    cli.show(
        {**camel_json(item, "number", "id", "kind"), "answer": given},
        f"Answered request {item.number}: {visible(given)}.{resume}",
    )


@app.command()
def acknowledge(cli: CliContext, number: NumberArgument) -> None:
    """Stop the reminders of an escalation. It stays open."""
    refuse_for_agents("inbox acknowledge")
    services, item = _find(cli, number, "escalation")
    services.escalations.acknowledge(mission_scope(cli, services), item.id)
    cli.show(
        {"number": item.number, "id": item.id, "kind": item.kind, "status": "acknowledged"},
        f"Request {item.number} stays open, without reminders.",
    )


@app.command()
def retry(cli: CliContext, number: NumberArgument) -> None:
    """Retry a failed cycle or planning run of a mission now."""
    refuse_for_agents("inbox retry")
    services, item = _find(cli, number, "failure")
    run = services.runs.resume(cli.user_scope(services), item.id)
    cli.show(
        {**camel_json(item, "number", "id", "kind"), "status": run.status.value},
        f"Run {run.id[-8:]} is {run.status}. A worker executes it.",
    )


def _find(cli: CliContext, number: str, *kinds: RequestKind) -> tuple[Services, InboxItem]:
    services = cli.services()
    item = services.inbox.find(number)
    if item.kind not in kinds:
        raise InvalidInput(
            f"Request {item.number} is of the kind {item.kind}. It can be answered with: {', '.join(item.answers)}."
        )
    return services, item
