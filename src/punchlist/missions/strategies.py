"""Strategies of a pillar: the Lead and people add and retire them between two versions of the mission file (M18).

A later version of the file changes only the strategies that it changes itself: `config/apply_config.py`.
"""

from __future__ import annotations

from typing import Final

from punchlist.errors import IllegalTransition, InvalidInput, NotAllowed, NotFound
from punchlist.kernel.events import Role
from punchlist.kernel.ids import new_id
from punchlist.kernel.text import block_problem, excerpt, visible
from punchlist.missions import repository as mission_repository
from punchlist.missions.changes import MissionAction, MissionWrite, find_pillar, lock_mission
from punchlist.missions.model import MissionScope, Pillar, Strategy
from punchlist.missions.todos.validation import MAX_REASON_LENGTH, check_mission, parse_block
from punchlist.storage.store import Store

STRATEGISTS: Final = frozenset({Role.LEAD, Role.PERSON})
MAX_LENGTH: Final = 2_000
MAX_STRATEGIES: Final = 100
"""Of one mission, as in its file."""
ACTIVE: Final = "active"
RETIRED: Final = "dropped"
"""The status of a strategy that is no longer pursued."""


class Strategies:
    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, scope: MissionScope, mission_slug: str, pillar_slug: str, text: str, reason: str) -> Strategy:
        if problem := block_problem(text, max_length=MAX_LENGTH, min_length=1):
            raise InvalidInput(f"description: {problem}")
        reason = parse_block("reason", reason, MAX_REASON_LENGTH)
        _check_role(scope, mission_slug)
        with self._store.write() as tx:
            write = lock_mission(tx, scope, mission_slug)
            pillar = find_pillar(tx, write.mission, pillar_slug)
            existing = mission_repository.strategies_of(tx, write.mission.id)
            if len(existing) >= MAX_STRATEGIES:
                raise IllegalTransition(
                    f"Mission {mission_slug!r} has {MAX_STRATEGIES} strategies, the limit. Remove some from its file."
                )
            own = [each for each in existing if each.pillar_id == pillar.id]
            if any(each.description == text.strip() and each.status != RETIRED for each in own):
                raise IllegalTransition(f"Pillar {pillar.slug!r} has this strategy already.")
            position = max((each.position for each in own), default=-1) + 1
            strategy = Strategy(new_id(), write.mission.id, pillar.id, position, text.strip(), ACTIVE)
            mission_repository.insert_strategy(tx, strategy)
            write.append(MissionAction.ADD_STRATEGY, strategy.id, reason, strategy._asdict(), to=ACTIVE)
            return strategy

    def retire(self, scope: MissionScope, mission_slug: str, pillar_slug: str, which: str, reason: str) -> Strategy:
        """End a strategy. `which` is its id, the end of it, or a part of its description that only it has."""
        reason = parse_block("reason", reason, MAX_REASON_LENGTH)
        _check_role(scope, mission_slug)
        with self._store.write() as tx:
            write = lock_mission(tx, scope, mission_slug)
            pillar = find_pillar(tx, write.mission, pillar_slug)
            strategy = _find(write, pillar, which)
            retired = strategy._replace(status=RETIRED)
            mission_repository.set_strategy_status(tx, strategy.id, RETIRED)
            data = {"status": RETIRED, "description": strategy.description}
            write.append(
                MissionAction.RETIRE_STRATEGY, strategy.id, reason, data, from_status=strategy.status, to=RETIRED
            )
            return retired


def _check_role(scope: MissionScope, mission_slug: str) -> None:
    if scope.actor.role not in STRATEGISTS:
        raise NotAllowed(f"{scope.actor.role.described} may not change the strategies; the Lead and people may.")
    check_mission(scope, mission_slug)


def _find(write: MissionWrite, pillar: Pillar, which: str) -> Strategy:
    wanted = which.strip().lower()
    current = [
        each
        for each in mission_repository.strategies_of(write.tx, write.mission.id)
        if each.pillar_id == pillar.id and each.status != RETIRED
    ]
    found = [each for each in current if wanted and (each.id.endswith(wanted) or each.description.lower() == wanted)]
    found = found or [each for each in current if wanted and wanted in each.description.lower()]
    if len(found) == 1:
        return found[0]
    if found:
        raise InvalidInput(f"strategy: {excerpt(which)!r} matches {len(found)} strategies; give more of the text.")
    known = "; ".join(f"“{visible(excerpt(each.description))}”" for each in current[:10]) or "none"
    raise NotFound(f"Pillar {pillar.slug!r} has no current strategy {excerpt(which)!r}. There are: {known}.")
