"""`/todos` and `/queue`: the lists of the session, changed by the person."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from punchlist.conversations.message_queue import MessageQueue
from punchlist.conversations.model import QueuedMessage
from punchlist.errors import InvalidInput, NotFound
from punchlist.kernel.text import excerpt, visible
from punchlist.surfaces.tui.slash_commands.model import (
    ConfirmAction,
    DialogName,
    OpenDialog,
    ShowMessage,
    SlashAction,
    SlashCommand,
    SlashContext,
    SlashResult,
)

REASON: Final = "slash command"


def open_dialog(dialog: DialogName) -> SlashAction:
    return lambda _, arguments: OpenDialog(dialog, arguments)


# --- /todos -------------------------------------------------------------------------------------------------


def _add(context: SlashContext, arguments: str) -> SlashResult:
    _require(arguments, "the text of the item: /todos add Write the release notes")
    context.services.todos.add(context.scope, [arguments], reason=REASON)
    return _changed(context, f"Added {visible(arguments)!r}.")


def _by_number(done: str, change: Callable[[SlashContext, str, str], None]) -> SlashAction:
    """An action on one item, which the first word names."""

    def act(context: SlashContext, arguments: str) -> SlashResult:
        reference, rest = _number_and_rest(arguments)
        item = context.services.todos.list(context.scope).find(reference)
        change(context, reference, rest)
        return _changed(context, f"{done} {item.number}: {visible(item.title)}")

    return act


def _start(context: SlashContext, reference: str, _: str) -> None:
    context.services.todos.start(context.scope, reference, reason=REASON)


def _complete(context: SlashContext, reference: str, outcome: str) -> None:
    context.services.todos.complete(context.scope, reference, outcome or None, reason=REASON)


def _cancel(context: SlashContext, reference: str, reason: str) -> None:
    context.services.todos.cancel(context.scope, reference, reason=reason or None)


def _accept(context: SlashContext, reference: str, _: str) -> None:
    context.services.todos.accept(context.scope, reference, reason=REASON)


def _edit(context: SlashContext, reference: str, title: str) -> None:
    _require(title, "a new text: /todos edit 2 Write the release notes")
    context.services.todos.edit(context.scope, reference, title, reason=REASON)


def _move(context: SlashContext, reference: str, position: str) -> None:
    if not position.isdecimal() or len(position) > 4:
        raise InvalidInput("/todos move needs a number and a position: /todos move 3 1")
    context.services.todos.move(context.scope, reference, int(position), reason=REASON)


def _undo(context: SlashContext, _: str) -> SlashResult:
    context.services.todos.undo(context.scope, reason=REASON)
    return _changed(context, "The last change is undone.")


def _clear(context: SlashContext, _: str) -> SlashResult:
    items = [item for item in context.services.todos.list(context.scope).items if item.list == "checklist"]
    if not items:
        return ShowMessage("The checklist is empty.")
    if not context.confirmed:
        still_open = sum(item.is_open for item in items)
        question = f"Remove all {len(items)} items of the checklist ({still_open} open)? /todos undo brings them back."
        return ConfirmAction(question, context.line)
    context.services.todos.clear(context.scope, reason=REASON)
    return _changed(context, "Cleared the checklist.")


def _numbers(context: SlashContext) -> Sequence[str]:
    return [str(item.number) for item in context.services.todos.list(context.scope).items]


def _changed(context: SlashContext, done: str) -> ShowMessage:
    """The agent of a running turn is told about changes of its lists with its next request (X9)."""
    return ShowMessage(f"{done} The agent is told." if context.running else done)


TODOS: Final = SlashCommand(
    "todos",
    "Show and change the list",
    open_dialog(DialogName.TODOS),
    (
        SlashCommand("add", "Add an item", _add, argument_hint="TEXT"),
        SlashCommand("start", "Start an item", _by_number("Started", _start), (), "N", _numbers),
        SlashCommand("done", "Complete an item", _by_number("Completed", _complete), (), "N [OUTCOME]", _numbers),
        SlashCommand("cancel", "Cancel an item", _by_number("Cancelled", _cancel), (), "N [REASON]", _numbers),
        SlashCommand("accept", "Accept a completed item", _by_number("Accepted", _accept), (), "N", _numbers),
        SlashCommand("edit", "Change the text of an item", _by_number("Changed", _edit), (), "N TEXT", _numbers),
        SlashCommand("move", "Move an item", _by_number("Moved", _move), (), "N POSITION", _numbers),
        SlashCommand("undo", "Undo the last change of the list", _undo),
        SlashCommand("clear", "Remove all items of the checklist", _clear),
    ),
)


# --- /queue -------------------------------------------------------------------------------------------------


def _queue(context: SlashContext) -> MessageQueue:
    return MessageQueue(context.services.store, context.services.conversations)


def _pending(context: SlashContext) -> list[QueuedMessage]:
    return _queue(context).pending(context.scope.conversation_id)


def _show_queue(context: SlashContext, _: str) -> SlashResult:
    if not _pending(context):
        return ShowMessage("Nothing is queued. Messages that you send while the agent works are queued.")
    return OpenDialog(DialogName.QUEUE)


def _queue_add(context: SlashContext, arguments: str) -> SlashResult:
    _require(arguments, "a message: /queue add Then update the changelog")
    _queue(context).add(context.scope, arguments)
    return ShowMessage(f"Queued as number {len(_pending(context))}.")


def _queue_edit(context: SlashContext, arguments: str) -> SlashResult:
    reference, text = _number_and_rest(arguments)
    _require(text, "a new text: /queue edit 1 Then update the changelog")
    message = _queued(context, reference)
    _queue(context).edit(context.scope, message.id, text)
    return ShowMessage(f"Changed message {reference}.")


def _queue_remove(context: SlashContext, arguments: str) -> SlashResult:
    reference, _ = _number_and_rest(arguments)
    message = _queued(context, reference)
    _queue(context).withdraw(context.scope, message.id)
    return ShowMessage(f"Removed {visible(excerpt(message.content))!r} from the queue.")


def _queue_clear(context: SlashContext, _: str) -> SlashResult:
    waiting = _pending(context)
    if not waiting:
        return ShowMessage("Nothing is queued.")
    if not context.confirmed:
        texts = "\n".join(visible(excerpt(message.content)) for message in waiting)
        return ConfirmAction(f"Remove all {len(waiting)} queued messages?", context.line, texts)
    for message in waiting:
        _queue(context).withdraw(context.scope, message.id)
    return ShowMessage(f"Removed {len(waiting)} queued messages.")


def _queued(context: SlashContext, reference: str) -> QueuedMessage:
    waiting = _pending(context)
    place = int(reference) if reference.isdecimal() and len(reference) < 6 else 0
    if not 1 <= place <= len(waiting):
        known = f"There are 1 to {len(waiting)}." if waiting else "Nothing is queued."
        raise NotFound(f"There is no queued message {excerpt(reference)!r}. {known}")
    return waiting[place - 1]


def _places(context: SlashContext) -> Sequence[str]:
    return [str(number) for number, _ in enumerate(_pending(context), 1)]


QUEUE: Final = SlashCommand(
    "queue",
    "Show and change the queued messages",
    _show_queue,
    (
        SlashCommand("add", "Queue a message", _queue_add, argument_hint="TEXT"),
        SlashCommand("edit", "Change a queued message", _queue_edit, (), "N TEXT", _places),
        SlashCommand("remove", "Remove a queued message", _queue_remove, (), "N", _places),
        SlashCommand("clear", "Remove all queued messages", _queue_clear),
    ),
)


def _number_and_rest(arguments: str) -> tuple[str, str]:
    _require(arguments, "a number")
    number, _, rest = arguments.partition(" ")
    return number.removeprefix("#"), rest.strip()


def _require(value: str, what: str) -> None:
    if not value:
        raise InvalidInput(f"This command needs {what}.")
