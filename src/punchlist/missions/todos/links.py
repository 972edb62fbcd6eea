"""Links between the todos of a mission (M18)."""

from __future__ import annotations

from typing import NamedTuple

from punchlist.errors import IllegalTransition, InvalidInput, NotAllowed
from punchlist.kernel.events import Role
from punchlist.kernel.ids import new_id
from punchlist.kernel.text import excerpt, visible
from punchlist.missions.changes import MissionWrite
from punchlist.missions.model import LinkKind, Mission, MissionScope, MissionTodo, NewLink, TodoChange, TodoLink
from punchlist.missions.todos import link_rules
from punchlist.missions.todos import repository as todo_repository
from punchlist.missions.todos.lifecycle import LEADS, PartAction, TodoStatus
from punchlist.missions.todos.queries import TodoQueries
from punchlist.missions.todos.recommend import recommend
from punchlist.missions.todos.transitions import check_pillar_of, find_todo, lock_todo
from punchlist.missions.todos.validation import MAX_REASON_LENGTH, parse_block
from punchlist.storage.store import Transaction


class LinkedTodo(NamedTuple):
    """A link, seen from one of its todos."""

    name: str
    """One of `link_rules.NAMES`."""
    todo: MissionTodo
    """At the other end."""


class TodoLinks(TodoQueries):
    def link(self, scope: MissionScope, mission_slug: str, todo_id: str, link: NewLink, reason: str) -> TodoChange:
        """Link a todo to another one. An owner's link becomes a recommendation."""
        reason = self._check(scope, mission_slug, todo_id, PartAction.LINK, link, reason)
        with self._store.write() as tx:
            write, todo, _ = lock_todo(tx, scope, mission_slug, todo_id)
            return TodoChange(todo, add_link(write, todo, link, reason))

    def unlink(self, scope: MissionScope, mission_slug: str, todo_id: str, link: NewLink, reason: str) -> TodoChange:
        reason = self._check(scope, mission_slug, todo_id, PartAction.UNLINK, link, reason)
        with self._store.write() as tx:
            write, todo, _ = lock_todo(tx, scope, mission_slug, todo_id)
            remove_link(write, todo, link, reason)
            return TodoChange(todo)

    def links(self, todo_id: str) -> list[LinkedTodo]:
        """The links of a todo in both directions."""
        with self._store.read() as tx:
            return linked_todos(tx, todo_id)

    def _check(
        self, scope: MissionScope, mission_slug: str, todo_id: str, action: PartAction, link: NewLink, reason: str
    ) -> str:
        reason = parse_block("reason", reason, MAX_REASON_LENGTH)
        if scope.actor.role is Role.OWNER:
            given = {"link": link_rules.wire_name(link), "otherId": link.other_id}
            recommend(self._store, scope, mission_slug, todo_id, action, reason, given)
        if scope.actor.role not in LEADS:
            raise NotAllowed(f"{scope.actor.role.described} may not {action} mission todos.")
        return reason


def linked_todos(tx: Transaction, todo_id: str) -> list[LinkedTodo]:
    links = todo_repository.links_of(tx, todo_id)
    found = [(link_rules.name_from(link, todo_id), link_rules.other_end(link, todo_id)) for link in links]
    return [LinkedTodo(name, todo) for name, id in found if (todo := todo_repository.find(tx, id)) is not None]


def remove_link(write: MissionWrite, todo: MissionTodo, link: NewLink, reason: str) -> None:
    tx = write.tx
    first, second = link_rules.direction(todo.id, link)
    found = todo_repository.find_link(tx, todo_id=first, kind=link.kind.value, other_id=second)
    if found is None:
        raise InvalidInput(f"link: “{visible(todo.title)}” has no such link to {excerpt(link.other_id)!r}")
    tx.run(todo_repository.DELETE_LINK, id=found.id)
    _append(write, PartAction.UNLINK, todo, found, reason)


def add_link(
    write: MissionWrite, todo: MissionTodo, new: NewLink, reason: str, scope: MissionScope | None = None
) -> str | None:
    """Store a link; a warning when it has no effect now. `scope` limits which todos may become blocked."""
    tx = write.tx
    other = find_todo(tx, write.mission, new.other_id)
    if other.id == todo.id:
        raise InvalidInput("link: a todo cannot be linked to itself")
    blocked = todo if new.inverse else other
    if new.kind is LinkKind.BLOCKS and scope is not None:
        # An owner must not stop the work of another pillar.
        check_pillar_of(tx, scope, blocked)
    first, second = link_rules.direction(todo.id, new)
    if todo_repository.find_link(tx, todo_id=first, kind=new.kind.value, other_id=second):
        return "This link exists already."
    for end in (todo, other):
        if len(todo_repository.links_of(tx, end.id)) >= link_rules.MAX_LINKS:
            raise IllegalTransition(
                f"“{visible(end.title)}” ({end.id}) has {link_rules.MAX_LINKS} links, the limit. Remove one first."
            )
    check_order(tx, write.mission, new.kind, first, second)
    now, actor = tx.now(), str(write.scope.actor)
    link = TodoLink(new_id(), write.mission.id, first, new.kind.value, second, actor, now)
    todo_repository.insert_link(tx, link)
    _append(write, PartAction.LINK, todo, link, reason)
    if new.kind is LinkKind.BLOCKS and blocked.status is TodoStatus.IN_PROGRESS:
        return f"“{visible(blocked.title)}” is in progress already; the link does not stop it."
    return None


def check_order(tx: Transaction, mission: Mission, kind: LinkKind, first: str, second: str) -> None:
    """Refuses a link that closes a circle."""
    edges = [(link.todo_id, link.other_id) for link in todo_repository.links_of_kind(tx, mission.id, kind.value)]
    if kind is LinkKind.BLOCKS:
        edges += todo_repository.parents(tx, mission.id)
    if (path := link_rules.path_between(edges, second, first)) is None:
        return
    ends = [todo_repository.find(tx, id) for id in path]
    shown = " → ".join(f"“{excerpt(todo.title)}”" for todo in [*ends, ends[0]] if todo is not None)
    raise IllegalTransition(f"This link would close a circle: {shown}. Remove one of its links first.")


def check_not_blocked(tx: Transaction, todo: MissionTodo) -> None:
    """Refuses to start a todo while another one that blocks it is open."""
    blockers = todo_repository.open_blockers(tx, todo.id)
    if blockers:
        names = ", ".join(f"“{visible(each.title)}” ({each.id}, {each.status})" for each in blockers[:5])
        more = f" and {len(blockers) - 5} more" if len(blockers) > 5 else ""
        raise IllegalTransition(
            f"“{visible(todo.title)}” cannot start: it is blocked by {names}{more}. Complete or cancel that first, or "
            "remove the link."
        )


def _append(write: MissionWrite, action: PartAction, todo: MissionTodo, link: TodoLink, reason: str) -> None:
    data = {"title": todo.title, "link": link._asdict()}
    write.append(action, todo.id, reason, data, from_status=todo.status, to=todo.status)
