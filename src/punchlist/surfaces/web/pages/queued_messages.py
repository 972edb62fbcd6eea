"""Messages of a chat that wait for delivery: a person edits or withdraws them."""

from __future__ import annotations

from punchlist.conversations.message_queue import MessageQueue
from punchlist.conversations.model import Scope
from punchlist.errors import InvalidInput
from punchlist.surfaces.web.pages.page import PageRequest, Redirect


def change_queued(request: PageRequest) -> Redirect:
    services, id = request.services, request.parameters["message"]
    conversation = services.conversations.get(request.parameters["chat"])
    queue, scope = MessageQueue(services.store, services.conversations), Scope(conversation.id, request.actor)
    match request.posted("do"):
        case "edit":
            queue.edit(scope, id, request.posted("text"))
            return Redirect(f"/chats/{conversation.id}", "The message is changed.")
        case "withdraw":
            queue.withdraw(scope, id)
            return Redirect(f"/chats/{conversation.id}", "The message is withdrawn.")
    raise InvalidInput("do: must be edit or withdraw")
