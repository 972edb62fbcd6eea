"""What a hook answers. Claude Code, Codex and Gemini CLI read the same JSON, as does our opencode plugin. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from punchlist.agent.continuation import Continue, Reason, Stop, Wait, ending
from punchlist.integrations.hook_service import StopDecision
from punchlist.kernel.text import visible_block

Reply = dict[str, Any]

NOTHING: Final[Reply] = {}
_CLAUDE_CODES_CAP: Final = ("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", 8)


def most_sent_back(agent: str | None, environment: Mapping[str, str]) -> int | None:
    """How often in a row a program lets itself be sent back when nothing comes of it; None where it sets no limit.
    It would go its own way then, without a word of ours."""
    if agent != "claude-code":
        return None
    name, usual = _CLAUDE_CODES_CAP
    said = environment.get(name, "")
    return (int(said) if said.isdigit() and len(said) < 10 else usual) or None


def verdict(came: StopDecision) -> Reply:
    if came.quiet:
        return NOTHING
    match came.decision:
        case Continue(prompt):
            return {"decision": "block", "reason": prompt}
        case Wait(on):
            return _message(ending(Reason.WAITING, "; ".join(on), ()))
        case Stop(reason, why) if reason is not Reason.COMPLETED:
            return _message(ending(reason, why, came.view.open))
    return NOTHING


def context(name: str, text: str) -> Reply:
    """Something for the model to read. Events are called as the program calls them."""
    if not text:
        return NOTHING
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}


def _message(text: str) -> Reply:
    """Something for the person to read."""
    return {"systemMessage": f"Punchlist: {visible_block(text)}"}
