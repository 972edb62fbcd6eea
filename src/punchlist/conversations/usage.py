"""What was done in a turn and in those begun inside of it: its calls and its requests to models, from their rows.

Every look is along an index and bounded by the turn: how much else a conversation holds does not matter.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from punchlist.conversations.model import StoredTurn
from punchlist.storage.statements import Statement, columns
from punchlist.storage.store import Transaction

MAX_SUMMARY_LENGTH: Final = 500
"""Characters of a result that are looked at for its first line."""
_EVER: Final = "9999"

# A worker's turn begins while the one that it works for is open.
MEANWHILE: Final = Statement(
    f"SELECT {columns(StoredTurn._fields)} FROM turns WHERE conversation_id = :conversation_id "
    "AND started_at >= :since AND started_at <= :until AND parent_turn_id IS NOT NULL ORDER BY started_at, id"
)
CALLS: Final = Statement(
    "SELECT id, tool, status, "
    f"substr(result, 1, {MAX_SUMMARY_LENGTH}), substr(explanation, 1, {MAX_SUMMARY_LENGTH}), "
    "output_file, created_at, started_at, ended_at FROM tool_calls WHERE turn_id = :turn_id ORDER BY position"
)
REQUESTS: Final = Statement(
    "SELECT output, started_at FROM traces WHERE turn_id = :turn_id AND kind = 'model' ORDER BY started_at"
)


class CallEvidence(NamedTuple):
    """A call, and what it shows."""

    call_id: str
    turn_id: str
    agent: str
    tool: str
    status: str
    summary: str
    """The first line of its result, or why there is none."""
    output_file: str | None
    at: str
    """When it began to run; when it was asked for, if it never did."""
    ended_at: str | None

    def as_json(self) -> dict[str, Any]:
        return {
            "callId": self.call_id,
            "turnId": self.turn_id,
            "agent": self.agent,
            "tool": self.tool,
            "status": self.status,
            "told": self.summary,
            "outputFile": self.output_file,
            "at": self.at,
            "endedAt": self.ended_at,
        }


class ModelRequestUsage(NamedTuple):
    """A request to a model."""

    at: str
    input_tokens: int
    output_tokens: int


def with_child_turns(tx: Transaction, turn: StoredTurn) -> list[StoredTurn]:
    """The turn, and those begun inside of it, however deep."""
    rows = tx.all(MEANWHILE, conversation_id=turn.conversation_id, since=turn.started_at, until=turn.ended_at or _EVER)
    found, known = [turn], {turn.id}
    # Ordered by their beginning, so that whoever delegated comes first; those of one moment may need another look.
    waiting = [StoredTurn(*row) for row in rows]
    while inside := [one for one in waiting if one.parent_turn_id in known and one.id not in known]:
        found += inside
        known |= {one.id for one in inside}
    return found


def tool_calls(tx: Transaction, among: Iterable[StoredTurn]) -> list[CallEvidence]:
    """In the order in which they began."""
    found = [_evidence(turn, row) for turn in among for row in tx.all(CALLS, turn_id=turn.id)]
    return sorted(found, key=lambda one: one.at)


def model_requests(tx: Transaction, among: Sequence[StoredTurn]) -> list[ModelRequestUsage]:
    return [
        ModelRequestUsage(str(at), *_tokens(str(output)))
        for turn in among
        for output, at in tx.all(REQUESTS, turn_id=turn.id)
    ]


def _evidence(turn: StoredTurn, row: tuple[Any, ...]) -> CallEvidence:
    id, tool, status, result, explanation, output_file, created_at, started_at, ended_at = row
    told = next(iter(str(result or explanation or "").strip().splitlines()), "")
    return CallEvidence(id, turn.id, turn.agent_id, tool, status, told, output_file, started_at or created_at, ended_at)


def _tokens(output: str) -> tuple[int, int]:
    """None of a request that failed."""
    try:
        used, said = json.loads(output)["tokens"]
        return int(used), int(said)
    except (ValueError, KeyError, TypeError):
        return 0, 0
