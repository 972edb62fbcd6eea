"""Every form is done once: sent again, by a copy of the request or at the same moment, it changes nothing more."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.contract.missions import BUILD, FILE, SLUG
from tests.contract.test_web_forms import form_of
from tests.contract.web import API, WebSite, opened

from punchlist.conversations.message_queue import MessageQueue
from punchlist.conversations.model import Scope
from punchlist.kernel.events import SYSTEM, Actor, Role
from punchlist.missions.changes import lock_mission
from punchlist.missions.escalations.service import escalate_stuck_work
from punchlist.missions.model import MissionScope, NewMissionTodo
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.surfaces.web.logins import Logins
from punchlist.surfaces.web.pages import render, turns
from punchlist.surfaces.web.pages.routes import FORMS
from punchlist.views.live import newest_event

pytestmark = pytest.mark.spec("M15", "X12")
ADA = MissionScope("s", Actor(Role.PERSON, "ada"))
LEAD = MissionScope("s", Actor(Role.LEAD, "lead"), SLUG)
FORM = "application/x-www-form-urlencoded"
Fields = dict[str, str]


class Browser:
    """A logged-in browser without scripts, on a mission."""

    def __init__(self, site: WebSite) -> None:
        self.http, self.services = site.http, site.services
        self.http.get(f"/login?code={Logins(site.services).new_code()}")
        self.csrf = str(self.http.get(f"{API}/me").json()["csrf"])
        self.http.post(f"{API}/missions", json=FILE, headers={"X-CSRF-Token": self.csrf})
        self._numbers = count()

    def todo(self, target: TodoStatus = TodoStatus.PENDING) -> str:
        new = NewMissionTodo(BUILD, f"Todo {next(self._numbers)}", target=target)
        return self.services.mission_todos.create(ADA, SLUG, new).todo.id

    def body(self, request_id: str, **fields: str) -> bytes:
        return urlencode({"csrf": self.csrf, "requestId": request_id, **fields}).encode()

    def send(self, path: str, body: bytes, *, scripted: bool = False) -> Any:
        headers = {"Content-Type": FORM, **({"Accept": "application/json"} if scripted else {})}
        return self.http.post(path, content=body, headers=headers, follow_redirects=False)

    @property
    def newest(self) -> int:
        return newest_event(self.services.store)


@pytest.fixture
def browser(database: str) -> Iterator[Browser]:
    with opened(database) as site:
        yield Browser(site)


# --- one case for each form -------------------------------------------------------------------------------


def inbox(browser: Browser) -> tuple[str, Fields]:
    id = browser.todo()
    todo = browser.services.mission_todos.get(id)
    with browser.services.store.write() as tx:
        write = lock_mission(tx, MissionScope("s", SYSTEM), SLUG)
        escalation = escalate_stuck_work(write, todo, "It does not finish.")
    return f"/inbox/{escalation.id}", {"action": "keep", "reason": "Try again"}


def conversation(browser: Browser) -> tuple[str, Fields]:
    return "/conversations", {"goal": "Fix the build"}


def message(browser: Browser) -> tuple[str, Fields]:
    return f"/chats/{browser.services.missions.get(SLUG).conversation_id}", {"text": "Look at the cache"}


def queued(browser: Browser) -> tuple[str, Fields]:
    id = browser.services.missions.get(SLUG).conversation_id
    queue = MessageQueue(browser.services.store, browser.services.conversations)
    return f"/chats/{id}/queue/{queue.add(Scope(id, ADA.actor), 'Teh').id}", {"do": "edit", "text": "The"}


def session_item(browser: Browser) -> tuple[str, Fields]:
    return f"/chats/{browser.services.missions.get(SLUG).conversation_id}/todos", {"do": "add", "title": "Look"}


def token(browser: Browser) -> tuple[str, Fields]:
    made = browser.services.tokens.create(ADA, "robot", Role.LEAD, timedelta(days=1))
    return f"/settings/tokens/{made.token.id}/revoke", {}


def run(browser: Browser) -> tuple[str, Fields]:
    found = browser.services.metrics.enqueue_collection(
        MissionScope(browser.services.missions.get(SLUG).conversation_id, ADA.actor), SLUG, [], reason="now"
    )
    return f"/runs/{found.id}", {"do": "stop", "reason": "Not now"}


def of_todo(action: str, target: TodoStatus = TodoStatus.PENDING, **fields: str) -> Callable[[Browser], Any]:
    return lambda browser: (f"/todos/{browser.todo(target)}/{action}", fields)


def edit(browser: Browser) -> tuple[str, Fields]:
    id = browser.todo()
    path = f"/todos/{id}/edit"
    form = form_of(browser.http.get(f"/todos/{id}").text, path)
    for name in ("csrf", "requestId"):
        form.pop(name)
    return path, {**form, "title": "Another title", "reason": "Clearer"}


def relate(browser: Browser) -> tuple[str, Fields]:
    return f"/todos/{browser.todo()}/relate", {"do": "blockedBy", "other": browser.todo(), "reason": "It is so"}


def of_mission(part: str, **fields: str) -> Callable[[Browser], Any]:
    return lambda _: (f"/missions/{SLUG}/{part}", fields)


def settings(browser: Browser) -> tuple[str, Fields]:
    version = browser.services.missions.get(SLUG).settings_version
    given = {"part": "pillar", "version": version, "name": "Tests", "description": "No chance"}
    return f"/missions/{SLUG}/settings", given


def directive_end(browser: Browser) -> tuple[str, Fields]:
    browser.services.directives.add(ADA, SLUG, "Cache first")
    return f"/missions/{SLUG}/directives/1/end", {}


def recommendation(browser: Browser) -> tuple[str, Fields]:
    browser.services.recommendations.add(LEAD, SLUG, "Cache more")
    return f"/missions/{SLUG}/recommendations/1", {"do": "decline", "reason": "Later"}


CASES: dict[str, Callable[[Browser], tuple[str, Fields]]] = {
    "/inbox/{id}": inbox,
    "/conversations": conversation,
    "/chats/{chat}": message,
    "/chats/{chat}/todos": session_item,
    "/chats/{chat}/queue/{message}": queued,
    "/settings/tokens/{token}/revoke": token,
    "/runs/{run}": run,
    "/todos/{todo}/edit": edit,
    "/todos/{todo}/comment": of_todo("comment", text="Look at the cache"),
    "/todos/{todo}/relate": relate,
    "/todos/{todo}/message": of_todo("message", text="Look at the cache"),
    "/todos/{todo}/{action}": of_todo("start", reason="Now"),
    "/missions": lambda _: ("/missions", {"name": "Second", "description": "More", "pillar-1": "One", "goal-1": "It"}),
    "/missions/{mission}/todos": of_mission("todos", title="Profile", pillar=BUILD),
    "/missions/{mission}/bulk": lambda browser: (
        f"/missions/{SLUG}/bulk", {"action": "demote", "reason": "Later", "todo": browser.todo()},
    ),
    "/missions/{mission}/cycle": of_mission("cycle"),
    "/missions/{mission}/collect": of_mission("collect"),
    "/missions/{mission}/settings": settings,
    "/missions/{mission}/state": of_mission("state", do="pause", reason="Holidays"),
    "/missions/{mission}/strategies": of_mission("strategies", do="add", pillar=BUILD, description="Cache", reason="x"),
    "/missions/{mission}/directives": of_mission("directives", text="Cache first"),
    "/missions/{mission}/directives/{number:int}/end": directive_end,
    "/missions/{mission}/recommendations/{number:int}": recommendation,
    "/missions/{mission}/metrics/{metric}": of_mission("metrics/local-build-time", value="72"),
}  # fmt: skip


def test_every_form_has_a_case() -> None:
    assert set(CASES) == set(FORMS)


@pytest.fixture
def started(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The goals of the turns that were started, whose processes this test leaves out."""
    found: list[str | None] = []

    def start_turn(services: Any, session: str | None, goal: str | None = None, **_: Any) -> Any:
        found.append(goal)
        scope = Scope(session or f"session-{len(found)}", ADA.actor)
        return SimpleNamespace(turn=services.conversations.open_turn(scope))

    monkeypatch.setattr(turns, "start_turn", start_turn)
    return found


