"""What the pages show and do is in the API too: timelines, moments, agents, chats, pillars, strategies, many todos."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contract.missions import BUILD, FILE, ONBOARDING, SLUG
from tests.contract.rehearsing import Rehearsing, calls, says
from tests.contract.web import ApiClient, WebSite, opened

from punchlist.conversations.model import Scope
from punchlist.kernel.events import Actor, Role

pytestmark = pytest.mark.spec("X12")
WHY = {"reason": "it matters"}


@pytest.fixture
def site(database: str) -> Iterator[WebSite]:
    with opened(database) as built:
        yield built


@pytest.fixture
def person(site: WebSite) -> ApiClient:
    client = site.client()
    assert client.post("/missions", FILE)[0] == 201
    return client


def _todo(person: ApiClient, title: str, **fields: Any) -> str:
    status, todo = person.post(f"/missions/{SLUG}/todos", {"pillarSlug": BUILD, "title": title, **fields})
    assert status == 201, todo
    return str(todo["id"])


def test_the_calls_of_a_turn_are_read_in_pages(site: WebSite, person: ApiClient, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    scope = Scope("work", Actor(Role.SUPERVISOR, "agent"))
    reads = calls(("read_file", {"path": "a.txt"}), ("read_file", {"path": "nowhere.txt"}))
    Rehearsing(site.services.store, scope, tmp_path, reads, says("Read.")).run()
    status, turns = person.get("/conversations/work/turns")
    assert status == 200
    [turn] = turns["items"]

    def page(query: str = "") -> Any:
        status, found = person.get(f"/turns/{turn['id']}/timeline{query}")
        assert status == 200, found
        return found

    whole = page()
    assert [(step["kind"], step["failed"]) for step in whole["items"]] == [
        ("model", False),
        ("tool", False),
        ("tool", True),
        ("model", False),
    ]
    assert (whole["total"], whole["failures"], whole["models"]) == (4, 1, 2)
    assert "nextCursor" not in whole
    first = page("?limit=3")
    assert [step["number"] for step in first["items"]] == [1, 2, 3]
    rest = page(f"?limit=1&cursor={first['nextCursor']}")
    assert ([step["number"] for step in rest["items"]], "nextCursor" in rest) == ([4], False)
    failed = page("?failed=true")
    assert ([step["number"] for step in failed["items"]], failed["shown"]) == ([3], 1)
    assert person.get(f"/turns/{turn['id']}/timeline?cursor=x")[0] == 422
    assert person.get("/turns/none/timeline")[0] == person.get("/runs/none/timeline")[0] == 404


def test_lists_are_read_as_they_were(person: ApiClient) -> None:
    _todo(person, "First")
    second = _todo(person, "Second")
    assert person.post(f"/todos/{second}/start", WHY)[0] == 200
    now = person.get(f"/missions/{SLUG}/replay")[1]
    assert now["counts"] == {"pending": 1, "in_progress": 1}
    assert [change["title"] for change in now["changes"] if change["action"] == "start"] == ["Second"]
    before = person.get(f"/missions/{SLUG}/replay?version={now['newest'] - 1}")[1]
    assert before["counts"] == {"pending": 2}
    assert person.get(f"/missions/{SLUG}/replay?at=2020-01-01T00:00:00Z")[1]["items"] == []
    assert person.get(f"/missions/{SLUG}/replay?at=2020-01-01T00:00:00Z&version=1")[0] == 422
    assert person.post("/conversations/s/todos", {"titles": ["One"]})[0] == 201
    assert [item["title"] for item in person.get("/conversations/s/replay")[1]["items"]] == ["One"]
    assert person.get("/turns/none/replay")[0] == person.get("/conversations/none/replay")[0] == 404


def test_pillars_strategies_chats_and_agents_are_read_and_changed(person: ApiClient) -> None:
    pillars = person.get(f"/missions/{SLUG}/pillars")[1]["items"]
    assert [(each["slug"], each["metrics"]) for each in pillars][1] == (ONBOARDING, [])
    path = f"/missions/{SLUG}/pillars/{BUILD}"
    assert person.get(path)[1]["metrics"] == ["local-build-time", "cache-hit-rate"]
    status, added = person.post(f"{path}/strategies", {"description": "Cache more", **WHY})
    assert (status, added["status"]) == (201, "active")
    assert person.post(f"{path}/strategies/{added['id']}/retire", WHY)[1]["status"] == "dropped"
    listed = person.get(f"{path}/strategies")[1]["items"]
    assert [each["description"] for each in listed if each["status"] == "active"] == ["Replace slow loaders"]
    assert person.get(f"/missions/{SLUG}/pillars/none")[0] == 404
    chats = person.get(f"/missions/{SLUG}/chats")[1]["items"]
    assert [(chat["channel"], chat["pillar"]) for chat in chats[:3]] == [
        ("mission", None),
        ("pillar", BUILD),
        ("pillar-todo", BUILD),
    ]
    assert "supervisor" in {agent["name"] for agent in person.get("/agents")[1]["agents"]}


def test_todos_of_all_missions_are_listed(person: ApiClient) -> None:
    other = {**FILE, "slug": "second", "name": "Second"}
    assert person.post("/missions", other)[0] == 201
    ids = [_todo(person, "One"), _todo(person, "Two")]
    status, todo = person.post("/missions/second/todos", {"pillarSlug": ONBOARDING, "title": "Three"})
    assert status == 201
    first = person.get("/todos?limit=2")[1]
    assert [(each["missionSlug"], each["pillarSlug"]) for each in first["items"]] == [
        ("second", ONBOARDING),
        (SLUG, BUILD),
    ]
    rest = person.get(f"/todos?limit=2&cursor={first['nextCursor']}")[1]
    assert ([each["id"] for each in rest["items"]], "nextCursor" in rest) == ([ids[0]], False)
    assert person.post(f"/todos/{todo['id']}/cancel", WHY)[0] == 200
    assert [each["id"] for each in person.get("/todos?status=cancelled")[1]["items"]] == [todo["id"]]
    assert person.post("/missions/second/archive", WHY)[0] == 200
    assert person.get("/todos?status=cancelled")[1]["items"] == []
    assert len(person.get("/todos?status=cancelled&archived=true")[1]["items"]) == 1
    assert person.post("/missions/second/unarchive", WHY)[1]["status"] == "active"
    assert len(person.get("/todos?status=cancelled")[1]["items"]) == 1


def test_one_action_on_many_todos_tells_which_of_them_failed(site: WebSite, person: ApiClient) -> None:
    first, second = _todo(person, "One"), _todo(person, "Two")
    assert person.post(f"/todos/{second}/start", WHY)[0] == 200
    body = {"action": "demote", "ids": [first, second, "none", first], **WHY}
    status, told = person.post(f"/missions/{SLUG}/todos/bulk", body)
    assert (status, told["changed"], told["failed"]) == (200, 1, 2)
    assert [(each["id"], each["error"] and each["error"]["code"]) for each in told["items"]] == [
        (first, None),
        (second, "illegal_transition"),
        ("none", "not_found"),
    ]
    assert told["items"][0]["todo"]["status"] == "backlog"
    assert person.get(f"/todos/{second}")[1]["status"] == "in_progress"
    assert person.post(f"/missions/{SLUG}/todos/bulk", {**body, "ids": []})[0] == 422
    # Each is refused by the role of the token, as one alone is.
    told = site.client(Role.VIEWER).post(f"/missions/{SLUG}/todos/bulk", {**body, "ids": [first]})[1]
    assert "not_allowed" in str(told)


def test_conversations_are_listed_in_pages_and_searched(person: ApiClient) -> None:
    for number in range(3):
        assert person.post(f"/conversations/s{number}/todos", {"titles": [f"Item {number}"]})[0] == 201
    seen, cursor = list[str](), ""
    while True:
        page = person.get(f"/conversations?limit=2{cursor}")[1]
        seen += [line["id"] for line in page["items"]]
        if page["nextCursor"] is None:
            break
        cursor = f"&cursor={page['nextCursor']}"
    assert [id for id in seen if id in ("s0", "s1", "s2")] == ["s2", "s1", "s0"]
    assert len(seen) == len(set(seen)) > 3
