"""A mission for tests: the one of the seed's example, with everybody who works in it."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Final

from punchlist.conversations.service import Conversations
from punchlist.kernel.events import SYSTEM, Actor, Event, Role
from punchlist.missions.changes import event_stream
from punchlist.missions.config import file
from punchlist.missions.model import Mission, MissionScope, MissionTodo, NewMissionTodo, Pillar
from punchlist.missions.service import Missions
from punchlist.missions.todos.lifecycle import TodoAction, TodoStatus
from punchlist.missions.todos.service import MissionTodos
from punchlist.missions.todos.tools import MissionCheckRunner, mission_tools
from punchlist.storage import event_log
from punchlist.storage.store import Store

SLUG: Final = "developer-experience"
BUILD: Final = "build-performance"
ONBOARDING: Final = "onboarding"
FILE: Final[dict[str, Any]] = {
    "name": "Developer Experience",
    "slug": SLUG,
    "description": "Good tools, short waits",
    "todo": {"activeTodoLimit": 10, "backlogTodoLimit": 50},
    "cadence": {"cron": "0 9 * * 1", "timezone": "UTC"},
    "pillars": [
        {
            "name": "Build Performance",
            "slug": BUILD,
            "description": "Builds under a minute",
            "metrics": [
                {
                    "name": "Local build time",
                    "slug": "local-build-time",
                    "unit": "s",
                    "target": 60,
                    "warning": 90,
                    "direction": "down",
                    "collector": {"type": "manual"},
                },
                {"name": "Cache hits", "slug": "cache-hit-rate", "unit": "%", "target": 90, "direction": "up"},
            ],
            "strategies": [{"description": "Replace slow loaders", "status": "active"}],
        },
        {"name": "Onboarding", "slug": ONBOARDING, "description": "A first change on the first day"},
    ],
    "templates": [
        {
            "slug": "profiling",
            "title": "Profile it",
            "description": "Run the profiler.",
            "justification": "Nobody knows what is slow.",
            "completionCriteria": "The three slowest parts are known.",
            "priority": "high",
            "check": {"name": "tests"},
        }
    ],
    "checks": {"tests": {"command": ["make", "test"]}},
}


@dataclass(frozen=True)
class Team:
    """A mission and its people. Each is bound to where they work; the person is not."""

    store: Store
    missions: Missions
    todos: MissionTodos
    slug: str
    person: MissionScope
    lead: MissionScope
    owner: MissionScope
    """Of the first pillar."""
    other_owner: MissionScope
    worker: MissionScope
    system: MissionScope
    checks: MissionCheckRunner | None = None

    @property
    def mission(self) -> Mission:
        return self.missions.get(self.slug)

    @property
    def pillars(self) -> dict[str, Pillar]:
        return {standing.pillar.slug: standing.pillar for standing in self.missions.pillars(self.mission)}

    def scope(self, role: Role) -> MissionScope:
        return {
            Role.PERSON: self.person,
            Role.LEAD: self.lead,
            Role.OWNER: self.owner,
            Role.WORKER: self.worker,
            Role.SYSTEM: self.system,
            Role.SUPERVISOR: replace(self.worker, actor=Actor(Role.SUPERVISOR, "test")),
        }[role]

    def call(self, scope: MissionScope, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Call one of the mission's tools as a model does; what programs get of the result."""
        checks = self.checks
        tools = mission_tools(lambda: self.todos, (lambda: checks) if checks else None)
        (tool,) = [tool for tool in tools if tool.name == f"mission_todo_{name}"]
        data: dict[str, Any] = tool.run(scope, {"missionSlug": self.slug, **arguments}).data
        return data

    def create(self, title: str = "A", pillar: str = BUILD, **more: Any) -> MissionTodo:
        """What the Lead puts on the list."""
        return self.todos.create(self.lead, self.slug, NewMissionTodo(pillar, title, **more)).todo

    def update(self, todo: MissionTodo, action: TodoAction, reason: str = "a test", **more: Any) -> MissionTodo:
        return self.todos.update(self.lead, self.slug, todo.id, action, reason, **more).todo

    def todo_in(self, status: TodoStatus, title: str = "A", **more: Any) -> MissionTodo:
        """A todo that has come to a state as todos do."""
        if status is TodoStatus.BACKLOG:
            return self.create(title, target=TodoStatus.BACKLOG, **more)
        todo = self.create(title, **more)
        if status in (TodoStatus.IN_PROGRESS, TodoStatus.COMPLETED):
            todo = self.update(todo, TodoAction.START)
        if status is TodoStatus.COMPLETED:
            todo = self.todos.complete(self.lead, self.slug, todo.id, "done").todo
        if status is TodoStatus.CANCELLED:
            todo = self.update(todo, TodoAction.CANCEL)
        assert todo.status is status
        return todo

    def trail(self) -> list[Event]:
        """The mission's events."""
        mission_id = self.mission.id
        with self.store.read() as tx:
            return event_log.read_stream(tx, event_stream(mission_id))


def mission_file(
    slug: str = SLUG, *, active: int | None = None, backlog: int | None = None, **changes: Any
) -> dict[str, Any]:
    """The example's file, with other limits or other parts."""
    content = {**deepcopy(FILE), "slug": slug, **changes}
    limits = {"activeTodoLimit": active, "backlogTodoLimit": backlog}
    content["todo"] = {**content["todo"], **{name: limit for name, limit in limits.items() if limit is not None}}
    return content


def developer_experience(
    store: Store, slug: str = SLUG, *, checks: MissionCheckRunner | None = None, **changes: Any
) -> Team:
    """The example's mission in a store; `changes` as for `mission_file`."""
    missions = Missions(store, Conversations(store))
    person = MissionScope("cli", Actor(Role.PERSON, "ada"))
    source = json.dumps(mission_file(slug, **changes))
    mission = missions.apply(person, file.parse_mission(source), source).mission

    def bound(role: Role, name: str, pillar: str | None = None) -> MissionScope:
        return MissionScope(mission.conversation_id, Actor(role, name), mission.slug, pillar)

    return Team(
        store,
        missions,
        MissionTodos(store),
        mission.slug,
        person,
        lead=bound(Role.LEAD, "mission-lead"),
        owner=bound(Role.OWNER, "pillar-owner", BUILD),
        other_owner=bound(Role.OWNER, "pillar-owner", ONBOARDING),
        worker=bound(Role.WORKER, "coder"),
        system=MissionScope(mission.conversation_id, SYSTEM),
        checks=checks,
    )
