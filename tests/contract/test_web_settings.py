"""Forms that change a mission, the relations of a todo, waiting messages and tokens, without a browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.contract.missions import BUILD, FILE, ONBOARDING, SLUG
from tests.contract.test_web_forms import ADA, form_of
from tests.contract.web import API, WebSite, opened

from punchlist.conversations.message_queue import MessageQueue
from punchlist.conversations.model import Scope
from punchlist.kernel.events import Role
from punchlist.missions.config.policy import limits_of, policy_of
from punchlist.missions.model import Mission, NewMissionTodo
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.runs.model import RunKind
from punchlist.surfaces.web.logins import Logins

pytestmark = pytest.mark.spec("M15")
SETTINGS = f"/missions/{SLUG}/settings"


class Pages:
    """A logged-in browser without scripts."""

    def __init__(self, site: WebSite) -> None:
        self.site, self.http, self.services = site, site.http, site.services
        self.http.get(f"/login?code={Logins(site.services).new_code()}")
        self.csrf = str(self.http.get(f"{API}/me").json()["csrf"])
        self.http.post(f"{API}/missions", json=FILE, headers={"X-CSRF-Token": self.csrf})

    def post(self, path: str, **fields: str) -> Any:
        given = {"csrf": self.csrf, **{name.rstrip("_"): value for name, value in fields.items()}}
        return self.http.post(path, data=given, headers={"Accept": "application/json"})

    def settings_form(self, part: str) -> dict[str, str]:
        """The fields of the first form for a part of the settings."""
        page = self.http.get(SETTINGS).text
        forms = re.findall(rf'<form[^>]*action="{SETTINGS}".*?</form>', page, re.DOTALL)
        form = next(each for each in forms if f'name="part" value="{part}"' in each)
        return form_of(form, SETTINGS)

    def save(self, form: dict[str, str], **fields: str) -> Any:
        return self.post(SETTINGS, **{**form, **fields})

    @property
    def mission(self) -> Mission:
        return self.services.missions.get(SLUG)


@pytest.fixture
def pages(database: str) -> Iterator[Pages]:
    with opened(database) as site:
        yield Pages(site)


@pytest.mark.spec("M1", "X12")
def test_settings_are_changed_in_a_form_and_two_editors_do_not_overwrite_each_other(pages: Pages) -> None:
    form = pages.settings_form("mission")
    assert (form["activeTodoLimit"], form["costPerDay"], form["cron"]) == ("10", "", "0 9 * * 1")
    saved = pages.save(form, activeTodoLimit="7", costPerDay="12.5", cron="", name="Developers")
    assert saved.status_code == 200, saved.json()
    assert policy_of(pages.mission).active_todo_limit == 7
    assert limits_of(pages.mission).cost_per_day == 12.5
    assert (pages.mission.name, pages.mission.config["cadence"]) == ("Developers", {"timezone": "UTC"})
    # Everything that the form does not show stays.
    assert pages.mission.config["checks"]["tests"]["command"] == ["make", "test"]
    late = pages.save(form, activeTodoLimit="3")
    assert (late.status_code, "changed since you opened them" in late.json()["detail"]) == (409, True)
    assert policy_of(pages.mission).active_todo_limit == 7
    wrong = pages.save(pages.settings_form("mission"), activeTodoLimit="many")
    assert (wrong.status_code, wrong.json()["detail"]) == (422, "activeTodoLimit: must be a number, got 'many'")


@pytest.mark.spec("M1")
def test_pillars_and_metrics_are_added_changed_and_removed(pages: Pages) -> None:
    version = pages.settings_form("mission")["version"]
    assert (
        pages.post(SETTINGS, part="pillar", version=version, name="Tests", description="No chance").status_code == 200
    )
    metric = {"part": "metric", "pillar": "tests", "unit": "per week", "direction": "down", "warning": ""}
    version = pages.mission.settings_version
    assert pages.post(SETTINGS, version=version, name="Flaky tests", target="1", **metric).status_code == 200
    [view] = [view for view in pages.services.metrics.views(SLUG) if view.pillar_slug == "tests"]
    assert (view.metric.slug, view.metric.target, view.metric.collector_type) == ("flaky-tests", 1.0, "manual")
    edited = {**metric, "slug": "flaky-tests", "name": "Flaky tests", "target": "2", "warning": "5"}
    assert pages.post(SETTINGS, version=pages.mission.settings_version, **edited).status_code == 200
    [view] = [view for view in pages.services.metrics.views(SLUG) if view.pillar_slug == "tests"]
    assert (view.metric.target, view.metric.warning) == (2.0, 5.0)
    gone = {"part": "remove-metric", "pillar": "tests", "slug": "flaky-tests"}
    assert pages.post(SETTINGS, version=pages.mission.settings_version, **gone).status_code == 200
    assert "flaky-tests" not in {view.metric.slug for view in pages.services.metrics.views(SLUG)}
    gone = {"part": "remove-pillar", "slug": "tests"}
    assert pages.post(SETTINGS, version=pages.mission.settings_version, **gone).status_code == 200
    assert [each["slug"] for each in pages.mission.config["pillars"]] == [BUILD, ONBOARDING]


@pytest.mark.spec("M18", "M19")
def test_strategies_change_and_the_mission_is_paused_resumed_archived_and_unarchived(pages: Pages) -> None:
    path = f"/missions/{SLUG}/strategies"
    added = pages.post(path, do="add", pillar=BUILD, description="Cache more", reason="It is slow")
    assert added.status_code == 200, added.json()
    assert "Cache more" in pages.http.get(SETTINGS).text
    pages.post(path, do="retire", pillar=BUILD, strategy="Cache more", reason="It is cached")
    assert "Cache more" not in pages.http.get(SETTINGS).text
    state = f"/missions/{SLUG}/state"
    assert pages.post(state, do="pause", reason="Holidays").status_code == 200
    assert pages.mission.pause_reason == "Holidays"
    assert "Holidays" in pages.http.get(SETTINGS).text
    assert pages.post(state, do="resume").status_code == 200
    assert pages.mission.paused_at is None
    assert pages.post(state, do="archive").status_code == 422, "it needs a reason"
    assert pages.post(state, do="archive", reason="Reached").status_code == 200
    archived = pages.http.get(SETTINGS).text
    assert "This mission is archived" in archived
    assert "Pause the mission" not in archived
    assert pages.post(state, do="unarchive").status_code == 422, "it needs a reason"
    assert pages.post(state, do="unarchive", reason="More to do").status_code == 200
    assert (pages.mission.status, "Pause the mission" in pages.http.get(SETTINGS).text) == ("active", True)


def test_pages_of_an_archived_mission_offer_no_change_but_to_unarchive_it(pages: Pages) -> None:
    todo = pages.services.mission_todos.create(ADA, SLUG, NewMissionTodo(BUILD, "Profile")).todo
    mission, chat = f"/missions/{SLUG}", f"/chats/{pages.mission.conversation_id}"
    pages.services.missions.archive(ADA, SLUG, "Reached")
    parts = ("", "/board", f"/board?todo={todo.id}", "/chats", "/new", "/runs", "/flow", "/replay", "/settings")
    for path in (*(mission + part for part in parts), f"/todos/{todo.id}", chat):
        page = pages.http.get(path).text
        forms = re.findall(r'<form[^>]* method="post" action="([^"]*)"', page.partition("<dialog")[0])
        assert forms == ([f"{mission}/state"] if path == SETTINGS else []), path
        assert "draggable=true" not in page
        assert "This mission is archived" in page
        assert "Developer Experience" in page


@pytest.mark.spec("M7")
def test_metrics_are_collected_when_a_person_asks(pages: Pages) -> None:
    version = pages.mission.settings_version
    config = json.loads(pages.settings_form("file")["source"])
    config["pillars"][0]["metrics"][0]["collector"] = {"type": "file", "path": "seconds.txt"}
    source = json.dumps(config)
    assert pages.post(SETTINGS, part="file", version=version, source=source).status_code == 200
    assert "Collect now" in pages.http.get(f"/missions/{SLUG}").text
    assert "1 metric will be collected" in pages.post(f"/missions/{SLUG}/collect").json()["message"]
    [run] = [run for run in pages.services.runs.list() if run.kind is RunKind.COLLECT]
    assert run.parameters == {"metrics": ["local-build-time"]}


@pytest.mark.spec("M18")
def test_todos_are_linked_made_parts_and_swapped(pages: Pages) -> None:
    todos = pages.services.mission_todos
    first, second = (todos.create(ADA, SLUG, NewMissionTodo(BUILD, title)).todo for title in ("One", "Two"))
    third = todos.create(ADA, SLUG, NewMissionTodo(BUILD, "Three", target=TodoStatus.BACKLOG)).todo
    path, why = f"/todos/{first.id}/relate", {"reason": "It is so"}
    assert "is blocked by" in pages.http.get(f"/todos/{first.id}").text
    assert pages.post(path, do="blockedBy", other=second.id, **why).json()["message"] == "The link is added."
    assert [(link.name, link.todo.title) for link in todos.links(first.id)] == [("blockedBy", "Two")]
    pages.post(path, do="unlink", link="blockedBy", other=second.id, **why)
    assert todos.links(first.id) == []
    pages.post(path, do="part-of", other=second.id, **why)
    assert todos.get(first.id).parent_id == second.id
    pages.post(path, do="not-part", **why)
    assert todos.get(first.id).parent_id is None
    pages.post(path, do="swap", other=third.id, **why)
    assert [todos.get(id).status.value for id in (first.id, third.id)] == ["backlog", "pending"]
    assert pages.post(path, do="swap", other=third.id).status_code == 422, "it needs a reason"
    assert pages.post(path, do="unarchive", **why).status_code == 409


def test_a_message_that_waits_is_edited_and_withdrawn(pages: Pages) -> None:
    chat = pages.mission.conversation_id
    queue = MessageQueue(pages.services.store, pages.services.conversations)
    waiting = queue.add(Scope(chat, ADA.actor), "Look at teh cache")
    assert "Withdraw" in pages.http.get(f"/chats/{chat}").text
    pages.post(f"/chats/{chat}/queue/{waiting.id}", do="edit", text="Look at the cache")
    assert [each.content for each in queue.pending(chat)] == ["Look at the cache"]
    pages.post(f"/chats/{chat}/queue/{waiting.id}", do="withdraw")
    assert queue.pending(chat) == []


@pytest.mark.spec("X11")
def test_a_person_sees_and_revokes_tokens_and_others_do_not(pages: Pages) -> None:
    token = pages.services.tokens.create(Scope("s", ADA.actor), "robot", Role.LEAD, timedelta(days=3)).token
    assert "robot" in pages.http.get("/settings").text
    assert pages.post(f"/settings/tokens/{token.id}/revoke").status_code == 200
    assert not pages.services.tokens.is_valid(token.id)
    assert "robot" not in pages.http.get("/settings").text
