"""What an agent's program says to a hook. Nothing it says is relied on: what is missing or odd is None. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from punchlist.integrations.background_work import BackgroundWork
from punchlist.kernel.text import excerpt


class HookEvent(StrEnum):
    STOP = "stop"
    PROMPT = "prompt"
    SESSION_START = "session-start"
    TOOL = "tool"


NAMES: Final = {
    **{event.value: event for event in HookEvent},
    "Stop": HookEvent.STOP,
    "AfterAgent": HookEvent.STOP,
    "UserPromptSubmit": HookEvent.PROMPT,
    "BeforeAgent": HookEvent.PROMPT,
    "SessionStart": HookEvent.SESSION_START,
    "PostToolUse": HookEvent.TOOL,
    "AfterTool": HookEvent.TOOL,
}
"""What the events are called, here and by the programs themselves."""
_OF_OTHERS: Final = frozenset({"SubagentStop", "SubagentStart", "SessionEnd", "Interrupt"})
"""Events that are none of ours, whatever the hook was registered for."""
LONGEST_SESSION: Final = 200
FRESH: Final = frozenset({"startup", "clear", "new"})
"""Ways for a session to begin without anything that it remembers."""
_OF_NOBODY: Final = frozenset({"system", "loop_wakeup", "schedule_wakeup", "poll_event"})
_NOTIFICATION: Final = "<task-notification>"
"""Where a prompt comes from, or how it begins, that the program has made itself: of work that has ended, of time."""
_PLANNING: Final = "plan"
_UNDER_WAY: Final = frozenset({"running", "pending"})
_MOST_WORK: Final = 5


@dataclass(frozen=True, slots=True)
class HookPayload:
    event: HookEvent
    agent: str | None
    """Whose program it is; None where nobody has said."""
    name: str
    """What the program calls the event; it wants to read that again."""
    cwd: str | None = None
    session: str | None = None
    source: str | None = None
    prompt: str = ""
    tool: str = ""
    arguments: Any = None
    planning: bool = False
    """It may look at things, and change nothing."""
    work: tuple[BackgroundWork, ...] = ()

    @property
    def own_session(self) -> str | None:
        """The agent's own session, told from those of other programs."""
        return f"{self.agent or ''}:{self.session}" if self.session else None

    @property
    def fresh(self) -> bool:
        return self.source is None or self.source in FRESH

    @property
    def of_nobody(self) -> bool:
        """Whether a prompt is none of the user's."""
        return self.source in _OF_NOBODY or self.prompt.lstrip().startswith(_NOTIFICATION)


_USUAL: Final = {
    HookEvent.STOP: "Stop",
    HookEvent.PROMPT: "UserPromptSubmit",
    HookEvent.SESSION_START: "SessionStart",
    HookEvent.TOOL: "PostToolUse",
}


class UnreadablePayload(Exception):
    """What came is not what a program says to a hook."""


def read(event: HookEvent, agent: str | None, data: bytes) -> HookPayload | None:
    """What was said; None when it is of no concern to us."""
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        raise UnreadablePayload(f"what came on standard input ({len(data):,} bytes) is not JSON") from None
    if not isinstance(said, Mapping):
        raise UnreadablePayload("what came on standard input is not a JSON object")
    name = _text(said, "hook_event_name")
    if name in _OF_OTHERS or _text(said, "agent_id"):
        # What happens inside of a subagent is between it and the agent, whose list it is.
        return None
    session = _text(said, "session_id")
    return HookPayload(
        event,
        agent,
        name or _USUAL[event],
        _text(said, "cwd"),
        session if session and len(session) <= LONGEST_SESSION else None,
        _text(said, "source"),
        _text(said, "prompt") or "",
        _text(said, "tool_name") or "",
        said.get("tool_input"),
        _text(said, "permission_mode") == _PLANNING,
        _work(said.get("background_tasks")),
    )


def _work(said: Any) -> tuple[BackgroundWork, ...]:
    under_way = [one for one in said if isinstance(one, Mapping)] if isinstance(said, list) else []
    return tuple(
        BackgroundWork(excerpt(_text(one, "type") or "work"), excerpt(_text(one, "description") or ""))
        for one in under_way
        if _text(one, "status") in _UNDER_WAY
    )[:_MOST_WORK]


def _text(said: Mapping[str, Any], key: str) -> str | None:
    value = said.get(key)
    if not isinstance(value, str):
        return None
    # Half of a character cannot be stored, nor can a NUL; neither is worth losing the rest for.
    return value.encode("utf-8", "replace").decode().replace("\x00", "")
