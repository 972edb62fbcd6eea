"""Recorded work on a mission todo: turns with messages and tool calls."""

from __future__ import annotations

from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import NewMessage, StoredTurn
from punchlist.kernel.events import Change
from punchlist.kernel.ids import new_id
from punchlist.runs.lifecycle import RunAction
from punchlist.runs.service import Runs, event_stream
from punchlist.storage import event_log
from punchlist.storage.store import Store
from punchlist.toolcalls import repository as call_repository
from punchlist.toolcalls.stored_call import StoredCall


def add_work(store: Store, todo_id: str, *, turns: int = 1, calls: int = 1) -> None:
    """Add turns to the newest run of a todo, each with as many messages as calls."""
    run = Runs(store).for_todo(todo_id)[0]
    chat = run.conversation_id
    with store.write() as tx:
        now = tx.now()
        for number in range(turns):
            turn = StoredTurn(new_id(), chat, None, run.agent, "completed", now, now, None, run.id)
            conversation_repository.add_turn(tx, turn)
            messages = [NewMessage("assistant", "note", f"Message {number}.{place}") for place in range(calls)]
            conversation_repository.add_messages(tx, chat, turn.id, messages)
            for place in range(calls):
                position = number * calls + place + 1
                text = f'{{"command": "make part-{position}"}}'
                call = StoredCall(
                    *(new_id(), chat, turn.id, position, "run_command", text, None, "success", None, None, "{}", ""),
                    *("", f"{position} passed", None, None, None, now, now, now),
                )
                assert call_repository.insert_call(tx, call)
            data = {"turn_id": turn.id}
            event_log.append(
                tx,
                Change(
                    event_stream(run.id), chat, "test", RunAction.SET_TURN, run.id, run.status, run.status, "", data
                ),
            )
