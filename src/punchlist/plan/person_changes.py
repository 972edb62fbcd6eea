"""What a person changes on a plan, as a message of its conversation, which the agent reads too (X9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import MessageRole, TurnScope
from punchlist.conversations.service import message_change
from punchlist.plan.lifecycle import PlanAction
from punchlist.plan.model import TurnTodo, quoted_title
from punchlist.storage import event_log
from punchlist.storage.store import Transaction

CHANGE_KIND: Final = "plan_change"
"""The kind of the message."""
MAX_NAMED: Final = 3
"""Added items that are named."""
_VERBS: Final = {
    PlanAction.START: "started",
    PlanAction.COMPLETE: "completed",
    PlanAction.CANCEL: "cancelled",
    PlanAction.REOPEN: "reopened",
}


def add_change_message(
    tx: Transaction, scope: TurnScope, action: PlanAction, before: TurnTodo, after: TurnTodo
) -> None:
    """A message about a person's change of an item; none if what is to be done has not changed."""
    words = f"{_VERBS[action]} {quoted_title(after)}" if action in _VERBS else ""
    if action is PlanAction.EDIT and before.title != after.title:
        words = f"changed {quoted_title(before)} to {quoted_title(after)}"
    elif action is PlanAction.MOVE:
        words = f"moved {quoted_title(after)} to place {after.priority + 1}"
    if words:
        _add_message(tx, scope, words)


def add_creation_message(tx: Transaction, scope: TurnScope, todos: Sequence[TurnTodo]) -> None:
    """A message about the items that a person has added."""
    more = [f"{len(todos) - MAX_NAMED} more"] if len(todos) > MAX_NAMED else []
    _add_message(tx, scope, f"added {', '.join([*map(quoted_title, todos[:MAX_NAMED]), *more])}")


def _add_message(tx: Transaction, scope: TurnScope, words: str) -> None:
    """The caller has locked the conversation and the turn."""
    message = conversation_repository.add_message(
        tx,
        scope.conversation_id,
        MessageRole.SYSTEM,
        f"A person changed the plan: {words}.",
        kind=CHANGE_KIND,
        turn_id=scope.turn_id,
        posted_by=str(scope.actor),
    )
    event_log.append(tx, message_change(scope, message))
