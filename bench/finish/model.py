"""A scripted model: competent, apart from seeded faults.

It decides from the request alone, as a model does: which step is next, which files it still has to read, how to keep
the list that it is offered. It knows the reference solution of its task, so that a run without faults always succeeds
and every loss has a known cause.

Tokens are counted as a quarter of the characters of request and reply, for all arms.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from bench.finish.faults import Fault, FaultDraws
from bench.finish.list_keepers import ListKeeper, NoList, claim, keeper_for
from bench.finish.request_reader import RequestReader
from bench.finish.task import Step, Task, WorkCall
from punchlist.models.model import (
    CallReturn,
    FinishReason,
    ModelBusy,
    ModelInfo,
    ModelRequest,
    Reply,
    RequestedCall,
    TextListener,
    Usage,
)

CONTEXT_WINDOW: Final = 128_000
ANSWERS_TOO_SOON: Final = 0.25
"""The share of false claims that are an answer; the others mark an item."""
DONE: Final = "Everything is done"
_NUMBER: Final = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Draft:
    """The reply of a model without faults."""

    text: str = ""
    calls: tuple[WorkCall, ...] = ()
    current: Step | None = None
    """The step that the calls work on."""
    finished: tuple[Step, ...] = ()


class ScriptedModel:
    name = "scripted"
    info = ModelInfo(context_window=CONTEXT_WINDOW)

    def __init__(self, task: Task, draws: FaultDraws) -> None:
        self._task = task
        self._draws = draws
        forgotten = draws.forgotten(len(task.steps))
        self._steps = [step for index, step in enumerate(task.steps) if index not in forgotten]
        self.requests = 0
        self.usage = Usage()

    async def ask(self, request: ModelRequest, on_text: TextListener | None = None) -> Reply:
        del on_text
        self.requests += 1
        fault = self._draws.for_reply()
        if fault is Fault.RATE_LIMIT:
            raise ModelBusy("429 Too Many Requests", retry_after=0.0)
        if fault is Fault.SERVER_ERROR:
            raise ModelBusy("500 Internal Server Error")
        reader = RequestReader(request)
        reply = self._reply(reader, self._draft(reader), fault)
        reply = replace(reply, usage=Usage(request_tokens(request), reply_tokens(reply)))
        self.usage += reply.usage
        return reply

    # --- without faults -----------------------------------------------------------------------------------

    def _draft(self, reader: RequestReader, claimed: Sequence[Step] = ()) -> Draft:
        if not reader.tools:
            return Draft("Some steps are done; the list shows which.")
        keeper = keeper_for(reader)
        if calls := keeper.planned(self._steps):
            return Draft(calls=tuple(calls))
        finished, current = self._position(reader, keeper, claimed)
        calls = keeper.update(finished, current)
        if current is not None:
            calls += self._work(reader, keeper, current)
        if not calls:
            return Draft(f"{DONE}: {'; '.join(step.title for step in self._steps)}.")
        return Draft("", tuple(calls), current, tuple(finished))

    def _position(
        self, reader: RequestReader, keeper: ListKeeper, claimed: Sequence[Step]
    ) -> tuple[list[Step], Step | None]:
        """The steps that are finished but not marked, and the first that is not finished."""
        finished: list[Step] = []
        for step in keeper.in_view(self._steps):
            if step in claimed or keeper.ended(step):
                continue
            if reader.unfinished(step, keeper.since(step)):
                return finished, step
            finished.append(step)
        return finished, None

    def _work(self, reader: RequestReader, keeper: ListKeeper, step: Step) -> list[WorkCall]:
        since = keeper.since(step)
        if unread := reader.unread(step, since):
            return [WorkCall("read_file", {"path": path}) for path in unread]
        calls = reader.unfinished(step, since)
        if self._is_misled(reader, step):
            calls = [_with_wrong_number(call) for call in calls]
        return [*calls, *keeper.update([step], None)] if reader.may_claim_at_once else calls

    def _is_misled(self, reader: RequestReader, step: Step) -> bool:
        """A file that the step uses was last read with one wrong number."""
        for path in step.uses:
            original = self._task.folder / "files" / path
            reads = [call.result for call in reader.called("read_file") if call.path == path and call.succeeded]
            if reads and original.exists() and _differs_in_one_number(original.read_text(), reads[-1]):
                return True
        return False

    # --- with faults --------------------------------------------------------------------------------------

    def _reply(self, reader: RequestReader, draft: Draft, fault: Fault | None) -> Reply:
        if not draft.calls:
            return Reply(draft.text)
        match fault:
            case Fault.EARLY_STOP:
                what = draft.current.title if draft.current else "the next step"
                return Reply(f"Good progress so far. I'll continue with: {what}.")
            case Fault.FALSE_DONE if draft.current is not None:
                return self._false_claim(reader, draft, draft.current)
            case Fault.REPEATED_CALL if work := [call for call in reader.calls if call.succeeded]:
                return self._with_calls("", [WorkCall(work[-1].tool, work[-1].arguments)])
            case Fault.MALFORMED:
                reply = self._with_calls("", draft.calls)
                cut = json.dumps(draft.calls[-1].arguments)[:-3]
                return replace(reply, calls=(*reply.calls[:-1], replace(reply.calls[-1], arguments=cut)))
            case Fault.TRUNCATED:
                return Reply("Let me think about", (), FinishReason.LENGTH)
        return self._with_calls(draft.text, draft.calls)

    def _false_claim(self, reader: RequestReader, draft: Draft, current: Step) -> Reply:
        if self._draws.choice() < ANSWERS_TOO_SOON:
            return Reply(f"{DONE}.")
        keeper = keeper_for(reader)
        if isinstance(keeper, NoList):
            following = self._draft(reader, claimed=[current])
            return self._with_calls(f"{claim(current)} {following.text}".strip(), following.calls)
        started = [call for call in keeper.update((), current) if call.tool == "start_todo"]
        return self._with_calls("", [*keeper.update(draft.finished, None), *started, *keeper.update([current], None)])

    def _with_calls(self, text: str, calls: Sequence[WorkCall]) -> Reply:
        numbered = [
            RequestedCall(f"c{self.requests}-{number}", call.tool, call.arguments) for number, call in enumerate(calls)
        ]
        return Reply(text, tuple(numbered), FinishReason.TOOL_CALLS if numbered else FinishReason.STOP)


def _with_wrong_number(call: WorkCall) -> WorkCall:
    """What a model writes that was given a wrong number."""
    if "content" not in call.arguments:
        return call
    content = _NUMBER.sub(lambda found: str(int(found[0]) + 1), str(call.arguments["content"]), count=1)
    return WorkCall(call.tool, {**call.arguments, "content": content})


def _differs_in_one_number(original: str, read: str) -> bool:
    before, after = _NUMBER.findall(original), _NUMBER.findall(read)
    same_text = _NUMBER.split(original.strip()) == _NUMBER.split(read.strip())
    return same_text and sum(a != b for a, b in zip(before, after, strict=True)) == 1


# --- tokens -----------------------------------------------------------------------------------------------


def request_tokens(request: ModelRequest) -> int:
    tools = [[tool.name, tool.description, tool.input_schema] for tool in request.tools]
    characters = len(request.system) + (len(json.dumps(tools)) if tools else 0)
    return (characters + sum(_length(message) for message in request.messages)) // 4


def reply_tokens(reply: Reply) -> int:
    return _length(reply) // 4


def _length(message: Any) -> int:
    match message:
        case Reply(text=text, calls=calls):
            return len(text) + sum(len(call.tool) + _arguments_length(call.arguments) for call in calls)
        case CallReturn(text=text):
            return len(text)
    return len(message.text)


def _arguments_length(arguments: Any) -> int:
    return len(arguments) if isinstance(arguments, str) else len(json.dumps(arguments, ensure_ascii=False))