@pytest.mark.parametrize("form", CASES)
def test_a_form_that_is_sent_again_is_answered_again_and_changes_nothing(
    browser: Browser, started: list[str | None], form: str
) -> None:
    path, fields = CASES[form](browser)
    body, before = browser.body("id-of-this-form", **fields), browser.newest
    first = browser.send(path, body)
    done = browser.newest
    assert first.status_code == 303
    assert done > before, first.headers
    for scripted in (False, True):
        again = browser.send(path, body, scripted=scripted)
        to = again.json()["to"] if scripted else again.headers["location"]
        assert to == first.headers["location"]
        assert scripted or again.headers.get("set-cookie") == first.headers.get("set-cookie")
    assert (browser.newest, len(started)) == (done, form == "/conversations")


@pytest.mark.parametrize("form", ["/missions/{mission}/todos", "/conversations"])
def test_a_form_that_is_sent_twice_at_the_same_moment_is_done_once(
    browser: Browser, started: list[str | None], form: str
) -> None:
    path, fields = CASES[form](browser)
    body = browser.body("once", **fields)
    with ThreadPoolExecutor(4) as threads:
        told = list(threads.map(lambda _: browser.send(path, body, scripted=True).status_code, range(4)))
    # One that runs outside a transaction says that it was received, while it is not answered.
    assert set(told) <= ({200} if "todos" in form else {200, 409})
    made = browser.services.mission_todos.list(SLUG).items
    assert (len(made), len(started)) == ((1, 0) if "todos" in form else (0, 1))


