"""Builds a new todo from a request, its template and its mission, and recognises repeated requests."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

from punchlist.conversations.model import Scope
from punchlist.errors import Conflict, InvalidInput, NotAllowed, NotFound
from punchlist.kernel.clock import parse_timestamp
from punchlist.kernel.events import Role, canonical_json
from punchlist.kernel.ids import new_id
from punchlist.kernel.text import excerpt
from punchlist.missions import repository as mission_repository
from punchlist.missions.changes import MissionWrite, event_stream
from punchlist.missions.config.policy import cadence_of
from punchlist.missions.model import LinkKind, Mission, MissionScope, MissionTodo, NewMissionTodo, Pillar
from punchlist.missions.todos import deadlines, link_rules
from punchlist.missions.todos import repository as todo_repository
from punchlist.missions.todos.lifecycle import TodoPriority
from punchlist.missions.todos.transitions import find_todo
from punchlist.missions.todos.validation import content_problems, labels_json, missing_name
from punchlist.storage.store import Transaction

_REQUEST_FIELDS: Final = (
    *("pillar_id", "title", "description", "justification", "completion_criteria", "deadline", "priority"),
    *("assigned_agent", "also_affects", "completion_check", "target", "parent_id", "labels"),
)
"""Two requests with equal values in these fields are the same request."""


def draft_todo(
    tx: Transaction, scope: MissionScope, mission: Mission, pillar: Pillar, new: NewMissionTodo
) -> tuple[MissionTodo, list[str]]:
    """The requested todo, and warnings. Reports all problems at once."""
    problems: list[str] = []
    new = _apply_template(mission, new, problems)
    problems += content_problems(new)
    others = other_pillars(tx, mission, pillar, new.also_affects, problems)
    if new.check is not None:
        validate_check(tx, scope, mission, new.check, problems)
    if new.parent_id is not None:
        check_parent(tx, mission, pillar, new.parent_id, problems)
    deadline, warnings = None, []
    if new.deadline is not None:
        try:
            parsed = deadlines.parse_deadline(new.deadline, cadence_of(mission).timezone, parse_timestamp(tx.now()))
        except InvalidInput as error:
            problems += error.problems
        else:
            deadline = parsed.stored
            if parsed.passed:
                warnings.append(f"The deadline {deadline} has already passed.")
    if problems:
        raise InvalidInput(problems)
    todo = MissionTodo(
        id=new_id(),
        pillar_id=pillar.id,
        mission_id=mission.id,
        title=new.title.strip(),
        description=new.description.strip(),
        justification=new.justification.strip(),
        completion_criteria=new.completion_criteria.strip(),
        deadline=deadline,
        status=new.target,
        priority=new.priority or TodoPriority.MEDIUM,
        assigned_agent=new.assigned_agent.strip() if new.assigned_agent else None,
        created_at=tx.now(),
        also_affects=json.dumps(others, ensure_ascii=False),
        completion_check=canonical_json(dict(new.check)) if new.check is not None else None,
        request_id=new.request_id.strip() if new.request_id else None,
        parent_id=new.parent_id,
        labels=labels_json(new.labels),
    )
    return todo, warnings


def find_repeated_request(tx: Transaction, mission: Mission, draft: MissionTodo) -> MissionTodo | None:
    """The todo that an earlier request with this requestId created; raises when that request was a different one."""
    if draft.request_id is None:
        return None
    before = todo_repository.find_by_request(tx, mission.id, draft.request_id)
    if before is None:
        return None
    data = todo_repository.creation_data(tx, event_stream(mission.id), before.id)
    if data is None or request_fields(draft) != {name: json.loads(data).get(name) for name in _REQUEST_FIELDS}:
        raise Conflict(
            f"requestId: {excerpt(draft.request_id)!r} already created another todo, “{excerpt(before.title)}” "
            f"({before.id}). Use a new requestId."
        )
    return before


def request_fields(draft: MissionTodo) -> dict[str, Any]:
    """The request, in the form of the creation event."""
    values = {name: value for name, value in draft._asdict().items() if name in _REQUEST_FIELDS}
    return {**values, "target": draft.status.value, "priority": draft.priority.value}


def _apply_template(mission: Mission, new: NewMissionTodo, problems: list[str]) -> NewMissionTodo:
    """Fill empty fields from the template."""
    if new.template is None:
        return new
    templates: dict[str, dict[str, Any]] = {each["slug"]: each for each in mission.config["templates"]}
    template = templates.get(new.template)
    if template is None:
        problems.append(f"template: {missing_name(mission.slug, 'template', new.template, templates)}")
        # Report the other problems too, but not a missing title: the template may have had one.
        return replace(new, title=new.title or "-")
    default_priority = new.priority is None and template.get("priority")
    return replace(
        new,
        title=new.title or template.get("title", ""),
        description=new.description or template.get("description", ""),
        justification=new.justification or template.get("justification", ""),
        completion_criteria=new.completion_criteria or template.get("completionCriteria", ""),
        priority=TodoPriority(template["priority"]) if default_priority else new.priority,
        check=new.check if new.check is not None else template.get("check"),
    )


def other_pillars(
    tx: Transaction, mission: Mission, own: Pillar, slugs: tuple[str, ...], problems: list[str]
) -> list[str]:
    """The slugs of the other affected pillars, without duplicates."""
    if not slugs:
        return []
    known = [pillar.slug for pillar in mission_repository.pillars_of(tx, mission.id) if pillar.status == "active"]
    for index, slug in enumerate(slugs):
        if slug not in known:
            problems.append(f"alsoAffects[{index}]: {missing_name(mission.slug, 'pillar', slug, known)}")
    return [slug for slug in dict.fromkeys(slugs) if slug != own.slug]


def validate_check(tx: Transaction, scope: Scope, mission: Mission, check: Any, problems: list[str]) -> None:
    match check:
        case {"command": _} if scope.actor.role is not Role.PERSON:
            # A model that could choose the command would bypass every policy.
            raise NotAllowed(
                "check.command: only a person may give a todo its own command. Name a check of the mission, "
                'such as {"name": "…"}, or a metric.'
            )
        case {"name": str(name)} if name not in mission.config["checks"]:
            problems.append(f"check.name: {missing_name(mission.slug, 'check', name, mission.config['checks'])}")
        case {"metric": str(slug)}:
            if problem := metric_problem(tx, mission, slug):
                problems.append(f"check.metric: {problem}")


def metric_problem(tx: Transaction, mission: Mission, slug: str) -> str | None:
    known = [metric.slug for metric in mission_repository.metrics_of(tx, mission.id) if metric.status == "active"]
    return None if slug in known else missing_name(mission.slug, "metric", slug, known)


def parse_new_deadline(write: MissionWrite, deadline: str | None) -> str:
    zone = cadence_of(write.mission).timezone
    return deadlines.parse_future_deadline(deadline, zone, parse_timestamp(write.tx.now()))


def check_parent(
    tx: Transaction,
    mission: Mission,
    pillar: Pillar,
    parent_id: str,
    problems: list[str],
    *,
    child: MissionTodo | None = None,
) -> None:
    """A sub-item belongs to an open todo of the same pillar that is not a sub-item itself. `child` is an existing todo
    that becomes one."""
    try:
        parent = find_todo(tx, mission, parent_id)
    except NotFound as error:
        problems.append(f"parentId: {error}")
        return
    name = f"“{excerpt(parent.title)}” ({parent.id})"
    if parent.pillar_id != pillar.id:
        problems.append(f"parentId: {name} belongs to another pillar; a sub-item has the pillar of its parent")
    elif parent.ended_at is not None:
        problems.append(f"parentId: {name} is {parent.status}; only an open todo gets sub-items")
    elif parent.parent_id is not None:
        problems.append(f"parentId: {name} is a sub-item itself; sub-items have one level")
    elif child is not None and child.id == parent.id:
        problems.append("parentId: a todo cannot be its own sub-item")
    elif child is not None and todo_repository.children(tx, mission_id=mission.id, parent_id=child.id):
        problems.append(f"parentId: “{excerpt(child.title)}” has sub-items; sub-items have one level")
    elif child is not None and _comes_after(tx, mission, child.id, parent.id):
        problems.append(f"parentId: {name} blocks “{excerpt(child.title)}”, so neither could end; remove a link first")


def _comes_after(tx: Transaction, mission: Mission, child_id: str, parent_id: str) -> bool:
    """Whether the links already put the child after its future parent."""
    blocks = todo_repository.links_of_kind(tx, mission.id, LinkKind.BLOCKS.value)
    edges = [(link.todo_id, link.other_id) for link in blocks] + todo_repository.parents(tx, mission.id)
    return link_rules.path_between(edges, parent_id, child_id) is not None
