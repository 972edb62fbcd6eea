"""One item that an agent works on in a context of its own, with three exits (V5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final

from punchlist.agent.completion import ClaimSource, CompletionClaim
from punchlist.agent.continuation import OpenItem
from punchlist.agent.list_state import ListState
from punchlist.kernel.text import excerpt, raw_problem
from punchlist.models.model import CallReturn, Message, Reply, RequestedCall
from punchlist.toolcalls.tool import AgentTool, Arguments, BaseTool, Effect, Schema, ToolContext, ToolFailure
from punchlist.verification.model import NO_VERIFICATION, CheckOutcome, CheckResult, Verification
from punchlist.verification.output import stable_output

MAX_TEXT_LENGTH: Final = 20_000
MAX_SAME_CALLS: Final = 3
"""The same call with the same result this often in a row ends the attempt."""
MAX_SAME_CHECKS: Final = 3
"""The same for a person's check with the same output."""
MAX_SAME_MODEL_CHECKS: Final = 2
"""The same for a check that a model wrote: it is wrong more often than not."""


class ItemExit(StrEnum):
    FINISHED = "finished"
    CANNOT = "cannot"
    NEEDS_PERSON = "needs_person"
    FAILED = "failed"
    """The attempt ended because the check kept failing in the same way, or the same call was repeated."""


TRY_AGAIN: Final = (
    "Not yet: your last call failed, and most calls can be corrected. Make it again, corrected, or do the item in "
    "another way. If it still cannot be done, call cannot_do_item again."
)
ASK_PERSON: Final = "ask_person"
_EXITS: Final = {
    "finish_item": (ItemExit.FINISHED, "outcome", "The item is done. outcome says what was done and found."),
    "cannot_do_item": (ItemExit.CANNOT, "reason", "The item cannot be done. reason says why."),
    ASK_PERSON: (ItemExit.NEEDS_PERSON, "question", "The item needs an answer of a person. Ends your work on it."),
}
EXIT_TOOLS: Final = tuple(_EXITS)


class ItemTask:
    """What the agent is to do, and how its work ended. Changed by the exit tools of its turn."""

    def __init__(
        self, item: OpenItem, verification: Verification = NO_VERIFICATION, context: str = "", request: str = ""
    ) -> None:
        self.item = item
        self.context = context
        self.request = request
        """The request of the whole turn."""
        self.verification = verification
        self.exit: ItemExit | None = None
        self.text = ""
        self.failed_check: CheckResult | None = None
        """The last failed run of the item's check."""
        self._same_failures = 0
        self._last_calls: tuple[object, ...] = ()
        self._same_calls = 0
        self._has_failed = False
        """A work call of the last reply has failed."""
        self._is_doubted = False

    @property
    def has_persons_check(self) -> bool:
        check = self.verification.check
        return check is not None and check.by_person

    @property
    def texts(self) -> Sequence[str]:
        """Texts that can name the files it is about, the closest first."""
        check = self.verification.check
        return (self.item.title, self.context, check.description if check else "", self.request)

    @property
    def _exit_names(self) -> list[str]:
        # An item of the checklist cannot wait, so its question would be lost.
        return [name for name in _EXITS if name != ASK_PERSON or self.item.list == "plan"]

    @property
    def exits(self) -> str:
        """The exits for the prompt: `finish_item, cannot_do_item or ask_person`."""
        *names, last = self._exit_names
        return f"{', '.join(names)} or {last}"

    def tools(self) -> list[AgentTool]:
        return [_ExitTool(name, self) for name in self._exit_names]

    def read(self) -> ListState:
        """The item is the list of its turn: open until one of the exits is taken."""
        kind = "verdict" if self.item.list == "verdict" else "item"
        item = OpenItem(self.item.id, self.item.title, in_progress=True, list=kind)
        return ListState((item,) if self.exit is None else (), version=self.exit)

    def check_failed(self, result: CheckResult) -> None:
        before, self.failed_check = self.failed_check, result
        is_same = before is not None and stable_output(before.output) == stable_output(result.output)
        self._same_failures = self._same_failures + 1 if is_same else 1
        most = MAX_SAME_CHECKS if self.has_persons_check else MAX_SAME_MODEL_CHECKS
        if self._same_failures >= most:
            self.leave(ItemExit.FAILED, f"its check failed {most} times in the same way: {result.output}")

    def calls_ended(self, calls: Sequence[RequestedCall], results: Sequence[CallReturn]) -> None:
        """A small model repeats a call until its limits are reached. A fresh context helps it more."""
        failed = [result for result in results if result.failed]
        self._has_failed = any(result.tool not in _EXITS for result in failed)
        ended = tuple((call.tool, repr(call.arguments)) for call in calls), tuple(result.text for result in results)
        self._same_calls = self._same_calls + 1 if ended == self._last_calls else 1
        self._last_calls = ended
        if self.exit is None and self._same_calls >= MAX_SAME_CALLS:
            call = calls[0]
            made = f"{call.tool} {excerpt(repr(call.arguments), 300)}"
            how = "failed" if failed else "was made"
            same = f"{made} {how} {MAX_SAME_CALLS} times in the same way"
            self.leave(ItemExit.FAILED, f"{same}: {(failed or results)[0].text}" if results else same)

    def doubt(self) -> bool:
        """Whether giving up right after a failed call is refused: once, since most calls can be corrected."""
        doubted, self._is_doubted = self._is_doubted, self._is_doubted or self._has_failed
        return self._has_failed and not doubted

    def leave(self, exit: ItemExit, text: str) -> None:
        self.exit, self.text = exit, text

    def restore(self, messages: Sequence[Message]) -> None:
        """Find the exit that was taken before the program ended."""
        succeeded = {m.call_id for m in messages if isinstance(m, CallReturn) and not m.failed}
        for message in messages:
            for call in message.calls if isinstance(message, Reply) else ():
                if call.tool in _EXITS and call.id in succeeded and not isinstance(call.arguments, str):
                    exit, field, _ = _EXITS[call.tool]
                    self.leave(exit, str(call.arguments.get(field, "")))


