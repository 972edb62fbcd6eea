"""The JSON that hosts send to a hook. Fields that are missing or have the wrong type become None."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from punchlist.kernel.text import excerpt


class HookEvent(StrEnum):
    STOP = "stop"
    PROMPT = "prompt"
    SESSION_START = "session-start"
    TOOL = "tool"


EVENT_NAMES: Final = {
    **{event.value: event for event in HookEvent},
    "Stop": HookEvent.STOP,
    "AfterAgent": HookEvent.STOP,
    "UserPromptSubmit": HookEvent.PROMPT,
    "BeforeAgent": HookEvent.PROMPT,
    "SessionStart": HookEvent.SESSION_START,
    "PostToolUse": HookEvent.TOOL,
    "AfterTool": HookEvent.TOOL,
}
"""Event names on our command line and in the hosts' JSON."""
_DEFAULT_NAMES: Final = {
    HookEvent.STOP: "Stop",
    HookEvent.PROMPT: "UserPromptSubmit",
    HookEvent.SESSION_START: "SessionStart",
    HookEvent.TOOL: "PostToolUse",
}
_IGNORED_EVENTS: Final = frozenset({"SubagentStop", "SubagentStart", "SessionEnd", "Interrupt"})
_MAX_SESSION_LENGTH: Final = 200
_NEW_SESSION_SOURCES: Final = frozenset({"startup", "clear", "new"})
_AUTOMATIC_SOURCES: Final = frozenset({"system", "loop_wakeup", "schedule_wakeup", "poll_event"})
_NOTIFICATION: Final = "<task-notification>"
_RUNNING: Final = frozenset({"running", "pending"})
_MAX_BACKGROUND_TASKS: Final = 5


@dataclass(frozen=True, slots=True)
class HookPayload:
    event: HookEvent
    agent: str | None
    """The host's name from `--for`."""
    event_name: str
    """The host's name for the event; the reply repeats it."""
    cwd: str | None = None
    session: str | None = None
    source: str | None = None
    prompt: str = ""
    tool: str = ""
    arguments: Any = None
    response: Any = None
    """The result of the tool, in the host's own form."""
    plan_mode: bool = False
    """The agent may read but not change anything."""
    background: tuple[tuple[str, str], ...] = ()
    """Kind and description of the host's running background tasks."""

    @property
    def host_session(self) -> str | None:
        """The host's session id, prefixed with the host's name."""
        return f"{self.agent or ''}:{self.session}" if self.session else None

    @property
    def is_new_session(self) -> bool:
        """False for a session that was resumed or compacted."""
        return self.source is None or self.source in _NEW_SESSION_SOURCES

    @property
    def is_automatic_prompt(self) -> bool:
        """The host wrote the prompt itself, for example when a background task ended."""
        return self.source in _AUTOMATIC_SOURCES or self.prompt.lstrip().startswith(_NOTIFICATION)


class UnreadablePayload(Exception):
    """The hook's arguments or its input are invalid."""


def parse_payload(event: HookEvent, agent: str | None, data: bytes) -> HookPayload | None:
    """Parse standard input; None for events that need no answer, such as those of subagents."""
    try:
        payload = json.loads(data)
    except (ValueError, RecursionError):
        raise UnreadablePayload(f"standard input ({len(data):,} bytes) is not JSON") from None
    if not isinstance(payload, Mapping):
        raise UnreadablePayload("standard input is not a JSON object")
    name = _text(payload, "hook_event_name")
    if name in _IGNORED_EVENTS or _text(payload, "agent_id"):
        return None
    session = _text(payload, "session_id")
    return HookPayload(
        event,
        agent,
        name or _DEFAULT_NAMES[event],
        _text(payload, "cwd"),
        session if session and len(session) <= _MAX_SESSION_LENGTH else None,
        _text(payload, "source"),
        _text(payload, "prompt") or "",
        _text(payload, "tool_name") or "",
        payload.get("tool_input"),
        payload.get("tool_response"),
        _text(payload, "permission_mode") == "plan",
        _background(payload.get("background_tasks")),
    )


def _background(raw: Any) -> tuple[tuple[str, str], ...]:
    tasks = [task for task in raw if isinstance(task, Mapping)] if isinstance(raw, list) else []
    return tuple(
        (excerpt(_text(task, "type") or "task"), excerpt(_text(task, "description") or ""))
        for task in tasks
        if _text(task, "status") in _RUNNING
    )[:_MAX_BACKGROUND_TASKS]


def _text(payload: Mapping[str, Any], key: str) -> str | None:
    value = payload.get(key)
    if not isinstance(value, str):
        return None
    # The database stores neither lone surrogates nor NUL.
    return value.encode("utf-8", "replace").decode().replace("\x00", "")
