"""`/chats/ID`: the messages of a chat or session, a page at a time, with a form to write to its agent."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from punchlist.agent.message_kinds import TEXT
from punchlist.conversations.message_queue import MessageQueue
from punchlist.conversations.model import ChatEntry, Conversation, Message, NoticeKind, Scope
from punchlist.conversations.turn_writer import PAUSE
from punchlist.errors import IllegalTransition
from punchlist.kernel.events import Role
from punchlist.kernel.json_text import json_object
from punchlist.kernel.text import excerpt
from punchlist.missions.chats import without_heading
from punchlist.surfaces.web.pages.call_parts import shown_arguments, summary_of
from punchlist.surfaces.web.pages.formats import sentence
from punchlist.surfaces.web.pages.inbox_items import request_card
from punchlist.surfaces.web.pages.names import actor_name, agent_name, channel_name, chat_title, wait_text
from punchlist.surfaces.web.pages.page import Page, PageRequest, Redirect
from punchlist.surfaces.web.pages.turns import deliver_queued, missing_model
from punchlist.views.chat import DEFAULT_LIMIT, read_chat
from punchlist.views.conversations import read_title
from punchlist.views.health import has_worker

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PROGRAM: Final = "Punchlist"
"""The author of notices."""
LONG: Final = 240
"""A longer notice is folded: it is a prompt to an agent, or repeats what an agent said."""
_SUMMARY: Final = 140
EditedCalls = dict[str, tuple[str, Any]]
"""Who has edited a call, and its arguments then, by its id."""
_SPEAKERS: Final = {"system": PROGRAM, "user": "You"}
_NOTICES: Final = frozenset(kind.value for kind in NoticeKind)


@dataclass(frozen=True, slots=True)
class ShownCall:
    tool: str
    arguments: str
    result: str | None = None
    failed: bool = False
    about: str = ""
    edited_by: str = ""
    """Who has edited the arguments, which are those that ran; empty if they are the agent's."""


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """A message as the page shows it."""

    id: str
    position: int
    who: str
    kind: str
    text: str
    at: str
    calls: Sequence[ShownCall] = ()
    notice: bool = False
    summary: str = ""
    """Of a notice that is folded: its beginning."""

    @property
    def initials(self) -> str:
        """Of an agent, such as PO for the pillar owner; empty for this program, which has an icon."""
        if self.who == PROGRAM:
            return ""
        return "".join(word[:1] for word in re.split(r"[-\s]", self.who)[:2]).upper() or "?"


def chat(request: PageRequest) -> Page:
    values = chat_values(request, request.parameters["chat"])
    metadata = values["metadata"]
    slug = metadata.get("missionSlug")
    title = chat_title(read_title(request.services.store, values["page"].conversation))
    return Page(
        "chat.html",
        title,
        values,
        section=f"mission:{slug}" if slug else "conversations",
        mission=slug,
        live_text=values["at_end"],
    )


def chat_values(request: PageRequest, conversation_id: str) -> dict[str, Any]:
    services = request.services
    before, after = request.get("before"), request.get("after")
    page = read_chat(
        services.store,
        conversation_id,
        before=_position(before),
        after=_position(after) if not before else None,
        limit=DEFAULT_LIMIT,
    )
    items = services.inbox.from_chat(conversation_id)
    metadata = json.loads(page.conversation.metadata)
    return {
        "page": page,
        "metadata": metadata,
        "channel": channel_name(metadata.get("channel")),
        "messages": shown_messages(page.entries, services.approvals.edited_calls(conversation_id)),
        "queued": page.queued,
        "awaits": _awaited(request, metadata.get("missionSlug")),
        "run": next((run for run in page.runs if run.status.value != "queued"), None),
        "earlier": request.link(before=str(page.entries[0].message.position), after=None) if page.earlier else None,
        "later": request.link(after=str(page.entries[-1].message.position), before=None)
        if page.later and page.entries
        else None,
        "at_end": not (before or after),
        "requests": [request_card(services, item, services.store.clock()) for item in items],
    }


def _awaited(request: PageRequest, slug: str | None) -> str:
    """What a queued message waits for."""
    if slug is None:
        return "waits for a model" if missing_model(request) else "waits for the agent"
    return "waits for the agent" if has_worker(request.services.store) else "waits for a worker"


