"""The answer of a turn: the text that answers the request, whatever was said after it (C13), and the last model call
of a turn that reached a limit, which has no tools and only reports (T9)."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from punchlist.agent.continuation import Limits, Reason, TurnCounters
from punchlist.agent.definitions import CHECKLIST_TOOL, READ_TOOLS
from punchlist.agent.work_log import LIST_TOOLS
from punchlist.checklist.lifecycle import OPEN, parse_status
from punchlist.models.model import CallReturn, Message, ModelRequest, Reply, RequestedCall, UserText

SUBSTANTIAL: Final = 200
"""Characters from which a text beside calls that plan or start items counts as a part of the answer: shorter ones
announce the work."""
_REMARK: Final = 60
"""Characters up to which a text before more reading is a remark and no report."""
_NO_CHANGE: Final = LIST_TOOLS | {*READ_TOOLS}
_CALL: Final = re.compile(r"(?:```(?:json)?|<tool_call>)?\s*(\{.*\})\s*(?:```|</tool_call>)?", re.DOTALL)
_ANNOUNCEMENT: Final = re.compile(
    r"(?:(?:OK|Okay|Now|Next|First|Then|Great|Good),? )?"
    r"(?:I['’]ll|I will|I am going to|I['’]m going to|Let me|Let['’]s)"
    r"(?: (?:now|next|first|then|also|just|quickly))*"
    r" (?:begin|check|continue|examine|explore|finish|go|inspect|investigate|look|mark|move|proceed|read|search|start)"
    r"\b"
    # Anything else in the sentence may say what was found.
    r"(?!.*\b(?:am|are|is|was|were|has|have|had|because|since|which|that|so|but|if|not|no)\b)"
    r"(?:[^\n,:;.!?()–—]|\.(?=\w)){0,80}[.!…:]{0,3}",
    re.IGNORECASE,
)
_MARKED: Final = re.compile(
    r"(?:OK|Okay|Done|All done|Good|Great|Perfect|Finished|Completed|"
    r"Marking (?:it|this|that|item|todo|the)\b[\w ]{0,40})[.!]*",
    re.IGNORECASE,
)


def _announces(text: str) -> bool:
    """Whether a text certainly only says what will be done next: it answers nothing.

    An announcement too many in the answer does less harm than an answer that is lost.
    """
    return _ANNOUNCEMENT.fullmatch(text) is not None


_ACTION: Final = re.compile(
    r"(?:(?:OK|Okay|Sure|Certainly|Great|Alright|Understood|Now)[,.!:]?\s+)?"
    r"(?:I'll|I’ll|I will|I am going to|I'm going to|Let me|Let's|Next,? I)\b(?! know)[^\n?:]{0,160}",
    re.IGNORECASE,
)
_ANSWERS: Final = re.compile(
    r"\b(?:not|never|cannot|because|if you|when you|once you|unless|wait)\b|n't\b", re.IGNORECASE
)


def announces(text: str) -> bool:
    """Whether a reply only says what its agent will do next, and neither refuses nor waits for the user."""
    return _ACTION.fullmatch(text.strip()) is not None and _ANSWERS.search(text) is None


def _ends_items(call: RequestedCall) -> bool:
    if call.tool != CHECKLIST_TOOL:
        return call.tool == "complete_todo"
    todos = call.arguments.get("todos") if isinstance(call.arguments, Mapping) else None
    return any(_is_ended(item) for item in todos) if isinstance(todos, list) else False


def _is_ended(item: object) -> bool:
    status = item.get("status") if isinstance(item, Mapping) else None
    return isinstance(status, str) and parse_status(status) not in (*OPEN, None)


def is_call_as_text(text: str, tools: Collection[str]) -> bool:
    """Whether a reply is only the JSON of a tool call, as models write it if their server does not understand it."""
    found = _CALL.fullmatch(text.strip())
    if found is None:
        return False
    try:
        call = json.loads(found[1])
    except (ValueError, RecursionError):
        return False
    return isinstance(call, dict) and call.get("name") in tools and isinstance(call.get("arguments"), dict)


class AnswerText:
    """Texts since the last work that can have changed anything.

    A report that was written while an item was still unmarked is part of the answer, whatever is marked after it, and
    whatever is said then. It is also kept when something is read after it, unless it is only a remark.
    """

    def __init__(self, text: str = "") -> None:
        self._parts: list[str] = []
        self._last = text

    def add(self, reply: Reply) -> None:
        works = any(call.tool not in LIST_TOOLS for call in reply.calls)
        if any(call.tool not in _NO_CHANGE for call in reply.calls):
            self._parts.clear()
        elif works:
            self._parts = [part for part in self._parts if len(part) >= _REMARK]
        text = reply.text.strip()
        if not text:
            return
        self._last = text
        if not reply.calls or (not works and self._says_something(text, reply.calls)):
            # A later text that repeats an earlier one replaces it.
            self._parts = [part for part in self._parts if part not in text and not _announces(part)] + [text]

    @staticmethod
    def _says_something(text: str, calls: Sequence[RequestedCall]) -> bool:
        """Whether a text beside list calls is a part of the answer: agents report when they mark their last item."""
        if len(text) >= SUBSTANTIAL:
            return True
        return any(map(_ends_items, calls)) and not _announces(text) and not _MARKED.fullmatch(text)

    @property
    def is_empty(self) -> bool:
        """No text answers the request: at most, texts beside calls announced them."""
        return all(map(_announces, self._parts))

    @property
    def text(self) -> str:
        return "\n\n".join(self._parts) or self._last


def may_report(reason: Reason, spent: TurnCounters, limits: Limits, window: int | None, interrupted: bool) -> bool:
    """Whether a report is due and its request fits into the budgets and the context window."""
    if interrupted or reason not in (Reason.CAPPED, Reason.BUDGET):
        return False
    return fits(spent, limits) and (window is None or spent.context <= window)


def fits(spent: TurnCounters, limits: Limits) -> bool:
    """Whether the next request fits into the budgets, whatever the limit of iterations."""
    if limits.seconds is not None and spent.seconds >= limits.seconds:
        return False
    if limits.tokens is not None and spent.tokens + spent.context > limits.tokens:
        return False
    return limits.cost is None or spent.cost + spent.next_cost <= limits.cost


def final_prompt(why: str) -> str:
    return (
        f"Stop here: {why}. You have no tools any more. Report to the user now: what is done, what is not, and what "
        "should happen next. Claim nothing that you have not done."
    )


def report_request(request: ModelRequest) -> ModelRequest:
    """The request without tools. Providers reject tool calls in the history of such a request, so they become text."""
    return ModelRequest(request.system, [_as_text(message) for message in request.messages], (), request.max_tokens)


def _as_text(message: Message) -> Message:
    match message:
        case Reply(calls=calls) if calls:
            lines = [*([message.text] if message.text else []), *(_call(call.tool, call.arguments) for call in calls)]
            return Reply("\n".join(lines), (), message.finish, message.usage)
        case CallReturn():
            return UserText(f"[{message.tool} {'failed' if message.failed else 'returned'}: {message.text}]")
        case _:
            return message


def _call(tool: str, arguments: object) -> str:
    written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return f"[called {tool} {written}]"
