"""`punchlist conversations`: what was said and done, listed, shown and exported."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from punchlist.errors import InvalidInput, NotFound
from punchlist.kernel.text import excerpt, visible
from punchlist.surfaces.cli.context import (
    JsonOption,
    SessionOption,
    cli_context,
    echo,
    echo_json,
    format_time,
    to_json_text,
)

if TYPE_CHECKING:
    from punchlist.conversations.model import Conversation, ConversationOverview
    from punchlist.surfaces.conversation_view import MessageStep, TurnView
    from punchlist.surfaces.services import Services

app = typer.Typer(help="List, show and export what was said and done.", no_args_is_help=True)

ConversationArgument = Annotated[
    str | None, typer.Argument(metavar="[ID]", help="The session's id. Default: this project's.", show_default=False)
]


class ExportFormat(StrEnum):
    JSON = "json"
    MARKDOWN = "markdown"


@app.callback()
def group() -> None:
    """List, show and export what was said and done."""


@app.command("list")
def list_conversations(
    context: typer.Context,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="How many of the newest.")] = 50,
    as_json: JsonOption = False,
) -> None:
    """List the conversations, newest first."""
    from punchlist.conversations.repository import overviews

    services = cli_context(context).services(as_json=as_json)
    with services.store.read() as tx:
        found = overviews(tx, limit)
    if as_json:
        echo_json([_overview_json(one) for one in found])
        return
    if not found:
        echo("No conversations yet.")
    for one in found:
        mark = "*" if one.conversation.id == services.settings.session else " "
        title = f"  {visible(one.conversation.title)}" if one.conversation.title else ""
        echo(
            f"{mark} {visible(one.conversation.id)}  {format_time(one.conversation.created_at)}  "
            f"{plural(one.turns, 'turn')}, {plural(one.messages, 'message')}  {visible(_state(one))}{title}"
        )


def _state(one: ConversationOverview) -> str:
    if one.last is None:
        return "not begun"
    return "open" if one.last.open else f"ended: {one.last.end_reason or ''}"


def _overview_json(one: ConversationOverview) -> dict[str, Any]:
    from punchlist.surfaces.conversation_json import conversation_json

    last = one.last
    return {
        **conversation_json(one.conversation),
        "turns": one.turns,
        "messages": one.messages,
        "lastTurn": last and {"id": last.id, "open": last.open, "endReason": last.end_reason, "endedAt": last.ended_at},
    }


@app.command()
def show(
    context: typer.Context,
    conversation: ConversationArgument = None,
    turn: Annotated[
        str | None, typer.Option("--turn", metavar="ID", help="Only this turn: its id, or the end of that.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="How many of the newest turns.")] = 10,
    session: SessionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the turns of a conversation: what was asked, said, called and returned, and how each ended."""
    from punchlist.conversations import repository
    from punchlist.surfaces.cli.conversation_text import print_conversation
    from punchlist.surfaces.conversation_view import build_view

    services = cli_context(context).services(session, as_json=as_json)
    found = _conversation(services, conversation)
    with services.store.read() as tx:
        turns, messages = repository.all_turns(tx, found.id), repository.all_messages(tx, found.id)
    told = build_view(turns, messages)
    chosen = _newest(told, limit) if turn is None else [_turn(found, told, turn)]
    if as_json:
        from punchlist.surfaces.conversation_json import conversation_json, message_json, turn_json
        from punchlist.surfaces.conversation_view import all_turns

        stories = list(all_turns(chosen))
        inside = {story.turn.id for story in stories}
        echo_json(
            {
                "conversation": conversation_json(found),
                "turns": [turn_json(story) for story in stories],
                "messages": [message_json(message) for message in messages if message.turn_id in inside],
            }
        )
        return
    title = f": {visible(found.title)}" if found.title else ""
    echo(f"Session {visible(found.id)}{title}  {plural(len(turns), 'turn')}, {plural(len(messages), 'message')}")
    print_conversation(chosen)


def _conversation(services: Services, named: str | None) -> Conversation:
    return services.conversations.get(named or services.settings.session)


def _newest(told: list[TurnView | MessageStep], limit: int) -> list[TurnView | MessageStep]:
    """The last turns, and what was said between them."""
    from punchlist.surfaces.conversation_view import TurnView

    places = [place for place, one in enumerate(told) if isinstance(one, TurnView)]
    return told[places[-limit] :] if len(places) > limit else told


def _turn(conversation: Conversation, told: list[TurnView | MessageStep], wanted: str) -> TurnView:
    from punchlist.surfaces.conversation_view import all_turns

    found = [story for story in all_turns(told) if wanted and story.turn.id.endswith(wanted)]
    if len(found) > 1:
        raise InvalidInput(f"{excerpt(wanted)!r} is the end of {len(found)} ids; give more of it.")
    if not found:
        raise NotFound(
            f"Session {excerpt(conversation.id)!r} has no turn {excerpt(wanted)!r}. "
            f"`punchlist turn list --session {excerpt(conversation.id)}` lists those there are."
        )
    return found[0]


def plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


@app.command()
def export(
    context: typer.Context,
    conversation: ConversationArgument = None,
    format: Annotated[
        ExportFormat, typer.Option("--format", "-f", help="For programs, or for people.")
    ] = ExportFormat.JSON,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file instead of stdout.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    session: SessionOption = None,
) -> None:
    """Write a conversation with its turns, messages, calls, traces, plans and checklist."""
    from punchlist.import_export.files import write
    from punchlist.surfaces.conversation_json import as_json, load_record

    services = cli_context(context).services(session, as_json=output is None and format is ExportFormat.JSON)
    if output is not None and not force and output.exists():
        raise InvalidInput(f"{visible(output)} exists already. Name a new file, or say --force to replace it.")
    found = load_record(services.store, _conversation(services, conversation))
    if format is ExportFormat.JSON:
        written = to_json_text(as_json(found), indent=2) + "\n"
    else:
        from punchlist.surfaces.conversation_markdown import as_markdown

        written = as_markdown(found)
    if output is None:
        echo(written.rstrip("\n"))
        return
    write(output, written)
    echo(f"Wrote {visible(output)} ({output.stat().st_size:,} bytes).", error=True)
