"""Forms of the pages, without a browser: what they write, and what they refuse."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from html import unescape

import pytest
from tests.contract.missions import BUILD, FILE, ONBOARDING, SLUG
from tests.contract.web import API, WebSite, opened

from punchlist.conversations.model import Scope, TurnScope
from punchlist.kernel.events import Actor, Role
from punchlist.missions.model import MissionScope, NewMissionTodo
from punchlist.missions.todos.edits import EditedFields
from punchlist.plan.model import NewTodo
from punchlist.surfaces.web.logins import Logins

ADA = MissionScope("s", Actor(Role.PERSON, "ada"))


@pytest.fixture
def site(database: str) -> Iterator[WebSite]:
    with opened(database) as site:
        site.http.get(f"/login?code={Logins(site.services).new_code()}")
        yield site


def form_of(page: str, action: str) -> dict[str, str]:
    """The fields of a form as a browser would send them. Of several checked boxes with one name, the last."""
    (form,) = re.findall(rf'<form[^>]*action="{re.escape(action)}".*?</form>', page, re.DOTALL)
    inputs = re.findall(r"<input[^>]*>", form)
    sent = [each for each in inputs if 'type="checkbox"' not in each or re.search(r"\bchecked\b", each)]
    fields = dict(found for each in sent for found in re.findall(r'name="([^"]+)"[^>]*value="([^"]*)"', each))
    fields |= dict(re.findall(r'<textarea[^>]*name="([^"]+)"[^>]*>([^<]*)</textarea>', form))
    for name, options in re.findall(r'<select[^>]*name="([^"]+)"[^>]*>(.*?)</select>', form, re.DOTALL):
        every = re.findall(r'<option(?: value="([^"]*)")?\s*(selected)?\s*>([^<]*)', options)
        chosen = [option for option in every if option[1]] or every[:1]
        for value, _, text in chosen:
            fields[name] = value or ("" if "value" in options else text)
    return {name: unescape(value).replace("\n", "\r\n") for name, value in fields.items()}


@pytest.mark.spec("M15", "X12")
def test_an_edit_neither_overwrites_nor_repeats_what_others_wrote_meanwhile(site: WebSite) -> None:
    csrf = site.http.get(f"{API}/me").json()["csrf"]
    site.http.post(f"{API}/missions", json=FILE, headers={"X-CSRF-Token": csrf})
    new = NewMissionTodo(BUILD, "Profile", description="First line\nSecond line", completion_criteria="A list")
    todo = site.services.mission_todos.create(ADA, SLUG, new).todo
    action = f"/todos/{todo.id}/edit"
    form = form_of(site.http.get(f"/todos/{todo.id}").text, action)
    changed = EditedFields(completion_criteria="A list of three", description="Another text")
    site.services.mission_todos.edit(ADA, SLUG, todo.id, changed, "meanwhile")

    def post(**fields: str) -> str:
        given = {**form, "reason": "why", **fields}
        told = site.http.post(action, data=given, headers={"Accept": "application/json"}).json()
        return str(told.get("detail") or told.get("message"))

    assert "“done when” was changed by another person or an agent" in post(completionCriteria="A table")
    assert site.services.mission_todos.get(todo.id).completion_criteria == "A list of three"
    # Only what this person changed is written: the description keeps the text of the other writer.
    assert post(title="Profile the build") == "Changed: title."
    stored = site.services.mission_todos.get(todo.id)
    assert (stored.title, stored.description) == ("Profile the build", "Another text")


# --- check, also affects, part of ---------------------------------------------------------------------------


def _told(site: WebSite, path: str, form: Mapping[str, str | list[str]]) -> str:
    told = site.http.post(path, data=form, headers={"Accept": "application/json"}).json()
    return str(told.get("detail") or told.get("message"))


def _mission(site: WebSite) -> str:
    """A mission from the file; returns the CSRF token."""
    csrf = str(site.http.get(f"{API}/me").json()["csrf"])
    site.http.post(f"{API}/missions", json=FILE, headers={"X-CSRF-Token": csrf})
    return csrf


CHECKS: list[tuple[dict[str, str], dict[str, object]]] = [
    ({"check.kind": "name", "check.name": "tests"}, {"name": "tests"}),
    (
        {"check.kind": "metric", "check.metric": "local-build-time", "check.bound": "atMost", "check.limit": "59.5"},
        {"metric": "local-build-time", "atMost": 59.5},
    ),
    (
        {"check.kind": "metric", "check.metric": "cache-hit-rate", "check.bound": "atLeast", "check.limit": "-3"},
        {"metric": "cache-hit-rate", "atLeast": -3},
    ),
    ({"check.kind": "file", "check.file": "docs/a b.md"}, {"file": "docs/a b.md"}),
    (
        {"check.kind": "file", "check.file": "b.md", "check.contains": 'Done & "well"'},
        {"file": "b.md", "contains": 'Done & "well"'},
    ),
    (
        {"check.kind": "command", "check.command": "grep -q 'two words' \"a'b\""},
        {"command": ["grep", "-q", "two words", "a'b"]},
    ),
]


@pytest.mark.spec("M5", "M15")
@pytest.mark.parametrize(("fields", "check"), CHECKS)
def test_each_kind_of_check_is_set_kept_and_removed_by_the_form(
    site: WebSite, fields: dict[str, str], check: dict[str, object]
) -> None:
    _mission(site)
    todo = site.services.mission_todos.create(ADA, SLUG, NewMissionTodo(BUILD, "Profile")).todo
    page, action = f"/todos/{todo.id}", f"/todos/{todo.id}/edit"

    def post(**given: str) -> str:
        return _told(site, action, {**form_of(site.http.get(page).text, action), "reason": "why", **given})

    def stored() -> object:
        text = site.services.mission_todos.get(todo.id).completion_check
        return text and json.loads(text)

    assert post() == "Nothing was changed."
    assert post(**fields) == "Changed: check."
    assert stored() == check
    assert post(title="Profile it") == "Changed: title."
    assert stored() == check
    assert post(**{"check.kind": ""}) == "Changed: check."
    assert stored() is None


@pytest.mark.spec("M5", "M15")
@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"check.kind": "metric", "check.limit": "fast"}, "check.limit: must be a number, got 'fast'"),
        ({"check.kind": "metric"}, "check.limit: a metric needs a limit"),
        ({"check.kind": "file"}, "check.file: name a file of the project"),
        ({"check.kind": "file", "check.file": "/etc/passwd"}, "check.file: "),
        ({"check.kind": "command"}, "check.command: write a command, such as make test"),
        ({"check.kind": "command", "check.command": "echo 'half"}, "check.command: a quotation is not closed"),
        ({"check.kind": "name", "check.name": "lost"}, "check.name: mission 'developer-experience' has no check"),
        ({"check.kind": "oracle"}, "check.kind: choose what decides"),
        ({"parentId": "lost"}, "parentId: "),
        ({"alsoAffects": "lost"}, "alsoAffects[0]: mission 'developer-experience' has no pillar 'lost'"),
    ],
)
def test_a_field_that_cannot_be_saved_is_named(site: WebSite, fields: dict[str, str], problem: str) -> None:
    csrf = _mission(site)
    todo = site.services.mission_todos.create(ADA, SLUG, NewMissionTodo(BUILD, "Profile")).todo
    action = f"/todos/{todo.id}/edit"
    form = form_of(site.http.get(f"/todos/{todo.id}").text, action)
    assert _told(site, action, {**form, "reason": "why", **fields}).startswith(problem)
    new = {
        "csrf": csrf,
        "title": "Another",
        "pillar": BUILD,
        "check.metric": "local-build-time",
        "check.bound": "atMost",
        **fields,
    }
    assert _told(site, f"/missions/{SLUG}/todos", new).startswith(problem)
    assert [each.title for each in site.services.mission_todos.list(SLUG).items] == ["Profile"]


@pytest.mark.spec("M5", "M15", "X12")
def test_affected_pillars_parent_and_check_are_edited_without_lost_updates(site: WebSite) -> None:
    _mission(site)
    todos = site.services.mission_todos
    parent = todos.create(ADA, SLUG, NewMissionTodo(BUILD, "Faster builds")).todo
    other = todos.create(ADA, SLUG, NewMissionTodo(BUILD, "Cache")).todo
    todo = todos.create(ADA, SLUG, NewMissionTodo(BUILD, "Profile")).todo
    page, action = f"/todos/{todo.id}", f"/todos/{todo.id}/edit"
    form = form_of(site.http.get(page).text, action)

    def post(**given: str) -> str:
        return _told(site, action, {**form, "reason": "why", **given})

    assert post(alsoAffects=ONBOARDING, parentId=parent.id) == "Changed: also affects, part of."
    stored = todos.get(todo.id)
    assert (json.loads(stored.also_affects), stored.parent_id) == ([ONBOARDING], parent.id)
    assert "also affects Onboarding" in site.http.get(page).text
    # The form was shown before that: a second edit of the same fields would overwrite it.
    assert "“part of” was changed by another person or an agent" in post(parentId=other.id)
    todos.edit(ADA, SLUG, todo.id, {"check": {"name": "tests"}}, "meanwhile")
    assert "“check” was changed by another" in post(**{"check.kind": "file", "check.file": "a.md"})
    # Fields that it did not change keep what others wrote.
    assert post(title="Profile it") == "Changed: title."
    stored = todos.get(todo.id)
    assert (json.loads(stored.also_affects), stored.parent_id) == ([ONBOARDING], parent.id)
    form = form_of(site.http.get(page).text, action)
    del form["alsoAffects"]
    assert post(parentId="") == "Changed: also affects, part of."
    stored = todos.get(todo.id)
    assert (json.loads(stored.also_affects), stored.parent_id) == ([], None)


@pytest.mark.spec("M5", "M15")
def test_a_new_todo_has_every_field_of_the_api(site: WebSite) -> None:
    csrf = _mission(site)
    todos = site.services.mission_todos
    parent = todos.create(ADA, SLUG, NewMissionTodo(BUILD, "Faster builds")).todo
    page = site.http.get(f"/missions/{SLUG}/new").text
    assert [f'value="{each}"' in page for each in (parent.id, ONBOARDING, "local-build-time")] == [True] * 3
    form: dict[str, str | list[str]] = {
        "csrf": csrf,
        "title": "Profile",
        "pillar": BUILD,
        "labels": "slow, ci",
        "parentId": parent.id,
        # A pillar that is affected anyway is no second one.
        "alsoAffects": [BUILD, ONBOARDING],
        "check.kind": "file",
        "check.file": "profile.md",
    }
    assert _told(site, f"/missions/{SLUG}/todos", form) == "Created “Profile” (pending)."
    todo = next(each for each in todos.list(SLUG).items if each.title == "Profile")
    assert (todo.label_names, json.loads(todo.also_affects), todo.parent_id) == (
        ("slow", "ci"),
        [ONBOARDING],
        parent.id,
    )
    assert json.loads(todo.completion_check or "") == {"file": "profile.md"}


@pytest.mark.spec("M5", "M15", "T3")
def test_only_a_person_gives_a_command_by_the_form(database: str) -> None:
    with opened(database) as site:
        site.http.get(f"/login?code={Logins(site.services).new_code()}")
        _mission(site)
        todo = site.services.mission_todos.create(ADA, SLUG, NewMissionTodo(BUILD, "Profile")).todo
        site.http.cookies.clear()
        site.http.post("/login", data={"code": site.token("lead", Role.LEAD)})
        action = f"/todos/{todo.id}/edit"
        form = form_of(site.http.get(f"/todos/{todo.id}").text, action)
        given = {**form, "reason": "why", "check.kind": "command", "check.command": "make test"}
        assert "only a person may give a todo its own command" in _told(site, action, given)
        assert site.services.mission_todos.get(todo.id).completion_check is None


@pytest.mark.spec("M15")
def test_without_scripts_a_form_in_a_drawer_leads_back_to_its_board(site: WebSite) -> None:
    csrf = site.http.get(f"{API}/me").json()["csrf"]
    site.http.post(f"{API}/missions", json=FILE, headers={"X-CSRF-Token": csrf})
    todo = site.services.mission_todos.create(ADA, SLUG, NewMissionTodo(BUILD, "Profile")).todo
    board = f"/missions/{SLUG}/board?pillar={BUILD}&todo={todo.id}"
    origin = str(site.http.base_url).rstrip("/")

    def led_to(page: str) -> str:
        form = {"csrf": csrf, "text": "Look at the cache first"}
        sent = site.http.post(f"/todos/{todo.id}/comment", data=form, headers={"Referer": page}, follow_redirects=False)
        assert sent.status_code == 303
        return str(sent.headers["location"])

    assert led_to(f"{origin}{board}") == board
    for page in (f"{origin}/todos/{todo.id}", f"http://elsewhere.example{board}", f"{origin}/missions/{SLUG}/board"):
        assert led_to(page) == f"/todos/{todo.id}"


# --- a mission from the form --------------------------------------------------------------------------------


def _create(site: WebSite, **fields: str) -> str:
    """The answer to the form of a new mission."""
    csrf = site.http.get(f"{API}/me").json()["csrf"]
    told = site.http.post("/missions", data={"csrf": csrf, **fields}, headers={"Accept": "application/json"}).json()
    return str(told.get("detail") or told["to"])


@pytest.mark.spec("M1", "M15")
def test_a_mission_can_have_names_of_every_script(site: WebSite) -> None:
    pillars = {"pillar-1": "Качество", "pillar-2": "Скорость", "pillar-3": "Bücher & Straßen"}
    assert _create(site, name="Вторая", **pillars) == "/missions/mission"
    assert _create(site, name="第三", **pillars) == "/missions/mission-2"
    mission = site.services.missions.get("mission-2")
    assert mission.name == "第三"
    slugs = [state.pillar.slug for state in site.services.missions.pillars(mission)]
    assert sorted(slugs) == ["bucher-strassen", "pillar", "pillar-2"]


@pytest.mark.spec("M1", "M15")
@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"goal-2": "Faster"}, "pillar-2: give the pillar a name, or empty its other fields"),
        ({"target-1": "60"}, "metric-1: give the metric a name, or empty its other fields"),
        ({"metric-1": "Build time"}, "target-1: a metric needs a target"),
        ({"metric-1": "Build time", "target-1": "abc"}, "target-1: must be a number, got 'abc'"),
        ({"metric-1": "Build time", "target-1": "6", "warning-1": "9x"}, "warning-1: must be a number, got '9x'"),
        ({"backlogTodoLimit": "-1"}, "Backlog at most: must be a whole number"),
        ({"name": "lost"}, "name: there is a mission “lost” already."),
    ],
)
def test_the_form_of_a_mission_neither_drops_nor_invents_values(
    site: WebSite, fields: dict[str, str], problem: str
) -> None:
    assert _create(site, name="Lost", **{"pillar-1": "Speed"}) == "/missions/lost"
    assert _create(site, **{"name": "Found", "pillar-1": "Speed", **fields}).startswith(problem)
    assert [mission.slug for mission in site.services.missions.list()] == ["lost"]


@pytest.mark.spec("M15", "M7")
def test_a_reading_that_is_no_number_names_its_field(site: WebSite) -> None:
    assert _create(site, name="Docs", **{"pillar-1": "Speed", "metric-1": "Build", "target-1": "6"}) == "/missions/docs"
    csrf = site.http.get(f"{API}/me").json()["csrf"]
    sent = site.http.post(
        "/missions/docs/metrics/build",
        data={"csrf": csrf, "value": "12x"},
        headers={"Accept": "application/json"},
    )
    assert sent.json()["detail"] == "value: must be a number, got '12x'"


@pytest.mark.spec("M15", "T15")
def test_the_page_of_a_turn_begins_with_what_it_used(site: WebSite) -> None:
    conversations = site.services.conversations
    scope = Scope("talk", Actor(Role.SUPERVISOR, "supervisor"))
    turn = conversations.begin_turn(scope, reason="test")
    conversations.end_turn(scope, reason="stalled: no progress in 3 continuations")
    text = site.http.get(f"/turns/{turn.id}").text
    assert "Turn of" in text
    for label in ("Agent", "Calls", "Model requests", "Tokens", "Cost", "Worked", "Elapsed"):
        assert f">{label}</span>" in text
    assert ">stalled</span>" in text
    assert "no progress in 3 continuations" in text


# --- the lists of a session ---------------------------------------------------------------------------------


@pytest.mark.spec("X9", "V4", "M15")
def test_a_person_edits_the_plan_and_the_checklist_of_a_session(site: WebSite) -> None:
    services, person = site.services, Scope("talk", Actor(Role.PERSON, "ada"))
    agent = Scope("talk", Actor(Role.SUPERVISOR, "supervisor"))
    turn = services.conversations.begin_turn(agent, reason="test")
    services.plans.create(TurnScope("talk", agent.actor, turn.id), [NewTodo("Read"), NewTodo("Write")], reason="plan")
    services.checklists.add(person, "Tag it", reason="test")
    csrf = site.http.get(f"{API}/me").json()["csrf"]

    def change(do: str, item: str = "", **fields: str) -> str:
        data = {"csrf": csrf, "do": do, "item": item, **fields}
        told = site.http.post("/chats/talk/todos", data=data, headers={"Accept": "application/json"}).json()
        return str(told.get("detail") or told.get("message") or "")

    def shown() -> list[tuple[str, str]]:
        return [(item.title, item.status) for item in services.todos.list(person).items]

    page = site.http.get("/chats/talk/todos").text
    assert [text in page for text in ("Read", "Write", "Tag it", "The agent is told")] == [True] * 4
    assert change("start", "1") == ""
    assert change("done", "1", outcome="It was read.") == ""
    assert change("accept", "1") == "Accepted."
    assert change("edit", "2", title="Write it") == ""
    assert change("cancel", "3", reason="Not now") == ""
    assert shown() == [("Read", "completed"), ("Write it", "pending"), ("Tag it", "cancelled")]
    assert change("reopen", "3") == ""
    assert change("add", title="Push", check="true") == ""
    assert [status for title, status in shown() if title in ("Push", "Tag it")] == ["pending"] * 2
    assert change("undo") == "The last change was taken back."
    assert ("Push", "pending") not in shown()
    page = site.http.get("/chats/talk/todos").text
    assert "accepted" in page
    assert "It was read." in page
    assert "there is no action 'stat'" in change("stat", "1")
    assert "has no todo '9'" in change("done", "9")
    assert "place: must be a position" in change("move", "2", place="up")


@pytest.mark.spec("M15")
def test_runs_are_filtered_by_kind_status_and_todo(site: WebSite) -> None:
    csrf = site.http.get(f"{API}/me").json()["csrf"]
    site.http.post(f"{API}/missions", json=FILE, headers={"X-CSRF-Token": csrf})
    chat = site.services.missions.get(SLUG).conversation_id
    run = site.services.metrics.enqueue_collection(MissionScope(chat, ADA.actor), SLUG, [], reason="now")
    for query, shown in (("", True), ("?kind=collect&status=queued", True), ("?kind=cycle", False), ("?todo=x", False)):
        text = site.http.get(f"/runs{query}").text
        assert (f"run-{run.id}" in text, "No such runs" in text) == (shown, not shown), query
    assert "kind: must be one of" in site.http.get("/runs?kind=none").text
