"""`punchlist queue`: messages for an agent that is working."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from punchlist.kernel.text import excerpt, visible
from punchlist.surfaces.cli.context import (
    JsonOption,
    SessionOption,
    cli_context,
    echo,
    echo_json,
    format_time,
    terminal_width,
)

if TYPE_CHECKING:
    from punchlist.conversations.message_queue import MessageQueue
    from punchlist.conversations.model import QueuedMessage
    from punchlist.surfaces.services import Services

app = typer.Typer(help="Queue messages for an agent that is working.", invoke_without_command=True)

IdArgument = Annotated[
    str, typer.Argument(metavar="ID", help="The message's id, or the end of it.", show_default=False)
]
TextArgument = Annotated[
    str, typer.Argument(metavar="TEXT", help="The message; - reads it from stdin.", show_default=False)
]


@app.callback()
def group(context: typer.Context, session: SessionOption = None, as_json: JsonOption = False) -> None:
    """Queue messages for an agent that is working. Each starts a turn when the previous turn has ended."""
    if context.invoked_subcommand is None:
        _list(context, session, as_json)


@app.command("list")
def list_waiting(context: typer.Context, session: SessionOption = None, as_json: JsonOption = False) -> None:
    """List the queued messages in the order of delivery."""
    _list(context, session, as_json)


def _list(context: typer.Context, session: str | None, as_json: bool) -> None:
    services = cli_context(context).in_session(session, as_json=as_json)
    waiting = _queue(services).pending(services.settings.session)
    if as_json:
        echo_json([one.as_json() for one in waiting])
        return
    if not waiting:
        echo("Nothing is queued.")
    for number, one in enumerate(waiting, start=1):
        echo(
            excerpt(
                f"{number:>3}  {one.id[-8:]}  {format_time(one.created_at)}  {_line(one)}", max(terminal_width(), 60)
            )
        )


@app.command()
def add(context: typer.Context, text: TextArgument, session: SessionOption = None, as_json: JsonOption = False) -> None:
    """Queue a message. The session's agent gets it when its turn has ended."""
    cli = cli_context(context)
    said = _read(text)
    services = cli.in_session(session, as_json=as_json)
    queue = _queue(services)
    made = queue.add(cli.scope(services), said)
    before = sum(one.position < made.position for one in queue.pending(made.conversation_id))
    _answer(made, as_json, f"Queued {made.id[-8:]}{f', after {before} more' if before else ''}.")


@app.command()
def edit(
    context: typer.Context,
    message: IdArgument,
    text: TextArgument,
    session: SessionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change the text of a queued message; it keeps its place."""
    cli = cli_context(context)
    said = _read(text)
    services = cli.in_session(session, as_json=as_json)
    queue = _queue(services)
    scope = cli.scope(services)
    changed = queue.edit(scope, queue.find(scope.conversation_id, message).id, said)
    _answer(changed, as_json, f"Changed {changed.id[-8:]}.")


@app.command()
def remove(
    context: typer.Context, message: IdArgument, session: SessionOption = None, as_json: JsonOption = False
) -> None:
    """Remove a queued message."""
    cli = cli_context(context)
    services = cli.in_session(session, as_json=as_json)
    queue = _queue(services)
    scope = cli.scope(services)
    removed = queue.withdraw(scope, queue.find(scope.conversation_id, message).id)
    _answer(removed, as_json, f"Removed {removed.id[-8:]}.")


def _queue(services: Services) -> MessageQueue:
    from punchlist.conversations.message_queue import MessageQueue

    return MessageQueue(services.store, services.conversations)


def _read(text: str) -> str:
    said = (sys.stdin.read() if text == "-" else text).strip()
    if not said:
        raise typer.BadParameter("is empty", param_hint="TEXT")
    return said


def _answer(queued: QueuedMessage, as_json: bool, told: str) -> None:
    if as_json:
        echo_json(queued.as_json())
    else:
        echo(visible(told))


def _line(queued: QueuedMessage) -> str:
    return " ".join(queued.content.split())
