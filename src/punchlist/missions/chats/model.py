from __future__ import annotations

from enum import StrEnum


class ChatChannel(StrEnum):
    """The purpose of a mission's chat, stored in the conversation's metadata (M1)."""

    MISSION = "mission"
    PILLAR = "pillar"
    PILLAR_TODO = "pillar-todo"
