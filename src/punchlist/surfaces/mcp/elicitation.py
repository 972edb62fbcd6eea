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
from typing import Final

from punchlist.errors import PunchlistError
from punchlist.kernel.text import visible
from punchlist.surfaces.mcp import jsonrpc
from punchlist.surfaces.mcp.capabilities import Capabilities
from punchlist.surfaces.mcp.jsonrpc import Json, RpcRequest, tool_result
from punchlist.surfaces.mcp.pending_questions import PendingQuestion

logger = logging.getLogger(__name__)

MAX_PENDING: Final = 16
"""Open questions per client."""

_METHOD: Final = "elicitation/create"
_FIELD: Final = "answer"


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
