"""Goals: acceptance criteria of a turn, decided by checks first and then by a judge (V3).

The judge is an agent of its own with read-only tools and a fresh context. It sees the criteria, the list and the
answer, and looks for itself. Its verdicts are bounded in number, and the same verdict twice ends the turn.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from enum import StrEnum
from typing import Any, ClassVar, Final, NamedTuple

from punchlist.agent.checks import CheckRunner
from punchlist.agent.continuation import Continue, Limits, OpenItem, Reason, Stop
from punchlist.agent.definitions import READ_TOOLS, AgentDefinition
from punchlist.agent.item_task import ItemExit, ItemTask
from punchlist.agent.tool_execution import CHECK_SUFFIX
from punchlist.kernel.cancellation import CancelSignal
from punchlist.kernel.ids import new_id
from punchlist.kernel.text import one_line, visible_block, without_tags
from punchlist.models.model import CallReturn, Message, Model, ModelError, ModelRequest, Reply, UserText
from punchlist.toolcalls.tool import AgentTool, Arguments, BaseTool, Effect, Schema, ToolContext
from punchlist.verification.goal import Goal
from punchlist.verification.model import Check, CheckOutcome
from punchlist.verification.output import stable_output

MAX_VERDICTS: Final = 5
MAX_MISSING_LENGTH: Final = 4_000
VERDICT_TOOL: Final = "give_verdict"
JUDGE_LIMITS: Final = Limits(base_iterations=10, more_iterations=0, max_iterations=10, continuations=2, stall_after=2)
JUDGE_PROMPT: Final = """\
You judge whether work meets its acceptance criteria. You did not do the work. Look for yourself: read files and \
search; what an agent says about its work is a claim, not evidence. Judge only the criteria, each of them, and be \
strict about them and about nothing else. Then call give_verdict once: met if every criterion is met; not_yet with \
what is missing, precisely; unachievable only if no further work could meet them, with the reason."""
DRAFT_PROMPT: Final = """\
Turn the user's condition into acceptance criteria for the request: 1 to 6 short lines, numbered, each of which a \
reader can verify by looking at files or running a command. Where a command decides it, end the line with the command \
in backquotes. Add nothing that the user did not ask for."""


_MISSING: Final = "Your list is clear, but the goal is not met yet. What is missing:\n\n"
_DO_IT: Final = "\n\nDo it now, then answer the user."
_WORD: Final = re.compile(r"\w+")
_ARTICLES: Final = frozenset({"a", "an", "the", "is", "are"})


class VerdictKind(StrEnum):
    MET = "met"
    NOT_YET = "not_yet"
    UNACHIEVABLE = "unachievable"
    NONE = "none"
    """There is no verdict: the judge could not decide or could not be asked."""


class GoalVerdict(NamedTuple):
    kind: VerdictKind
    text: str = ""
    ended: Reason = Reason.OPEN
    """How a turn ends whose goal could not be judged."""


def after_verdict(verdict: GoalVerdict, earlier: Sequence[GoalVerdict]) -> Continue | Stop:
    """What follows from a verdict. Pure."""
    text = one_line(verdict.text, MAX_MISSING_LENGTH)
    match verdict.kind:
        case VerdictKind.MET:
            return Stop(Reason.COMPLETED, "nothing is open, and the goal is met")
        case VerdictKind.UNACHIEVABLE:
            return Stop(Reason.OPEN, f"the goal cannot be met: {text}")
        case VerdictKind.NONE:
            return Stop(verdict.ended, f"the goal could not be judged: {text}")
    if _meaning(verdict) in map(_meaning, earlier):
        return Stop(Reason.OPEN, f"the goal is not met, and the verdict did not change: {text}")
    if len(earlier) + 1 >= MAX_VERDICTS:
        return Stop(Reason.OPEN, f"the goal is not met after {MAX_VERDICTS} verdicts: {text}")
    return Continue(f"{_MISSING}{without_tags(visible_block(verdict.text[:MAX_MISSING_LENGTH]))}{_DO_IT}")


def _meaning(verdict: GoalVerdict) -> tuple[str, ...]:
    """What a verdict says, for comparison: a check prints other times, and a judge words it a little differently."""
    words = _WORD.findall(stable_output(verdict.text).casefold())
    return tuple(word for word in words if word not in _ARTICLES)


def earlier_verdicts(texts: Iterable[str]) -> list[GoalVerdict]:
    """The verdicts with which a turn was sent back, from its messages."""
    told = [text.removeprefix(_MISSING).removesuffix(_DO_IT) for text in texts if text.startswith(_MISSING)]
    return [GoalVerdict(VerdictKind.NOT_YET, text) for text in told]


# --- the judge --------------------------------------------------------------------------------------------


class JudgeTask(ItemTask):
    """The turn of a judge: it ends with a verdict."""

    def __init__(self) -> None:
        super().__init__(OpenItem(new_id(), "the verdict", list="verdict"))
        self.verdict: GoalVerdict | None = None

    def tools(self) -> list[AgentTool]:
        return [_VerdictTool(self)]

    def restore(self, messages: Sequence[Message]) -> None:
        succeeded = {m.call_id for m in messages if isinstance(m, CallReturn) and not m.failed}
        for message in messages:
            for call in message.calls if isinstance(message, Reply) else ():
                if call.tool == VERDICT_TOOL and call.id in succeeded and not isinstance(call.arguments, str):
                    self.decide(call.arguments)

    def decide(self, arguments: Arguments) -> None:
        self.verdict = GoalVerdict(VerdictKind(arguments["verdict"]), str(arguments.get("missing") or "").strip())
        self.leave(ItemExit.FINISHED, self.verdict.text)


