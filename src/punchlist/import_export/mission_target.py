"""Entries into a mission: one by one, since each takes up a slot. What was made is known by the id it came with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from punchlist.errors import Conflict, IllegalTransition, InvalidInput
from punchlist.import_export.format_limits import FormatLimits
from punchlist.import_export.item import ExchangeItem, Loss
from punchlist.import_export.targets import REASON, ExistingItems, ImportedItem, ids_by_title, is_stable_id
from punchlist.kernel.clock import parse_timestamp
from punchlist.kernel.text import excerpt, visible
from punchlist.missions.config.policy import cadence_of
from punchlist.missions.todos import deadlines, pagination
from punchlist.missions.todos import validation as todo_validation
from punchlist.missions.todos.lifecycle import OPEN, TodoStatus

if TYPE_CHECKING:
    from punchlist.missions.model import MissionScope, NewMissionTodo
    from punchlist.missions.service import Missions
    from punchlist.missions.todos.service import MissionTodos


def _trim(entries: list[ExchangeItem]) -> tuple[list[ExchangeItem], list[Loss]]:
    """A command is not taken from a file: whoever gives a todo one means it to run."""
    kept = [replace(entry, check=None) if "command" in (entry.check or {}) else entry for entry in entries]
    count = sum(1 for before, after in zip(entries, kept, strict=True) if before != after)
    return kept, [Loss("check (a command is not taken from a file)", count)] if count else []


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
        self._standing = missions.pillars(self._mission)
        self._pillar = pillar
        self._now = now
        held = {
            "id",
            "title",
            "details",
            "status",
            "priority",
            "acceptance",
            "justification",
            "deadline",
            "also_affects",
            "check",
        }
        self.limits = FormatLimits(
            f"mission {self._mission.slug}",
            frozenset(held | {"owner"} if owners else held),
            # Work begins when the Lead says so, and what was done elsewhere was not done for this mission.
            states={TodoStatus.IN_PROGRESS: TodoStatus.PENDING, TodoStatus.COMPLETED: None, TodoStatus.CANCELLED: None},
            trim=_trim,
        )

    def existing(self) -> ExistingItems:
        found: list[tuple[str, str]] = []
        asked: dict[str, str] = {}
        cursor = None
        while True:
            page = self._todos.list(self._mission.slug, archived=True, limit=pagination.MAX_LIMIT, cursor=cursor)
            for todo in page.items:
                found += [(todo.id, todo.title)] if todo.status in OPEN else []
                asked[todo.id] = todo.id
                if todo.request_id and todo.request_id.startswith(f"{REASON}:"):
                    asked[todo.request_id.removeprefix(f"{REASON}:")] = todo.id
            cursor = page.cursor
            if cursor is None:
                return ExistingItems(asked, ids_by_title(found))

    def adjust(self, entries: Sequence[ExchangeItem]) -> tuple[list[ExchangeItem], list[str]]:
        return list(entries), []

    def check(self, entries: Sequence[ExchangeItem]) -> None:
        room = self._todos.capacity(self._mission.slug)
        active = max(0, room.active_limit - room.active)
        shelved = max(0, room.backlog_limit - room.backlog)
        wanted = sum(1 for entry in entries if entry.status is TodoStatus.PENDING)
        overflow = max(0, wanted - active) + len(entries) - wanted
        if overflow > shelved:
            raise InvalidInput(
                f"Mission {self._mission.slug!r} has {active} free slots and room for {shelved} in its backlog; "
                f"{len(entries)} todos were to be added. Nothing was imported."
            )
        problems: list[str] = []
        slugs = [standing.pillar.slug for standing in self._standing]
        if self._pillar not in slugs:
            near = todo_validation.suggest_name(self._pillar, slugs)
            problems.append(f"Mission {self._mission.slug!r} has no pillar {excerpt(self._pillar)!r}.{near}")
        for entry in entries:
            problems += [f"“{excerpt(entry.title)}”: {problem}" for problem in self._problems(entry, slugs)]
        if problems:
            raise InvalidInput(problems)

    def _problems(self, entry: ExchangeItem, slugs: Sequence[str]) -> list[str]:
        problems = [
            f"alsoAffects: there is no pillar {excerpt(one)!r}" for one in entry.also_affects if one not in slugs
        ]
        try:
            self._new(entry)
            if entry.deadline:
                deadlines.parse_deadline(entry.deadline, cadence_of(self._mission).timezone, parse_timestamp(self._now))
        except InvalidInput as error:
            problems += error.problems
        match entry.check:
            case {"name": name} if name not in self._mission.config["checks"]:
                problems.append(f"check: there is no check {excerpt(str(name))!r}")
            case {"metric": slug} if slug not in [one.slug for stand in self._standing for one in stand.metrics]:
                problems.append(f"check: there is no metric {excerpt(str(slug))!r}")
        return problems

    def _new(self, entry: ExchangeItem) -> NewMissionTodo:
        return todo_validation.parse_create(
            {
                "missionSlug": self._mission.slug,
                "pillarSlug": self._pillar,
                "title": entry.title,
                "description": entry.details,
                "justification": entry.justification,
                "completionCriteria": entry.acceptance,
                "deadline": entry.deadline or None,
                "priority": entry.priority.value if entry.priority else None,
                "assignedAgent": entry.owner or None,
                "targetStatus": "backlog" if entry.status is TodoStatus.BACKLOG else None,
                "alsoAffects": list(entry.also_affects),
                "check": dict(entry.check) if entry.check else None,
                "requestId": f"{REASON}:{entry.id}" if is_stable_id(entry.id) else None,
            }
        )[1]

    def write(self, entries: Sequence[ExchangeItem], known: Mapping[str, str]) -> tuple[list[ImportedItem], list[str]]:
        del known
        made: list[ImportedItem] = []
        remarks: dict[str, int] = {}
        for entry in entries:
            try:
                done = self._todos.create(self._scope, self._mission.slug, self._new(entry), reason=REASON)
            except (IllegalTransition, Conflict) as error:
                raise type(error)(
                    f"“{visible(entry.title)}” could not be made: {error} {len(made)} before it were made; importing "
                    "again goes on after them."
                ) from error
            made.append(ImportedItem(done.todo.id, done.todo.title, done.todo.status))
            if done.warning:
                remarks[done.warning] = remarks.get(done.warning, 0) + 1
        return made, [f"{told} ({count} times)" if count > 1 else told for told, count in remarks.items()]
