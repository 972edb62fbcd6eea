"""A mission todo in detail: its runs, their usage, open questions, claim and messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from punchlist.claims import repository as claim_repository
from punchlist.claims.model import Claim
from punchlist.conversations.model import Message
from punchlist.conversations.service import Conversations
from punchlist.missions import repository as mission_repository
from punchlist.missions.escalations.service import Escalations
from punchlist.missions.model import Escalation, Mission, MissionTodo
from punchlist.missions.usage import MissionUsageService, TodoUsage
from punchlist.runs.model import Run
from punchlist.runs.service import Runs
from punchlist.storage.store import Store

_MAX_MESSAGES: Final = 5


@dataclass(frozen=True, slots=True)
class TodoDetail:
    mission: Mission
    pillar: str
    conversation_id: str
    todo: MissionTodo
    runs: Sequence[Run]
    usage: TodoUsage
    escalations: Sequence[Escalation]
    claim: Claim | None
    messages: Sequence[Message]


def read_detail(store: Store, mission: Mission, todo: MissionTodo) -> TodoDetail:
    with store.read() as tx:
        # Not from the mission's pillars, which exclude archived ones.
        pillar = mission_repository.pillar(tx, todo.pillar_id)
        assert pillar is not None
        claim = claim_repository.find(tx, todo.id)
        held = claim is not None and claim.holder is not None and tx.now() < claim.lease_until
    return TodoDetail(
        mission,
        pillar.slug,
        pillar.todo_conversation_id,
        todo,
        Runs(store).for_todo(todo.id),
        MissionUsageService(store).todo(todo.id),
        [escalation for escalation in Escalations(store).list(mission.slug) if escalation.todo_id == todo.id],
        claim if held else None,
        Conversations(store).mentioning(pillar.todo_conversation_id, todo.id, _MAX_MESSAGES),
    )
