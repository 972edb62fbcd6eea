"""`punchlist mission chat`: the chats of missions, read and written in."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from punchlist.errors import IllegalTransition, NotFound
from punchlist.kernel.text import excerpt, visible
from punchlist.missions.todos.lifecycle import ChatChannel
from punchlist.surfaces.cli.context import JsonOption, cli_context, echo, echo_json, format_time

if TYPE_CHECKING:
    from punchlist.missions.model import Mission
    from punchlist.runs.model import Run
    from punchlist.surfaces.services import Services

app = typer.Typer(help="Read the chats of missions, and write in them.", no_args_is_help=True)

ChatArgument = Annotated[
    str,
    typer.Argument(
        metavar="CHAT", help="MISSION, MISSION/PILLAR, MISSION/PILLAR/todos, or a session's id.", show_default=False
    ),
]
TODOS = "todos"


class MissionChat(NamedTuple):
    """A chat of a mission, by the name that people use."""

    name: str
    channel: ChatChannel
    conversation_id: str


@app.callback()
def group() -> None:
    """Read the chats of missions, and write in them."""


@app.command("list")
def list_chats(
    context: typer.Context,
    mission: Annotated[
        str | None, typer.Argument(metavar="[MISSION]", help="The mission's slug. Default: all.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the chats of missions: what waits in each, and when something was last said."""
    from punchlist.conversations.message_queue import MessageQueue
    from punchlist.conversations.recent import RecentMessages

    services = cli_context(context).services(as_json=as_json)
    missions = [services.missions.get(mission)] if mission is not None else services.missions.list()
    reading, queue = RecentMessages(services.store), MessageQueue(services.store, services.conversations)
    busy = {run.conversation_id: run for run in services.runs.list(limit=10_000) if _works(run)}
    told = []
    for chat in (chat for one in missions for chat in _chats(services, one)):
        last, run = reading.last_message(chat.conversation_id), busy.get(chat.conversation_id)
        told.append(
            {
                "chat": chat.name,
                "channel": chat.channel,
                "conversationId": chat.conversation_id,
                "messages": last.messages if last else 0,
                "lastMessageAt": last.at if last else None,
                "waiting": len(queue.pending(chat.conversation_id)),
                "run": run and {"id": run.id, "agent": run.agent, "status": run.status.value},
            }
        )
    if as_json:
        echo_json(told)
        return
    if not told:
        echo("No missions yet. `punchlist mission init` writes a file to begin with.")
    for one in told:
        _say_chat(one)


def _say_chat(told: dict[str, Any]) -> None:
    from punchlist.surfaces.cli.layout import fit_line, line_width

    parts = (
        [f"{told['messages']:,} messages, the last {format_time(told['lastMessageAt'])}"] if told["messages"] else []
    )
    if told["waiting"]:
        parts.append(f"{told['waiting']} waiting")
    if told["run"]:
        parts.append(f"{visible(told['run']['agent'])}: {told['run']['status']}")
    echo(visible(told["chat"]))
    echo(fit_line(f"  {told['channel']}  {', '.join(parts) or 'nothing said yet'}", line_width()))


@app.command()
def show(
    context: typer.Context,
    chat: ChatArgument,
    last: Annotated[int, typer.Option("--last", "-n", min=1, max=100_000, help="How many of the last messages.")] = 30,
    as_json: JsonOption = False,
) -> None:
    """Show what was said in a chat, by whom and when; and what waits to be heard."""
    from punchlist.conversations.message_queue import MessageQueue
    from punchlist.conversations.recent import RecentMessages
    from punchlist.surfaces.cli import mission_chat_view
    from punchlist.surfaces.conversation_json import conversation_json

    services = cli_context(context).services(as_json=as_json)
    conversation = services.conversations.get(_conversation(services, chat))
    heard = RecentMessages(services.store).last(conversation.id, last)
    waiting = MessageQueue(services.store, services.conversations).pending(conversation.id)
    if as_json:
        echo_json(
            {
                "conversation": conversation_json(conversation),
                "messages": [mission_chat_view.heard_json(one) for one in heard],
                "waiting": [one.as_json() for one in waiting],
            }
        )
        return
    title = f": {visible(conversation.title)}" if conversation.title else ""
    echo(f"{visible(conversation.id)}{title}")
    for line in mission_chat_view.lines(heard, waiting):
        echo(line)


def _check_heard(services: Services, metadata: str) -> None:
    """In the chats of a mission that is archived, nobody answers."""
    slug = json.loads(metadata).get("missionSlug")
    if slug is not None and services.missions.get(slug).status != "active":
        raise IllegalTransition(f"Mission {slug!r} is archived: nobody would answer. Nothing was said.")


@app.command()
def send(
    context: typer.Context,
    chat: ChatArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to say; - reads it from stdin.")],
    as_json: JsonOption = False,
) -> None:
    """Say something in a chat. Its agent answers when it is free."""
    from punchlist.conversations.message_queue import MessageQueue
    from punchlist.conversations.model import Scope

    entry = cli_context(context)
    services = entry.services(as_json=as_json)
    said = sys.stdin.read() if text == "-" else text
    conversation = services.conversations.get(_conversation(services, chat))
    conversation_id = conversation.id
    _check_heard(services, conversation.metadata)
    made = MessageQueue(services.store, services.conversations).add(
        Scope(conversation_id, entry.scope(services).actor), said
    )
    run = next(
        (run for run in services.runs.list(limit=10_000) if _works(run) and run.conversation_id == conversation_id),
        None,
    )
    if as_json:
        echo_json({**made.as_json(), "conversationId": conversation_id, "run": run and run.id})
        return
    echo(f"Said, as {made.id[-8:]}.")
    if run is not None:
        echo(f"{visible(run.agent)} is at work there (run {run.id[-8:]}, {run.status}); it hears this afterwards.")
        echo(f"To interrupt it instead: punchlist mission runs redirect {run.id[-8:]} TEXT")
    elif json.loads(conversation.metadata).get("channel") in list(ChatChannel):
        echo("A worker sees to the answer: punchlist worker")
    else:
        echo(f"The next `punchlist run --session {visible(conversation_id)}` takes it up when its own turn has ended.")


def _works(run: Run) -> bool:
    """Whether it has the chat to itself."""
    return run.kind.value != "collect" and run.status.value != "queued"


# --- which one is meant -----------------------------------------------------------------------------------


def _chats(services: Services, mission: Mission) -> list[MissionChat]:
    chats = [MissionChat(mission.slug, ChatChannel.MISSION, mission.conversation_id)]
    for standing in services.missions.pillars(mission):
        pillar, name = standing.pillar, f"{mission.slug}/{standing.pillar.slug}"
        chats.append(MissionChat(name, ChatChannel.PILLAR, pillar.conversation_id))
        chats.append(MissionChat(f"{name}/{TODOS}", ChatChannel.PILLAR_TODO, pillar.todo_conversation_id))
    return chats


def _conversation(services: Services, named: str) -> str:
    """By what people call it; else it is the id of a session."""
    slug, _, rest = named.partition("/")
    mission = next((one for one in services.missions.list(archived=True) if one.slug == slug), None)
    if mission is None:
        return named
    chats = _chats(services, mission)
    found = next((chat for chat in chats if chat.name == named), None)
    if found is None:
        there = ", ".join(chat.name for chat in chats)
        raise NotFound(f"Mission {slug!r} has no chat {excerpt(rest)!r}. There are: {there}.")
    return found.conversation_id
