"""Missions: create and change them from their file, read them, archive them.

`apply` is one transaction: either the mission, its pillars with their chats, strategies and metrics match the file, or
nothing has changed. What a file no longer names is archived, never deleted: a pillar's chats, a metric's readings and
every todo stay.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from punchlist.conversations.model import Scope
from punchlist.conversations.service import Conversations
from punchlist.errors import Conflict, IllegalTransition, InvalidInput, NotAllowed
from punchlist.kernel.events import Change, Role, canonical_json
from punchlist.kernel.ids import new_id
from punchlist.kernel.text import block_problem
from punchlist.missions import chats
from punchlist.missions import repository as mission_repository
from punchlist.missions.changes import (
    MissionAction,
    MissionWrite,
    event_stream,
    find_mission,
    lock_mission,
    unknown_mission,
)
from punchlist.missions.config.apply_config import REASON, apply_config, changed_columns
from punchlist.missions.config.diff import change_lines, creation_lines
from punchlist.missions.model import ChatChannel, Mission, MissionTodo, PillarState
from punchlist.missions.run_control import pause_runs, resume_runs, stop_runs
from punchlist.missions.todos import repository as todo_repository
from punchlist.missions.todos.lifecycle import ACTIVE, TodoStatus
from punchlist.storage import event_log
from punchlist.storage.store import Store, Transaction

if TYPE_CHECKING:
    from punchlist.missions.config.model import MissionConfig

MAX_REASON_LENGTH: Final = 2_000
CONFIGURERS: Final = frozenset({Role.PERSON, Role.SYSTEM})
"""Roles that define a mission: the people it works for, never the agents that work in it."""
_APPLY_ATTEMPTS: Final = 5


@dataclass(frozen=True, slots=True)
class ApplyPreview:
    """What applying a file would change."""

    created: bool
    lines: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ApplyResult:
    mission: Mission
    created: bool
    changes: list[str] = field(default_factory=list)
    """As `ApplyPreview.lines`; empty when the mission already matched the file."""
    warnings: list[str] = field(default_factory=list)


class _SlugTaken(Exception):
    """Another process created the mission concurrently."""


class Missions:
    def __init__(self, store: Store, conversations: Conversations) -> None:
        self._store = store
        self._conversations = conversations

    def preview(self, config: MissionConfig, source: str | None = None) -> ApplyPreview:
        """What `apply` would change, or the error it would raise. Changes nothing."""
        with self._store.read() as tx:
            mission = mission_repository.mission_by_slug(tx, config.slug)
            if mission is None:
                return ApplyPreview(True, creation_lines(config.as_json()), _warnings(config, ()))
            lines = _check_change(tx, mission, config, source)
            return ApplyPreview(False, lines, _warnings(config, todo_repository.open_in_mission(tx, mission.id)))

    def apply(
        self, scope: Scope, config: MissionConfig, source: str, *, expected_version: str | None = None
    ) -> ApplyResult:
        """Create a mission, or change it to match its file (M1). `expected_version` is its `settings_version`."""
        _check_role(scope, "apply a mission file")
        for _ in range(_APPLY_ATTEMPTS):
            try:
                with self._store.write() as tx:
                    mission = mission_repository.lock_mission_by_slug(tx, config.slug)
                    if mission is None:
                        return self._create(tx, scope, config, source)
                    if expected_version not in (None, mission.settings_version):
                        raise Conflict(
                            f"The settings of mission {config.slug!r} were changed since you opened them. Nothing was "
                            "saved. Open them again."
                        )
                    return self._change(tx, scope, mission, config, source)
            except _SlugTaken:
                continue
        raise Conflict(f"Another process is creating mission {config.slug!r}. Try again.")

    def archive(self, scope: Scope, slug: str, reason: str) -> Mission:
        """End a mission: its runs are stopped, and the inbox leaves its questions out. It stays readable; nothing in it
        changes until it is unarchived."""
        _check_role(scope, "archive a mission")
        if problem := block_problem(reason, max_length=MAX_REASON_LENGTH, min_length=1):
            raise InvalidInput(f"reason: {problem}")
        with self._store.write() as tx:
            write = lock_mission(tx, scope, slug)
            mission = write.mission
            in_progress = mission_repository.count_open_by_status(tx, mission.id).get(TodoStatus.IN_PROGRESS, 0)
            if in_progress:
                raise IllegalTransition(
                    f"Mission {slug!r} has {_todos(in_progress)} in progress. Complete or cancel the work first."
                )
            stop_runs(tx, scope, mission.id, f"The mission was archived: {reason.strip()}")
            archived = mission._replace(status="archived", updated_at=tx.now())
            event_log.append(tx, _update(write, archived, MissionAction.ARCHIVE_MISSION, reason.strip()))
            return archived

    def unarchive(self, scope: Scope, slug: str, reason: str) -> Mission:
        """Bring an archived mission back as it was; if it was paused, it still is."""
        _check_role(scope, "unarchive a mission")
        if problem := block_problem(reason, max_length=MAX_REASON_LENGTH, min_length=1):
            raise InvalidInput(f"reason: {problem}")
        with self._store.write() as tx:
            mission = mission_repository.lock_mission_by_slug(tx, slug)
            if mission is None:
                raise unknown_mission(tx, slug)
            if mission.status == "active":
                raise IllegalTransition(f"Mission {slug!r} is not archived.")
            active = mission._replace(status="active", updated_at=tx.now())
            write = MissionWrite(tx, scope, mission)
            event_log.append(tx, _update(write, active, MissionAction.UNARCHIVE_MISSION, reason.strip()))
            return active

    def pause(self, scope: Scope, slug: str, reason: str = "") -> Mission:
        """Start no cycles and no runs of a mission any more, and pause those that run (M19)."""
        _check_role(scope, "pause a mission")
        if problem := block_problem(reason, max_length=MAX_REASON_LENGTH):
            raise InvalidInput(f"reason: {problem}")
        with self._store.write() as tx:
            write = lock_mission(tx, scope, slug)
            mission = write.mission
            if mission.paused_at is not None:
                raise IllegalTransition(f"Mission {slug!r} is paused since {mission.paused_at}.")
            why = reason.strip() or "a person paused it"
            paused = mission._replace(paused_at=tx.now(), paused_by=str(scope.actor), pause_reason=why)
            event_log.append(tx, _update(write, paused, MissionAction.PAUSE_MISSION, why))
            pause_runs(tx, scope, mission.id, why)
            return paused

    def resume(self, scope: Scope, slug: str, reason: str = "") -> Mission:
        """Continue a paused mission and the runs that were paused with it."""
        _check_role(scope, "resume a mission")
        if problem := block_problem(reason, max_length=MAX_REASON_LENGTH):
            raise InvalidInput(f"reason: {problem}")
        with self._store.write() as tx:
            write = lock_mission(tx, scope, slug)
            if write.mission.paused_at is None:
                raise IllegalTransition(f"Mission {slug!r} is not paused.")
            resumed = write.mission._replace(paused_at=None, paused_by=None, pause_reason=None)
            why = reason.strip() or "a person resumed it"
            event_log.append(tx, _update(write, resumed, MissionAction.RESUME_MISSION, why))
            resume_runs(tx, scope, resumed.id, why)
            return resumed

    def take_tick(self, scope: Scope, mission_id: str, tick: str) -> bool:
        """Claim a moment of the cadence for a cycle. Exactly one of all callers gets True.

        A tick before `last_tick` can be claimed only if `last_tick` is in the future: a clock was ahead when it was
        claimed.
        """
        with self._store.write() as tx:
            mission = mission_repository.lock_mission(tx, mission_id)
            if mission is None:
                return False
            last = tick
            if not mission_repository.take_tick(tx, mission_id, tick):
                last = mission.last_tick or ""
                if mission.status != "active" or last <= tx.now() or _is_taken(tx, mission_id, tick):
                    return False
            write = MissionWrite(tx, scope, mission)
            write.append(MissionAction.TAKE_TICK, mission_id, _tick_reason(tick), {"last_tick": last})
            return True

    def is_taken(self, mission_id: str, tick: str) -> bool:
        """Whether a cycle was started for a tick. Reads the events of the mission."""
        with self._store.read() as tx:
            return _is_taken(tx, mission_id, tick)

    def get(self, slug: str) -> Mission:
        with self._store.read() as tx:
            return find_mission(tx, slug)

    def list(self, *, archived: bool = False) -> list[Mission]:
        """All missions by slug; `archived` includes the archived ones."""
        with self._store.read() as tx:
            missions = mission_repository.all_missions(tx)
        return [mission for mission in missions if archived or mission.status == "active"]

    def pillars(self, mission: Mission) -> Sequence[PillarState]:
        """The active pillars in the order of the file, with their strategies and metrics."""
        with self._store.read() as tx:
            strategies = mission_repository.strategies_of(tx, mission.id)
            metrics = mission_repository.metrics_of(tx, mission.id)
            pillars = mission_repository.pillars_of(tx, mission.id)
        return [
            PillarState(
                pillar,
                [strategy for strategy in strategies if strategy.pillar_id == pillar.id],
                [metric for metric in metrics if metric.pillar_id == pillar.id and metric.status == "active"],
            )
            for pillar in pillars
            if pillar.status == "active"
        ]

    def _create(self, tx: Transaction, scope: Scope, config: MissionConfig, source: str) -> ApplyResult:
        id, now, configured = new_id(), tx.now(), config.as_json()
        chat = chats.create_chat(
            tx,
            self._conversations,
            scope,
            chats.chat_id(config.slug),
            config.name,
            chats.chat_metadata(ChatChannel.MISSION, id, config.slug),
        )
        mission = Mission(
            id=id,
            slug=config.slug,
            name=config.name,
            description=config.description,
            json_config=canonical_json(configured),
            source=source,
            status="active",
            conversation_id=chat.id,
            last_tick=None,
            created_at=now,
            updated_at=now,
        )
        if not mission_repository.insert_mission(tx, mission):
            raise _SlugTaken
        write = MissionWrite(tx, scope, mission)
        created = write.event(MissionAction.MAKE_MISSION, id, REASON, mission._asdict(), to="active")
        event_log.append(tx, created, *apply_config(write, self._conversations, config))
        return ApplyResult(mission, True, creation_lines(configured), _warnings(config, ()))

    def _change(
        self, tx: Transaction, scope: Scope, mission: Mission, config: MissionConfig, source: str
    ) -> ApplyResult:
        lines = _check_change(tx, mission, config, source)
        warnings = _warnings(config, todo_repository.open_in_mission(tx, mission.id))
        if not lines:
            return ApplyResult(mission, False, [], warnings)
        changed = mission._replace(
            name=config.name,
            description=config.description,
            json_config=canonical_json(config.as_json()),
            source=source,
            updated_at=tx.now(),
        )
        event = _update(MissionWrite(tx, scope, mission), changed, MissionAction.CHANGE_MISSION, REASON)
        write = MissionWrite(tx, scope, changed)
        event_log.append(tx, event, *apply_config(write, self._conversations, config, mission.config))
        return ApplyResult(changed, False, lines, warnings)


def _update(write: MissionWrite, new: Mission, action: MissionAction, reason: str) -> Change:
    mission_repository.update_mission(write.tx, new)
    old = write.mission
    return write.event(action, old.id, reason, changed_columns(old, new), from_status=old.status, to=new.status)


def _check_role(scope: Scope, what: str) -> None:
    if scope.actor.role not in CONFIGURERS:
        raise NotAllowed(f"{scope.actor.role.described} may not {what}. A person can, with `punchlist mission`.")


def _check_change(tx: Transaction, mission: Mission, config: MissionConfig, source: str | None) -> list[str]:
    """The lines of the change to an existing mission; raises when the change is not allowed."""
    if mission.status != "active":
        raise Conflict(
            f"The slug {mission.slug!r} belongs to a mission that was archived on {mission.updated_at[:10]}. Choose "
            "another slug; the archived mission stays readable."
        )
    lines = change_lines(mission.config, config.as_json())
    if not lines and source is not None and source != mission.source:
        lines = ["~ the text of the file; its meaning is unchanged"]
    wanted = {pillar.slug for pillar in config.pillars}
    for pillar in mission_repository.pillars_of(tx, mission.id):
        count = None if pillar.slug in wanted else mission_repository.count_open_in_pillar(tx, pillar.id)
        if count:
            raise IllegalTransition(
                f"Pillar {pillar.slug!r} is not in the file but has {count} open {'todo' if count == 1 else 'todos'}. "
                "Complete or cancel them first, or keep the pillar. Nothing was changed."
            )
    return lines


def _warnings(config: MissionConfig, open_todos: Sequence[MissionTodo]) -> list[str]:
    active = sum(todo.status in ACTIVE for todo in open_todos)
    backlog = len(open_todos) - active
    warnings = _lost_checks(config, open_todos)
    for name, limit, used, where in (
        ("activeTodoLimit", config.todo.active_todo_limit, active, "active"),
        ("backlogTodoLimit", config.todo.backlog_todo_limit, backlog, "in the backlog"),
    ):
        if used > limit:
            room = f"fit once fewer than {limit} remain" if limit else "do not fit"
            are = "is" if used == 1 else "are"
            warnings.append(f"todo.{name} is {limit}, but {_todos(used)} {are} {where}. They stay; new ones {room}.")
    if not config.pillars:
        warnings.append("The mission has no pillars. Every todo belongs to a pillar.")
    return warnings


def _lost_checks(config: MissionConfig, open_todos: Sequence[MissionTodo]) -> list[str]:
    """The checks of open todos that name a metric or a check which is not in the file."""
    metrics = {metric.slug for pillar in config.pillars for metric in pillar.metrics}
    lost: dict[str, list[str]] = {}
    for todo in open_todos:
        match json.loads(todo.completion_check) if todo.completion_check else None:
            case {"metric": slug} if slug not in metrics:
                lost.setdefault(f"metric {slug}", []).append(todo.id)
            case {"name": name} if name not in config.checks:
                lost.setdefault(f"check {name}", []).append(todo.id)
    return [
        f"{what} is not in the file, but the check of {_todos(len(ids))} ({', '.join(id[-8:] for id in ids[:5])}"
        f"{', …' if len(ids) > 5 else ''}) needs it. It cannot pass: edit the check, or complete with --override."
        for what, ids in lost.items()
    ]


def _todos(count: int) -> str:
    return "1 todo" if count == 1 else f"{count} todos"


def _tick_reason(tick: str) -> str:
    return f"the cycle of {tick}"


def _is_taken(tx: Transaction, mission_id: str, tick: str) -> bool:
    return mission_repository.has_event(tx, event_stream(mission_id), MissionAction.TAKE_TICK, _tick_reason(tick))
