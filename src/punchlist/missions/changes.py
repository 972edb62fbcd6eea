"""What every change in a mission has in common: whose it is, which stream tells of it, and in which words."""

from __future__ import annotations

from difflib import get_close_matches
from enum import StrEnum
from typing import Any

from punchlist.conversations.model import Scope
from punchlist.errors import IllegalTransition, NotFound
from punchlist.kernel.events import Change
from punchlist.kernel.text import excerpt
from punchlist.missions import repository as mission_repository
from punchlist.missions.model import Mission, Pillar
from punchlist.storage.store import Transaction


class MissionAction(StrEnum):
    """What events say of a mission and its parts; todos, readings and escalations have actions of their own."""

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
    came_from: str | None = None,
    to: str | None = None,
) -> Change:
    """An event of a mission: in its stream, and shown with the mission chat."""
    return Change(
        stream=event_stream(mission.id),
        conversation_id=mission.conversation_id,
        actor=str(scope.actor),
        action=action,
        subject=subject,
        from_status=came_from,
        to_status=to,
        reason=reason,
        data=data,
    )


def find_mission(tx: Transaction, slug: str) -> Mission:
    """To look at, archived or not."""
    found = mission_repository.mission_by_slug(tx, slug)
    if found is None:
        raise unknown_mission(tx, slug)
    return found


def lock_mission(tx: Transaction, slug: str) -> Mission:
    """To change something in: kept from other writers until the transaction ends, and not archived."""
    found = mission_repository.lock_mission_by_slug(tx, slug)
    if found is None:
        raise unknown_mission(tx, slug)
    check_active(found)
    return found


def check_active(mission: Mission) -> None:
    if mission.status != "active":
        raise IllegalTransition(f"Mission {mission.slug!r} is archived; nothing in it changes any more.")


def find_pillar(tx: Transaction, mission: Mission, slug: str) -> Pillar:
    """An active pillar of a mission."""
    found = mission_repository.pillar_by_slug(tx, mission.id, slug)
    if found is None:
        there = [one.slug for one in mission_repository.pillars_of(tx, mission.id) if one.status == "active"]
        raise NotFound(f"Mission {mission.slug!r} has no pillar {excerpt(slug)!r}.{_suggestion(slug, there)}")
    if found.status != "active":
        raise IllegalTransition(f"Pillar {found.slug!r} of mission {mission.slug!r} is archived.")
    return found


def unknown_mission(tx: Transaction, slug: str) -> NotFound:
    there = [one for one, status in mission_repository.slugs(tx).items() if status == "active"]
    if not there:
        return NotFound(
            f"There is no mission {excerpt(slug)!r}, and no other. `punchlist mission apply FILE` makes one."
        )
    return NotFound(f"There is no mission {excerpt(slug)!r}.{_suggestion(slug, there)}")


def _suggestion(slug: str, there: list[str]) -> str:
    """The name that is nearest to a wrong one, and some of those there are."""
    close = get_close_matches(slug[:100].lower(), there, n=1)
    shown = ", ".join(there[:10]) + (", …" if len(there) > 10 else "")
    return (f" Did you mean {close[0]}?" if close else "") + (f" There are: {shown}." if there else "")
