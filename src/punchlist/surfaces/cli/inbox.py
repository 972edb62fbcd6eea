"""`punchlist inbox`: everything that needs a person, answered by number."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from punchlist.errors import InvalidInput
from punchlist.kernel.text import excerpt, visible, visible_block
from punchlist.surfaces.cli.agent_guard import refuse_for_agents
from punchlist.surfaces.cli.approvals import add_answer_commands
from punchlist.surfaces.cli.context import (
    CliContext,
    WatchOption,
    terminal_width,
)
from punchlist.surfaces.figures import format_age

if TYPE_CHECKING:
    from punchlist.app import Services
    from punchlist.views.inbox_model import InboxItem, InboxPage

app = typer.Typer(help="List what needs you, and answer it by number.", invoke_without_command=True)

NumberArgument = Annotated[str, typer.Argument(metavar="N", help="The request's number, or the end of its id.")]
LimitOption = Annotated[int, typer.Option("--limit", min=1, max=500, metavar="N", help="Requests per page.")]
CursorOption = Annotated[
    str | None, typer.Option("--cursor", metavar="CURSOR", help="The next page, as the last one names it.")
]
EMPTY = "The inbox is empty."
MAX_QUESTION_LINES = 10


@app.callback()
def group(cli: CliContext, watch: WatchOption = False, limit: LimitOption = 50, cursor: CursorOption = None) -> None:
    """List what needs you, and answer it by number: approvals, agents' questions, escalations and failed runs,
    reached budgets, and missions without a worker."""
    if cli.invoked_subcommand is not None:
        return
    services = cli.services()
    view = InboxView(services, limit, cursor)
    if watch:
        from punchlist.surfaces.cli.watch import watch as run_watch

        run_watch(services.store, view, as_json=cli.json)
    else:
        page = view.load()
        cli.show(view.json(page), view.text(page))


class InboxView:
    """The open requests, printed or watched."""

    def __init__(self, services: Services, limit: int, cursor: str | None) -> None:
        self._services = services
        self._limit = limit
        self._cursor = cursor

    def load(self) -> InboxPage:
        return self._services.inbox.page(limit=self._limit, cursor=self._cursor)

    def lines(self, value: InboxPage, columns: int) -> Sequence[str]:
        lines = [line for item in value.items for line in _item_lines(item, value.now, columns)]
        if value.cursor:
            lines.append(f"{value.total} requests in all. Next page: punchlist inbox --cursor {value.cursor}")
        return lines or [EMPTY]

    def text(self, value: InboxPage) -> str:
        return "\n".join(self.lines(value, terminal_width()))

    def json(self, value: InboxPage) -> Any:
        return value.as_json()


def _item_lines(item: InboxItem, now: datetime, columns: int) -> list[str]:
    place = f"mission {item.mission}" if item.mission else f"session {item.session}"
    todo = f"  {excerpt(item.todo_title, 60)}" if item.todo_title else ""
    seconds = item.age_seconds(now)
    age = f"{format_age(seconds)} ago" if seconds >= 60 else "just now"
    head = f"{item.number:>3}  {item.kind}  {item.subject}  {place}{todo}  {age}"
    answers = " | ".join(f"{answer} {item.number}" for answer in item.answers)
    if item.kind == "escalation":
        answers = f"answer {item.number} extend DATE | cancel | keep, or acknowledge {item.number}"
    question = [
        part
        for line in visible_block(item.question).splitlines()[:MAX_QUESTION_LINES]
        for part in textwrap.wrap(line, max(columns - 8, 20), break_on_hyphens=False) or [""]
    ]
    reason = [f"     {visible(item.reason)}"] if item.reason else []
    return [visible(head), *reason, *(f"     │ {line}" for line in question), f"     punchlist inbox {answers}", ""]


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
    why: Annotated[
        str, typer.Option("--why", "-w", metavar="TEXT", help="To an escalation: why. The owner of the todo reads it.")
    ] = "",
) -> None:
    """Answer an agent's question or a mission's escalation, or report an event that a todo waits for."""
    refuse_for_agents("inbox answer")
    services, item = _find(cli, number, "question", "event", "escalation")
    if item.kind != "escalation":
        if why:
            raise typer.BadParameter("is for escalations; here, write it in the answer", param_hint="--why")
        text = sys.stdin.read() if words == ["-"] else " ".join(words)
        _answer(cli, services, item, "answer", text=text)
        return
    if len(words) > 2:
        raise typer.BadParameter("must be: extend DATE, cancel or keep", param_hint="ANSWER")
    _answer(cli, services, item, words[0], deadline=words[1] if len(words) == 2 else None, reason=why)


@app.command()
def acknowledge(cli: CliContext, number: NumberArgument) -> None:
    """Stop the reminders of an escalation, which stays open; leave a failure or another notice out of the inbox."""
    refuse_for_agents("inbox acknowledge")
    _answer(cli, *_find(cli, number, "escalation", "failure", "time", "budget", "worker"), "acknowledge")


@app.command()
def retry(cli: CliContext, number: NumberArgument) -> None:
    """Retry a failed run of a mission now: a cycle, planning, an answer in a chat, or delegated work."""
    refuse_for_agents("inbox retry")
    _answer(cli, *_find(cli, number, "failure"), "retry")


def _answer(cli: CliContext, services: Services, item: InboxItem, action: str, **details: Any) -> None:
    answered = services.inbox.answer(cli.user_scope(services), str(item.number), action, **details)
    cli.show(answered.as_json(), answered.message)


def _find(cli: CliContext, number: str, *kinds: str) -> tuple[Services, InboxItem]:
    services = cli.services()
    item = services.inbox.find(number)
    if item.kind not in kinds:
        raise InvalidInput(
            f"Request {item.number} is of the kind {item.kind}. It can be answered with: {', '.join(item.answers)}."
        )
    return services, item
