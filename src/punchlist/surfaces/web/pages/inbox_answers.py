"""Answers to requests of the inbox, from their forms."""

from __future__ import annotations

import json
from typing import Any

from punchlist.errors import InvalidInput
from punchlist.kernel.text import json_type
from punchlist.missions.escalations.transitions import REVIEW
from punchlist.surfaces.web.pages.page import PageRequest, Redirect
from punchlist.views.inbox_answers import AnsweredRequest
from punchlist.views.inbox_model import InboxAction, RequestKind

_REASONED = (InboxAction.DENY, InboxAction.EXTEND, InboxAction.CANCEL, InboxAction.KEEP)


def answer(request: PageRequest) -> Redirect:
    """The button names the action; of the fields, those that the action uses count."""
    action = request.posted("action")
    arguments = _arguments(request.posted("arguments")) if action == InboxAction.MODIFY else None
    answered = request.services.inbox.answer(
        request.scope(),
        request.parameters["id"],
        action,
        text=request.posted("text") if action == InboxAction.ANSWER else "",
        reason=request.posted("reason") if action in _REASONED else "",
        deadline=(request.posted("deadline") or None) if action == InboxAction.EXTEND else None,
        always=(request.posted("always") or None) if action == InboxAction.APPROVE else None,
        arguments=arguments,
    )
    return Redirect("/", _message(answered))


def _message(answered: AnsweredRequest) -> str:
    """What happens now. The command line repeats the answer to an escalation in its own words."""
    if answered.item.kind is not RequestKind.ESCALATION:
        return answered.message
    match answered.action:
        case InboxAction.EXTEND:
            return f"The deadline is now {answered.answer.removeprefix('extend to ')[:10]}."
        case InboxAction.CANCEL:
            return "The todo is cancelled."
        case InboxAction.KEEP:
            return "Sent back. The agent goes on." if answered.item.subject == REVIEW else "It stays as it is."
    return "It stays open, without reminders."


def _arguments(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"arguments: are not JSON ({error})") from None
    if not isinstance(found, dict):
        raise InvalidInput(f"arguments: must be an object, got {json_type(found)}")
    return found
