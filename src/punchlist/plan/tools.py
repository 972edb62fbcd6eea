"""The plan's tools: create_todo, list_todo, start_todo, wait_todo, complete_todo."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from punchlist.claims.model import ClaimGranted, NothingToClaim
from punchlist.claims.tools import ClaimableList
from punchlist.claims.validation import parse_fence
from punchlist.conversations.model import TurnScope
from punchlist.errors import InvalidInput
from punchlist.kernel.events import Role
from punchlist.kernel.tool import Arguments, ListToolSpec, Schema, ToolResult, schema
from punchlist.plan import validation as plan_validation
from punchlist.plan.lifecycle import PLANNERS, ConditionKind, PlanAction, PlanStatus
from punchlist.plan.model import ConditionAnswer, EndedTodo, FailedTodo, Plan, PlanSnapshot, TurnTodo
from punchlist.verification.model import Mark, verification_json
from punchlist.verification.validation import CHECK_SCHEMA, VERIFICATION_SCHEMA

if TYPE_CHECKING:
    from punchlist.plan.service import Plans

_STRING: Final[Schema] = {"type": "string"}
_STRING_OR_NULL: Final[Schema] = {"type": ["string", "null"]}
_INTEGER: Final[Schema] = {"type": "integer"}
_STATUS: Final[Schema] = {"type": "string", "enum": [status.value for status in PlanStatus]}
_ID: Final[Schema] = {"type": ["string", "integer"], "description": "A todo's number in the plan, or its id"}

_FENCE: Final[Schema] = {"type": "integer", "description": "The fence of your claim, if the todo is claimed"}
_STRINGS: Final[Schema] = {"type": "array", "items": _STRING}
_CONDITION: Final[Schema] = {
    "anyOf": [
        {"type": ["string", "integer"], "description": "Another todo: its number, id or title"},
        {
            **schema(
                person={"type": "string", "description": "A question that a person answers"},
                time={"type": "string", "description": "When: ISO 8601 with zone, such as 2026-11-20T09:00:00Z"},
                event={"type": "string", "description": "The name of an event that will be reported"},
                todo={"type": ["string", "integer"], "description": "Another todo: its number, id or title"},
            ),
            "minProperties": 1,
            "maxProperties": 1,
        },
    ]
}
_NEW_ITEM = schema(
    ["title"],
    title={"type": "string", "minLength": 1, "maxLength": plan_validation.MAX_TITLE_LENGTH},
    context={"type": "string", "description": "What the worker needs to know"},
    completionCriteria={"type": "string", "description": "How to tell that it is done"},
    agentType={"type": "string", "description": "The worker to delegate it to, if any"},
    order={"type": "integer", "minimum": 1, "description": "Position in the plan, from 1; at the end if left out"},
    blockedBy={
        "type": "array",
        "maxItems": plan_validation.MAX_CONDITIONS,
        "items": _CONDITION,
        "description": "What must happen before it can be started",
    },
    resources={
        "type": "array",
        "maxItems": plan_validation.MAX_CONDITIONS,
        "items": _STRING,
        "description": "What it needs exclusively, such as a path",
    },
    check=CHECK_SCHEMA,
)
_TODO = schema(
    ["id", "title", "status", "priority"],
    id=_STRING,
    title=_STRING,
    context=_STRING,
    completionCriteria=_STRING,
    agentType=_STRING_OR_NULL,
    status=_STATUS,
    priority=_INTEGER,
    outcome=_STRING_OR_NULL,
    createdAt=_STRING,
    startedAt=_STRING_OR_NULL,
    completedAt=_STRING_OR_NULL,
    **VERIFICATION_SCHEMA,
    waitsFor=_STRINGS,
    answers={"type": "array", "items": schema(["answer"], question=_STRING, event=_STRING, answer=_STRING)},
    notes=_STRINGS,
    claimedBy=_STRING,
    claimedUntil=_STRING,
)

RETRY_MESSAGE: Final = (
    "It is pending again. Start it once more, if possible in another way; if it fails again, it is skipped."
)
SKIPPED_MESSAGE: Final = (
    "It failed twice and is skipped. Continue with the rest, and say in your answer what was skipped."
)


def todo_json(todo: TurnTodo) -> dict[str, Any]:
    """A todo in the JSON of tools and commands (T3)."""
    return {
        "id": todo.id,
        "title": todo.title,
        "context": todo.context,
        "completionCriteria": todo.completion_criteria,
        "agentType": todo.agent_type,
        "status": todo.status.value,
        "priority": todo.priority,
        "outcome": todo.outcome,
        "createdAt": todo.created_at,
        "startedAt": todo.started_at,
        "completedAt": todo.completed_at,
        **verification_json(todo.verified(), completed=todo.status is PlanStatus.COMPLETED),
    }


def plan_json(plan: Plan) -> dict[str, Any]:
    return {
        "items": [
            {**todo_json(todo), **condition_json(plan, todo.id), **_claim_json(plan, todo.id)} for todo in plan.items
        ],
        "summary": plan.summary,
        **({} if plan.next_cursor is None else {"nextCursor": plan.next_cursor}),
    }


def condition_json(plan: Plan | PlanSnapshot, todo_id: str) -> dict[str, Any]:
    """Waiting reasons, answers and notes of a todo; empty fields are omitted."""
    fields = {
        "waitsFor": plan.waits.get(todo_id),
        "answers": [_answer_json(answer) for answer in plan.answers.get(todo_id, ())],
        "notes": plan.notes.get(todo_id),
    }
    return {name: value for name, value in fields.items() if value}


def _claim_json(plan: Plan, todo_id: str) -> dict[str, str | None]:
    claim = plan.claims.get(todo_id)
    return {"claimedBy": claim.holder, "claimedUntil": claim.lease_until} if claim else {}


def _answer_json(answer: ConditionAnswer) -> dict[str, str]:
    return {"question" if answer.kind is ConditionKind.PERSON else "event": answer.subject, "answer": answer.text}


def plan_tools(plans: Callable[[], Plans]) -> list[ListToolSpec[TurnScope]]:
    """`plans` is called only when a tool runs, so that listing the tools opens no database."""
    return [_create_todo(plans), _list_todo(plans), _start_todo(plans), _wait_todo(plans), _complete_todo(plans)]


def _create_todo(plans: Callable[[], Plans]) -> ListToolSpec[TurnScope]:
    def run(scope: TurnScope, args: Arguments) -> ToolResult:
        created = plans().create(scope, plan_validation.parse_items(args.get("items")))
        return _result(
            {
                "created": [{"id": t.id, "title": t.title, "order": t.priority + 1} for t in created.todos],
                "totalPending": created.total_pending,
                **({"conflicts": created.conflicts} if created.conflicts else {}),
            }
        )

    return ListToolSpec(
        name="create_todo",
        title="Plan this turn",
        description=(
            "Plan work of several steps: adds todos to this turn's plan, all in one call. Then work through them "
            "in order, and do not answer the user before each is completed or cancelled. Not for requests that "
            "one or two tool calls can answer. conflicts in the result lists todos that conflict, and which goes first."
        ),
        input_schema=schema(["items"], items={"type": "array", "minItems": 1, "items": _NEW_ITEM}),
        output_schema=schema(
            ["created", "totalPending"],
            created={
                "type": "array",
                "items": schema(["id", "title", "order"], id=_STRING, title=_STRING, order=_INTEGER),
            },
            totalPending=_INTEGER,
            conflicts=_STRINGS,
        ),
        roles=PLANNERS,
        read_only=False,
        run=run,
    )


def _list_todo(plans: Callable[[], Plans]) -> ListToolSpec[TurnScope]:
    def run(scope: TurnScope, args: Arguments) -> ToolResult:
        states = plan_validation.parse_status_filter(args.get("status"))
        limit = plan_validation.parse_limit(args.get("limit"))
        cursor = plan_validation.parse_cursor(args.get("cursor"))
        return _result(plan_json(plans().list(scope, states, limit=limit, cursor=cursor)))

    return ListToolSpec(
        name="list_todo",
        title="Read the plan",
        description="List this turn's todos in order; the open ones, unless a status is given. "
        "waitsFor says why a todo cannot be started yet; answers has the answers received. If the result has "
        "nextCursor, there are more: pass it as cursor.",
        input_schema=schema(
            status={"type": "string", "enum": list(plan_validation.FILTERS)},
            limit={
                "type": "integer",
                "minimum": 1,
                "maximum": plan_validation.MAX_PLAN,
                "description": f"Most todos in the result; {plan_validation.DEFAULT_PAGE} if left out",
            },
            cursor={"type": "string", "description": "nextCursor of the previous result"},
        ),
        output_schema=schema(
            ["items", "summary"],
            items={"type": "array", "items": _TODO},
            summary=schema(
                ["total", "pending", "inProgress", "completed", "cancelled"],
                total=_INTEGER,
                pending=_INTEGER,
                inProgress=_INTEGER,
                completed=_INTEGER,
                cancelled=_INTEGER,
            ),
            nextCursor=_STRING,
        ),
        roles=PLANNERS | {Role.VIEWER},
        read_only=True,
        run=run,
        idempotent=True,
    )


def _start_todo(plans: Callable[[], Plans]) -> ListToolSpec[TurnScope]:
    def run(scope: TurnScope, args: Arguments) -> ToolResult:
        todo_id, fence = plan_validation.parse_id(args.get("todoId")), _fence(args)
        todo = plans().start(scope, todo_id, fence=fence)
        # The model has written the texts itself; empty fields say nothing.
        return _result({name: value for name, value in todo_json(todo).items() if value not in ("", None)})

    return ListToolSpec(
        name="start_todo",
        title="Start a todo",
        description="Mark a todo as in progress before working on it. One at a time.",
        input_schema=schema(["todoId"], todoId=_ID, fence=_FENCE),
        output_schema=_TODO,
        roles=PLANNERS,
        read_only=False,
        run=run,
        idempotent=True,
    )


def _wait_todo(plans: Callable[[], Plans]) -> ListToolSpec[TurnScope]:
    def run(scope: TurnScope, args: Arguments) -> ToolResult:
        todo_id = plan_validation.parse_id(args.get("todoId"))
        waiting = plans().wait(scope, todo_id, plan_validation.parse_condition(_awaited(args), "for"))
        return _result(
            {
                "id": waiting.todo.id,
                "title": waiting.todo.title,
                "status": waiting.todo.status.value,
                "waitsFor": waiting.waits_for,
                **({"conflicts": waiting.conflicts} if waiting.conflicts else {}),
            }
        )

    return ListToolSpec(
        name="wait_todo",
        title="Make a todo wait",
        description=(
            "Make a todo wait for a person's answer, a time, an event or another todo. Use it instead of asking in "
            "your reply, polling or giving up; then continue with todos that do not wait. When all remaining todos "
            "wait, end your turn: you are called again when one can continue, and list_todo has the answers."
        ),
        input_schema=schema(["todoId", "for"], **{"todoId": _ID, "for": _CONDITION}),
        output_schema=schema(
            ["id", "title", "status", "waitsFor"],
            id=_STRING,
            title=_STRING,
            status=_STATUS,
            waitsFor=_STRINGS,
            conflicts=_STRINGS,
        ),
        roles=PLANNERS,
        read_only=False,
        run=run,
    )


def _awaited(args: Arguments) -> Any:
    """What to wait for. Models leave out `for` and give its field."""
    given = {key: args[key] for key in plan_validation.CONDITION_KEYS if key in args}
    if "question" in args:
        given["person"] = args["question"]
    return given if given and "for" not in args else args.get("for")


def _complete_todo(plans: Callable[[], Plans]) -> ListToolSpec[TurnScope]:
    def run(scope: TurnScope, args: Arguments) -> ToolResult:
        todo_id = plan_validation.parse_id(args.get("todoId"))
        outcome = plan_validation.parse_outcome(args.get("outcome"))
        action = plan_validation.parse_end_action(args.get("status"))
        if action is PlanAction.RETRY:
            failed = plans().fail(scope, todo_id, outcome, fence=_fence(args))
            return _result(
                {
                    **_ended_json(failed),
                    "retry": failed.retry,
                    "next": RETRY_MESSAGE if failed.retry else SKIPPED_MESSAGE,
                }
            )
        return _result(_ended_json(plans().end(scope, todo_id, outcome, action, fence=_fence(args))))

    return ListToolSpec(
        name="complete_todo",
        title="Finish a todo",
        description=(
            "End a todo: completed (default) when its criteria are met, cancelled when it will not be done, failed "
            "when the work failed; it is retried after the first failure and skipped after the second. outcome says "
            "what was done, why not, or the error."
        ),
        input_schema=schema(
            ["todoId", "outcome"],
            todoId=_ID,
            outcome={"type": "string", "minLength": 1},
            status={"type": "string", "enum": ["completed", "cancelled", "failed"]},
            fence=_FENCE,
        ),
        output_schema=schema(
            ["id", "title", "status", "outcome", "completedAt", "remaining"],
            id=_STRING,
            title=_STRING,
            status=_STATUS,
            outcome=_STRING_OR_NULL,
            completedAt=_STRING_OR_NULL,
            remaining=_INTEGER,
            retry={"type": "boolean"},
            mark=VERIFICATION_SCHEMA["mark"],
            check=VERIFICATION_SCHEMA["check"],
            next=_STRING,
        ),
        roles=PLANNERS,
        read_only=False,
        run=run,
    )


def _fence(args: Arguments) -> int | None:
    return None if args.get("fence") is None else parse_fence(args["fence"])


def _ended_json(ended: EndedTodo | FailedTodo) -> dict[str, Any]:
    return {
        "id": ended.todo.id,
        "title": ended.todo.title,
        "status": ended.todo.status.value,
        "outcome": ended.todo.outcome,
        "completedAt": ended.todo.completed_at,
        "remaining": ended.remaining,
        **_check_json(ended.todo),
    }


def _check_json(todo: TurnTodo) -> dict[str, Any]:
    """The mark of a todo that has a check; the check as well, unless it has passed."""
    if todo.verification is None:
        return {}
    fields = verification_json(todo.verified(), completed=todo.status is PlanStatus.COMPLETED)
    names = ("mark",) if fields.get("mark") == Mark.CHECKED else ("mark", "check")
    return {name: fields[name] for name in names if name in fields and "check" in fields}


def _result(data: dict[str, Any]) -> ToolResult:
    return ToolResult(json.dumps(data, ensure_ascii=False, separators=(",", ":")), data)


def claimable_plan(plans: Plans, scope: TurnScope, origin: str) -> ClaimableList:
    """The plan of a turn, for the claim tools (X3)."""

    def claim(todo_id: str | None, seconds: int, mission_slug: str | None) -> ClaimGranted[TurnTodo] | NothingToClaim:
        if mission_slug is not None:
            raise InvalidInput("missionSlug: applies to the list mission only; leave it out for a plan")
        return plans.claim(scope, origin, todo_id, seconds)

    renew, release = partial(plans.renew_claim, scope, origin), partial(plans.release_claim, scope, origin)
    return ClaimableList(claim, renew, release, todo_json)
