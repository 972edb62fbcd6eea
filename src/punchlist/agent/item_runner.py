"""Works off one item at a time, each attempt in a fresh small context (V5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from punchlist.agent.continuation import Limits, OpenItem, Reason, Stop, Wait
from punchlist.agent.definitions import SUPERVISOR_TOOLS, AgentDefinition, cap_iterations
from punchlist.agent.delegation import SubagentRunner
from punchlist.agent.item_task import EXIT_TOOLS, ItemExit, ItemTask
from punchlist.agent.prompts import DRIVE_ITEM, item_prompt, plan_lines
from punchlist.checklist.lifecycle import ChecklistAction
from punchlist.conversations.model import TurnScope
from punchlist.errors import IllegalTransition, NotFound, PunchlistError
from punchlist.kernel.text import one_line, quoted
from punchlist.plan.lifecycle import ConditionKind, PlanAction, PlanStatus
from punchlist.plan.model import NewCondition, NewTodo, TurnTodo
from punchlist.plan.validation import MAX_TITLE_LENGTH
from punchlist.storage.async_bridge import make_bridge
from punchlist.verification.model import NO_VERIFICATION, Verification

if TYPE_CHECKING:
    from punchlist.agent.runtime import AgentRuntime
    from punchlist.agent.turn_model import TurnRequest, TurnResult

MAX_ATTEMPTS: Final = 3
MAX_REFUSALS: Final = 2
"""Attempts after which "cannot" is accepted: models give up early."""
ITEM_LIMITS: Final = Limits(base_iterations=15, more_iterations=0, max_iterations=15, continuations=5, stall_after=3)
MAX_FAILURE_LENGTH: Final = 1_500
MAX_TITLES: Final = 5
"""Skipped items that are named at the end of a turn."""
SKIPPED: Final = "Skipped after"
"""The beginning of the outcome of an item that the loop has given up."""


class ItemResult(NamedTuple):
    """How the work on an item ended. `stop` ends the whole turn."""

    exit: ItemExit | None
    text: str
    stop: TurnResult | None = None


class ItemRunner:
    def __init__(self, runtime: AgentRuntime, request: TurnRequest, scope: TurnScope, worker: AgentDefinition) -> None:
        self._runtime = runtime
        self._request = request
        self._scope = scope
        self._worker = _item_agent(worker)
        self._runner = SubagentRunner(runtime, request, scope)
        self._call = make_bridge(runtime.site.store)
        self.skipped: set[str] = set()
        """Ids of items that are not tried again in this turn."""
        self._skipped_checklist: dict[str, str] = {}
        """Titles of the skipped items of the session's checklist, by id. The turn's own items are in its plan."""
        self._finished = 0

    async def try_once(self, goal: str, item: OpenItem) -> str | Wait | None:
        """One attempt. Returns what the agent of the turn is told, or None if the item was not finished."""
        result = await self._attempt(goal, item, [], resumed=True)
        if result.stop is not None and result.stop.reason is Reason.WAITING:
            return Wait((result.stop.why,))
        if result.exit is not ItemExit.FINISHED:
            return None
        return (
            f"{quoted(item.title)} was finished in a separate context: {one_line(result.text, MAX_FAILURE_LENGTH)}\n\n"
            "Continue with the next open item; if none is left, answer the user."
        )

    async def work_off(self, goal: str, item: OpenItem, *, resumed: bool = False) -> Stop | Wait | None:
        """Up to three attempts, each told why the last one failed. Returns what ends the turn, if anything does.

        `resumed`: the first attempt may have been interrupted.
        """
        await self._start(item)
        failures: list[str] = []
        refusals = 0
        while len(failures) < MAX_ATTEMPTS:
            if (left := self._requests_left()) is not None and left < 1:
                return Stop(Reason.CAPPED, f"limit of {self._request.agent.limits.max_iterations} iterations reached")
            result = await self._attempt(goal, item, failures, resumed=resumed and not failures)
            if result.stop is not None:
                stop = result.stop
                return Wait((stop.why,)) if stop.reason is Reason.WAITING else Stop(stop.reason, stop.why)
            if result.exit in (ItemExit.FINISHED, ItemExit.NEEDS_PERSON):
                return None
            refusals += result.exit is ItemExit.CANNOT
            failures.append(one_line(result.text, MAX_FAILURE_LENGTH))
            if refusals >= MAX_REFUSALS:
                break
        await self._skip(item, failures)
        return None

    async def _attempt(self, goal: str, item: OpenItem, failures: Sequence[str], *, resumed: bool) -> ItemResult:
        todo = await self._call(self._runtime.plans.find, self._scope, item.id) if item.list == "plan" else None
        verification = todo.verified() if todo else await self._checklist_verification(item)
        task = ItemTask(item, verification, todo.context if todo else "", goal)
        plan = await self._call(self._runtime.plans.snapshot, self._scope)
        answers = plan.answers.get(item.id, ())
        failures = failures or verification.failures
        prompt = item_prompt(goal, plan.todos, item, todo, task.verification.check, failures, answers)
        worker = replace(self._worker, prompt=DRIVE_ITEM.format(exits=task.exits))
        if (left := self._requests_left()) is not None:
            worker = replace(worker, limits=cap_iterations(worker.limits, min(left, worker.limits.max_iterations)))
        result = await self._runner.run(worker, prompt, resumed=resumed, item=task)
        if result.reason is Reason.COMPLETED and task.exit is not None:
            return await self._leave(item, task)
        if result.reason in (Reason.WAITING, Reason.CANCELLED, Reason.BUDGET) or _is_outage(result):
            return ItemResult(None, result.why, result)
        why = result.why
        if task.failed_check is not None:
            why = f"its check failed: {task.failed_check.output}"
        elif result.last_text:
            why = f"{why}. The last words were: {result.last_text}"
        return ItemResult(None, why)

    def _requests_left(self) -> int | None:
        """Of the model requests that a person allows the whole turn; None without such a limit."""
        limits = self._request.agent.limits
        if self._request.driven is None or not limits.is_fixed:
            return None
        return limits.max_iterations - self._request.budget.requests

    async def _checklist_verification(self, item: OpenItem) -> Verification:
        checklist = await self._call(self._runtime.checklists.get, self._scope.conversation_id)
        return next((each.verification for each in checklist.items if each.id == item.id), NO_VERIFICATION)

    # --- the list -----------------------------------------------------------------------------------------

    async def create(self, titles: Sequence[str]) -> None:
        items = [NewTodo(_title(title), title if len(title) > MAX_TITLE_LENGTH else "") for title in titles]
        await self._call(self._runtime.plans.create, self._scope, items, reason="drive")

    async def outcomes(self) -> str:
        """How each item of the plan ended, for the answer."""
        plan = await self._call(self._runtime.plans.snapshot, self._scope)
        return "\n".join(plan_lines(plan.todos))

    async def not_done(self, answer: str) -> str:
        """The skipped items that an answer does not name; empty if it names all."""
        plan = await self._call(self._runtime.plans.snapshot, self._scope)
        skipped = {todo.title: todo.outcome or "" for todo in plan.todos if _is_skipped(todo)}
        skipped |= dict.fromkeys(self._skipped_checklist.values(), "")
        left = {title: why for title, why in skipped.items() if title.casefold() not in answer.casefold()}
        lines = [f"- {one_line(f'{title}: {why}' if why else title, 500)}" for title, why in left.items()]
        return "\n".join(["Not done:", *lines]) if lines else ""

    async def shortfall(self) -> str:
        """Why the turn is not completed although its list is clear; empty if it is.

        A skipped item is an end that the loop has decided. If it has skipped everything, nothing was done; and what a
        person has added only a person can leave out.
        """
        plan = await self._call(self._runtime.plans.snapshot, self._scope)
        skipped = {todo.id: todo.title for todo in plan.todos if _is_skipped(todo)} | self._skipped_checklist
        if not skipped:
            return ""
        if not self._finished and all(todo.status is not PlanStatus.COMPLETED for todo in plan.todos):
            return f"no item could be finished. Skipped: {_titles(skipped.values())}"
        wanted = await self._call(self._runtime.plans.added_by_person, self._scope) | self._skipped_checklist.keys()
        theirs = [title for id, title in skipped.items() if id in wanted]
        return f"what a person added could not be finished. Skipped: {_titles(theirs)}" if theirs else ""

    async def _start(self, item: OpenItem) -> None:
        if item.in_progress:
            return
        if item.list == "plan":
            await self._call(self._runtime.plans.start, self._scope, item.id, reason="drive")
        else:
            start = self._runtime.checklists.advance
            await self._call(start, self._scope, item.id, ChecklistAction.START, reason="drive")

    async def _leave(self, item: OpenItem, task: ItemTask) -> ItemResult:
        """Write the exit to the list. A person can have ended the item meanwhile: then theirs counts."""
        plans, scope = self._runtime.plans, self._scope
        assert task.exit is not None
        try:
            if task.exit is ItemExit.FINISHED:
                if item.list == "plan":
                    await self._call(plans.end, scope, item.id, task.text, verification=task.verification)
                else:
                    advance, verify = self._runtime.checklists.advance, self._runtime.checklists.verify
                    await self._call(advance, scope, item.id, ChecklistAction.COMPLETE, reason="drive")
                    await self._call(verify, scope, item.id, task.verification)
            elif task.exit is ItemExit.NEEDS_PERSON:
                if item.list != "plan":
                    return ItemResult(ItemExit.CANNOT, f"It needs an answer of a person: {task.text}")
                question = NewCondition(ConditionKind.PERSON, one_line(task.text, 1_000))
                await self._call(plans.wait, scope, item.id, question)
        except PunchlistError as problem:
            return ItemResult(None, str(problem))
        self._finished += task.exit is ItemExit.FINISHED
        return ItemResult(task.exit, task.text)

    async def _skip(self, item: OpenItem, failures: Sequence[str]) -> None:
        why = f"{SKIPPED} {len(failures)} attempts: {failures[-1]}"
        self.skipped.add(item.id)
        # A person can have ended the item meanwhile: then theirs counts.
        with suppress(IllegalTransition, NotFound):
            if item.list == "plan":
                await self._call(self._runtime.plans.end, self._scope, item.id, why, PlanAction.CANCEL)
            else:
                self._skipped_checklist[item.id] = item.title
                cancel = self._runtime.checklists.cancel
                await self._call(cancel, self._scope, item.id, one_line(why, 500), reason="drive")


def _is_skipped(todo: TurnTodo) -> bool:
    return todo.status is PlanStatus.CANCELLED and (todo.outcome or "").startswith(SKIPPED)


def _titles(titles: Iterable[str]) -> str:
    named = [quoted(title) for title in titles]
    more = f" and {len(named) - MAX_TITLES} more" if len(named) > MAX_TITLES else ""
    return f"{', '.join(named[:MAX_TITLES])}{more}"


def _item_agent(agent: AgentDefinition) -> AgentDefinition:
    limits = replace(
        cap_iterations(ITEM_LIMITS, min(ITEM_LIMITS.max_iterations, agent.limits.max_iterations)),
        continuations=min(ITEM_LIMITS.continuations, agent.limits.continuations),
        stall_after=min(ITEM_LIMITS.stall_after, agent.limits.stall_after),
        tokens=agent.limits.tokens,
        cost=agent.limits.cost,
        seconds=agent.limits.seconds,
        calls_per_reply=agent.limits.calls_per_reply,
    )
    return replace(
        agent,
        tools=(*(tool for tool in agent.tools if tool not in (*SUPERVISOR_TOOLS, "TodoWrite")), *EXIT_TOOLS),
        lists="plan",
        strategy="loop",
        todo_driven=True,
        delegates=False,
        history=0,
        remind_after=None,
        limits=limits,
    )


def _title(text: str) -> str:
    return one_line(text, MAX_TITLE_LENGTH)


def _is_outage(result: TurnResult) -> bool:
    """Whether the model gave no reply at all: another attempt would not have one either."""
    from punchlist.agent.turn import CUT_OFF

    return result.reason is Reason.ERROR and result.why not in CUT_OFF.values()
