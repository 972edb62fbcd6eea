"""A mission that measures: made of its file, for tests of metrics, collectors and checks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from punchlist.conversations.service import Conversations
from punchlist.kernel.events import Actor, Role
from punchlist.missions.config import file
from punchlist.missions.model import Mission, MissionScope
from punchlist.missions.service import Missions
from punchlist.storage.store import Store

PERSON = MissionScope("mission-fast", Actor(Role.PERSON, "ada"))
BUILD_TIME: Mapping[str, Any] = {
    "name": "Local build time",
    "slug": "build-time",
    "unit": "s",
    "target": 60,
    "warning": 90,
    "direction": "down",
    "staleAfterHours": 24,
}


def source(*metrics: Mapping[str, Any], **more: Any) -> str:
    pillar = {"name": "Builds", "slug": "builds", "metrics": list(metrics)}
    return json.dumps({"name": "Fast", "slug": "fast", "pillars": [pillar], **more}, indent=2)


def collected(slug: str = "build-time", **collector: Any) -> dict[str, Any]:
    return {**BUILD_TIME, "slug": slug, "name": slug, "collector": collector}


def measured(store: Store, *metrics: Mapping[str, Any], **more: Any) -> Mission:
    """Made, or changed to be what it is said to be now."""
    text = source(*metrics or (BUILD_TIME,), **more)
    return Missions(store, Conversations(store)).apply(PERSON, file.parse_mission(text), text).mission
