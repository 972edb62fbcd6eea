"""The record for a review: what the owner of a todo and its workers did, from the records of their tool calls (M8).

The Lead compares it with the owner's report. It is bounded; commands keep their arguments and exit status, changed
files their names, items of the owner's plan the results of their checks. Secrets are redacted in the records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from punchlist.agent.context_summary import ContextSummary, SummarySection
from punchlist.agent.definitions import LEAD
from punchlist.agent.work_log import LIST_TOOLS
from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import StoredTurn
from punchlist.kernel.json_text import json_or_text
from punchlist.kernel.text import one_line
from punchlist.missions import repository as mission_repository
from punchlist.models.model import CallReturn, Message, Reply, RequestedCall
from punchlist.plan import repository as plan_repository
from punchlist.plan.model import TurnTodo
from punchlist.storage.store import Store, Transaction
from punchlist.toolcalls import repository as call_repository
from punchlist.toolcalls.stored_call import StoredCall

MAX_LENGTH: Final = 6_000
MAX_EARLIER_LENGTH: Final = 1_500
MAX_CALLS: Final = 300
"""Of one turn: the newest."""
MAX_CHECKS: Final = 30
_MAX_LINE: Final = 300
_COUNTED: Final = frozenset({"run_command", "write_file", "edit_file", *LIST_TOOLS})
"""Shown one by one, or no work."""
_SUCCESS: Final = "success"


def read_review_record(store: Store, todo_id: str, turn_id: str | None) -> str:
    """The work of one round, and what earlier rounds of the todo did.

    `turn_id` names the owner's turn of the round. Without it, the report was made by another agent or by an earlier
    attempt of the run: then all that is recorded for the todo counts.
    """
    with store.read() as tx:
        ids = dict.fromkeys([*mission_repository.turn_ids_of_todo(tx, todo_id), *filter(None, [turn_id])])
        found = (conversation_repository.find_turn(tx, id) for id in ids)
        turns = [turn for turn in found if turn is not None and turn.agent_id != LEAD]
        if not turns:
            return "The report came from another agent, whose tool calls are not recorded here."
        since = next((turn.started_at for turn in turns if turn.id == turn_id), "")
        # Asynchronous delegations of the round have turns of their own.
        this_round = [turn for turn in turns if turn.started_at >= since]
        text = _round_text(tx, this_round, MAX_LENGTH) or "No tool call was made in this round."
        before = _round_text(tx, [turn for turn in turns if turn.started_at < since], MAX_EARLIER_LENGTH)
    return f"{text}\n\nIn earlier rounds:\n{before}" if before else text


def _round_text(tx: Transaction, turns: Sequence[StoredTurn], limit: int) -> str:
    with_workers = [each for turn in turns for each in conversation_repository.with_child_turns(tx, turn)]
    calls = [call for turn in with_workers for call in call_repository.newest_calls_of_turn(tx, turn.id, MAX_CALLS)]
    calls.sort(key=lambda call: call.created_at)
    todos = [todo for turn in with_workers for todo in plan_repository.read_todos(tx, turn.id)]
    return review_record_text(calls, todos, limit)


def review_record_text(calls: Sequence[StoredCall], todos: Iterable[TurnTodo], limit: int) -> str:
    """Pure. Empty if nothing was done."""
    work = [call for call in calls if call.tool not in LIST_TOOLS]
    if not work:
        return ""
    done = ContextSummary().extended([message for call in work for message in _messages(call)])
    others = Counter(call.tool for call in work if call.tool not in _COUNTED and call.status == _SUCCESS)
    sections = [
        SummarySection("Other calls", [", ".join(f"{tool} {count}x" for tool, count in sorted(others.items()))]),
        SummarySection("Failed calls", [f"{source}: {why}" for source, why in done.failures.items()]),
        SummarySection("Files changed", list(done.files)),
        SummarySection("Commands", [f"`{command}`: {ended}" for command, ended in done.commands.items()]),
        SummarySection("Checks of the plan", _check_lines(todos)),
    ]
    failed = sum(call.status != _SUCCESS for call in work)
    calls_made = "1 tool call" if len(work) == 1 else f"{len(work)} tool calls"
    heading = f"{calls_made}, {failed} without success."
    over = sum(section.length for section in sections) + len(heading) - limit
    for section in sections:
        over = section.shorten(over)
    for section in sections:
        over = section.drop(over)
    return "\n".join([heading, *(section.text for section in reversed(sections) if any(section.lines))])


def _messages(call: StoredCall) -> list[Message]:
    text = call.result if call.status == _SUCCESS else call.explanation or call.result or call.status
    result = CallReturn(call.id, call.tool, text or "", failed=call.status != _SUCCESS)
    return [Reply("", (RequestedCall(call.id, call.tool, json_or_text(call.arguments)),)), result]


def _check_lines(todos: Iterable[TurnTodo]) -> list[str]:
    verified = [(todo, todo.verified()) for todo in todos if todo.verification is not None]
    lines = [
        f"“{one_line(todo.title, 80)}” `{one_line(verification.check.description, 120)}`: "
        f"{verification.result.outcome if verification.result is not None else 'not run'}"
        for todo, verification in verified
        if verification.check is not None
    ]
    return [one_line(line, _MAX_LINE) for line in lines[-MAX_CHECKS:]]