class _ExitTool(BaseTool):
    effect = Effect.LIST

    def __init__(self, name: str, task: ItemTask) -> None:
        self.name = name
        self._exit, self._field, self.description = _EXITS[name]
        self._task = task
        self.input_schema: Schema = {
            "type": "object",
            "properties": {self._field: {"type": "string"}},
            "required": [self._field],
        }

    def problems(self, arguments: Arguments) -> Sequence[str]:
        if problem := raw_problem(arguments.get(self._field), max_length=MAX_TEXT_LENGTH):
            return [f"{self._field}: {problem}"]
        return () if str(arguments[self._field]).strip() else [f"{self._field}: must not be empty"]

    async def run(self, arguments: Arguments, running: ToolContext) -> Any:  # noqa: ARG002
        if self._exit is ItemExit.CANNOT and self._task.doubt():
            raise ToolFailure(TRY_AGAIN)
        self._task.leave(self._exit, str(arguments[self._field]).strip())
        return "Noted."


class ItemClaims(ClaimSource):
    """`finish_item` claims that the item is done."""

    def __init__(self, task: ItemTask) -> None:
        self._task = task

    def is_claim(self, call: RequestedCall) -> bool:
        return call.tool == "finish_item"

    async def claims(self, call: RequestedCall) -> Sequence[CompletionClaim]:  # noqa: ARG002
        item = self._task.item
        return [CompletionClaim(item.id, item.id, item.title, self._task.verification)]

    def implied(self) -> CompletionClaim | None:
        item = self._task.item
        return CompletionClaim(item.id, item.id, item.title, self._task.verification)

    def finished(self, text: str) -> None:
        self._task.leave(ItemExit.FINISHED, text.strip() or "Its check passes.")

    async def check_failed(self, claim: CompletionClaim, result: CheckResult) -> None:  # noqa: ARG002
        self._task.check_failed(result)

    async def rechecked(self, claim: CompletionClaim, result: CheckResult) -> None:  # noqa: ARG002
        self._task.verification = replace(self._task.verification, result=result)
        if result.outcome is CheckOutcome.FAILED:
            self._task.exit = None
            self._task.check_failed(result)

    def verified(self, claim: CompletionClaim, verification: Verification) -> None:  # noqa: ARG002
        self._task.verification = verification
