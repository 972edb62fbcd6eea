"""Ends calls that their own process does not end: it is gone, another one answered, or their turn has ended."""

from __future__ import annotations

from typing import Any, Final

from punchlist.kernel.events import SYSTEM, Actor
from punchlist.kernel.processes import is_running
from punchlist.storage import event_log
from punchlist.storage.store import Transaction
from punchlist.toolcalls import approval_store, repository
from punchlist.toolcalls.lifecycle import TOOL_CALL, CallAction, CallStatus, UnfinishedCode
from punchlist.toolcalls.stored_call import StoredCall, call_change, event_data, event_reason

INTERRUPTED: Final = "The program ended during this call. It may have taken effect: check before you call it again."
TURN_ENDED: Final = "The turn of this call has ended, so the call was not run."


def end_calls_of_turn(tx: Transaction, turn_id: str, actor: Actor, why: str) -> None:
    """End the open calls of a turn that ends, and their questions. The caller has locked the conversation.

    A call that a live process executes is ended by that process, which notices that the turn has ended.
    """
    for call in repository.open_calls_of_turn(tx, turn_id):
        if call.status != CallStatus.EXECUTING:
            ended = end_stored_call(tx, call, CallAction.CANCEL, actor, why, explanation=TURN_ENDED)
            if ended is not None:
                approval_store.withdraw(tx, call.id, actor, why)
        elif is_running(call.owner) is False:
            code = UnfinishedCode.INTERRUPTED.value
            end_stored_call(tx, call, CallAction.FAIL, SYSTEM, why, explanation=INTERRUPTED, error_code=code)


def end_stored_call(
    tx: Transaction, call: StoredCall, action: CallAction, actor: Actor, reason: str, **columns: Any
) -> StoredCall | None:
    """End a call of another process; None when that process has changed it."""
    status = TOOL_CALL.advance(CallStatus(call.status), action, actor.role)
    columns |= {"status": status.value, "ended_at": tx.now(), "exact": None}
    ended = call._replace(**columns)
    if not repository.update_call(tx, call, ended):
        return None
    event_log.append(tx, call_change(ended, action, call.status, actor, event_reason(reason), event_data(columns)))
    return ended
