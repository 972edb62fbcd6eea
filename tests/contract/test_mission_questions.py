"""Questions and approvals from the work on a mission's todo are shown with that todo, on every surface."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import StoppedClock
from tests.contract.mission_office import Office, call, has_results, last_words
from tests.contract.missions import BUILD
from tests.contract.web import opened

from punchlist.conversations.message_queue import MessageQueue
from punchlist.missions.model import MissionScope
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.models.model import ModelRequest, Reply
from punchlist.notify.service import message_about
from punchlist.surfaces.cli.mission_todo_view import detail_lines
from punchlist.surfaces.member_views import MemberQuery, MemberViews
from punchlist.surfaces.web.logins import Logins
from punchlist.toolcalls.policy import Mode
from punchlist.views.inbox_model import InboxItem, RequestKind
from punchlist.views.todo_detail import detail_json, read_detail

QUESTION = "Which region?"
COMMAND = "make send"


@pytest.fixture
def office(tmp_path: Path, database: str, clock: StoppedClock) -> Iterator[Office]:
    """The owner asks a question about the todo "Deploy", and needs an approval for everything else."""

    def answers(_: str, request: ModelRequest) -> Reply:
        if has_results(request):
            return Reply("It waits.")
        if "Execute: Deploy" in last_words(request):
            return call("create_todo", items=[{"title": "Roll out", "blockedBy": [{"person": QUESTION}]}])
        return call("run_command", command=COMMAND)

    ours = Office(tmp_path / "project", database, clock, answers)
    ours.team.todo_in(TodoStatus.IN_PROGRESS, "Deploy")
    ours.team.todo_in(TodoStatus.IN_PROGRESS, "Send")
    MessageQueue(ours.team.store).add(
        MissionScope(ours.team.pillars[BUILD].conversation_id, ours.team.person.actor), "Hi"
    )
    ours.work(Mode.DEFAULT)
    yield ours
    ours.close()


def todo_id(office: Office, title: str) -> str:
    (found,) = [todo.id for todo in office.team.todos.list(office.team.slug).items if todo.title == title]
    return found


def only(office: Office, kind: RequestKind) -> InboxItem:
    (item,) = [item for item in office.services.inbox.list() if item.kind is kind]
    return item


@pytest.mark.spec("I1", "I2")
def test_a_question_names_the_todo_of_the_mission_and_the_plan_todo_that_waits(office: Office) -> None:
    item, deploy = only(office, RequestKind.QUESTION), todo_id(office, "Deploy")
    assert (item.todo_id, item.todo_title, item.pillar) == (deploy, "Deploy", BUILD)
    assert (item.subject, item.question) == ("Roll out", QUESTION)
    with office.services.store.read() as tx:
        assert [tuple(row) for row in tx.raw("SELECT id FROM turn_todos")] == [(item.plan_todo_id,)]
    (sent,) = message_about([item], office.clock.now)["requests"]
    assert (sent["todoId"], sent["planTodoId"]) == (deploy, item.plan_todo_id)


@pytest.mark.spec("I1", "M15")
def test_the_page_of_a_todo_is_linked_from_the_inbox_and_has_the_form_that_answers(
    office: Office, database: str
) -> None:
    item, deploy = only(office, RequestKind.QUESTION), todo_id(office, "Deploy")
    with opened(database) as site:
        site.http.get(f"/login?code={Logins(site.services).new_code()}")
        assert f'href="/todos/{deploy}"' in site.http.get("/").text
        page = site.http.get(f"/todos/{deploy}")
        assert page.status_code == 200
        assert f'action="/inbox/{item.id}"' in page.text


@pytest.mark.spec("M15")
def test_a_todo_has_the_questions_and_approvals_of_its_work(office: Office) -> None:
    detail = read_detail(office.services.store, todo_id(office, "Deploy"))
    (asked,) = detail_json(detail)["questions"]
    item = only(office, RequestKind.QUESTION)
    assert (asked["kind"], asked["id"], asked["status"], asked["question"]) == ("question", item.id, "open", QUESTION)
    assert f"Question of pillar-owner: punchlist inbox answer {item.id[-8:]}" in "\n".join(
        detail_lines(detail, office.clock.now)
    )
    (asked,) = detail_json(read_detail(office.services.store, todo_id(office, "Send")))["questions"]
    assert (asked["kind"], asked["agent"]) == ("approval", "pillar-owner")
    assert COMMAND in asked["question"]
    office.services.inbox.answer(office.team.person, str(item.number), "answer", text="eu-west")
    assert detail_json(read_detail(office.services.store, todo_id(office, "Deploy")))["questions"] == []


@pytest.mark.spec("M15", "X1")
def test_a_member_reads_the_questions_and_approvals_of_its_mission(office: Office) -> None:
    views = MemberViews(office.services, office.team.owner)
    everything = views.read(MemberQuery("questions"))["items"]
    assert {(each["kind"], each["todoId"]) for each in everything} == {
        ("question", todo_id(office, "Deploy")),
        ("approval", todo_id(office, "Send")),
        ("approval", None),
    }
    of_todo = MemberQuery("questions", todo_id=todo_id(office, "Send"))
    assert [each["kind"] for each in views.read(of_todo)["items"]] == ["approval"]
    assert views.read(MemberQuery("questions", limit=1))["items"] == everything[:1]
    shown = views.read(MemberQuery("todo", todo_id=todo_id(office, "Deploy")))
    assert [each["question"] for each in shown["questions"]] == [QUESTION]
