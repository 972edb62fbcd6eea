"""Import into a mission: all todos in one transaction.

The request id of a todo keeps its source id, so that a repeated import skips it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from punchlist.errors import Conflict, IllegalTransition, InvalidInput
from punchlist.import_export.format_limits import COMMON_FIELDS, FormatLimits
from punchlist.import_export.item import ExchangeItem
from punchlist.import_export.sources import all_todos
from punchlist.import_export.targets import REASON, ExistingItems, ImportedItem, import_transaction, is_stable_id
from punchlist.kernel.text import visible
from punchlist.missions.changes import find_mission, find_pillar, lock_mission
from punchlist.missions.model import MissionScope, NewMissionTodo
from punchlist.missions.todos import tool_arguments
from punchlist.missions.todos.lifecycle import OPEN, TodoStatus
from punchlist.missions.todos.service import MissionTodos, create_todo
from punchlist.storage.store import Store


def _without_command(item: ExchangeItem) -> ExchangeItem:
    """A file from elsewhere must not run commands. The metric of a plan's check has no level."""
    check = item.check or {}
    return replace(item, check=None) if "command" in check or check.keys() == {"metric"} else item


class MissionTarget:
    name = "mission"
    busy = False

    def __init__(self, store: Store, scope: MissionScope, mission: str, pillar: str, *, owners: bool) -> None:
        self._store = store
        self._scope = scope
        self._pillar = pillar
        with store.read() as tx:
            self._slug = find_mission(tx, mission).slug
        fields = COMMON_FIELDS | {"priority", "justification", "deadline", "also_affects", "check"}
        self.limits = FormatLimits(
            f"mission {self._slug}",
            fields | {"owner"} if owners else fields,
            # The Lead starts todos. Work that ended elsewhere is not work of this mission.
            states={TodoStatus.IN_PROGRESS: TodoStatus.PENDING, TodoStatus.COMPLETED: None, TodoStatus.CANCELLED: None},
            trims={"check (commands are not imported)": _without_command},
        )

    def existing(self) -> ExistingItems:
        todos = [todo for todo, _ in all_todos(MissionTodos(self._store), self._slug)]
        sources = {
            todo.request_id.removeprefix(f"{REASON}:"): todo.id
            for todo in todos
            if todo.request_id and todo.request_id.startswith(f"{REASON}:")
        }
        titles = [(todo.id, todo.title) for todo in todos if todo.status in OPEN]
        return ExistingItems.create(titles, {**{todo.id: todo.id for todo in todos}, **sources})

    def write(
        self, items: Sequence[ExchangeItem], known: Mapping[str, str], *, dry_run: bool = False
    ) -> tuple[list[ImportedItem], list[str]]:
        del known
        created: list[ImportedItem] = []
        remarks: dict[str, int] = {}
        problems: list[str] = []
        with import_transaction(self._store, dry_run=dry_run) as tx:
            write = lock_mission(tx, self._scope, self._slug)
            find_pillar(tx, write.mission, self._pillar)
            for item in items:
                try:
                    result = create_todo(write, self._scope, self._new(item), REASON)
                except InvalidInput as error:
                    problems += [f"“{visible(item.title)}”: {problem}" for problem in error.problems]
                    continue
                except (IllegalTransition, Conflict) as error:
                    which = f"“{visible(item.title)}”, number {len(created) + 1} of {len(items)}"
                    raise type(error)(f"{which}: {error} Nothing was imported.") from error
                created.append(ImportedItem(result.todo.id, result.todo.title, result.todo.status))
                if result.warning:
                    remarks[result.warning] = remarks.get(result.warning, 0) + 1
            if problems:
                raise InvalidInput(problems)
        return created, [f"{text} ({count} times)" if count > 1 else text for text, count in remarks.items()]

    def _new(self, item: ExchangeItem) -> NewMissionTodo:
        return tool_arguments.parse_create(
            {
                "missionSlug": self._slug,
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
