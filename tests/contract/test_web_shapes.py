"""The models of the API name every field of what was done on a mission, so that clients can be generated from them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from tests.conftest import StoppedClock
from tests.contract.mission_office import Office, call, has_results, last_words
from tests.contract.missions import BUILD
from tests.contract.web import opened

from punchlist.conversations.message_queue import MessageQueue
from punchlist.missions.model import MissionScope
from punchlist.missions.todos.edits import EditedFields
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.models.model import ModelRequest, Reply
from punchlist.surfaces.web.api import work_shapes
from punchlist.surfaces.web.api.endpoint import ResponseModel
from punchlist.surfaces.web.api.routes import ENDPOINTS
from punchlist.toolcalls.policy import Mode

WORK = {each for each in vars(work_shapes).values() if isinstance(each, type) and issubclass(each, BaseModel)}


def missing(value: Any, path: str = "") -> Iterator[str]:
    """The fields that a model was sent and does not name, in it and everything below."""
    if isinstance(value, BaseModel):
        yield from (f"{path}.{name}" for name in value.model_extra or ())
        for name in type(value).model_fields:
            yield from missing(getattr(value, name), f"{path}.{name}")
    elif isinstance(value, list | tuple):
        for each in value:
            yield from missing(each, f"{path}[]")


def types_in(value: Any) -> Iterator[type]:
    if isinstance(value, BaseModel):
        yield type(value)
        for name in type(value).model_fields:
            yield from types_in(getattr(value, name))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from types_in(each)


PARTS = ("", "/board", "/metrics", "/pillars", "/chats", "/directives", "/recommendations", "/replay")
EVERYWHERE = ("/missions", "/todos", "/inbox", "/approvals", "/health", "/activity", "/agents", "/tokens")


def other_places(slug: str, chat: str, run_id: str) -> Iterator[tuple[str, str]]:
    """Paths of the API, and what is asked for there."""
    yield "/runs/{id}", f"/runs/{run_id}"
    yield "/missions/{slug}/metrics/{metric}", f"/missions/{slug}/metrics/local-build-time"
    yield "/conversations/{id}/todos", f"/conversations/{chat}/todos"
    for part in PARTS:
        yield f"/missions/{{slug}}{part}", f"/missions/{slug}{part}"
    for path in EVERYWHERE:
        yield path, path


@pytest.fixture
def office(tmp_path: Path, database: str, clock: StoppedClock) -> Iterator[Office]:
    """Work with a question, an approval, a message that waits, tool calls, and a completed todo."""

    def answers(_: str, request: ModelRequest) -> Reply:
        if has_results(request):
            return Reply("It waits.")
        if "Execute: Deploy" in last_words(request):
            return call("create_todo", items=[{"title": "Roll out", "blockedBy": [{"person": "Which region?"}]}])
        return call("run_command", command="make send")

    ours = Office(tmp_path / "project", database, clock, answers)
    ours.team.todo_in(TodoStatus.IN_PROGRESS, "Deploy")
    ours.team.todo_in(TodoStatus.IN_PROGRESS, "Send")
    done = ours.team.todo_in(TodoStatus.IN_PROGRESS, "Measure")
    ours.team.todos.edit(ours.team.person, ours.team.slug, done.id, EditedFields(title="Measure twice"), "clearer")
    ours.team.todos.complete(ours.team.lead, ours.team.slug, done.id, "72 s")
    chat = ours.team.pillars[BUILD].conversation_id
    MessageQueue(ours.team.store).add(MissionScope(chat, ours.team.person.actor), "Hi")
    ours.work(Mode.DEFAULT)
    MessageQueue(ours.team.store).add(MissionScope(chat, ours.team.person.actor), "Hi again")
    yield ours
    ours.close()


@pytest.mark.spec("X12")
def test_models_of_work_name_every_field(office: Office, database: str) -> None:
    adapters = {(each.method, each.path): each.response_adapter for each in ENDPOINTS}
    slug, pillar = office.team.slug, office.team.pillars[BUILD]
    seen = set[type]()

    with opened(database) as site:
        person = site.client()

        def read(path: str, place: str, query: str = "") -> Any:
            status, told = person.get(place + query)
            assert status == 200, (place, told)
            value = adapters["GET", path].validate_python(told)
            assert list(missing(value, path)) == [], path
            seen.update(types_in(value))
            return told

        todos = read("/missions/{slug}/todos", f"/missions/{slug}/todos", "?status=all&archived=true")["items"]
        for todo in todos:
            read("/todos/{id}", f"/todos/{todo['id']}")
            for part in ("history", "evidence", "transcript"):
                read(f"/todos/{{id}}/{part}", f"/todos/{todo['id']}/{part}")
        for chat in (pillar.conversation_id, pillar.todo_conversation_id):
            read("/conversations/{id}/messages", f"/conversations/{chat}/messages")
            read("/conversations/{id}", f"/conversations/{chat}")
        read("/missions/{slug}/series", f"/missions/{slug}/series", "?days=366")
        assert read("/search", "/search", "?q=deploy")["items"]
        runs = read("/runs", "/runs")["items"]
        for path, place in other_places(slug, pillar.todo_conversation_id, runs[0]["id"]):
            read(path, place)
    # The others need messages outside chats, prices and ended turns.
    assert {each.__name__ for each in WORK - seen - {ResponseModel}} <= {
        "MessageShape", "SpendDayShape", "TurnsDayShape",
    }  # fmt: skip
