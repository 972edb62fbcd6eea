"""`punchlist sessions`: list, show, export and end conversations with an agent."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from punchlist.errors import InvalidInput, NotFound
from punchlist.kernel.text import excerpt, visible
from punchlist.surfaces.cli.agent_guard import refuse_for_agents
from punchlist.surfaces.cli.context import (
    CliContext,
    ListByDefault,
    SessionOption,
    echo,
    echo_json,
    format_time,
    plural,
    to_json_text,
)

if TYPE_CHECKING:
    from punchlist.app import Services
    from punchlist.conversations.model import Conversation, ConversationOverview
    from punchlist.surfaces.conversation_export import MessageStep, TurnView

app = typer.Typer(help="List, show, export and end sessions. Without a subcommand, list them.", cls=ListByDefault)

IdArgument = Annotated[
    str | None,
    typer.Argument(metavar="[ID]", help="The session's id. Default: the one last used here.", show_default=False),
]
LimitOption = Annotated[
    int, typer.Option("--limit", "-n", min=1, max=100_000, metavar="N", help="How many of the newest.")
]


class ExportFormat(StrEnum):
    JSON = "json"
    MARKDOWN = "markdown"


@app.command("list")
def list_sessions(cli: CliContext, limit: LimitOption = 50) -> None:
    """List the sessions of this database, newest first; * marks the current one."""
    from punchlist.conversations.repository import overviews

    services = cli.in_session(None)
    with services.store.read() as tx:
        found = overviews(tx, limit)
    lines = [
        f"{'*' if overview.conversation.id == services.settings.session else ' '} "
        f"{visible(overview.conversation.id)}  {format_time(overview.conversation.created_at)}  "
        f"{plural(overview.turns, 'turn')}, {plural(overview.messages, 'message')}  {visible(_state(overview))}"
        f"{f'  {visible(overview.conversation.title)}' if overview.conversation.title else ''}"
        for overview in found
    ]
    shown = [_overview_json(overview, services.settings.session) for overview in found]
    cli.show(shown, lines, empty="No sessions yet.")


def _state(overview: ConversationOverview) -> str:
    if overview.last is None:
        return "no turn yet"
    return "open" if overview.last.open else f"ended: {overview.last.end_reason or ''}"


def _overview_json(overview: ConversationOverview, current: str) -> dict[str, Any]:
    from punchlist.surfaces.conversation_export import conversation_json

    last = overview.last
    return {
        **conversation_json(overview.conversation),
        "current": overview.conversation.id == current,
        "turns": overview.turns,
        "messages": overview.messages,
        "lastTurn": last and {"id": last.id, "open": last.open, "endReason": last.end_reason, "endedAt": last.ended_at},
    }


@app.command()
def show(
    cli: CliContext,
    session_id: IdArgument = None,
    turn: Annotated[
        str | None, typer.Option("--turn", metavar="ID", help="Show only the turn whose id ends like this.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=100_000, metavar="N", help="How many of the newest turns.")
    ] = 10,
    session: SessionOption = None,
) -> None:
    """Show the turns of a session: requests, replies, calls with their results, and how each turn ended."""
    from punchlist.conversations import repository
    from punchlist.surfaces.cli.conversation_text import print_conversation
    from punchlist.surfaces.conversation_export import all_turns, build_view

    services = cli.in_session(session_id or session)
    found = _conversation(services)
    with services.store.read() as tx:
        turns, messages = repository.all_turns(tx, found.id), repository.all_messages(tx, found.id)
    view = build_view(turns, messages)
    chosen = _newest(view, limit) if turn is None else [_find_turn(found, view, turn)]
    if cli.json:
        from punchlist.surfaces.conversation_export import conversation_json, message_json, turn_json

        views = list(all_turns(chosen))
        ids = {one.turn.id for one in views}
        echo_json(
            {
                "conversation": conversation_json(found),
                "turns": [turn_json(one) for one in views],
                "messages": [message_json(message) for message in messages if message.turn_id in ids],
            }
        )
        return
    title = f": {visible(found.title)}" if found.title else ""
    echo(f"Session {visible(found.id)}{title}  {plural(len(turns), 'turn')}, {plural(len(messages), 'message')}")
    print_conversation(chosen)


def _conversation(services: Services) -> Conversation:
    return services.conversations.get(services.settings.session)


def _newest(view: list[TurnView | MessageStep], limit: int) -> list[TurnView | MessageStep]:
    """The last turns, and the messages between them."""
    from punchlist.surfaces.conversation_export import TurnView

    places = [place for place, step in enumerate(view) if isinstance(step, TurnView)]
    return view[places[-limit] :] if len(places) > limit else view


def _find_turn(conversation: Conversation, view: list[TurnView | MessageStep], end: str) -> TurnView:
    from punchlist.surfaces.conversation_export import all_turns

    found = [turn for turn in all_turns(view) if end and turn.turn.id.endswith(end)]
    if len(found) > 1:
        raise InvalidInput(f"{len(found)} turns have an id that ends in {excerpt(end)!r}. Give more of the id.")
    if not found:
        raise NotFound(
            f"Session {excerpt(conversation.id)!r} has no turn {excerpt(end)!r}. "
            f"`punchlist sessions show {excerpt(conversation.id)}` shows its turns."
        )
    return found[0]


@app.command()
def export(
    cli: CliContext,
    session_id: IdArgument = None,
    format: Annotated[
        ExportFormat, typer.Option("--format", "-f", help="JSON for programs, Markdown for people.")
    ] = ExportFormat.JSON,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file instead of stdout.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    session: SessionOption = None,
) -> None:
    """Write a session with its turns, messages, calls, traces, plans and checklist."""
    from punchlist.import_export.files import write_file
    from punchlist.surfaces.conversation_export import as_json, load_record

    if output is None and format is ExportFormat.JSON:
        cli.state.json = True
    services = cli.in_session(session_id or session)
    if output is not None and not force and output.exists():
        raise InvalidInput(f"{visible(output)} exists. Name another file, or replace it with --force.")
    record = load_record(services.store, _conversation(services))
    if format is ExportFormat.JSON:
        text = to_json_text(as_json(record), indent=2) + "\n"
    else:
        from punchlist.surfaces.conversation_export import as_markdown

        text = as_markdown(record)
    if output is None:
        echo(text.rstrip("\n"))
        return
    write_file(output, text)
    echo(f"Wrote {visible(output)} ({output.stat().st_size:,} bytes).", error=True)


@app.command()
def end(
    cli: CliContext,
    session_id: IdArgument = None,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why it ends.")] = "ended by a person",
    session: SessionOption = None,
) -> None:
    """End the open turn of a session. Its plan stays as it is; the next use opens a new turn."""
    from punchlist.surfaces.conversation_export import stored_turn_json

    refuse_for_agents("sessions end")
    services = cli.in_session(session_id or session)
    if session_id or session:
        _conversation(services)
    turn = services.conversations.end_turn(cli.user_scope(services), reason=reason)
    cli.show(
        {"turn": stored_turn_json(turn) if turn else None},
        f"Ended turn {visible(turn.id)}." if turn else "No turn is open.",
    )
