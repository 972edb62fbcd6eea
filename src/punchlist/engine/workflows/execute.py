"""A todo from its start to its end: its owner works and reports, the Lead reviews; again, until it is done (M8).

A Lead who sends work back too often has not found a way: then a person is asked.
"""

from __future__ import annotations

from typing import TypedDict

from punchlist.agent.continuation import Reason
from punchlist.agent.definitions import LEAD, OWNER
from punchlist.conversations.model import NewMessage, NoticeKind
from punchlist.engine.turns import StepResult, TurnTask
from punchlist.engine.worker_services import AgentPosition
from punchlist.engine.workflow_context import WorkflowContext
from punchlist.engine.workflows.todo_claim import hold, renewed
from punchlist.missions import repository as mission_repository
from punchlist.missions.chats.quote import marked
from punchlist.missions.config.json import policy_of
from punchlist.missions.escalations.service import open_for_work
from punchlist.missions.model import Mission, MissionTodo, Pillar
from punchlist.missions.planning import prompts
from punchlist.missions.todos import repository as todo_repository
from punchlist.missions.todos.lifecycle import OPEN
from punchlist.runs.model import Run
from punchlist.storage.async_bridge import in_thread


class _TodoState(TypedDict):
    """How a todo stands, as a step keeps it."""

    status: str
    text: str


async def execute(run: Run, shop: WorkflowContext) -> str:
    mission, pillar = await shop.aside(shop.mission, run), await shop.aside(shop.pillar, run)
    feedback: str | None = None
    rounds = policy_of(mission).most_reviews + 1
    for number in range(1, rounds + 1):
        about = await _look(run, shop, number, feedback)
        if about["status"] not in OPEN:
            return f"The todo was {about['status']}."
        held = await shop.step(f"hold.{number}", lambda: hold(run, shop, mission))
        report = held["report"]
        if report is None and held["fence"] is None:
            return "The todo has ended meanwhile."
        if report is None:
            async with renewed(run, shop, held["fence"]):
                report = await _work(run, shop, number, mission, pillar, about["text"])
        said = await _review(run, shop, number, mission, pillar, report)
        after = await shop.step(f"seen.{number}", lambda: _status(run, shop))
        if after not in OPEN:
            return f"The todo is {after}."
        feedback = said["text"] or said["why"]
        await shop.post(
            f"feedback.{number}", run, run.conversation_id, NoticeKind.TODO_FEEDBACK, _numbered(run, number, feedback)
        )

    async def ask() -> None:
        why = f"The Lead has sent it back {rounds} times. The last feedback: {feedback}"
        await shop.aside(ask_a_person, run, shop, why)

    await shop.step("escalate", ask)
    return f"The Lead has sent it back {rounds} times; a person is asked."


def ask_a_person(run: Run, shop: WorkflowContext, why: str) -> None:
    """About a todo that nobody works on any more, though it is not done."""
    with shop.premises.store.write() as tx:
        mission = mission_repository.lock_mission(tx, str(run.mission_id))
        todo = todo_repository.find(tx, str(run.todo_id))
        if mission is not None and todo is not None and todo.status in OPEN:
            open_for_work(tx, shop.scope(run), mission, todo, why)


async def _look(run: Run, shop: WorkflowContext, number: int, feedback: str | None) -> _TodoState:
    async def look() -> _TodoState:
        todo = await shop.aside(shop.premises.todos.get, str(run.todo_id))
        text = prompts.delegation_text(todo) if feedback is None else prompts.feedback_text(todo, feedback)
        return {"status": todo.status.value, "text": text}

    return await shop.step(f"look.{number}", look)


async def _status(run: Run, shop: WorkflowContext) -> str:
    return (await shop.aside(shop.premises.todos.get, str(run.todo_id))).status.value


async def _work(run: Run, shop: WorkflowContext, number: int, mission: Mission, pillar: Pillar, request: str) -> str:
    """What its owner reports; an owner who could not finish says why."""
    post = AgentPosition(pillar.todo_conversation_id, mission, pillar, run.todo_id)

    def remark() -> str:
        return _standing(shop.premises.todos.get(str(run.todo_id)))

    line = NewMessage("user", NoticeKind.TODO_DELEGATION.value, request)
    came = await shop.turns.take(run, TurnTask(f"work.{number}", post, shop.agent(OWNER), line, remark))

    async def worked() -> None:
        await shop.aside(shop.premises.todos.worked, shop.scope(run), str(run.todo_id))

    await shop.step(f"worked.{number}", worked)
    finished = came["reason"] == Reason.COMPLETED
    report = came["text"] if finished else f"It did not finish ({came['reason']}: {came['why']}). {came['text']}"
    kind = NoticeKind.TODO_RESULT if finished else NoticeKind.TODO_ERROR
    await shop.post(f"report.{number}", run, pillar.todo_conversation_id, kind, _numbered(run, number, report))
    return report


async def _review(
    run: Run, shop: WorkflowContext, number: int, mission: Mission, pillar: Pillar, report: str
) -> StepResult:
    async def checked() -> str:
        todo = await shop.aside(shop.premises.todos.get, str(run.todo_id))
        check = None
        if todo.completion_check is not None and todo.status in OPEN:
            # In a thread, whatever the database is: a command takes its time, and must not be run twice.
            result = await in_thread(shop.premises.checks.run, shop.scope(run), todo)
            check = f"{'passed' if result.passed else 'did not pass'}. {result.detail}"
        return prompts.review_prompt(todo, report, check)

    prompt = await shop.step(f"check.{number}", checked)
    # In the chat where the work was done; the Lead of all pillars, though.
    post = AgentPosition(pillar.todo_conversation_id, mission)
    return await shop.turns.take(
        run,
        TurnTask(f"review.{number}", post, shop.agent(LEAD), NewMessage("user", NoticeKind.TODO_RESULT.value, prompt)),
    )


def _standing(todo: MissionTodo) -> str:
    if todo.status not in OPEN:
        return f"The TODO you work on is {todo.status}. Stop, and say how far you came."
    return prompts.overdue_note(todo) if todo.overdue_at is not None else ""


def _numbered(run: Run, number: int, text: str) -> str:
    again = f" (round {number})" if number > 1 else ""
    return f"[TODO {run.todo_id}{again}, run {run.workflow_id}]\n{marked(text)}"
