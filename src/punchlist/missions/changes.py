"""Shared by all changes in a mission: finding and locking it, and building its events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from punchlist.conversations.model import NoticeKind, Scope
from punchlist.errors import IllegalTransition, NotFound
from punchlist.kernel.events import Change
from punchlist.kernel.lifecycle import Lifecycle
from punchlist.kernel.text import excerpt
from punchlist.missions import chats
from punchlist.missions import repository as mission_repository
from punchlist.missions.model import Mission, Pillar
from punchlist.missions.todos.validation import suggest_name
from punchlist.storage import event_log
from punchlist.storage.store import Transaction
from punchlist.storage.transitions import A, R, S, transition


class MissionAction(StrEnum):
    """Actions in the events of a mission and its parts; todos, readings and escalations have their own."""

    MAKE_MISSION = "make_mission"
    CHANGE_MISSION = "change_mission"
    ARCHIVE_MISSION = "archive_mission"
    UNARCHIVE_MISSION = "unarchive_mission"
    PAUSE_MISSION = "pause_mission"
    RESUME_MISSION = "resume_mission"
    TAKE_TICK = "take_tick"
    REACH_BUDGET = "reach_budget"
    ADD_PILLAR = "add_pillar"
    CHANGE_PILLAR = "change_pillar"
    SET_STRATEGIES = "set_strategies"
    ADD_STRATEGY = "add_strategy"
    RETIRE_STRATEGY = "retire_strategy"
    ADD_METRIC = "add_metric"
    CHANGE_METRIC = "change_metric"


def event_stream(mission_id: str) -> str:
    return f"mission:{mission_id}"


@dataclass(frozen=True, slots=True)
class MissionWrite:
    """A transaction that changes one mission, which is locked until its end, and the caller.

    The lock makes the caller the only writer of the mission's stream. Events are shown with the mission chat.
    """

    tx: Transaction
    scope: Scope
    mission: Mission

    def event(
        self,
        action: str,
        subject: str,
        reason: str,
        data: dict[str, Any],
        *,
        from_status: str | None = None,
        to: str | None = None,
    ) -> Change:
        chat = Scope(self.mission.conversation_id, self.scope.actor)
        stream = event_stream(self.mission.id)
        return chat.change(stream, action, subject, reason, data, from_status=from_status, to_status=to)

    def append(self, action: str, subject: str, reason: str, data: dict[str, Any], **statuses: str | None) -> None:
        event_log.append(self.tx, self.event(action, subject, reason, data, **statuses))

    def advance(
        self,
        lifecycle: Lifecycle[S, A],
        item: R,
        action: A,
        reason: str,
        *,
        update: Callable[[Transaction, R, dict[str, Any]], R | None],
        data: dict[str, Any],
        changes: dict[str, Any],
        guard: Callable[[R], Mapping[str, Any] | None] | None = None,
    ) -> R:
        """Take one step along a lifecycle. `data` is added to the event."""
        return transition(
            self.tx,
            lifecycle,
            action,
            self.scope.actor.role,
            lock=lambda _: item,
            update=update,
            event=lambda before, after, written: self.event(
                action, before.id, reason, {**data, **written}, from_status=before.status, to=after.status
            ),
            guard=guard,
            changes=changes,
        )

    def post(
        self, kind: NoticeKind, content: str, conversation_id: str | None = None, *, todo_id: str | None = None
    ) -> None:
        """Post a message to a chat; by default to the mission chat. With `todo_id`, it is about that todo."""
        chats.post(self.tx, self.scope, conversation_id or self.mission.conversation_id, kind, content, todo_id)


def find_mission(tx: Transaction, slug: str) -> Mission:
    """The mission, archived or not."""
    found = mission_repository.mission_by_slug(tx, slug)
    if found is None:
        raise unknown_mission(tx, slug)
    return found


def lock_mission(tx: Transaction, scope: Scope, slug: str) -> MissionWrite:
    """The active mission, locked against other writers until the transaction ends."""
    found = mission_repository.lock_mission_by_slug(tx, slug)
    if found is None:
        raise unknown_mission(tx, slug)
    check_active(found)
    return MissionWrite(tx, scope, found)


def check_active(mission: Mission) -> None:
    if mission.status != "active":
        raise IllegalTransition(f"Mission {mission.slug!r} is archived. Unarchive it to change it.")


def find_pillar(tx: Transaction, mission: Mission, slug: str) -> Pillar:
    """An active pillar of a mission."""
    found = mission_repository.pillar_by_slug(tx, mission.id, slug)
    if found is None:
        known = [pillar.slug for pillar in mission_repository.pillars_of(tx, mission.id) if pillar.status == "active"]
        raise NotFound(f"Mission {mission.slug!r} has no pillar {excerpt(slug)!r}.{suggest_name(slug, known)}")
    if found.status != "active":
        raise IllegalTransition(f"Pillar {found.slug!r} of mission {mission.slug!r} is archived.")
    return found


def unknown_mission(tx: Transaction, slug: str) -> NotFound:
    active = mission_repository.active_slugs(tx)
    if not active:
        return NotFound(
            f"There is no mission {excerpt(slug)!r}; no missions exist. Create one with `punchlist mission apply FILE`."
        )
    return NotFound(f"There is no mission {excerpt(slug)!r}.{suggest_name(slug, active)}")