class _VerdictTool(BaseTool):
    name = VERDICT_TOOL
    description = "Give your verdict on the work. Ends your work."
    effect = Effect.LIST
    input_schema: ClassVar[Schema] = {
        "type": "object",
        "properties": {
            "verdict": {"type": "string", "enum": ["met", "not_yet", "unachievable"]},
            "missing": {"type": "string", "description": "What is missing, or why it cannot be met"},
        },
        "required": ["verdict"],
    }

    def __init__(self, task: JudgeTask) -> None:
        self._task = task

    def problems(self, arguments: Arguments) -> Sequence[str]:
        if arguments.get("verdict") not in ("met", "not_yet", "unachievable"):
            return ["verdict: must be one of met, not_yet, unachievable"]
        if arguments["verdict"] != "met" and not str(arguments.get("missing") or "").strip():
            return ["missing: say what is missing, or why the goal cannot be met"]
        return ()

    async def run(self, arguments: Arguments, running: ToolContext) -> Any:  # noqa: ARG002
        self._task.decide(arguments)
        return "Noted."


def judge_agent(agent: AgentDefinition) -> AgentDefinition:
    """The judge of an agent's work: a fresh context, read-only tools, and its own model if there is one."""
    return AgentDefinition(
        "judge",
        JUDGE_PROMPT,
        (*READ_TOOLS, VERDICT_TOOL),
        "decides whether a goal is met",
        model=agent.judge_model or agent.model,
        fallback=agent.fallback,
        lists="plan",
        verify=False,
        todo_driven=True,
        limits=JUDGE_LIMITS,
        history=0,
        remind_after=None,
    )


def judge_request(goal: Goal, request: str, items: str, answer: str) -> str:
    parts = [f"The request:\n\n{request}", f"The acceptance criteria:\n\n{goal.criteria}"]
    if items:
        parts.append(f"The agent's list:\n\n{items}")
    if answer:
        # The list has one line for each item; the answer is anything.
        parts.append(f"The agent's answer, each line after “>”:\n\n{_quoted_lines(answer)}")
    return without_tags("\n\n".join(parts))


def _quoted_lines(text: str) -> str:
    """What the agent has written, so that no line of it looks like a part of the request."""
    return "\n".join(f"> {line}" for line in visible_block(text).split("\n"))


class GoalJudge:
    """Decides whether the goal of a turn is met: its checks first, then the judge."""

    def __init__(
        self, goal: Goal, checks: CheckRunner, ask_judge: Callable[[str], Awaitable[GoalVerdict]] | None
    ) -> None:
        self._goal = goal
        self._checks = checks
        self._ask_judge = ask_judge
        self._earlier: list[GoalVerdict] = []

    @property
    def missing(self) -> str:
        """What the last verdict said."""
        return self._earlier[-1].text if self._earlier else ""

    def restore(self, messages: Sequence[Message]) -> None:
        """Count the verdicts of a turn that is resumed."""
        self._earlier = earlier_verdicts(message.text for message in messages if isinstance(message, UserText))

    async def decide(self, answer: str, signal: CancelSignal) -> Continue | Stop:
        verdict = await self._failed_check(signal) or await self._judged(answer)
        decision = after_verdict(verdict, self._earlier)
        self._earlier.append(verdict)
        return decision

    async def _failed_check(self, signal: CancelSignal) -> GoalVerdict | None:
        for check in self._goal.checks:
            ran = await self._checks.run(check, f"{new_id()}{CHECK_SUFFIX}", signal)
            if ran.result is None or ran.result.outcome is CheckOutcome.NOT_RUN:
                why = ran.result.output if ran.result else "; ".join(ran.waiting)
                return GoalVerdict(VerdictKind.NONE, f"{one_line(check.description)} was not run: {why}")
            if ran.result.outcome is CheckOutcome.FAILED:
                return GoalVerdict(
                    VerdictKind.NOT_YET, f"This check fails: {check.description}.\n\n{ran.result.output}"
                )
        return None

    async def _judged(self, answer: str) -> GoalVerdict:
        if self._ask_judge is None:
            return GoalVerdict(VerdictKind.MET)
        return await self._ask_judge(answer)


# --- criteria ---------------------------------------------------------------------------------------------

_NUMBERED: Final = re.compile(r"^\s*(?:\d{1,2}[.)]|[-*•])\s+(\S.*)$", re.MULTILINE)
_COMMAND: Final = re.compile(r"`([^`\n]+)`\s*\.?\s*$")


async def draft_criteria(model: Model, request: str, until: str) -> list[str]:
    """Acceptance criteria that a model drafts from a person's condition; the condition itself if that fails."""
    prompt = UserText(without_tags(f"The request:\n\n{request}\n\nThe condition:\n\n{until}"))
    try:
        reply = await model.ask(ModelRequest(DRAFT_PROMPT, [prompt]))
    except ModelError:
        return [until]
    return [" ".join(line.split()) for line in _NUMBERED.findall(reply.text)][:6] or [until]


def goal_from(criteria: Sequence[str], *, by_person: bool) -> Goal:
    """A goal from lines that may end with a command in backquotes.

    `by_person`: a person has read and accepted the lines, so that the commands need no approval.
    """
    commands = [found.group(1) for line in criteria if (found := _COMMAND.search(line))]
    numbered = [f"{number}. {line}" for number, line in enumerate(criteria, 1)]
    text = "\n".join(numbered) if len(criteria) > 1 else criteria[0]
    return Goal(text, tuple(Check(command=command, by_person=by_person) for command in commands))
