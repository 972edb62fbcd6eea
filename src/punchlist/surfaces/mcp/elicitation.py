"""Asking the person in front of the client (elicitation): where the client can, a todo that waits for a person's
answer has it asked at once.

The wait is stored before anybody is asked, and stays as it is when nobody answers: a client that cannot ask, that
declines or says nothing leaves what there would be without it. No request waits inside of this for another. A call
of the handshake generation is left open: it is answered when the client's answer arrives, when the person's time is
up, or never, when the client cancels it. One of the stateless generation is answered with the question, and made
again with the answer.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock, Timer
from typing import Any, Final

from punchlist.errors import PunchlistError
from punchlist.kernel.text import visible
from punchlist.kernel.tool import ToolResult
from punchlist.surfaces.mcp import messages
from punchlist.surfaces.mcp.capabilities import Capabilities
from punchlist.surfaces.mcp.messages import Json, RpcRequest
from punchlist.surfaces.mcp.pending_questions import PendingQuestion

logger = logging.getLogger(__name__)

PATIENCE: Final = 300.0
"""Seconds that a person is given; after them the call is answered, and the todo waits on."""
MOST_ASKED: Final = 16
"""Questions that one client has open at a time."""

_METHOD: Final = "elicitation/create"
_FIELD: Final = "answer"
_FIRST_VERSION: Final = "2025-06-18"


@dataclass(frozen=True, slots=True)
class _PendingCall:
    """A call that is open until the person has answered, and what it is answered if they do not."""

    request: RpcRequest
    question: PendingQuestion
    otherwise: Json
    timer: Timer


class Elicitation:
    def __init__(self, offer: Capabilities, patience: float) -> None:
        self._questions = offer.questions
        self._call = offer.call
        self._patience = patience
        # Over HTTP, calls of one client are made at the same time.
        self._guard = Lock()
        self._asked: dict[str, _PendingCall] = {}
        self._count = 0

    def called(self, request: RpcRequest, tool: str, arguments: object) -> Json | None:
        """The result of a call; None when it comes later, since a person is asked first."""
        if self._questions is None or not request.alone or not _can_ask(request):
            return told(self._call(tool, arguments))
        if request.stateless and (heard := self._heard(request, tool, arguments)) is not None:
            return heard
        result = told(self._call(tool, arguments))
        question = None
        # The call was made, and that is told, also when what it has led to cannot be read now.
        with suppress(PunchlistError):
            question = self._questions.asked_by(tool, arguments)
        if question is None:
            return result
        if request.stateless:
            return _input_required(question)
        return None if self._ask(request, question, result) else result

    def hear(self, message: Json) -> None:
        """The client's answer to a question. One to nothing that was asked is nobody's."""
        asked_id = message.get("id")
        asked = self._asked.pop(asked_id, None) if isinstance(asked_id, str) else None
        if asked is None or self._questions is None:
            return
        asked.timer.cancel()
        result, said = asked.otherwise, _answer_in(message.get("result"))
        if said is not None:
            try:
                result = told(self._questions.answer(asked.question, said))
            except Exception:
                # The call was made, and its todo waits: that is told, whatever has become of the answer.
                logger.exception("an answer could not be kept")
        asked.request.send(messages.response(asked.request.id, result))

    def cancel(self, key: str) -> None:
        """The client does not wait for this call any more."""
        for asked_id, asked in list(self._asked.items()):
            if asked.request.key == key and self._take_back(asked_id):
                asked.request.send(None)

    def close(self) -> None:
        for asked_id in list(self._asked):
            self._take_back(asked_id)

    def _heard(self, request: RpcRequest, tool: str, arguments: object) -> Json | None:
        """What comes of a call that is made again with what the person said; None for one that brings nothing."""
        assert self._questions is not None
        responses = request.params.get("inputResponses")
        for question_id, result in responses.items() if isinstance(responses, dict) else ():
            question = self._questions.asked_before(tool, arguments, question_id)
            if question is None:
                continue
            if (said := _answer_in(result)) is not None:
                return told(self._questions.answer(question, said))
            if question.open and isinstance(result, dict) and result.get("action") == "accept":
                return _input_required(question)
            return told(self._call(tool, arguments) if question.open else self._questions.standing(question))
        return None

    def _ask(self, request: RpcRequest, question: PendingQuestion, otherwise: Json) -> bool:
        """Whether there was room for one more question."""
        with self._guard:
            if len(self._asked) >= MOST_ASKED:
                return False
            self._count += 1
            asked_id = f"ask-{self._count}"
            timer = Timer(self._patience, self._give_up, (asked_id,))
            timer.daemon = True
            self._asked[asked_id] = _PendingCall(request, question, otherwise, timer)
        timer.start()
        request.send({"jsonrpc": "2.0", "id": asked_id, "method": _METHOD, "params": _form(question)})
        return True

    def _give_up(self, asked_id: str) -> None:
        if (asked := self._take_back(asked_id)) is not None:
            asked.request.send(messages.response(asked.request.id, asked.otherwise))

    def _take_back(self, asked_id: str) -> _PendingCall | None:
        """Whoever takes the question back is the only one to go on with it; the client need not ask any more."""
        asked = self._asked.pop(asked_id, None)
        if asked is not None:
            asked.timer.cancel()
            asked.request.send(messages.notification("notifications/cancelled", requestId=asked_id))
        return asked


def told(result: ToolResult) -> Json:
    return {"content": [messages.text_block(result.text)], "structuredContent": result.data, "isError": False}


def _input_required(question: PendingQuestion) -> Json:
    """The question's own id says what an answer is for: there is no state that somebody could tamper with."""
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


def _can_ask(request: RpcRequest) -> bool:
    """Whether the client shows forms: it says so, or it says only that it asks, which once meant forms."""
    elicitation: Any = request.capabilities.get("elicitation")
    known = isinstance(elicitation, dict) and request.version >= _FIRST_VERSION
    return known and ("form" in elicitation or not elicitation)


def _answer_in(result: object) -> str | None:
    """What the person has said; None when they declined, or the client sends something else."""
    if not isinstance(result, Mapping) or result.get("action") != "accept":
        return None
    content = result.get("content")
    said = content.get(_FIELD) if isinstance(content, Mapping) else None
    return said if isinstance(said, str) and said.strip() else None
