"""Turns that a person starts from a page, in processes of their own."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

from punchlist.agent.turn_process import start_turn
from punchlist.conversations.model import Conversation
from punchlist.errors import Conflict, NotAllowed
from punchlist.host_sessions import HostSessions
from punchlist.kernel.events import Role
from punchlist.models.providers import default_model, no_model
from punchlist.surfaces.web.pages.page import PageRequest, Redirect
from punchlist.views.conversations import read_status

_AGENT: Final = "supervisor"


def turn_model(request: PageRequest) -> str | None:
    """The model of a turn that this person starts; None if they may start none or no model is configured."""
    if request.actor.role is not Role.PERSON:
        return None
    agents = request.services.agents
    return request.model or agents.get(_AGENT).model or agents.default_model or default_model(os.environ)


def missing_model(request: PageRequest) -> str:
    """Why agents cannot work in this server, and what to do; empty if a model is configured."""
    if request.actor.role is not Role.PERSON or turn_model(request) is not None:
        return ""
    return str(no_model(os.environ)).splitlines()[0]


def lacks_worker_for_model(request: PageRequest) -> bool:
    """Whether the missing model is why no worker runs, so that the notice about it is enough."""
    return request.hosts_worker and bool(missing_model(request))


def start_conversation(request: PageRequest) -> Redirect:
    if request.actor.role is not Role.PERSON:
        raise NotAllowed("Only a person starts conversations.")
    started = start_turn(
        request.services,
        None,
        request.posted("goal"),
        model=request.posted("model") or request.model,
        mode=request.mode,
        folder=request.services.workspace,
    )
    return Redirect(f"/chats/{started.turn.conversation_id}")


def deliver_queued(request: PageRequest, conversation: Conversation) -> None:
    """Start a turn with the queued message if our agent has ended its turn in this session.

    Workers deliver messages in the chats of missions, processes at work those in their sessions, and third-party agents
    read their own.
    """
    status = read_status(request.services.store, conversation.id)
    if status.state != "ended" or status.status is None or turn_model(request) is None:
        return
    if conversation.id in HostSessions(request.services.settings, os.environ).running():
        return
    # Another process may have begun a turn meanwhile; it delivers the message.
    with suppress(Conflict):
        start_turn(
            request.services,
            conversation.id,
            queued=True,
            model=request.model,
            mode=request.mode,
            folder=request.services.workspace,
        )
