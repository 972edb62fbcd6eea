"""Reports of owners on their work, and the Lead's feedback, in the TODO chat of the pillar (M8)."""

from __future__ import annotations

from typing import Final, NamedTuple

from punchlist.claims import repository as claim_repository
from punchlist.claims import service as claims
from punchlist.conversations.model import NoticeKind
from punchlist.conversations.service import Conversations
from punchlist.errors import IllegalTransition, NotAllowed
from punchlist.kernel.events import Role
from punchlist.kernel.text import excerpt, visible
from punchlist.missions.chats import quote_verbatim, unquote
from punchlist.missions.config.policy import policy_of
from punchlist.missions.model import MissionScope, MissionTodo, TodoChange
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.missions.todos.queries import TodoQueries
from punchlist.missions.todos.transitions import WORK, lock_todo, update_todo
from punchlist.missions.todos.validation import parse_block

FEEDBACK: Final = "feedback"
"""The event that records that work was sent back."""
REPORTERS: Final = frozenset({Role.OWNER, Role.PERSON, Role.SYSTEM})
REVIEWERS: Final = frozenset({Role.LEAD, Role.PERSON})


class TodoMessage(NamedTuple):
    """A report or feedback."""

    kind: str
    at: str
    text: str


class TodoReports(TodoQueries):
    def report(
        self, scope: MissionScope, mission_slug: str, todo_id: str, result: str, *, fence: int | None = None
    ) -> TodoChange:
        """Post the result of the work to the TODO chat, for the Lead to review (M8)."""
        if scope.actor.role not in REPORTERS:
            raise NotAllowed(
                f"{scope.actor.role.described} may not report on a mission todo; the owner of its pillar may."
            )
        result = parse_block("result", result)
        with self._store.write() as tx:
            write, todo, pillar = lock_todo(tx, scope, mission_slug, todo_id)
            _check_in_progress(todo, "a report")
            if scope.actor.role is Role.OWNER:
                claim = claim_repository.lock(tx, todo.id)
                claims.check_use(tx, claim, f"“{visible(todo.title)}” ({todo.id})", fence, scope.actor.role)
            changed = update_todo(write, WORK, todo, "its result was reported", worked_at=tx.now())
            content = f"[TODO {todo.id}]\n{quote_verbatim(result)}"
            write.post(NoticeKind.TODO_RESULT, content, pillar.todo_conversation_id)
            return TodoChange(changed)

    def feedback(self, scope: MissionScope, mission_slug: str, todo_id: str, text: str) -> TodoChange:
        """Send work back to its owner, in the TODO chat. Reviewers only (M8)."""
        if scope.actor.role not in REVIEWERS:
            raise NotAllowed(f"{scope.actor.role.described} may not give feedback on a mission todo; the Lead may.")
        text = parse_block("text", text)
        with self._store.write() as tx:
            write, todo, pillar = lock_todo(tx, scope, mission_slug, todo_id)
            _check_in_progress(todo, "feedback")
            content = f"[TODO {todo.id}]\n{quote_verbatim(text)}"
            write.post(NoticeKind.TODO_FEEDBACK, content, pillar.todo_conversation_id)
            data = {"title": todo.title}
            write.append(FEEDBACK, todo.id, excerpt(text, 500), data, from_status=todo.status, to=todo.status)
        given = sum(1 for message in self.messages(todo.id) if message.kind == NoticeKind.TODO_FEEDBACK)
        most = policy_of(write.mission).max_reviews
        warning = None
        if given > most:
            warning = f"It was sent back {given} times; the mission allows {most}. Consider asking a person."
        return TodoChange(todo, warning)

    def messages(self, todo_id: str) -> list[TodoMessage]:
        """The reports, errors and feedback of the current work on a todo, oldest first."""
        found = Conversations(self._store).about_todo(todo_id, since=self.get(todo_id).started_at or "")
        return [
            TodoMessage(message.kind, message.created_at, unquote(message.content.partition("\n")[2]))
            for message in found
        ]


def _check_in_progress(todo: MissionTodo, what: str) -> None:
    if todo.status is not TodoStatus.IN_PROGRESS:
        raise IllegalTransition(
            f"“{visible(todo.title)}” ({todo.id}) is {todo.status}; {what} needs a todo in progress."
        )
