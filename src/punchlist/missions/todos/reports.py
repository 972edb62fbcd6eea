"""Reports of owners on their work, and the Lead's feedback, in the TODO chat of the pillar (M8)."""

from __future__ import annotations

from typing import Final, NamedTuple

from punchlist.claims import repository as claim_repository
from punchlist.claims import service as claims
from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import NoticeKind
from punchlist.conversations.service import Conversations
from punchlist.errors import IllegalTransition, NotAllowed
from punchlist.kernel.events import Role
from punchlist.kernel.text import excerpt, visible
from punchlist.missions.changes import MissionWrite
from punchlist.missions.chats import quote_verbatim, unquote
from punchlist.missions.config.policy import policy_of
from punchlist.missions.escalations.transitions import REVIEW
from punchlist.missions.model import MissionScope, MissionTodo, Pillar, TodoChange
from punchlist.missions.todos.lifecycle import TodoAction, TodoStatus
from punchlist.missions.todos.queries import TodoQueries
from punchlist.missions.todos.transitions import (
    WORK,
    advance_todo,
    answer_escalations,
    enqueue_execution,
    lock_todo,
    update_todo,
)
from punchlist.missions.todos.validation import MAX_REASON_LENGTH, parse_block
from punchlist.runs import repository as run_repository
from punchlist.runs.lifecycle import OPEN, RunStatus
from punchlist.runs.model import Run, RunKind
from punchlist.runs.service import tell

REPORTERS: Final = frozenset({Role.OWNER, Role.PERSON, Role.SYSTEM})
REVIEWERS: Final = frozenset({Role.LEAD, Role.PERSON})


class TodoMessage(NamedTuple):
    """A report or feedback."""

    kind: str
    at: str
    text: str
    author: str | None
    """Who posted it; None in databases of the first versions."""


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
            write.post(NoticeKind.TODO_RESULT, content, pillar.todo_conversation_id, todo_id=todo.id)
            return TodoChange(changed)

    def feedback(self, scope: MissionScope, mission_slug: str, todo_id: str, text: str) -> TodoChange:
        """Send work back to its owner (M8). The action `resume` does the same, with its reason as the text."""
        if scope.actor.role not in REVIEWERS:
            raise NotAllowed(f"{scope.actor.role.described} may not give feedback on a mission todo; the Lead may.")
        text = parse_block("text", text)
        with self._store.write() as tx:
            write, todo, pillar = lock_todo(tx, scope, mission_slug, todo_id)
            _check_in_progress(todo, "feedback")
            return send_back(write, todo, pillar, text)

    def messages(self, todo_id: str) -> list[TodoMessage]:
        """The reports, errors and feedback of the current work on a todo, oldest first."""
        found = Conversations(self._store).about_todo(todo_id, since=self.get(todo_id).started_at or "")
        return [
            TodoMessage(
                *(message.kind, message.created_at, unquote(message.content.partition("\n")[2]), message.posted_by)
            )
            for message in found
        ]


def send_back(write: MissionWrite, todo: MissionTodo, pillar: Pillar, message: str) -> TodoChange:
    """Post feedback on a todo in progress, and make sure that its owner gets it: a todo without a run gets one."""
    changed = advance_todo(write, todo, TodoAction.RESUME, excerpt(message, MAX_REASON_LENGTH))
    run = give_feedback(write, todo, pillar, message)
    # The work goes on, which answers the question about work that did not finish.
    answer_escalations(write, todo, f"resumed: {message}", REVIEW)
    if run is None:
        run = enqueue_execution(write.tx, write.scope, pillar, changed, excerpt(message, MAX_REASON_LENGTH))
        return TodoChange(changed, run_id=run.id)
    return TodoChange(changed, _warning(write, todo), run_id=run.id)


def give_feedback(write: MissionWrite, todo: MissionTodo, pillar: Pillar, message: str) -> Run | None:
    """Post feedback on a todo in progress; its open run, if it has one.

    An owner that works reads it at once; otherwise it is part of the next round.
    """
    tx = write.tx
    content = f"[TODO {todo.id}]\n{quote_verbatim(message)}"
    write.post(NoticeKind.TODO_FEEDBACK, content, pillar.todo_conversation_id, todo_id=todo.id)
    working = [run for run in run_repository.by_todo(tx, todo.id) if run.kind is RunKind.EXECUTE and run.status in OPEN]
    if not working:
        return None
    run = working[0]
    turn = conversation_repository.find_turn(tx, run.turn_id) if run.turn_id is not None else None
    # Not while the Lead reviews, which may be the caller, and not while it waits: a message would answer the question.
    if run.status is RunStatus.RUNNING and turn is not None and turn.open and turn.agent_id == run.agent:
        tell(tx, write.scope, run.id, message)
    return run


def _warning(write: MissionWrite, todo: MissionTodo) -> str | None:
    found = conversation_repository.about_todo(write.tx, todo_id=todo.id, since=todo.started_at or "", limit=200)
    given = sum(1 for message in found if message.kind == NoticeKind.TODO_FEEDBACK)
    most = policy_of(write.mission).max_reviews
    if given <= most:
        return None
    return f"It was sent back {given} times; the mission allows {most}. Consider asking a person."


def _check_in_progress(todo: MissionTodo, what: str) -> None:
    if todo.status is not TodoStatus.IN_PROGRESS:
        raise IllegalTransition(
            f"“{visible(todo.title)}” ({todo.id}) is {todo.status}; {what} needs a todo in progress."
        )
