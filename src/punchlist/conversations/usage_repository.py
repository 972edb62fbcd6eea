"""The SQL of the work in a turn and its child turns: tool calls and model requests.

Every query follows an index and is bounded by the turn, however long the conversation is. The caller owns the
transaction.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from punchlist.conversations.model import CallEvidence, ModelRequestUsage, StoredTurn
from punchlist.storage.statements import Statement, columns
from punchlist.storage.store import Transaction

MAX_SUMMARY_LENGTH: Final = 500
"""Characters of a result that are read for its first line."""
_FOREVER: Final = "9999"

# A child turn starts while its parent is open.
CHILD_TURNS_DURING: Final = Statement(
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


def with_child_turns(tx: Transaction, turn: StoredTurn) -> list[StoredTurn]:
    """The turn and all turns below it."""
    rows = tx.all(
        CHILD_TURNS_DURING,
        conversation_id=turn.conversation_id,
        since=turn.started_at,
        until=turn.ended_at or _FOREVER,
    )
    found, known = [turn], {turn.id}
    candidates = [StoredTurn(*row) for row in rows]
    # Sorted by start, parents usually come first; turns with equal times may need another pass.
    while below := [turn for turn in candidates if turn.parent_turn_id in known and turn.id not in known]:
        found += below
        known |= {turn.id for turn in below}
    return found


def tool_calls(tx: Transaction, turns: Iterable[StoredTurn]) -> list[CallEvidence]:
    """In the order in which they started."""
    found = [_evidence(turn, row) for turn in turns for row in tx.all(CALLS, turn_id=turn.id)]
    return sorted(found, key=lambda call: call.at)


def model_requests(tx: Transaction, turns: Sequence[StoredTurn]) -> list[ModelRequestUsage]:
    return [
        ModelRequestUsage(str(at), *_tokens(str(output)))
        for turn in turns
        for output, at in tx.all(REQUESTS, turn_id=turn.id)
    ]


def _evidence(turn: StoredTurn, row: tuple[Any, ...]) -> CallEvidence:
    id, tool, status, result, explanation, output_file, created_at, started_at, ended_at = row
    summary = next(iter(str(result or explanation or "").strip().splitlines()), "")
    return CallEvidence(
        id, turn.id, turn.agent_id, tool, status, summary, output_file, started_at or created_at, ended_at
    )


def _tokens(output: str) -> tuple[int, int]:
    """Input and output tokens; zero for a failed request."""
    try:
        input_tokens, output_tokens = json.loads(output)["tokens"]
        return int(input_tokens), int(output_tokens)
    except (ValueError, KeyError, TypeError):
        return 0, 0
