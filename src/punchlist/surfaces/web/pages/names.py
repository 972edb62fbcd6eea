"""How pages name what is stored as an identifier: actors, actions, tools, states, and why a run waits. Pure functions.

The command line shows ids where a command takes them; a page has links and buttons instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from punchlist.agent import message_kinds
from punchlist.conversations.model import NoticeKind
from punchlist.conversations.turn_writer import PAUSE
from punchlist.kernel.events import Actor, Role
from punchlist.missions.model import ChatChannel

_ROLES: Final = {"lead": "Lead", "owner": "pillar owner", "system": "Punchlist", "supervisor": "supervisor"}
_AGENTS: Final = {"mission-lead": "Lead", "pillar-owner": "pillar owner", "punchlist": "Punchlist"}
_ACTIONS: Final = {
    "shelve": "created in the backlog",
    "create": "created",
    "promote": "promoted",
    "demote": "moved to the backlog",
    "start": "started",
    "complete": "completed",
    "cancel": "cancelled",
    "extend": "deadline changed",
    "reprioritize": "priority changed",
    "resume": "work resumed",
    "edit": "edited",
    "unarchive": "taken out of the archive",
    "claim": "work taken",
    "renew": "work continued",
    "release": "work handed back",
    "ask": "question asked",
    "remind": "reminder sent",
    "acknowledge": "question seen",
    "answer": "question answered",
    "link": "link added",
    "unlink": "link removed",
    "comment": "comment",
    "attach": "file attached",
    "detach": "file removed",
    "work": "result reported",
    "check": "check run",
}
_STORED_REASONS: Final = frozenset(
    {"mission_todo_create", "a run", "it was worked on", "its result was reported", "created on the page"}
)
"""Reasons that say no more than the action."""
_TOOLS: Final = {
    "run_command": "a command",
    "write_file": "a file to write",
    "edit_file": "a change of a file",
    "web_fetch": "a page to fetch",
}
_WAITS: Final = re.compile(r"(\w+) \([0-9a-f]{8}\): [^;\n]*")
_MODE: Final = re.compile(r"\bin mode (\w+)")
_CHANNELS: Final[Mapping[str, str]] = {
    ChatChannel.MISSION: "Mission chat",
    ChatChannel.PILLAR: "Pillar chat",
    ChatChannel.PILLAR_TODO: "TODO chat",
}
_NOTICES: Final[Mapping[str, str]] = {
    NoticeKind.TODO_DELEGATION: "task",
    NoticeKind.TODO_RESULT: "result",
    NoticeKind.TODO_ERROR: "error",
    NoticeKind.TODO_FEEDBACK: "feedback",
    NoticeKind.DEADLINE_WARNING: "deadline",
    NoticeKind.ESCALATION: "question",
    NoticeKind.REMINDER: "reminder",
    NoticeKind.CYCLE_REPORT: "report",
    NoticeKind.WORKER_RESULT: "result of a worker",
    message_kinds.COMPACTION: "summary",
    message_kinds.FINAL: "final report",
    PAUSE: "wait",
}
_TODO_CHAT: Final = re.compile(r"^\[TODOs\] ")


def actor_name(actor: str) -> str:
    """`owner:pillar-owner` becomes `pillar owner`; of a person in a browser, their name."""
    role, _, name = actor.partition(":")
    if not name:
        return agent_name(actor)
    if role == Role.PERSON:
        return Actor(Role.PERSON, name).known_name
    if role in _ROLES and (name in _AGENTS or role == "system"):
        return _ROLES[role]
    return f"{name} ({_ROLES.get(role, role)})"


def agent_name(agent: str) -> str:
    return _AGENTS.get(agent, agent)


def action_name(action: str) -> str:
    """What an action did, for a list of changes."""
    return _ACTIONS.get(action, action.replace("_", " "))


def reason_text(reason: str) -> str:
    """The reason of a change; empty if it only repeats what was done."""
    return "" if reason in _STORED_REASONS else reason


def wait_text(why: str) -> str:
    """Why a run waits: the calls that need an approval without the ids that commands take."""
    return _MODE.sub(r"in the mode “\1”", _WAITS.sub(lambda found: f"{_tool(found.group(1))} needs your approval", why))


def _tool(name: str) -> str:
    return _TOOLS.get(name, f"a call of {name}")


def notice_name(kind: str) -> str:
    return _NOTICES.get(kind, kind.replace("_", " "))


def channel_name(channel: str | None) -> str:
    return _CHANNELS.get(channel or "", "Conversation")


def chat_title(title: str) -> str:
    """The title of a chat; that of a TODO chat is stored with a mark."""
    return _TODO_CHAT.sub("", title) + (": todos" if _TODO_CHAT.match(title) else "")
