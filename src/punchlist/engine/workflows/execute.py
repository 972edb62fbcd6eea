"""Execute a mission todo: its owner works and reports, the Lead reviews, until the todo has ended (M8).

When the Lead sends the work back more often than the mission allows, the todo is escalated to a person.
An asynchronous delegation is the same with one turn and no review.

A run claims the todo that its owner works on, like any other agent (X3). Another agent, such as an owner connected over
MCP, may hold the claim: then the run waits. If that agent reports, only the review is left to do; if its claim is
released or expires, the run claims the todo.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Final, NotRequired, TypedDict

from punchlist.agent.continuation import Reason
from punchlist.agent.definitions import LEAD, OWNER
from punchlist.claims import repository as claim_repository
from punchlist.claims import validation as claim_validation
from punchlist.claims.model import ClaimGranted
from punchlist.conversations.model import NewMessage, NoticeKind
from punchlist.engine.active_runs import RunStopped
from punchlist.engine.review_record import read_review_record
from punchlist.engine.runtime_factory import TurnTask
from punchlist.engine.turns import StepResult
from punchlist.engine.workflow_context import WorkflowContext
from punchlist.errors import Conflict, IllegalTransition, PunchlistError
from punchlist.kernel.events import Role
from punchlist.kernel.text import excerpt
from punchlist.missions.budgets.repository import SpendPlace
from punchlist.missions.chats import quote_verbatim, unquote
from punchlist.missions.config.policy import policy_of
from punchlist.missions.model import Mission, MissionTodo, Pillar
from punchlist.missions.planning import prompts
from punchlist.missions.planning.retries import is_retried
from punchlist.missions.planning.todo_context import todo_context
from punchlist.missions.run_control import end_work
from punchlist.missions.todos.claims import MissionClaims, run_holder
from punchlist.missions.todos.lifecycle import OPEN
from punchlist.missions.todos.validation import failed_check_text
from punchlist.runs.lifecycle import OPEN as OPEN_RUN
from punchlist.runs.lifecycle import RunStatus
from punchlist.runs.model import DELEGATED_WORK, Run, RunKind
from punchlist.storage.async_bridge import run_in_thread

MAX_FOLLOW_UPS: Final = 10
"""How often an owner gets the results of its delegations within one round. Later ones are for the review."""

_HOW_ENDED: Final = {RunStatus.STOPPED: "was stopped", RunStatus.FAILED: "failed"}


class _TodoState(TypedDict):
    """A todo's status and the owner's prompt, as a step stores them."""

    status: str
    text: str
    delegations: NotRequired[list[str]]
    """Ids of the delegations whose results are part of the prompt."""


_DelegationResult = tuple[str, str, str]
"""The id of an asynchronous delegation, its agent and mission, and its result, as a step stores them."""


async def execute(run: Run, context: WorkflowContext) -> str:
    mission, pillar = await context.mission(run), await context.pillar(run)
    rounds = policy_of(mission).max_reviews + 1
    for number in range(1, rounds + 1):
        todo = await _read_todo(run, context, number)
        if todo["status"] not in OPEN:
            return f"The todo was {todo['status']}."
        claim = await context.step(f"hold.{number}", lambda: claim_todo(run, context, mission))
        report, first_turn = claim["report"], None
        late: list[str] = []
        if report is None and claim["fence"] is None:
            return "The todo has ended meanwhile."
        if report is None:
            async with keep_renewed(run, context, claim["fence"]):
                report, first_turn, late = await _work_round(run, context, number, mission, pillar, todo)
        review = await _review(run, context, number, mission, pillar, report, first_turn)
        status = await context.step(f"seen.{number}", partial(_after_review, run, context, late))
        if status not in OPEN:
            return f"The todo is {status}."
        said = review["text"] or review["why"]
        feedback = "\n\n".join(filter(None, (said, failed_check_text(await _todo(run, context)))))
        text = _with_heading(run, number, feedback)
        lead = context.agent(LEAD)
        await context.post(f"feedback.{number}", run, run.conversation_id, NoticeKind.TODO_FEEDBACK, text, lead)

    worked = f"After {rounds} round{'' if rounds == 1 else 's'} of work, the Lead has not completed it"

    async def ask() -> None:
        failed = failed_check_text(await _todo(run, context))
        why = " ".join(filter(None, (f"{worked}.", failed, f"The Lead's last words: {said}")))
        await context.call(_end_work, run, context, why)

    await context.step("escalate", ask)
    return f"{worked}; a person is asked."


def _end_work(run: Run, context: WorkflowContext, why: str) -> None:
    with context.services.store.write() as tx:
        end_work(tx, run, why)


async def _read_todo(run: Run, context: WorkflowContext, number: int) -> _TodoState:
    """The todo with all feedback since it was started: of reviews, of the Lead at other times, and of people."""

    async def read() -> _TodoState:
        todo = await _todo(run, context)
        about = await context.call(todo_context, context.services.store, todo)
        # Left by an earlier run. Those that are not finished follow when they are.
        found = [_delegation_result(one) for one in await context.call(_delegations, run, context) if _has_ended(one)]
        results = [(agent, text) for _, agent, text in found]
        messages = await context.call(context.services.mission_todos.messages, todo.id)
        feedback = [message.text for message in messages if message.kind == NoticeKind.TODO_FEEDBACK]
        if feedback:
            request = prompts.feedback_text(todo, feedback[-1], feedback[:-1], about, results)
        else:
            request = prompts.delegation_text(todo, about, results)
        return {"status": todo.status.value, "text": request, "delegations": [id for id, _, _ in found]}

    return await context.step(f"look.{number}", read)


async def _results_request(run: Run, context: WorkflowContext, results: list[tuple[str, str]], *, last: bool) -> str:
    todo = await _todo(run, context)
    about = await context.call(todo_context, context.services.store, todo)
    return prompts.results_text(todo, results, about, last=last)


async def _todo(run: Run, context: WorkflowContext) -> MissionTodo:
    return await context.call(context.services.mission_todos.get, str(run.todo_id))


async def _after_review(run: Run, context: WorkflowContext, late: Sequence[str]) -> str:
    await context.call(context.queue.mark_delivered, run.id, late)
    return (await _todo(run, context)).status.value


async def _work_round(
    run: Run, context: WorkflowContext, number: int, mission: Mission, pillar: Pillar, todo: _TodoState
) -> tuple[str, str, list[str]]:
    """The owner's turns of a round: until it has reported and its delegated work has ended.

    Returns the last report, the id of the first turn, with which the record of the round begins, and the ids of the
    delegations whose results only the review gets.
    """
    ids = todo.get("delegations", [])
    report, first_turn = await _work(run, context, f"{number}", mission, pillar, todo["text"], ids)
    delivered = set(ids)
    for more in range(1, MAX_FOLLOW_UPS + 2):
        found = await _await_delegations(run, context, f"{number}.{more}", delivered)
        ids, results = [id for id, _, _ in found], [(agent, text) for _, agent, text in found]
        if not results:
            break
        if more > MAX_FOLLOW_UPS:
            # No review while delegated work runs, and no further turn.
            return prompts.report_with_results(report, results), first_turn, ids
        request = await _results_request(run, context, results, last=more == MAX_FOLLOW_UPS)
        report, _ = await _work(run, context, f"{number}.{more}", mission, pillar, request, ids)
        delivered.update(ids)
    return report, first_turn, []


async def _await_delegations(
    run: Run, context: WorkflowContext, key: str, delivered: Collection[str]
) -> list[_DelegationResult]:
    """Wait for the asynchronous delegations of the todo. Returns the results that its owner has not got yet."""

    async def wait() -> list[_DelegationResult] | None:
        while True:
            try:
                now = await context.turns.check_requests(run)
            except RunStopped:
                # A replayed step would raise another exception type, so the step returns a value.
                return None
            delegated = [one for one in await context.call(_delegations, run, context) if one.id not in delivered]
            unfinished = [one for one in delegated if not _has_ended(one)]
            if not unfinished:
                if await context.wake(now, "the results have arrived"):
                    return [_delegation_result(one) for one in delegated]
            else:
                why = f"{DELEGATED_WORK} ({', '.join(sorted(one.agent for one in unfinished))})"
                if now.why != why:
                    await context.call(context.queue.wait, run.id, why)
            await asyncio.sleep(POLL_INTERVAL)

    results = await context.step(f"results.{key}", wait)
    if results is None:
        raise RunStopped
    return results


def _has_ended(run: Run) -> bool:
    """Whether a delegation has its last result: a failed one may be retried."""
    retried = run.status is RunStatus.FAILED and is_retried(run.kind, run.why, run.leg)
    return run.status not in OPEN_RUN and not retried


def _delegation_result(run: Run) -> _DelegationResult:
    name = f"{run.agent}, “{excerpt(run.parameters['mission'], MAX_MISSION_SHOWN)}”"
    return run.id, name, run.result or f"It {_HOW_ENDED.get(run.status, 'ended')}: {run.why}"


def _delegations(run: Run, context: WorkflowContext) -> list[Run]:
    """The delegations of the todo whose results no run has delivered, oldest first. An earlier run that was stopped or
    failed can have left some."""
    found = context.services.runs.for_todo(str(run.todo_id))
    return [one for one in reversed(found) if one.kind is RunKind.DELEGATE and one.delivered_to is None]


async def _work(
    run: Run,
    context: WorkflowContext,
    number: str,
    mission: Mission,
    pillar: Pillar,
    request: str,
    delegations: Sequence[str],
) -> tuple[str, str]:
    """Run the owner's turn and post its report. Returns the report and the turn's id.

    The request has the results of `delegations`. They are delivered when the turn has ended: one that is stopped is
    followed by another run, whose owner gets them again.
    """
    todos, todo_id, chat = context.services.mission_todos, str(run.todo_id), pillar.todo_conversation_id
    message = NewMessage("user", NoticeKind.TODO_DELEGATION.value, request)
    key, owner = f"work.{number}", context.agent(OWNER)
    task = TurnTask(key, owner, message, chat, mission, pillar, todo_id, lambda: _remark(todos.get(todo_id), request))
    result = await context.turns.run(run, task)

    async def worked() -> None:
        await context.call(todos.record_work, context.scope(run), todo_id)
        await context.call(context.queue.mark_delivered, run.id, delegations)

    await context.step(f"worked.{number}", worked)
    report = report_text(result)
    kind = NoticeKind.TODO_RESULT if result["reason"] == Reason.COMPLETED else NoticeKind.TODO_ERROR
    heading = _with_heading(run, int(number.partition(".")[0]), report)
    await context.post(f"report.{number}", run, chat, kind, heading, owner)
    return report, result["turnId"]


async def _review(
    run: Run,
    context: WorkflowContext,
    number: int,
    mission: Mission,
    pillar: Pillar,
    report: str,
    first_turn: str | None,
) -> StepResult:
    async def run_check() -> str:
        todo = await _todo(run, context)
        check = None
        if todo.completion_check is not None and todo.status in OPEN:
            # Always in a thread and without retry: a command takes time and must not run twice.
            result = await run_in_thread(context.services.checks.run, context.scope(run), todo)
            check = f"{'passed' if result.passed else 'did not pass'}. {result.detail}"
        services = context.services
        record = await context.call(read_review_record, services.store, todo.id, first_turn)
        about = await context.call(todo_context, services.store, todo)
        metrics = await context.call(services.briefing.metrics_of, mission, pillar)
        return prompts.review_prompt(todo, report, check, record, context=about, metrics=metrics)

    prompt = await context.step(f"check.{number}", run_check)
    message = NewMessage("user", NoticeKind.TODO_RESULT.value, prompt)
    # In the pillar's chat, but without a pillar: the Lead is responsible for all of them.
    place = SpendPlace(mission.id, run.todo_id, pillar.id)
    lead, chat = context.agent(LEAD), pillar.todo_conversation_id
    task = TurnTask(f"review.{number}", lead, message, chat, mission, charged_to=place)
    return await context.turns.run(run, task)


def _remark(todo: MissionTodo, request: str) -> str:
    if todo.status not in OPEN:
        return f"The TODO you work on is {todo.status}. Stop, and report how far you got."
    overdue = prompts.overdue_note(todo) if todo.overdue_at is not None else ""
    return "\n\n".join(filter(None, (prompts.changed_note(todo, request), overdue)))


def _with_heading(run: Run, number: int, text: str) -> str:
    suffix = f" (round {number})" if number > 1 else ""
    return f"[TODO {run.todo_id}{suffix}, run {run.workflow_id}]\n{quote_verbatim(text)}"


async def delegate(run: Run, context: WorkflowContext) -> str:
    """A worker agent's turn, whose result is posted to the chat it came from (M9).

    The mode, budgets and directives of the mission hold for it as for the agent that delegated.
    """
    mission = await context.mission(run) if run.mission_id is not None else None
    pillar = await context.pillar(run) if run.pillar_id is not None else None
    # A worker gets neither the plan tools nor the delegate tool of the agent that delegated to it.
    worker = replace(context.agent(run.agent), role=Role.WORKER)
    request = NewMessage("user", "text", run.parameters["mission"])
    task = TurnTask("work", worker, request, run.conversation_id, mission, pillar, run.todo_id)
    result = await context.turns.run(run, task)
    kind = NoticeKind.WORKER_RESULT if result["reason"] == Reason.COMPLETED else NoticeKind.TODO_ERROR
    text = report_text(result)
    heading = f"[{run.agent}, run {run.workflow_id}]"
    await context.post("result", run, run.parameters["origin"], kind, f"{heading}\n{quote_verbatim(text)}", worker)
    return text


def report_text(result: StepResult) -> str:
    """What the agent said, preceded by the reason if it did not complete its turn."""
    if result["reason"] == Reason.COMPLETED:
        return result["text"]
    return f"It did not finish ({result['reason']}: {result['why']}). {result['text']}"


# --- the claim --------------------------------------------------------------------------------------------

LEASE_SECONDS: Final = 120
POLL_INTERVAL: Final = 0.5
MAX_MISSION_SHOWN: Final = 100
"""Characters of a mission beside its result."""


class ClaimState(TypedDict):
    """The run's claim, the report of another agent, or neither when the todo has ended."""

    fence: int | None
    report: str | None


