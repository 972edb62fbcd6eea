"""Models of what happened: messages, runs, tool calls and changes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from punchlist.runs.lifecycle import RunStatus
from punchlist.runs.model import RunKind
from punchlist.surfaces.web.api.endpoint import ResponseModel
from punchlist.surfaces.web.api.shapes import JsonObject
from punchlist.views.search import SearchKind

# --- messages and calls -----------------------------------------------------------------------------------


class MessageShape(ResponseModel):
    id: str
    turn_id: str | None
    position: Annotated[int, Field(description="In its conversation, from 1.")]
    role: str
    kind: str
    content: str
    created_at: str
    posted_by: Annotated[str | None, Field(description="The author of a message outside turns.")]
    todo_id: str | None


class ChatMessageShape(MessageShape):
    agent: Annotated[str | None, Field(description="Of the turn that the message belongs to.")]


class CallShape(ResponseModel):
    call_id: str
    turn_id: str
    agent: str
    tool: str
    status: str
    output_file: str | None
    at: Annotated[str, Field(description="When it started; when it was requested, if it never started.")]
    ended_at: str | None
    told: Annotated[str, Field(description="The first line of the result, or why there is none.")]
    arguments: Annotated[Any, Field(description="With secrets redacted.")]


# --- runs -------------------------------------------------------------------------------------------------


class TokensShape(ResponseModel):
    input_tokens: int
    output_tokens: int


class ChatRunShape(ResponseModel):
    id: str
    kind: RunKind
    status: RunStatus
    agent: str
    todo_id: str | None
    why: str


class RunShape(ChatRunShape):
    mission_id: str | None
    pillar_id: str | None
    request: Annotated[JsonObject, Field(description="What it was queued with, by its kind.")]
    conversation_id: str
    turn_id: str | None
    created_by: str
    attempts: int
    wish: str | None
    message: str | None
    result: str | None
    created_at: str
    changed_at: str
    started_at: str | None
    ended_at: str | None
    cost: float
    worker: str | None
    usage: TokensShape
    tool_calls: int
    seconds: float


class RunPageShape(ResponseModel):
    items: list[RunShape]
    next_cursor: str | None = None


# --- changes and requests ---------------------------------------------------------------------------------


class FieldChangeShape(ResponseModel):
    field: str
    before: Annotated[Any, Field(alias="from")]
    after: Annotated[Any, Field(alias="to")]


class ChangeShape(ResponseModel):
    version: Annotated[int, Field(description="Numbered within the mission.")]
    at: str
    actor: str
    action: str
    from_status: str | None
    to_status: str | None
    reason: str
    changes: list[FieldChangeShape]


class QuestionShape(ResponseModel):
    kind: Literal["escalation", "approval", "question"]
    id: str
    status: str
    question: str
    answer: str | None
    run_id: Annotated[str | None, Field(description="Of an approval or a question, as what follows.")] = None
    todo_id: str | None = None
    agent: str | None = None
    asked_at: str | None = None


class ChatRequestShape(ResponseModel):
    kind: Literal["approval", "question"]
    id: str
    text: str
    at: str


class SearchHitShape(ResponseModel):
    kind: SearchKind
    id: str
    conversation_id: str
    mission_id: str | None
    turn_id: str | None
    position: Annotated[int | None, Field(description="Of a message.")]
    at: str
    title: Annotated[str, Field(description="Of an item that also has a text.")]
    excerpt: Annotated[str, Field(description="One line of plain text.")]
    matches: Annotated[list[tuple[int, int]], Field(description="Start and end of each match in the excerpt.")]
    title_matches: list[tuple[int, int]]
    is_notice: Annotated[bool, Field(description="Whether the program wrote the message.")]


# --- series -----------------------------------------------------------------------------------------------


class FlowDayShape(ResponseModel):
    """How many todos were in each status at the end of a day."""

    day: str
    backlog: int
    pending: int
    in_progress: Annotated[int, Field(alias="in_progress")]
    completed: int
    cancelled: int


class ThroughputDayShape(ResponseModel):
    day: str
    pillar: str
    completed: int
    cancelled: int


class CycleTimesShape(ResponseModel):
    todos: int
    median_seconds: float | None
    p85_seconds: float | None


class CycleShape(ResponseModel):
    day: str
    pillar: str
    seconds: float


class SpendDayShape(TokensShape):
    day: str
    pillar: Annotated[str | None, Field(description="Work of the Lead has none.")]
    cost: float
    requests: int


class TurnsDayShape(ResponseModel):
    day: str
    reason: str
    turns: int
