"""Missions: made and changed by their file, looked at, archived.

`apply` is one transaction: the mission, its pillars with their chats, strategies and metrics are all as the file
says, or nothing has changed. What a file no longer names is archived, never deleted: a pillar's chats, a metric's
readings and every todo stay. Todos are in `todos.py`, readings in `metrics.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from punchlist.conversations.model import Scope
from punchlist.conversations.service import Conversations
from punchlist.errors import Conflict, IllegalTransition, InvalidInput, NotAllowed
from punchlist.kernel.actors import Role
from punchlist.kernel.events import canonical
from punchlist.kernel.ids import new_id
from punchlist.kernel.text import block_problem
from punchlist.missions import repository as mission_repository
from punchlist.missions.changes import MissionEventWriter, change, find_mission, lock_mission
from punchlist.missions.chats import service as chat_service
from punchlist.missions.config import file
from punchlist.missions.config.apply_config import REASON, changes, furnish
from punchlist.missions.config.diff import differences, introduced
from punchlist.missions.config.json import config_json
from punchlist.missions.config.model import MissionConfig
from punchlist.missions.model import Mission, PillarState
from punchlist.missions.todos.lifecycle import ACTIVE, ChatChannel, TodoStatus
from punchlist.storage import event_log
from punchlist.storage.store import Store, Transaction

LONGEST_REASON: Final = 2_000
FOUNDERS: Final = frozenset({Role.PERSON, Role.SYSTEM})
"""Who says what a mission is: those whom it works for, never those who work in it."""
_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class ApplyPreview:
    """What applying a file would do."""

    created: bool
    lines: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ApplyResult:
    mission: Mission
    created: bool
    changes: list[str] = field(default_factory=list)
    """As `Preview.lines`; none when the mission was as the file says already."""
    warnings: list[str] = field(default_factory=list)


class _SlugTaken(Exception):
    """Another process has made the mission since we looked."""


class Missions:
    def __init__(self, store: Store, conversations: Conversations) -> None:
        self._store = store
        self._conversations = conversations

    # --- changing -----------------------------------------------------------------------------------------

    def preview(self, config: MissionConfig, source: str | None = None) -> ApplyPreview:
        """What `apply` would do, or the error that it would end with. Nothing is changed."""
        with self._store.read() as tx:
            mission = mission_repository.mission_by_slug(tx, config.slug)
            if mission is None:
                return ApplyPreview(True, introduced(config), _warnings(config, {}))
            lines = _check(tx, mission, config, source)
            return ApplyPreview(False, lines, _warnings(config, mission_repository.open_in_mission(tx, mission.id)))

    def apply(self, scope: Scope, config: MissionConfig, source: str) -> ApplyResult:
        """Make a mission, or change it to what its file says now (M1)."""
        _check_founder(scope, "apply a mission file")
        for _ in range(_TRIES):
            try:
                with self._store.write() as tx:
                    mission = mission_repository.lock_mission_by_slug(tx, config.slug)
                    if mission is None:
                        return self._make(tx, scope, config, source)
                    return self._change(tx, scope, mission, config, source)
            except _SlugTaken:
                # It is there now, and will be changed to what our file says.
                continue
        raise Conflict(f"Mission {config.slug!r} is being made by somebody else. Try again.")

    def archive(self, scope: Scope, slug: str, reason: str) -> Mission:
        """End a mission. All of it stays to be read; nothing in it changes any more."""
        _check_founder(scope, "archive a mission")
        if problem := block_problem(reason, longest=LONGEST_REASON, shortest=1):
            raise InvalidInput(f"reason: {problem}")
        with self._store.write() as tx:
            mission = lock_mission(tx, slug)
            working = mission_repository.open_in_mission(tx, mission.id).get(TodoStatus.IN_PROGRESS, 0)
            if working:
                raise IllegalTransition(
                    f"Mission {slug!r} has {_todos(working)} in progress. Complete or cancel what is being worked on "
                    "first."
                )
            changed = mission._replace(status="archived", updated_at=tx.now())
            mission_repository.update_mission(tx, changed)
            data = changes(mission, changed)
            told = change(
                scope,
                mission,
                MissionEventWriter.ARCHIVE_MISSION,
                mission.id,
                reason.strip(),
                data,
                came_from="active",
                to="archived",
            )
            event_log.append(tx, told)
            return changed

    def take_tick(self, scope: Scope, mission_id: str, tick: str) -> bool:
        """Take a moment of the cadence to begin a cycle for. Of all who try, one gets it, and once."""
        with self._store.write() as tx:
            mission = mission_repository.lock_mission(tx, mission_id)
            if mission is None or not mission_repository.take_tick(tx, mission_id, tick):
                return False
            told = change(
                scope, mission, MissionEventWriter.TAKE_TICK, mission_id, f"the cycle of {tick}", {"last_tick": tick}
            )
            event_log.append(tx, told)
            return True

    # --- looking ------------------------------------------------------------------------------------------

    def get(self, slug: str) -> Mission:
        with self._store.read() as tx:
            return find_mission(tx, slug)

    def list(self, *, archived: bool = False) -> list[Mission]:
        """By slug; those that are archived only if asked for."""
        with self._store.read() as tx:
            return [one for one in mission_repository.all_missions(tx) if archived or one.status == "active"]

    def standing(self, mission: Mission) -> Sequence[PillarState]:
        """The pillars that count, each with its strategies and metrics."""
        with self._store.read() as tx:
            return standing(tx, mission.id)

    # --- parts --------------------------------------------------------------------------------------------

    def _make(self, tx: Transaction, scope: Scope, config: MissionConfig, source: str) -> ApplyResult:
        id, now = new_id(), tx.now()
        chat = chat_service.make(
            tx,
            self._conversations,
            scope,
            chat_service.chat_id(config.slug),
            config.name,
            chat_service.metadata(ChatChannel.MISSION, id, config.slug),
        )
        mission = Mission(
            id=id,
            slug=config.slug,
            name=config.name,
            description=config.description,
            json_config=canonical(config_json(config)),
            source=source,
            status="active",
            conversation_id=chat.id,
            last_tick=None,
            created_at=now,
            updated_at=now,
        )
        if not mission_repository.insert_mission(tx, mission):
            raise _SlugTaken
        told = change(scope, mission, MissionEventWriter.MAKE_MISSION, id, REASON, mission._asdict(), to="active")
        event_log.append(tx, told, *furnish(tx, self._conversations, scope, mission, config))
        return ApplyResult(mission, True, introduced(config), _warnings(config, {}))

    def _change(
        self, tx: Transaction, scope: Scope, mission: Mission, config: MissionConfig, source: str
    ) -> ApplyResult:
        lines = _check(tx, mission, config, source)
        warnings = _warnings(config, mission_repository.open_in_mission(tx, mission.id))
        if not lines:
            return ApplyResult(mission, False, [], warnings)
        changed = mission._replace(
            name=config.name,
            description=config.description,
            json_config=canonical(config_json(config)),
            source=source,
            updated_at=tx.now(),
        )
        mission_repository.update_mission(tx, changed)
        data = changes(mission, changed)
        told = change(
            scope, mission, MissionEventWriter.CHANGE_MISSION, mission.id, REASON, data, came_from="active", to="active"
        )
        event_log.append(tx, told, *furnish(tx, self._conversations, scope, changed, config))
        return ApplyResult(changed, False, lines, warnings)


def standing(tx: Transaction, mission_id: str) -> list[PillarState]:
    """As `Missions.standing`, inside a transaction."""
    strategies, metrics = (
        mission_repository.strategies_of(tx, mission_id),
        mission_repository.metrics_of(tx, mission_id),
    )
    return [
        PillarState(
            pillar,
            [one for one in strategies if one.pillar_id == pillar.id],
            [one for one in metrics if one.pillar_id == pillar.id and one.status == "active"],
        )
        for pillar in mission_repository.pillars_of(tx, mission_id)
        if pillar.status == "active"
    ]


def _check_founder(scope: Scope, what: str) -> None:
    if scope.actor.role not in FOUNDERS:
        raise NotAllowed(f"{scope.actor.role.somebody} may not {what}; a person does, with `punchlist mission`.")


def _check(tx: Transaction, mission: Mission, config: MissionConfig, source: str | None) -> list[str]:
    """What would change in a mission that is there; raises when it must not."""
    if mission.status != "active":
        raise Conflict(
            f"The slug {mission.slug!r} belongs to a mission that was archived ({mission.updated_at[:10]}). Give the "
            "new one another slug; the archived one stays to be read."
        )
    lines = differences(file.stored(mission), config)
    if not lines and source is not None and source != mission.source:
        lines = ["~ the file's text; what it says is the same"]
    wanted = {pillar.slug for pillar in config.pillars}
    for pillar in mission_repository.pillars_of(tx, mission.id):
        still = 0 if pillar.slug in wanted else mission_repository.open_in_pillar(tx, pillar.id)
        if still:
            raise IllegalTransition(
                f"Pillar {pillar.slug!r} is not in the file, but has {_todos(still)} that {_are(still)} open. Complete "
                "or cancel them first, or keep the pillar. Nothing was changed."
            )
    return lines


def _warnings(config: MissionConfig, counts: dict[str, int]) -> list[str]:
    warnings = []
    active = sum(count for status, count in counts.items() if status in ACTIVE)
    backlog = counts.get(TodoStatus.BACKLOG, 0)
    for name, limit, used in (
        ("activeTodoLimit", config.todo.active_limit, active),
        ("backlogTodoLimit", config.todo.backlog_limit, backlog),
    ):
        if used > limit:
            kind = "active" if name == "activeTodoLimit" else "in the backlog"
            room = (
                f"there is room for another when fewer than {limit} are left" if limit else "there is no room for more"
            )
            warnings.append(f"todo.{name} is {limit}, but {_todos(used)} {_are(used)} {kind}. They stay; {room}.")
    if not config.pillars:
        warnings.append("The mission has no pillars, and todos belong to one.")
    return warnings


def _todos(count: int) -> str:
    return "1 todo" if count == 1 else f"{count} todos"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
