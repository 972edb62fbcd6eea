"""The HTTP API on both databases: missions from creation to completion, versions, idempotency, roles (X12)."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.contract.missions import BUILD, FILE, SLUG
from tests.contract.web import ApiClient, WebSite, opened

from punchlist.kernel.events import Role

NEW = {"pillarSlug": BUILD, "title": "Profile the build", "completionCriteria": "The slowest step is known."}
WHY = {"reason": "it matters"}


@pytest.fixture
def site(database: str) -> Iterator[WebSite]:
    with opened(database) as built:
        yield built


@pytest.fixture
def person(site: WebSite) -> ApiClient:
    return site.client()


@pytest.fixture
def mission(person: ApiClient) -> str:
    status, applied = person.post("/missions", FILE)
    assert status == 201, applied
    assert applied["created"] is True
    return SLUG


def _create(person: ApiClient, **fields: Any) -> Any:
    status, todo = person.post(f"/missions/{SLUG}/todos", {**NEW, **fields})
    assert status == 201, todo
    return todo


@pytest.mark.spec("X12")
def test_a_mission_is_made_worked_and_read_over_http(person: ApiClient, mission: str) -> None:
    todo = _create(person)
    assert todo["status"] == "pending"
    assert person.post(f"/todos/{todo['id']}/start", WHY)[1]["status"] == "in_progress"
    assert person.post(f"/todos/{todo['id']}/reprioritize", {"priority": "critical", **WHY})[0] == 200
    status, done = person.post(f"/todos/{todo['id']}/complete", {"outcome": "The loader takes 40 s."})
    assert (status, done["status"], done["mark"]) == (200, "completed", "accepted")
    status, detail = person.get(f"/todos/{todo['id']}")
    assert status == 200
    assert [entry["action"] for entry in detail["history"]] == ["create", "start", "reprioritize", "complete"]
    assert detail["history"][1]["actor"] == "person:the-person"
    board = person.get(f"/missions/{mission}/board")[1]
    assert {column["status"]: column["count"] for column in board["columns"]}["completed"] == 1
    assert person.get("/runs?mission=" + mission)[1]["items"][0]["kind"] == "execute"
    assert person.get(f"/missions/{mission}/series?days=7")[1]["cycleTimes"]["todos"] == 1


@pytest.mark.spec("X12")
def test_metrics_directives_and_chats_over_http(person: ApiClient, mission: str) -> None:
    assert person.post(f"/missions/{mission}/metrics/local-build-time/readings", {"value": 83.5})[0] == 201
    [build_time, _] = person.get(f"/missions/{mission}/metrics")[1]["items"]
    assert (build_time["current"], build_time["status"]) == (83.5, "warning")
    assert person.get(f"/missions/{mission}/metrics/local-build-time")[1]["points"][0]["value"] == 83.5
    assert person.post(f"/missions/{mission}/directives", {"text": "Never skip tests"})[0] == 201
    assert person.get(f"/missions/{mission}/directives")[1]["items"][0]["content"] == "Never skip tests"
    assert person.post(f"/missions/{mission}/directives/1/end")[1]["status"] == "ended"
    chat = person.get(f"/missions/{mission}")[1]["conversationId"]
    status, queued = person.post(f"/conversations/{chat}/messages", {"content": "How is it going?"})
    assert (status, queued["status"]) == (202, "queued")
    assert person.get(f"/conversations/{chat}/messages")[1]["waiting"][0]["content"] == "How is it going?"
    assert person.patch(f"/conversations/{chat}/queue/{queued['id']}", {"content": "Well?"})[1]["content"] == "Well?"
    assert person.get(f"/conversations/{chat}/queue")[1]["items"][0]["content"] == "Well?"
    assert person.post(f"/missions/{mission}/cycle")[0] == 202
    assert person.post(f"/missions/{mission}/cycle")[0] == 409


@pytest.mark.spec("X12")
def test_the_lists_of_a_session_over_http(person: ApiClient) -> None:
    path = "/conversations/work/todos"
    assert person.get(path)[0] == 404
    assert person.post(path, {"titles": ["One", "Two", "Three"]})[0] == 201
    assert person.post(f"{path}/1/start", {})[1]["items"][0]["status"] == "in_progress"
    assert person.post(f"{path}/1/done", {"outcome": "It is done."})[1]["summary"]["completed"] == 1
    assert person.post(f"{path}/1/accept", {})[1]["items"][0]["mark"] == "accepted"
    assert person.post(f"{path}/2/cancel", WHY)[1]["items"][1]["status"] == "cancelled"
    assert person.patch(f"{path}/3", {"title": "Third"})[1]["items"][2]["title"] == "Third"
    assert person.post(f"{path}/3/move", {"position": 1})[1]["items"][0]["title"] == "Third"
    assert [each["title"] for each in person.post(f"{path}/undo", {})[1]["items"]] == ["One", "Two", "Third"]
    assert person.post(f"{path}/9/start", {})[0] == 404


@pytest.mark.spec("X12", "M18")
def test_a_todo_is_edited_and_found_and_its_mission_paused_over_http(person: ApiClient, mission: str) -> None:
    todo = _create(person)
    etag = person.send("GET", f"/todos/{todo['id']}").headers["ETag"]
    edit = {"title": "Measure the build", "labels": ["ci"], **WHY}
    status, edited = person.patch(f"/todos/{todo['id']}", edit, If_Match=etag)
    assert (status, edited["title"]) == (200, "Measure the build"), edited
    assert person.patch(f"/todos/{todo['id']}", {**edit, "title": "Other"}, If_Match=etag)[0] == 412
    assert person.post(f"/todos/{todo['id']}/comment", {"text": "On the new machine"})[0] == 200
    assert person.get("/search?q=measure")[1]["items"][0]["id"] == todo["id"]
    assert person.get("/health")[1]["missions"][0]["mission"] == mission
    assert person.post(f"/missions/{mission}/pause", WHY)[0] == 200
    assert person.post(f"/missions/{mission}/resume", {})[0] == 200


# --- versions ---------------------------------------------------------------------------------------------


@pytest.mark.spec("X12")
def test_two_editors_cannot_overwrite_each_other(person: ApiClient, mission: str) -> None:
    todo = _create(person)
    read = person.send("GET", f"/todos/{todo['id']}")
    etag = read.headers["ETag"]
    path, change = f"/todos/{todo['id']}/reprioritize", {"priority": "high", **WHY}
    assert person.get(f"/todos/{todo['id']}", If_None_Match=etag)[0] == 304
    assert person.post(path, change, If_Match=etag)[0] == 200
    status, told = person.post(path, {**change, "priority": "low"}, If_Match=etag)
    assert (status, told["code"]) == (412, "changed")
    assert person.get(f"/todos/{todo['id']}")[1]["priority"] == "high"
    settings = person.send("GET", f"/missions/{mission}").headers["ETag"]
    assert person.put(f"/missions/{mission}", {**FILE, "description": "Other"}, If_Match=settings)[0] == 200
    assert person.put(f"/missions/{mission}", FILE, If_Match=settings)[0] == 412
    item = person.post("/conversations/work/todos", {"titles": ["One"]})[1]["items"][0]
    edit = "/conversations/work/todos/1"
    assert person.patch(edit, {"title": "Uno"}, If_Match=f'"{item["etag"]}"')[0] == 200
    assert person.patch(edit, {"title": "Eins"}, If_Match=f'"{item["etag"]}"')[0] == 412


@pytest.mark.spec("X12")
def test_of_ten_editors_at_once_with_one_version_one_wins(site: WebSite, person: ApiClient, mission: str) -> None:
    todo = _create(person)
    etag = person.send("GET", f"/todos/{todo['id']}").headers["ETag"]

    def edit(number: int) -> int:
        change = {"priority": ("low", "high", "critical")[number % 3], **WHY}
        return person.post(f"/todos/{todo['id']}/reprioritize", change, If_Match=etag)[0]

    with ThreadPoolExecutor(10) as pool:
        told = sorted(pool.map(edit, range(10)))
    assert told == [200] + [412] * 9


# --- nothing twice (TRUST 9) ------------------------------------------------------------------------------


@pytest.mark.spec("X12")
def test_a_request_repeated_with_its_key_changes_nothing_twice(person: ApiClient, mission: str, site: WebSite) -> None:
    told = [person.send("POST", f"/missions/{mission}/todos", NEW, Idempotency_Key="k1") for _ in range(1_000)]
    assert {response.status_code for response in told} == {201}
    assert len({response.json()["id"] for response in told}) == 1
    assert "Idempotent-Replayed" not in told[0].headers
    assert told[-1].headers["Idempotent-Replayed"] == "true"
    assert len(person.get(f"/missions/{mission}/todos")[1]["items"]) == 1
    other = person.post(f"/missions/{mission}/todos", {**NEW, "title": "Another"}, Idempotency_Key="k1")
    assert (other[0], other[1]["code"]) == (422, "key_reused")
    # A key belongs to its token.
    lead = site.client(Role.LEAD)
    assert lead.post(f"/missions/{mission}/todos", {**NEW, "title": "Mine"}, Idempotency_Key="k1")[0] == 201


@pytest.mark.spec("X12")
def test_a_request_that_arrives_twice_at_the_same_moment_changes_nothing_twice(person: ApiClient, mission: str) -> None:
    def create(_: int) -> Any:
        return person.post(f"/missions/{mission}/todos", NEW, Idempotency_Key="same")[1]["id"]

    with ThreadPoolExecutor(10) as pool:
        assert len(set(pool.map(create, range(20)))) == 1


@pytest.mark.spec("X12")
def test_a_refused_change_leaves_nothing_behind_and_says_why(person: ApiClient, mission: str) -> None:
    todo = _create(person, targetStatus="backlog")
    status, told = person.post(f"/todos/{todo['id']}/complete", {"outcome": "Done"}, Idempotency_Key="c")
    assert (status, told["code"], told["status"]) == (409, "illegal_transition", 409)
    assert person.post(f"/todos/{todo['id']}/complete", {"outcome": "Done"}, Idempotency_Key="c")[0] == 409
    assert len(person.get(f"/todos/{todo['id']}")[1]["history"]) == 1
    status, told = person.post(f"/missions/{mission}/todos", {"title": 5, "colour": "red"})
    assert status == 422
    assert [problem.split(":")[0] for problem in told["problems"]] == ["pillarSlug", "title", "colour"]


# --- roles (TRUST 25) -------------------------------------------------------------------------------------


@pytest.mark.spec("X12", "X11")
def test_a_role_may_do_over_http_what_it_may_do_anywhere(site: WebSite, person: ApiClient, mission: str) -> None:
    todo = _create(person, targetStatus="backlog")
    viewer, owner, lead = (site.client(role) for role in (Role.VIEWER, Role.OWNER, Role.LEAD))
    assert viewer.get(f"/todos/{todo['id']}")[0] == 200
    assert viewer.post(f"/todos/{todo['id']}/promote", WHY)[0] == 403
    assert viewer.post(f"/missions/{mission}/todos", NEW)[0] == 403
    # An owner's wish to promote is posted to the Lead, and refused.
    assert owner.post(f"/todos/{todo['id']}/promote", WHY)[0] == 403
    chat = person.get(f"/missions/{mission}")[1]["conversationId"]
    assert "recommends" in str(person.get(f"/conversations/{chat}/messages")[1]["messages"])
    assert owner.post("/missions", FILE)[0] == 403
    assert lead.post(f"/todos/{todo['id']}/promote", WHY)[0] == 200
    assert lead.post(f"/missions/{mission}/directives", {"text": "Obey me"})[0] == 403
    assert lead.get("/tokens")[0] == 403
    assert lead.post("/tokens", {"name": "more", "role": "person"})[0] == 403
