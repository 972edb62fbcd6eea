"""Rows and values of missions."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final, NamedTuple

from punchlist.conversations.model import Scope
from punchlist.kernel.events import Role
from punchlist.missions.todos.lifecycle import TodoPriority, TodoStatus

TEAM: Final = frozenset({Role.PERSON, Role.LEAD, Role.OWNER})
"""The roles that work on todos of missions."""


class ChatChannel(StrEnum):
    """The purpose of a mission's chat, stored in the conversation's metadata (M1)."""

    MISSION = "mission"
    PILLAR = "pillar"
    PILLAR_TODO = "pillar-todo"


@dataclass(frozen=True, slots=True)
class MissionScope(Scope):
    """Who calls, and the mission and pillar that limit what the caller may do."""

    mission_slug: str | None = None
    pillar_slug: str | None = None


class Mission(NamedTuple):
    """A row of `missions`."""

    id: str
    slug: str
    name: str
    description: str
    json_config: str
    source: str
    status: str
    conversation_id: str
    last_tick: str | None
    created_at: str
    updated_at: str
    paused_at: str | None = None
    paused_by: str | None = None
    pause_reason: str | None = None

    @property
    def config(self) -> dict[str, Any]:
        config: dict[str, Any] = json.loads(self.json_config)
        return config

    @property
    def settings_version(self) -> str:
        """Changes with the settings, so that two editors cannot overwrite each other."""
        return sha256(f"{self.status}\n{self.json_config}\n{self.source}".encode()).hexdigest()[:16]

    def checksum(self) -> int:
        # Without `last_tick`, which changes with every cycle.
        paused = (self.paused_at, self.paused_by or "", self.pause_reason or "") if self.paused_at else ()
        parts = (*self[:8], self.created_at, self.updated_at, *paused)
        return zlib.crc32("\x1f".join(parts).encode())


class Pillar(NamedTuple):
    """A row of `pillars`."""

    id: str
    mission_id: str
    slug: str
    name: str
    description: str
    position: int
    status: str
    conversation_id: str
    todo_conversation_id: str
    created_at: str


class Strategy(NamedTuple):
    id: str
    mission_id: str
    pillar_id: str
    position: int
    description: str
    status: str


class Metric(NamedTuple):
    """A row of `metrics`."""

    id: str
    mission_id: str
    pillar_id: str
    slug: str
    name: str
    unit: str
    target: float
    warning: float | None
    direction: str
    collector: str
    stale_after_hours: float
    position: int
    status: str
    last_error: str | None
    last_error_at: str | None
    created_at: str

    @property
    def collector_config(self) -> dict[str, Any]:
        collector: dict[str, Any] = json.loads(self.collector)
        return collector

    @property
    def collector_type(self) -> str:
        return str(self.collector_config.get("type", "manual"))


class MetricReading(NamedTuple):
    """A row of `metric_readings`."""

    id: str
    mission_id: str
    metric_id: str
    position: int
    value: float
    at: str
    source: str
    note: str


class MissionTodo(NamedTuple):
    """A row of `mission_todos`."""

    id: str
    pillar_id: str
    mission_id: str
    title: str
    description: str
    justification: str
    completion_criteria: str
    deadline: str | None
    status: TodoStatus
    priority: TodoPriority
    assigned_agent: str | None = None
    outcome: str | None = None
    created_at: str = ""
    started_at: str | None = None
    completed_at: str | None = None
    ended_at: str | None = None
    also_affects: str = "[]"
    completion_check: str | None = None
    check_result: str | None = None
    worked_at: str | None = None
    override_reason: str | None = None
    overdue_at: str | None = None
    request_id: str | None = None
    parent_id: str | None = None
    labels: str | None = None
    unarchived_at: str | None = None

    def checksum(self) -> int:
        parts = [value or "" for value in self[:_FIRST_COLUMNS]]
        # Later columns count only when they have a value, so that rows of older versions stay valid.
        parts += [
            f"{name}={value}"
            for name, value in zip(self._fields[_FIRST_COLUMNS:], self[_FIRST_COLUMNS:], strict=True)
            if value is not None
        ]
        return zlib.crc32("\x1f".join(parts).encode())

    @property
    def version(self) -> str:
        """Changes with the todo. An editor sends it back, so that no other edit is overwritten."""
        return f"{self.checksum():08x}"

    @property
    def label_names(self) -> tuple[str, ...]:
        return tuple(json.loads(self.labels)) if self.labels else ()


_FIRST_COLUMNS: Final = MissionTodo._fields.index("parent_id")


class LinkKind(StrEnum):
    BLOCKS = "blocks"
    DUPLICATES = "duplicates"
    FOLLOWS_FROM = "follows_from"


class TodoLink(NamedTuple):
    """A row of `todo_links`: the todo blocks, duplicates or follows from the other one."""

    id: str
    mission_id: str
    todo_id: str
    kind: str
    other_id: str
    created_by: str
    created_at: str


class TodoComment(NamedTuple):
    """A row of `todo_comments`."""

    id: str
    mission_id: str
    todo_id: str
    author: str
    content: str
    created_at: str


class TodoFile(NamedTuple):
    """A row of `todo_files`: a path in the workspace, or a stored text with a name."""

    id: str
    mission_id: str
    todo_id: str
    name: str
    content: str | None
    created_by: str
    created_at: str


class Escalation(NamedTuple):
    """A row of `escalations`: a question to a person about a todo."""

    id: str
    mission_id: str
    todo_id: str
    kind: str
    question: str
    status: str
    asked_at: str
    reminded_at: str | None = None
    reminders: int = 0
    answer: str | None = None
    answered_by: str | None = None
    answered_at: str | None = None


class NewLink(NamedTuple):
    """A link to request. `inverse`: the other todo is the one that blocks, is a duplicate or follows."""

    kind: LinkKind
    other_id: str
    inverse: bool = False


@dataclass(frozen=True, slots=True)
class NewMissionTodo:
    """A request to create a todo."""

    pillar_slug: str
    title: str
    description: str = ""
    justification: str = ""
    completion_criteria: str = ""
    deadline: str | None = None
    priority: TodoPriority | None = None
    """Default: the template's, else medium."""
    assigned_agent: str | None = None
    target: TodoStatus = TodoStatus.PENDING
    also_affects: tuple[str, ...] = ()
    check: Mapping[str, Any] | None = None
    template: str | None = None
    request_id: str | None = None
    parent_id: str | None = None
    labels: tuple[str, ...] = ()
    links: tuple[NewLink, ...] = ()


@dataclass(frozen=True, slots=True)
class TodoChange:
    """A changed todo, with a warning if any."""

    todo: MissionTodo
    warning: str | None = None
    run_id: str | None = None
    """The run that the change queued."""
    other: MissionTodo | None = None
    """The todo that it was swapped with."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """Limits of a mission and how much of them is used."""

    active: int
    active_limit: int
    backlog: int
    backlog_limit: int

    def as_json(self) -> dict[str, int]:
        return {
            "active": self.active,
            "activeTodoLimit": self.active_limit,
            "backlog": self.backlog,
            "backlogTodoLimit": self.backlog_limit,
        }


@dataclass(frozen=True, slots=True)
class PillarState:
    """A pillar with its current strategies and metrics."""

    pillar: Pillar
    strategies: list[Strategy] = field(default_factory=list)
    metrics: list[Metric] = field(default_factory=list)
