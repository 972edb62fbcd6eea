"""Asks the person through the client when a todo waits for an answer (MCP elicitation).

The wait is stored before the question is sent, and stays if there is no answer: a client that declines or is silent
leaves the todo waiting. No request blocks another. A call in handshake mode stays open until the client answers, the
time is up, or the client cancels the call. A stateless call returns the question, and the client repeats the call
with the answer.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock, Timer
from typing import Any, Final

from punchlist.app import Services
from punchlist.conversations.model import Scope, TurnScope
from punchlist.errors import PunchlistError
from punchlist.kernel.events import Actor, Role
from punchlist.kernel.text import visible
from punchlist.kernel.tool import ToolResult, json_result, parse_arguments
from punchlist.plan import validation as plan_validation
from punchlist.plan.lifecycle import ConditionKind, PlanStatus
from punchlist.plan.model import BlockedTodo, Plan
from punchlist.plan.tools import condition_json
from punchlist.surfaces.mcp import jsonrpc
from punchlist.surfaces.mcp.capabilities import Capabilities
from punchlist.surfaces.mcp.jsonrpc import Json, RpcRequest, tool_result

logger = logging.getLogger(__name__)

MAX_PENDING: Final = 16
"""Open questions per client."""

_METHOD: Final = "elicitation/create"
_FIELD: Final = "answer"
_TOOL: Final = "wait_todo"
_ANSWERED: Final = "The person has answered. Continue with this item."
_PERSON: Final = Actor(Role.PERSON, "mcp")


@dataclass(frozen=True, slots=True)
class _PendingCall:
    """A call that is answered when the person answers, or with `fallback`."""

    request: RpcRequest
    question: PendingQuestion
    fallback: Json
    timer: Timer


class Elicitation:
    def __init__(self, capabilities: Capabilities, answer_timeout: float) -> None:
        """After `answer_timeout` seconds a call is answered without the person."""
        self._questions = capabilities.questions
        self._call_tool = capabilities.call
        self._answer_timeout = answer_timeout
        # Over HTTP, one client can make calls concurrently.
        self._lock = Lock()
        self._pending: dict[str, _PendingCall] = {}
        self._count = 0

    def call(self, request: RpcRequest, tool: str, arguments: object) -> Json | None:
        """The result of a tool call; None if it follows after the person's answer."""
        if request.stateless and (result := self._repeated_call(request, tool, arguments)) is not None:
            return result
        result = tool_result(self._call_tool(tool, arguments))
        question = None
        # The call succeeded, and its result is sent even if the question cannot be read.
        with suppress(PunchlistError):
            question = self._questions.find(tool, arguments)
        if question is None:
            return result
        if request.stateless:
            return _input_required(question)
        return None if self._ask(request, question, result) else result

    def receive_answer(self, message: Json) -> None:
        """Handle the client's response to a question; ignore responses to anything else."""
        question_id = message.get("id")
        call = self._pending.pop(question_id, None) if isinstance(question_id, str) else None
        if call is None:
            return
        call.timer.cancel()
        result, answer = call.fallback, _answer(message.get("result"))
        if answer is not None:
            try:
                result = tool_result(self._questions.answer(call.question, answer))
            except Exception:
                # The call itself succeeded and its todo still waits: the fallback says so.
                logger.exception("an answer could not be stored")
        call.request.send(jsonrpc.response(call.request.id, result))

    def cancel(self, key: str) -> None:
        """The client no longer waits for this call."""
        for question_id, call in list(self._pending.items()):
            if call.request.key == key and self._withdraw(question_id):
                call.request.send(None)

    def close(self) -> None:
        for question_id in list(self._pending):
            self._withdraw(question_id)

    def _repeated_call(self, request: RpcRequest, tool: str, arguments: object) -> Json | None:
        """The result of a stateless call that brings answers; None if it brings none."""
        responses = request.params.get("inputResponses")
        for question_id, response in responses.items() if isinstance(responses, dict) else ():
            question = self._questions.find_asked(tool, arguments, question_id)
            if question is None:
                continue
            if (answer := _answer(response)) is not None:
                return tool_result(self._questions.answer(question, answer))
            if question.open and isinstance(response, dict) and response.get("action") == "accept":
                return _input_required(question)
            if question.open:
                return tool_result(self._call_tool(tool, arguments))
            return tool_result(self._questions.todo_state(question))
        return None

    def _ask(self, request: RpcRequest, question: PendingQuestion, fallback: Json) -> bool:
        """False if too many questions are open."""
        with self._lock:
            if len(self._pending) >= MAX_PENDING:
                return False
            self._count += 1
            question_id = f"ask-{self._count}"
            timer = Timer(self._answer_timeout, self._time_out, (question_id,))
            timer.daemon = True
            self._pending[question_id] = _PendingCall(request, question, fallback, timer)
        timer.start()
        request.send({"jsonrpc": "2.0", "id": question_id, "method": _METHOD, "params": _form(question)})
        return True

    def _time_out(self, question_id: str) -> None:
        if (call := self._withdraw(question_id)) is not None:
            call.request.send(jsonrpc.response(call.request.id, call.fallback))

    def _withdraw(self, question_id: str) -> _PendingCall | None:
        """Cancel a question. Only one caller gets the call, and answers it."""
        call = self._pending.pop(question_id, None)
        if call is not None:
            call.timer.cancel()
            call.request.send(jsonrpc.notification("notifications/cancelled", requestId=question_id))
        return call


def _input_required(question: PendingQuestion) -> Json:
    """The id of the condition identifies the answer: the client holds no state that it could forge."""
    return {
        "resultType": "input_required",
        "inputRequests": {question.id: {"method": _METHOD, "params": _form(question)}},
    }


def _form(question: PendingQuestion) -> Json:
    return {
        "mode": "form",
        "message": f"“{visible(question.todo_title)}” waits for your answer:\n{visible(question.text)}",
        "requestedSchema": {
            "type": "object",
            "properties": {_FIELD: {"type": "string", "title": "Answer", "minLength": 1}},
            "required": [_FIELD],
        },
    }


def _answer(result: object) -> str | None:
    """The person's answer; None if they declined or the result is invalid."""
    if not isinstance(result, Mapping) or result.get("action") != "accept":
        return None
    content = result.get("content")
    answer = content.get(_FIELD) if isinstance(content, Mapping) else None
    return answer if isinstance(answer, str) and answer.strip() else None


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
    """Questions to a person that the session's todos wait for, and their answers."""

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
        return json_result(data)

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
