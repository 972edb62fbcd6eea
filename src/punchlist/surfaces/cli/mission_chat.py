"""`punchlist mission chat`: list and show the chats of missions, and send messages to them."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from punchlist.errors import IllegalTransition, NotFound
from punchlist.kernel.text import excerpt, visible
from punchlist.surfaces.cli.agent_guard import refuse_for_agents
from punchlist.surfaces.cli.context import CliContext, echo, echo_json, format_time
from punchlist.surfaces.cli.options import NO_MISSIONS, OptionalMissionArgument

if TYPE_CHECKING:
    from punchlist.app import Services
    from punchlist.missions.model import ChatChannel
    from punchlist.runs.model import Run

app = typer.Typer(help="Read the chats of missions, and send messages to their agents.", no_args_is_help=True)

ChatArgument = Annotated[
    str,
    typer.Argument(
        metavar="CHAT", help="MISSION, MISSION/PILLAR, MISSION/PILLAR/todos, or a session's id.", show_default=False
    ),
]
TODOS = "todos"


@app.command("list")
def list_chats(cli: CliContext, mission: OptionalMissionArgument = None) -> None:
    """List the chats of missions with their last and waiting messages."""
    from punchlist.views.mission_chats import read_mission_chats

    services = cli.services()
    slugs = [mission] if mission is not None else [each.slug for each in services.missions.list()]
    listed = []
    for slug in slugs:
        listed += [
            {
                "chat": _name(slug, chat.channel, chat.pillar.slug if chat.pillar else ""),
                "channel": chat.channel,
                "conversationId": chat.id,
                "messages": chat.messages,
                "lastMessageAt": chat.last_message_at,
                "waiting": chat.waiting,
                "run": _run_json(chat.run),
            }
            for chat in read_mission_chats(services.store, slug)
        ]
    if cli.json:
        echo_json(listed)
        return
    if not listed:
        echo(NO_MISSIONS)
    for entry in listed:
        _echo_chat(entry)


def _run_json(run: Run | None) -> dict[str, str] | None:
    return None if run is None else {"id": run.id, "agent": run.agent, "status": run.status.value}


def _echo_chat(chat: dict[str, Any]) -> None:
    from punchlist.surfaces.cli.layout import fit_line, line_width

    parts = []
    if chat["messages"]:
        parts.append(f"{chat['messages']:,} messages, the last {format_time(chat['lastMessageAt'])}")
    if chat["waiting"]:
        parts.append(f"{chat['waiting']} waiting")
    if chat["run"]:
        parts.append(f"{visible(chat['run']['agent'])}: {chat['run']['status']}")
    echo(visible(chat["chat"]))
    echo(fit_line(f"  {chat['channel']}  {', '.join(parts) or 'no messages yet'}", line_width()))


@app.command()
def show(
    cli: CliContext,
    chat: ChatArgument,
    last: Annotated[int, typer.Option("--last", "-n", min=1, max=500, metavar="N", help="How many messages.")] = 30,
    before: Annotated[
        int | None, typer.Option("--before", min=1, metavar="N", help="The messages before the one with this number.")
    ] = None,
    after: Annotated[
        int | None, typer.Option("--after", min=0, metavar="N", help="The messages after the one with this number.")
    ] = None,
) -> None:
    """Show the messages of a chat, who works in it, and what waits: messages for delivery, requests for a person."""
    from punchlist.surfaces.cli import mission_chat_view
    from punchlist.views.chat import read_chat

    services = cli.services()
    conversation_id = services.conversations.get(_conversation_id(services, chat)).id
    page = read_chat(services.store, conversation_id, before=before, after=after, limit=last)
    title = f": {visible(page.conversation.title)}" if page.conversation.title else ""
    heading = f"{visible(page.conversation.id)}{title}"
    cli.show(mission_chat_view.chat_json(page), [heading, *mission_chat_view.chat_lines(page)])


@app.command()
def send(
    cli: CliContext,
    chat: ChatArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The message; - reads it from stdin.")],
) -> None:
    """Send a message to a chat. Its agent answers when it is free."""
    from punchlist.conversations.message_queue import MessageQueue
    from punchlist.conversations.model import Scope
    from punchlist.missions.model import ChatChannel
    from punchlist.runs.lifecycle import RESTING
    from punchlist.views.mission_chats import run_in_chat

    refuse_for_agents("mission chat send")
    services = cli.services()
    content = sys.stdin.read() if text == "-" else text
    conversation = services.conversations.get(_conversation_id(services, chat))
    metadata = json.loads(conversation.metadata)
    slug = metadata.get("missionSlug")
    if slug is not None and services.missions.get(slug).status != "active":
        raise IllegalTransition(f"Mission {slug!r} is archived, so its agents do not answer. The message was not sent.")
    scope = Scope(conversation.id, cli.user_scope(services).actor)
    message = MessageQueue(services.store, services.conversations).add(scope, content)
    run = run_in_chat(services.store, conversation.id)
    if cli.json:
        echo_json({**message.as_json(), "conversationId": conversation.id, "run": _run_json(run)})
        return
    echo(f"Queued as message {message.id[-8:]}.")
    if run is not None and run.status not in RESTING:
        echo(f"{visible(run.agent)} is working there (run {run.id[-8:]}, {run.status}) and gets it afterwards.")
        echo(f"To interrupt it instead: punchlist mission runs redirect {run.id[-8:]} TEXT")
    elif metadata.get("channel") in list(ChatChannel):
        echo("A worker delivers it: punchlist worker")
    else:
        echo(f"The next `punchlist run --session {visible(conversation.id)}` delivers it after its own turn.")


# --- names of chats ---------------------------------------------------------------------------------------


def _name(slug: str, channel: ChatChannel, pillar: str) -> str:
    return {"mission": slug, "pillar": f"{slug}/{pillar}"}.get(channel, f"{slug}/{pillar}/{TODOS}")


def _conversation_id(services: Services, name: str) -> str:
    """A chat's conversation; a name that starts with no mission's slug is a session id."""
    from punchlist.views.mission_chats import read_mission_chats

    slug, _, rest = name.partition("/")
    mission = next((mission for mission in services.missions.list(archived=True) if mission.slug == slug), None)
    if mission is None:
        return name
    chats = {
        _name(slug, chat.channel, chat.pillar.slug if chat.pillar else ""): chat.id
        for chat in read_mission_chats(services.store, slug)
    }
    if name not in chats:
        raise NotFound(f"Mission {slug!r} has no chat {excerpt(rest)!r}. Its chats: {', '.join(chats)}.")
    return chats[name]
