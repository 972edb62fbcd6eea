"""Runs: background work of missions, and how people control it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field

from punchlist.runs.lifecycle import RunStatus
from punchlist.runs.model import RunKind
from punchlist.surfaces.web.api.endpoint import ApiCall, Endpoint, RequestModel
from punchlist.surfaces.web.api.shapes import Cursor, Limit, ReasonBody
from punchlist.surfaces.web.api.work_shapes import RunPageShape, RunShape
from punchlist.views.runs import read_runs


class RunQuery(RequestModel):
    mission: Annotated[str | None, Field(max_length=100, description="The slug of a mission.")] = None
    todo: Annotated[str | None, Field(max_length=100, description="The id of a mission todo.")] = None
    status: RunStatus | None = None
    kind: RunKind | None = None
    limit: Limit = 50
    cursor: Cursor = None


class RedirectBody(RequestModel):
    message: Annotated[str, Field(min_length=1, max_length=50_000, description="The agent gets it at once.")]


def _list(call: ApiCall) -> Any:
    query = call.query
    return read_runs(
        call.services.store,
        mission=query.mission,
        todo_id=query.todo,
        status=query.status,
        kind=query.kind,
        limit=query.limit,
        cursor=query.cursor,
    ).as_json()


def _show(call: ApiCall) -> Any:
    return call.services.runs.get(call.path["id"]).as_json()


def _control(name: str) -> Callable[[ApiCall], Any]:
    def change(call: ApiCall) -> Any:
        run = call.services.runs.get(call.path["id"])
        control = getattr(call.services.runs, name)
        return control(call.scope(run.conversation_id), run.id, call.body.reason).as_json()

    return change


def _redirect(call: ApiCall) -> Any:
    run = call.services.runs.get(call.path["id"])
    return call.services.runs.redirect(call.scope(run.conversation_id), run.id, call.body.message).as_json()


def _endpoint(name: str, summary: str) -> Endpoint:
    return Endpoint("POST", f"/runs/{{id}}/{name}", f"{name}Run", summary, _control(name), RunShape, body=ReasonBody)


ENDPOINTS = [
    Endpoint("GET", "/runs", "listRuns", "Runs, newest first.", _list, RunPageShape, RunQuery),
    Endpoint("GET", "/runs/{id}", "getRun", "A run.", _show, RunShape),
    _endpoint("pause", "Pause a run after its current step."),
    _endpoint("resume", "Continue a paused run, or queue a failed or stopped one again."),
    _endpoint("stop", "Stop a run."),
    Endpoint(
        "POST", "/runs/{id}/redirect", "redirectRun", "Interrupt the agent of a run with a message.",
        _redirect, RunShape, body=RedirectBody,
    ),
]  # fmt: skip
