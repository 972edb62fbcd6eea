"""Shared by all changes in a mission: finding and locking it, and building its events."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from punchlist.conversations.model import Scope
from punchlist.errors import IllegalTransition, NotFound
from punchlist.kernel.events import Change
from punchlist.kernel.text import excerpt
from punchlist.missions import repository as mission_repository
from punchlist.missions.model import Mission, Pillar
from punchlist.missions.todos.validation import suggest_name
from punchlist.storage.store import Transaction


class MissionAction(StrEnum):
    """Actions in the events of a mission and its parts; todos, readings and escalations have their own."""

    MAKE_MISSION = "make_mission"
    CHANGE_MISSION = "change_mission"
    ARCHIVE_MISSION = "archive_mission"
    TAKE_TICK = "take_tick"
    ADD_PILLAR = "add_pillar"
    CHANGE_PILLAR = "change_pillar"
    SET_STRATEGIES = "set_strategies"
    ADD_METRIC = "add_metric"
    CHANGE_METRIC = "change_metric"


def event_stream(mission_id: str) -> str:
    return f"mission:{mission_id}"


def mission_event(
    scope: Scope,
    mission: Mission,
    action: str,
    subject: str,
    reason: str,
    data: dict[str, Any],
    *,
    from_status: str | None = None,
    to: str | None = None,
) -> Change:
    """An event in the mission's stream, shown with the mission chat."""
    return Change(
        stream=event_stream(mission.id),
        conversation_id=mission.conversation_id,
        actor=str(scope.actor),
        action=action,
        subject=subject,
        from_status=from_status,
        to_status=to,
        reason=reason,
        data=data,
    )


def find_mission(tx: Transaction, slug: str) -> Mission:
    """The mission, archived or not."""
    found = mission_repository.mission_by_slug(tx, slug)
    if found is None:
        raise unknown_mission(tx, slug)
    return found


def lock_mission(tx: Transaction, slug: str) -> Mission:
    """The active mission, locked against other writers until the transaction ends."""
    found = mission_repository.lock_mission_by_slug(tx, slug)
    if found is None:
        raise unknown_mission(tx, slug)
    check_active(found)
    return found


def check_active(mission: Mission) -> None:
    if mission.status != "active":
        raise IllegalTransition(f"Mission {mission.slug!r} is archived and can no longer change.")


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
    active = [known for known, status in mission_repository.slugs(tx).items() if status == "active"]
    if not active:
        return NotFound(
            f"There is no mission {excerpt(slug)!r}; no missions exist. Create one with `punchlist mission apply FILE`."
        )
    return NotFound(f"There is no mission {excerpt(slug)!r}.{suggest_name(slug, active)}")
