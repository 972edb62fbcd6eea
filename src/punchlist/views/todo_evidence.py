"""The evidence of a mission todo: the tool calls in the turns of its runs and of their workers, by page (X4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from punchlist.agent.definitions import LEAD
from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import CallEvidence
from punchlist.errors import InvalidInput
from punchlist.kernel.json_text import json_or_text
from punchlist.missions import repository as mission_repository
from punchlist.missions.repository import TurnWork
from punchlist.storage.store import Store, Transaction

PAGE: Final = 100
MAX_PAGE: Final = 500
_END: Final = 2**31 - 1


class TodoCall(NamedTuple):
    call: CallEvidence
    arguments: str
    """As JSON; secrets are redacted."""

    def as_json(self) -> dict[str, Any]:
        return {**self.call.as_json(), "arguments": json_or_text(self.arguments)}


@dataclass(frozen=True, slots=True)
class EvidencePage:
    calls: Sequence[TodoCall]
    """Oldest first."""
    cursor: str | None
    """For the calls before these; None if there are none."""

    def as_json(self) -> dict[str, Any]:
        more = {"nextCursor": self.cursor} if self.cursor else {}
        return {"items": [each.as_json() for each in self.calls], **more}


def read_todo_evidence(store: Store, todo_id: str, *, cursor: str | None = None, limit: int = PAGE) -> EvidencePage:
    """The newest calls, or those before a page."""
    before = _END
    if cursor is not None:
        if not cursor.isdecimal() or len(cursor) > 9:
            raise InvalidInput("cursor: must be a nextCursor, unchanged; leave it out to start with the newest calls")
        before = int(cursor)
    with store.read() as tx:
        work = without_reviews(mission_repository.work_of_todo(tx, todo_id))
        return evidence_page(tx, work, before=before, limit=limit)


def without_reviews(work: Sequence[TurnWork]) -> list[TurnWork]:
    """Without the turns in which the Lead reviews the work: what it reads and decides there is no evidence."""
    return [turn for turn in work if turn.agent_id != LEAD]


def evidence_page(tx: Transaction, work: Sequence[TurnWork], *, before: int = _END, limit: int = PAGE) -> EvidencePage:
    """The newest calls of all turns before a position. Reads at most a page of each turn that can have one of them."""
    limit = max(1, min(limit, MAX_PAGE))
    found: list[tuple[int, TodoCall]] = []
    for turn in sorted(work, key=lambda turn: turn.last or 0, reverse=True):
        if turn.first is None or turn.first >= before:
            continue
        if len(found) > limit and (turn.last or 0) < found[limit][0]:
            # The turns that follow end before the page begins.
            break
        rows = conversation_repository.calls_before(tx, turn.id, turn.agent_id, before, limit + 1)
        found += [(position, TodoCall(call, arguments)) for position, call, arguments in rows]
        found = sorted(found, key=lambda each: each[0], reverse=True)[: limit + 1]
    shown = found[:limit][::-1]
    return EvidencePage([each for _, each in shown], str(shown[0][0]) if len(found) > limit else None)
