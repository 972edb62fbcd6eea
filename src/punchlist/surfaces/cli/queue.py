"""`punchlist queue`: messages for an agent that is working."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from punchlist.kernel.text import excerpt, visible
from punchlist.surfaces.cli.agent_guard import refuse_for_agents
from punchlist.surfaces.cli.context import (
    CliContext,
    ListByDefault,
    SessionOption,
    format_time,
    terminal_width,
)

if TYPE_CHECKING:
    from punchlist.app import Services
    from punchlist.conversations.message_queue import MessageQueue
    from punchlist.conversations.model import QueuedMessage

app = typer.Typer(
    help="Queue messages for an agent that is working. Each starts a turn when the previous turn has ended.",
    cls=ListByDefault,
)

IdArgument = Annotated[
    str, typer.Argument(metavar="ID", help="The message's id, or the end of it.", show_default=False)
]
TextArgument = Annotated[
    str, typer.Argument(metavar="TEXT", help="The message; - reads it from stdin.", show_default=False)
]


@app.command("list")
def list_waiting(cli: CliContext, session: SessionOption = None) -> None:
    """List the queued messages in the order of delivery."""
    services = cli.in_session(session)
    waiting = _queue(services).pending(services.settings.session)
    width = max(terminal_width(), 60)
    lines = [
        excerpt(f"{number:>3}  {one.id[-8:]}  {format_time(one.created_at)}  {' '.join(one.content.split())}", width)
        for number, one in enumerate(waiting, start=1)
    ]
    cli.show([one.as_json() for one in waiting], lines, empty="Nothing is queued.")


@app.command()
def add(cli: CliContext, text: TextArgument, session: SessionOption = None) -> None:
    """Queue a message. The session's agent gets it when its turn has ended."""
    refuse_for_agents("queue add")
    said = _read(text)
    services = cli.in_session(session)
    queue = _queue(services)
    made = queue.add(cli.user_scope(services), said)
    before = sum(one.position < made.position for one in queue.pending(made.conversation_id))
    _answer(cli, made, f"Queued {made.id[-8:]}{f', after {before} more' if before else ''}.")


@app.command()
def edit(cli: CliContext, message: IdArgument, text: TextArgument, session: SessionOption = None) -> None:
    """Change the text of a queued message; it keeps its place."""
    refuse_for_agents("queue edit")
    said = _read(text)
    services = cli.in_session(session)
    queue = _queue(services)
    scope = cli.user_scope(services)
    changed = queue.edit(scope, queue.find(scope.conversation_id, message).id, said)
    _answer(cli, changed, f"Changed {changed.id[-8:]}.")


@app.command()
def remove(cli: CliContext, message: IdArgument, session: SessionOption = None) -> None:
    """Remove a queued message."""
    refuse_for_agents("queue remove")
    services = cli.in_session(session)
    queue = _queue(services)
    scope = cli.user_scope(services)
    removed = queue.withdraw(scope, queue.find(scope.conversation_id, message).id)
    _answer(cli, removed, f"Removed {removed.id[-8:]}.")


def _queue(services: Services) -> MessageQueue:
    from punchlist.conversations.message_queue import MessageQueue

    return MessageQueue(services.store, services.conversations)


def _read(text: str) -> str:
    said = (sys.stdin.read() if text == "-" else text).strip()
    if not said:
        raise typer.BadParameter("is empty", param_hint="TEXT")
    return said


def _answer(cli: CliContext, queued: QueuedMessage, text: str) -> None:
    cli.show(queued.as_json(), visible(text))
