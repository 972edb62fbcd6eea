"""Questions to a person that the session's todos wait for, and their answers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from punchlist.conversations.model import Scope, TurnScope
from punchlist.errors import PunchlistError
from punchlist.kernel.actors import Actor, Role
from punchlist.kernel.tool import ToolResult, parse_arguments
from punchlist.plan import validation as plan_validation
from punchlist.plan.lifecycle import ConditionKind, PlanStatus
from punchlist.plan.model import BlockedTodo, Plan
from punchlist.plan.tools import condition_json
from punchlist.surfaces.services import Services

_TOOL: Final = "wait_todo"
_ANSWERED: Final = "The person has answered. Continue with this item."
_PERSON: Final = Actor(Role.PERSON, "mcp")


@dataclass(frozen=True, slots=True)
class PendingQuestion:
    id: str
    """The id of the condition."""
    conversation_id: str
    turn_id: str
    todo_id: str
    todo_title: str
    text: str
    open: bool = True


class PendingQuestions:
    def __init__(self, services: Services, scope: Scope) -> None:
        self._services = services
        self._scope = scope

    def find(self, tool: str, raw_arguments: object) -> PendingQuestion | None:
        """The open question that this call of `wait_todo` created."""
        if (named := _todo_and_question(tool, raw_arguments)) is None:
            return None
        blocked = self._services.plans.open_conditions(self._scope.conversation_id)
        asked = [todo for todo in blocked if todo.condition.kind is ConditionKind.PERSON]
        return next((_question(todo) for todo in asked if (todo.todo.id, todo.condition.subject) == named), None)

    def find_asked(self, tool: str, raw_arguments: object, question_id: str) -> PendingQuestion | None:
        """The question with this id if the same call created it, open or already answered."""
        if (asked := self.find(tool, raw_arguments)) is not None:
            return asked if asked.id == question_id else None
        turn = self._services.conversations.current_turn(self._scope.conversation_id)
        if turn is None or (named := _todo_and_question(tool, raw_arguments)) is None:
            return None
        todo_id, text = named
        plan = self._plan(turn.conversation_id, turn.id)
        title = next((todo.title for todo in plan.items if todo.id == todo_id), "")
        question = PendingQuestion(question_id, turn.conversation_id, turn.id, todo_id, title, text, open=False)
        return question if _is_answered(plan, question) else None

    def answer(self, question: PendingQuestion, answer: str) -> ToolResult:
        """Store the answer as `punchlist answer` does, and return the todo's state. An earlier answer stays."""
        if not question.open:
            return self.todo_state(question)
        try:
            self._services.plans.resolve(question.conversation_id, question.id, answer, _PERSON)
        except PunchlistError as error:
            return self.todo_state(question, str(error))
        return self.todo_state(question)

    def todo_state(self, question: PendingQuestion, problem: str = "") -> ToolResult:
        """The todo in the JSON of `wait_todo`."""
        plan = self._plan(question.conversation_id, question.turn_id)
        todo = next((item for item in plan.items if item.id == question.todo_id), None)
        conditions = condition_json(plan, question.todo_id)
        data: dict[str, Any] = {
            "id": question.todo_id,
            "title": question.todo_title,
            "status": todo.status.value if todo else PlanStatus.CANCELLED.value,
            "waitsFor": conditions.get("waitsFor", []),
        }
        if answers := conditions.get("answers"):
            data["answers"] = answers
        if following := problem or (_ANSWERED if _is_answered(plan, question) else ""):
            data["next"] = following
        return ToolResult(json.dumps(data, ensure_ascii=False), data)

    def _plan(self, conversation_id: str, turn_id: str) -> Plan:
        scope = TurnScope(conversation_id, self._scope.actor, turn_id)
        return self._services.plans.list(scope, frozenset(PlanStatus))


def _todo_and_question(tool: str, raw_arguments: object) -> tuple[str, str] | None:
    """The todo id and the question that a call of `wait_todo` names; None for invalid and other calls."""
    if tool != _TOOL:
        return None
    try:
        args = parse_arguments(raw_arguments)
        condition = plan_validation.parse_condition(args.get("for"), "for")
        todo_id = plan_validation.parse_id(args.get("todoId"))
    except PunchlistError:
        return None
    return (todo_id, condition.subject) if condition.kind is ConditionKind.PERSON else None


def _question(blocked: BlockedTodo) -> PendingQuestion:
    condition, todo = blocked.condition, blocked.todo
    return PendingQuestion(
        condition.id, condition.conversation_id, condition.turn_id, todo.id, todo.title, condition.subject
    )


def _is_answered(plan: Plan, question: PendingQuestion) -> bool:
    answers = plan.answers.get(question.todo_id, ())
    return any((answer.kind, answer.subject) == (ConditionKind.PERSON, question.text) for answer in answers)
