"""The questions that a session's todos wait to have answered, and what comes of an answer."""

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

TOOL: Final = "wait_todo"
ANSWERED: Final = "The person has answered. Go on with it."
PERSON: Final = Actor(Role.PERSON, "mcp")
"""Who answers: whoever sits in front of the client."""


@dataclass(frozen=True, slots=True)
class PendingQuestion:
    """What a todo waits for a person to say."""

    id: str
    """Of the condition."""
    conversation_id: str
    turn_id: str
    todo_id: str
    todo_title: str
    text: str
    open: bool = True


class PendingQuestions:
    def __init__(self, desk: Services, scope: Scope) -> None:
        self._desk = desk
        self._scope = scope

    def asked_by(self, tool: str, raw_arguments: object) -> PendingQuestion | None:
        """What a person can be asked at once, when this call has made a todo wait for their answer."""
        if (named := _named(tool, raw_arguments)) is None:
            return None
        held = self._desk.plans.open_conditions(self._scope.conversation_id)
        asked = [one for one in held if one.condition.kind is ConditionKind.PERSON]
        return next((_question(one) for one in asked if (one.todo.id, one.condition.subject) == named), None)

    def asked_before(self, tool: str, raw_arguments: object, question_id: str) -> PendingQuestion | None:
        """The question with this id, when the same call had it asked; it may have been answered since, by anybody."""
        if (asked := self.asked_by(tool, raw_arguments)) is not None:
            return asked if asked.id == question_id else None
        turn = self._desk.conversations.current_turn(self._scope.conversation_id)
        if turn is None or (named := _named(tool, raw_arguments)) is None:
            return None
        todo_id, text = named
        plan = self._plan(turn.conversation_id, turn.id)
        title = next((todo.title for todo in plan.items if todo.id == todo_id), "")
        question = PendingQuestion(question_id, turn.conversation_id, turn.id, todo_id, title, text, open=False)
        return question if _answered(plan, question) else None

    def answer(self, question: PendingQuestion, said: str) -> ToolResult:
        """What `punchlist answer` does; then how the todo stands. If somebody was faster, theirs is the answer."""
        if not question.open:
            return self.standing(question)
        try:
            self._desk.plans.resolve(question.conversation_id, question.id, said, PERSON)
        except PunchlistError as error:
            return self.standing(question, str(error))
        return self.standing(question)

    def standing(self, question: PendingQuestion, problem: str = "") -> ToolResult:
        """How the todo stands now, as wait_todo tells it."""
        plan = self._plan(question.conversation_id, question.turn_id)
        todo = next((one for one in plan.items if one.id == question.todo_id), None)
        told = condition_json(plan, question.todo_id)
        data: dict[str, Any] = {
            "id": question.todo_id,
            "title": question.todo_title,
            "status": todo.status.value if todo else PlanStatus.CANCELLED.value,
            "waitsFor": told.get("waitsFor", []),
        }
        if answers := told.get("answers"):
            data["answers"] = answers
        if following := problem or (ANSWERED if _answered(plan, question) else ""):
            data["next"] = following
        return ToolResult(json.dumps(data, ensure_ascii=False), data)

    def _plan(self, conversation_id: str, turn_id: str) -> Plan:
        scope = TurnScope(conversation_id, self._scope.actor, turn_id)
        return self._desk.plans.list(scope, frozenset(PlanStatus))


def _named(tool: str, raw_arguments: object) -> tuple[str, str] | None:
    """The todo and the question that a call of wait_todo names; what is wrong with a call, the call itself says."""
    if tool != TOOL:
        return None
    try:
        args = parse_arguments(raw_arguments)
        need = plan_validation.parse_condition(args.get("for"), "for")
        return (
            (plan_validation.parse_id(args.get("todoId")), need.subject) if need.kind is ConditionKind.PERSON else None
        )
    except PunchlistError:
        return None


def _question(held: BlockedTodo) -> PendingQuestion:
    condition = held.condition
    of = (condition.conversation_id, condition.turn_id, held.todo.id)
    return PendingQuestion(condition.id, *of, held.todo.title, condition.subject)


def _answered(plan: Plan, question: PendingQuestion) -> bool:
    answers = plan.answers.get(question.todo_id, ())
    return any((answer.kind, answer.subject) == (ConditionKind.PERSON, question.text) for answer in answers)
