"""Answers to requests of the inbox, from their forms."""

from __future__ import annotations

import json
from typing import Any

from punchlist.errors import InvalidInput
from punchlist.kernel.text import json_type
from punchlist.surfaces.web.pages.page import PageRequest, Redirect
from punchlist.views.inbox_model import InboxAction

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
    return Redirect("/", answered.message)


def _arguments(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"arguments: are not JSON ({error})") from None
    if not isinstance(found, dict):
        raise InvalidInput(f"arguments: must be an object, got {json_type(found)}")
    return found
