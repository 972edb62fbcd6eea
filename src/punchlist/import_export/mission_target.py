"""Import into a mission: one todo per transaction, since each takes a slot.

The request id of a todo keeps its source id, so that a repeated import skips it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from punchlist.errors import Conflict, IllegalTransition, InvalidInput
from punchlist.import_export.format_limits import COMMON_FIELDS, FormatLimits
from punchlist.import_export.item import ExchangeItem
from punchlist.import_export.sources import all_todos
from punchlist.import_export.targets import REASON, ExistingItems, ImportedItem, ids_by_title, is_stable_id
from punchlist.kernel.clock import parse_timestamp
from punchlist.kernel.text import excerpt, visible
from punchlist.missions.config.policy import cadence_of
from punchlist.missions.todos import deadlines, tool_arguments
from punchlist.missions.todos.lifecycle import OPEN, TodoStatus
from punchlist.missions.todos.validation import suggest_name

if TYPE_CHECKING:
    from punchlist.missions.model import MissionScope, NewMissionTodo
    from punchlist.missions.service import Missions
    from punchlist.missions.todos.service import MissionTodos


def _without_command(item: ExchangeItem, _: object) -> ExchangeItem:
    """A file from elsewhere must not run commands."""
    return replace(item, check=None) if "command" in (item.check or {}) else item


class MissionTarget:
    name = "mission"

    def __init__(
        self,
        todos: MissionTodos,
        missions: Missions,
        scope: MissionScope,
        mission: str,
        pillar: str,
        now: str,
        *,
        owners: bool,
    ) -> None:
        self._todos = todos
        self._scope = scope
        self._mission = missions.get(mission)
        self._pillars = missions.pillars(self._mission)
        self._pillar = pillar
        self._now = now
        fields = COMMON_FIELDS | {"priority", "justification", "deadline", "also_affects", "check"}
        self.limits = FormatLimits(
            f"mission {self._mission.slug}",
            fields | {"owner"} if owners else fields,
            # The Lead starts todos. Work that ended elsewhere is not work of this mission.
            states={TodoStatus.IN_PROGRESS: TodoStatus.PENDING, TodoStatus.COMPLETED: None, TodoStatus.CANCELLED: None},
            trims={"check (commands are not imported)": _without_command},
        )

    def existing(self) -> ExistingItems:
        titles: list[tuple[str, str]] = []
        ids: dict[str, str] = {}
        for todo, _ in all_todos(self._todos, self._mission.slug):
            titles += [(todo.id, todo.title)] if todo.status in OPEN else []
            ids[todo.id] = todo.id
            if todo.request_id and todo.request_id.startswith(f"{REASON}:"):
                ids[todo.request_id.removeprefix(f"{REASON}:")] = todo.id
        return ExistingItems(ids, ids_by_title(titles))

    def adjust(self, items: Sequence[ExchangeItem]) -> tuple[list[ExchangeItem], list[str]]:
        return list(items), []

    def check(self, items: Sequence[ExchangeItem]) -> None:
        room = self._todos.capacity(self._mission.slug)
        active = max(0, room.active_limit - room.active)
        backlog = max(0, room.backlog_limit - room.backlog)
        pending = sum(1 for item in items if item.status is TodoStatus.PENDING)
        overflow = max(0, pending - active) + len(items) - pending
        if overflow > backlog:
            raise InvalidInput(
                f"Mission {self._mission.slug!r} has {active} free slots and room for {backlog} in its backlog; "
                f"the import adds {len(items)} todos. Nothing was imported."
            )
        problems: list[str] = []
        slugs = [state.pillar.slug for state in self._pillars]
        if self._pillar not in slugs:
            near = suggest_name(self._pillar, slugs)
            problems.append(f"Mission {self._mission.slug!r} has no pillar {excerpt(self._pillar)!r}.{near}")
        for item in items:
            problems += [f"“{excerpt(item.title)}”: {problem}" for problem in self._problems(item, slugs)]
        if problems:
            raise InvalidInput(problems)

    def _problems(self, item: ExchangeItem, slugs: Sequence[str]) -> list[str]:
        problems = [
            f"alsoAffects: there is no pillar {excerpt(slug)!r}" for slug in item.also_affects if slug not in slugs
        ]
        try:
            self._new(item)
            if item.deadline:
                deadlines.parse_deadline(item.deadline, cadence_of(self._mission).timezone, parse_timestamp(self._now))
        except InvalidInput as error:
            problems += error.problems
        match item.check:
            case {"name": name} if name not in self._mission.config["checks"]:
                problems.append(f"check: there is no check {excerpt(str(name))!r}")
            case {"metric": slug} if slug not in [metric.slug for state in self._pillars for metric in state.metrics]:
                problems.append(f"check: there is no metric {excerpt(str(slug))!r}")
        return problems

    def _new(self, item: ExchangeItem) -> NewMissionTodo:
        return tool_arguments.parse_create(
            {
                "missionSlug": self._mission.slug,
                "pillarSlug": self._pillar,
                "title": item.title,
                "description": item.details,
                "justification": item.justification,
                "completionCriteria": item.acceptance,
                "deadline": item.deadline or None,
                "priority": item.priority.value if item.priority else None,
                "assignedAgent": item.owner or None,
                "targetStatus": "backlog" if item.status is TodoStatus.BACKLOG else None,
                "alsoAffects": list(item.also_affects),
                "check": dict(item.check) if item.check else None,
                "requestId": f"{REASON}:{item.id}" if is_stable_id(item.id) else None,
            }
        )[1]

    def write(self, items: Sequence[ExchangeItem], known: Mapping[str, str]) -> tuple[list[ImportedItem], list[str]]:
        del known
        created: list[ImportedItem] = []
        remarks: dict[str, int] = {}
        for item in items:
            try:
                result = self._todos.create(self._scope, self._mission.slug, self._new(item), reason=REASON)
            except (IllegalTransition, Conflict) as error:
                raise type(error)(
                    f"“{visible(item.title)}” could not be created: {error} {len(created)} todos before it were "
                    "created; a repeated import continues after them."
                ) from error
            created.append(ImportedItem(result.todo.id, result.todo.title, result.todo.status))
            if result.warning:
                remarks[result.warning] = remarks.get(result.warning, 0) + 1
        return created, [f"{text} ({count} times)" if count > 1 else text for text, count in remarks.items()]