def shown_messages(entries: Sequence[ChatEntry], edited: EditedCalls) -> list[ShownMessage]:
    """The messages, with the results of calls at their calls. `edited`: calls whose arguments a person has edited."""
    results: dict[str, Mapping[str, Any]] = {}
    for entry in entries:
        if entry.message.kind == "result" and (found := json_object(entry.message.content)):
            results[str(found.get("id"))] = found
    shown, called = [], set[str]()
    for entry in entries:
        message = entry.message
        if message.kind == "reply":
            found = json_object(message.content)
            called.update(str(call.get("id")) for call in found.get("calls", ()))
            shown.append(_reply(entry, found, results, edited))
        elif message.kind == "result":
            found = json_object(message.content)
            if str(found.get("id")) not in called:
                call = ShownCall(str(found.get("tool", "")), "", str(found.get("text", "")), bool(found.get("failed")))
                shown.append(_message(entry, "", (call,)))
        else:
            shown.append(_message(entry, message.content))
    return shown


def _reply(
    entry: ChatEntry, found: Mapping[str, Any], results: Mapping[str, Mapping[str, Any]], edited: EditedCalls
) -> ShownMessage:
    calls = []
    for call in found.get("calls", ()):
        result = results.get(str(call.get("id")), {})
        tool = str(call.get("tool", ""))
        editor, arguments = edited.get(str(call.get("id")), ("", call.get("arguments")))
        shown = shown_arguments(tool, arguments)
        failed = bool(result.get("failed"))
        calls.append(ShownCall(tool, shown, result.get("text"), failed, summary_of(arguments), editor))
    return _message(entry, str(found.get("text", entry.message.content if not found else "")), tuple(calls))


def _message(entry: ChatEntry, text: str, calls: Sequence[ShownCall] = ()) -> ShownMessage:
    message, turn = entry.message, entry.turn
    own = message.role == "assistant"
    who = _SPEAKERS.get(message.role, message.role)
    if own:
        who = sentence(agent_name(turn.agent_id if turn else "agent"))
    elif message.kind == TEXT and entry.delegated and turn is not None:
        who = f"For {agent_name(turn.agent_id)}"
    notice = message.kind in _NOTICES or message.kind not in ("text", "reply", "result")
    if notice and not own:
        who = _poster(message)
        text = without_heading(text)
    return ShownMessage(
        message.id,
        message.position,
        who,
        message.kind,
        sentence(wait_text(text)) if message.kind == PAUSE else text,
        message.created_at,
        calls,
        notice,
        excerpt(" ".join(text.replace("#", " ").split()), _SUMMARY) if notice and len(text) > LONG else "",
    )


def _poster(message: Message) -> str:
    """Who posted a notice, unless it was the program."""
    if message.posted_by is None or message.posted_by.startswith(f"{Role.SYSTEM}:"):
        return PROGRAM
    return sentence(actor_name(message.posted_by))


def _position(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 10 else None


# --- forms ------------------------------------------------------------------------------------------------


def write(request: PageRequest) -> Redirect:
    """Queue a message; the agent of the chat gets it when it is idle."""
    conversation = request.services.conversations.get(request.parameters["chat"])
    queue_message(request, conversation, request.posted("text"))
    return Redirect(f"/chats/{conversation.id}", "")


def queue_message(request: PageRequest, conversation: Conversation, text: str) -> None:
    """Add a message that the agent of the chat gets when it is idle."""
    services = request.services
    slug = json.loads(conversation.metadata).get("missionSlug")
    if slug is not None and services.missions.get(slug).status == "archived":
        raise IllegalTransition(f"Mission {slug!r} is archived, so its agents do not answer.")
    scope = Scope(conversation.id, request.actor)
    MessageQueue(services.store, services.conversations).add(scope, text)
    if slug is None:
        deliver_queued(request, conversation)


def control_run(request: PageRequest) -> Redirect:
    """Pause, resume, redirect or stop a run."""
    runs, scope, id = request.services.runs, request.scope(), request.parameters["run"]
    match request.posted("do"):
        case "pause":
            run = runs.pause(scope, id, request.posted("reason"))
        case "resume":
            run = runs.resume(scope, id)
        case "redirect":
            run = runs.redirect(scope, id, request.posted("text"))
        case "stop":
            run = runs.stop(scope, id, request.posted("reason"))
        case other:
            raise IllegalTransition(f"A run cannot be told to {excerpt(other)!r}.")
    state = f"{run.wish.value} requested" if run.wish else run.status.value
    return Redirect(request.posted("next") or f"/runs/{run.id}", f"Run {run.id[-8:]}: {state}.")