_ENDED: Final[ClaimState] = {"fence": None, "report": None}


async def claim_todo(run: Run, context: WorkflowContext, mission: Mission) -> ClaimState:
    """Wait until the run holds the claim, another agent has reported, or the todo has ended."""
    while True:
        now = await context.turns.check_requests(run)
        todo = await context.call(context.services.mission_todos.get, str(run.todo_id))
        state = await context.call(_try_claim, run, context, mission, todo)
        if not isinstance(state, str):
            if await context.wake(now, "the todo is free"):
                return state
        elif now.status is RunStatus.RUNNING:
            await context.call(context.queue.wait, run.id, state)
        await asyncio.sleep(POLL_INTERVAL)


def _try_claim(run: Run, context: WorkflowContext, mission: Mission, todo: MissionTodo) -> ClaimState | str:
    """The state, or a message that says which agent holds the claim."""
    if todo.status not in OPEN:
        return _ENDED
    if (report := _external_report(context, todo)) is not None:
        return {"fence": None, "report": report}
    claims, scope = MissionClaims(context.services.store), context.scope(run)
    try:
        granted = claims.claim(scope, run_holder(run.id), mission.slug, todo.id, LEASE_SECONDS, reason="a run")
    except Conflict as held:
        return _own_claim(run, context, todo) or str(held)
    except IllegalTransition:
        return _ENDED
    assert isinstance(granted, ClaimGranted)
    return {"fence": granted.claim.fence, "report": None}