def test_the_same_content_under_another_id_and_other_content_under_the_same_id_are_done(browser: Browser) -> None:
    path = f"/missions/{SLUG}/todos"
    for id, title in (("a", "One"), ("b", "One"), ("a", "Two"), ("a", "One")):
        assert browser.send(path, browser.body(id, title=title, pillar=BUILD)).status_code == 303
    assert sorted(each.title for each in browser.services.mission_todos.list(SLUG).items) == ["One", "One", "Two"]


def test_a_form_that_was_refused_can_be_sent_again_under_its_id(browser: Browser) -> None:
    path, body = f"/missions/{SLUG}/todos", browser.body("a", title="One", pillar=BUILD)
    browser.services.missions.pause(ADA, SLUG, "")
    browser.services.missions.resume(ADA, SLUG, "")
    browser.services.missions.archive(ADA, SLUG, "Reached")
    assert browser.send(path, body, scripted=True).status_code == 409
    assert browser.services.mission_todos.list(SLUG).items == []
    wrong = browser.body("b", goal="")
    for _ in range(2):
        assert browser.send("/conversations", wrong, scripted=True).status_code in (409, 422)


def test_a_form_whose_process_ended_before_its_answer_is_not_done_again(
    browser: Browser, started: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the server had been killed: nothing removes the mark that it was received."""
    from punchlist.idempotency import repository

    path, fields = CASES["/conversations"](browser)
    body = browser.body("a", **fields)
    browser.send(path, body)
    with browser.services.store.write() as tx:
        stored = tx.raw("SELECT client, request_key FROM answered_requests")
        for client, key in stored:
            tx.run(repository.STORE, client=client, request_key=key, status=0, headers="{}", body="")
    told = browser.send(path, body, scripted=True)
    assert (told.status_code, len(started)) == (409, 1)
    assert "This request was received before" in told.json()["detail"]


def test_each_rendering_of_a_page_has_its_own_id_also_while_nothing_changes(browser: Browser) -> None:
    pages = [browser.http.get(f"/missions/{SLUG}/new").text for _ in range(5)]
    fragments = [browser.http.get(f"/missions/{SLUG}", headers={"Fragment": "live"}).text for _ in range(2)]
    ids = [set(re.findall(r'name="requestId" value="([^"]*)"', page)) for page in pages]
    assert all(len(each) == 1 for each in ids)
    assert len(set.union(*ids)) == len(pages)
    own = {found for page in fragments for found in re.findall(r'name="requestId" value="([^"]*)"', page)}
    assert own
    assert not own & set.union(*ids)


def test_every_form_that_changes_something_has_the_fields_of_a_form() -> None:
    templates = Path(render.STATIC).parent / "templates"
    for file in templates.glob("*.html"):
        for form in re.findall(r'<form[^>]*method="post".*?</form>', file.read_text(), re.DOTALL):
            assert re.search(r"\{\{ (csrf_field|send)\(", form), (file.name, form[:120])