def _own_claim(run: Run, context: WorkflowContext, todo: MissionTodo) -> ClaimState | None:
    """The claim that an earlier worker of this run made before it died."""
    with context.services.store.read() as tx:
        claim = claim_repository.find(tx, todo.id)
        if claim is None or not claim_validation.is_held(claim, tx.now()):
            return None
    own = (claim.holder or "").endswith(f"({run_holder(run.id)})")
    return {"fence": claim.fence, "report": None} if own else None


def _external_report(context: WorkflowContext, todo: MissionTodo) -> str | None:
    """The report of another agent since the todo was started or last sent back."""
    found = context.services.conversations.about_todo(todo.id, since=todo.started_at or "", limit=1)
    if not found or found[0].kind != NoticeKind.TODO_RESULT:
        return None
    return unquote(found[0].content.partition("\n")[2])


@asynccontextmanager
async def keep_renewed(run: Run, context: WorkflowContext, fence: int | None) -> AsyncIterator[None]:
    """Renew the claim in the background while the owner works."""

    async def renew() -> None:
        claims, scope, todo_id = MissionClaims(context.services.store), context.scope(run), str(run.todo_id)
        while True:
            await asyncio.sleep(LEASE_SECONDS / 4)
            with suppress(PunchlistError):
                await context.call(claims.renew_claim, scope, run_holder(run.id), todo_id, fence or 0, LEASE_SECONDS)

    renewal = asyncio.create_task(renew()) if fence is not None else None
    try:
        yield
    finally:
        if renewal is not None:
            renewal.cancel()
