"""What pages say and offer, without a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from html import unescape

import pytest
from tests.contract.missions import BUILD, FILE, SLUG
from tests.contract.web import API, WebSite, opened

from punchlist.conversations.model import MessageRole, NoticeKind, Scope
from punchlist.engine.periodic import enqueue_cycle
from punchlist.errors import Conflict
from punchlist.kernel.events import SYSTEM, Actor, Role
from punchlist.missions.changes import lock_mission
from punchlist.missions.escalations.service import escalate_stuck_work
from punchlist.missions.model import MissionScope, MissionTodo, NewMissionTodo
from punchlist.missions.repository import TurnWork
from punchlist.missions.todos.edits import EditedFields
from punchlist.missions.todos.lifecycle import TodoAction, TodoStatus
from punchlist.runs.model import Run
from punchlist.runs.queue import RunQueue
from punchlist.surfaces.web.logins import Logins
from punchlist.surfaces.web.pages import names
from punchlist.surfaces.web.pages.markdown import render_markdown
from punchlist.surfaces.web.pages.todo import marks
from punchlist.toolcalls.approvals import ApprovalAnswer, ApprovalOutcome, denial_message
from punchlist.views.todo_detail import read_detail
from punchlist.views.todo_evidence import without_reviews

ADA = MissionScope("s", Actor(Role.PERSON, "ada"))
LEAD = MissionScope("s", Actor(Role.LEAD, "mission-lead"), SLUG)
BOARD = f"/missions/{SLUG}/board"
PAGE = {"Accept": "text/html"}


@pytest.fixture
def site(database: str) -> Iterator[WebSite]:
    with opened(database) as site:
        site.http.get(f"/login?code={Logins(site.services).new_code()}")
        csrf = site.http.get(f"{API}/me").json()["csrf"]
        site.http.post(f"{API}/missions", json=FILE, headers={"X-CSRF-Token": csrf})
        yield site


def todo_of(site: WebSite, title: str, *, started: bool = True, deadline: str | None = None) -> MissionTodo:
    todos = site.services.mission_todos
    todo = todos.create(ADA, SLUG, NewMissionTodo(BUILD, title, deadline=deadline)).todo
    return todos.update(LEAD, SLUG, todo.id, TodoAction.START, "It is next").todo if started else todo


def work(site: WebSite, todo: MissionTodo) -> tuple[RunQueue, Run]:
    """A worker executes the todo."""
    (run,) = site.services.runs.for_todo(todo.id)
    queue = RunQueue(site.services.store, "worker")
    assert queue.dispatch(run)
    assert queue.begin(run.id)
    return queue, run


def say(site: WebSite, queue: RunQueue, run: Run, text: str) -> None:
    scope = Scope(run.conversation_id, Actor(Role.OWNER, "pillar-owner"))
    conversations = site.services.conversations
    turn = conversations.open_turn(scope)
    queue.set_turn(run.id, turn.id)
    conversations.add_message(scope, MessageRole.ASSISTANT, text, turn_id=turn.id)
    conversations.end_turn(scope, reason="done")


def post(site: WebSite, path: str, **fields: str) -> dict[str, str]:
    csrf = site.http.get(f"{API}/me").json()["csrf"]
    answer = site.http.post(path, data={"csrf": csrf, **fields}, headers={"Accept": "application/json"})
    found: dict[str, str] = answer.json()
    return found


def escalate(site: WebSite, todo: MissionTodo) -> None:
    with site.services.store.write() as tx:
        write = lock_mission(tx, MissionScope("s", SYSTEM), SLUG)
        escalate_stuck_work(
            write, site.services.mission_todos.get(todo.id), "Please accept it, or say what is missing."
        )


# --- the page of a todo -----------------------------------------------------------------------------------


@pytest.mark.spec("M8", "M15")
def test_the_page_of_a_todo_shows_the_work_on_it_and_never_controls_another_run(site: WebSite) -> None:
    mine, other = todo_of(site, "Profile the build"), todo_of(site, "Replace the loader")
    queue, others_run = work(site, other)
    say(site, queue, others_run, "I replace the loader.")
    (my_run,) = site.services.runs.for_todo(mine.id)
    shown = site.http.get(f"/todos/{mine.id}").text
    assert f'action="/runs/{my_run.id}"' in shown
    assert others_run.id not in shown
    assert "I replace the loader." not in shown
    page_of_other = site.http.get(f"/todos/{other.id}").text
    assert f'action="/runs/{others_run.id}"' in page_of_other
    assert "I replace the loader." in page_of_other
    # A message reaches the run of this todo, and the chat of the pillar's todos when no run is open.
    post(site, f"/todos/{mine.id}/message", text="Use the profiler of esbuild")
    assert site.services.runs.get(my_run.id).message == "Use the profiler of esbuild"
    assert site.services.runs.get(others_run.id).message is None
    assert "Use the profiler of esbuild" in site.http.get(f"/todos/{mine.id}").text
    site.services.runs.stop(ADA, my_run.id)
    to = post(site, f"/todos/{mine.id}/message", text="What is left?")["to"]
    assert f"About “Profile the build” (todo {mine.id})" in site.http.get(to).text


@pytest.mark.spec("M8", "M15")
def test_a_todo_is_evidenced_once_its_result_is_claimed_and_not_by_its_review(site: WebSite) -> None:
    todo = todo_of(site, "Profile the build")
    detail = replace(read_detail(site.services.store, todo.id), evidenced=True)

    def states(todo: MissionTodo) -> list[str]:
        return [state for _, state, _ in marks(replace(detail, todo=todo))][:2]

    assert states(todo) == ["", ""]
    assert states(todo._replace(worked_at=todo.created_at)) == ["yes", "yes"]
    turns = [TurnWork(agent, agent, 1, 2, 1, succeeded=True) for agent in ("pillar-owner", "mission-lead", "worker")]
    assert [turn.id for turn in without_reviews(turns)] == ["pillar-owner", "worker"]


@pytest.mark.spec("M15")
def test_people_read_words_instead_of_identifiers(site: WebSite) -> None:
    todo = todo_of(site, "Profile the build")
    shown = site.http.get(f"/todos/{todo.id}").text
    assert "mission_todo_create" not in shown
    assert "lead:mission-lead" not in shown
    assert names.actor_name("person:web-root-e68a90df") == "root"
    assert names.actor_name("owner:pillar-owner") == "pillar owner"
    assert names.actor_name("owner:my-own-agent") == "my-own-agent (pillar owner)"
    assert names.actor_name("system:punchlist") == "Punchlist"
    assert names.action_name("shelve") == "created in the backlog"
    why = "run_command (bf445f3c): running commands needs approval in mode default"
    assert names.wait_text(why) == "a command needs your approval"
    assert names.wait_text("It was recorded by hand.") == "It was recorded by hand."
    assert names.chat_title("[TODOs] Build Performance") == "Build Performance: todos"
    assert [names.notice_name(kind) for kind in ("todo_delegation", "pause", "note")] == ["task", "wait", "note"]
    chats = site.http.get(f"/missions/{SLUG}/chats").text
    assert "[TODOs]" not in chats
    (run,) = site.services.runs.for_todo(todo.id)
    assert "[TODOs]" not in site.http.get(f"/chats/{run.conversation_id}").text
    mission = site.services.missions.get(SLUG)
    first = enqueue_cycle(site.services.store, MissionScope(mission.conversation_id, ADA.actor), mission)
    with pytest.raises(Conflict) as refused:
        enqueue_cycle(site.services.store, MissionScope(mission.conversation_id, ADA.actor), mission)
    assert first.id not in str(refused.value)


@pytest.mark.spec("M10", "M15")
def test_what_a_person_answered_is_told_with_their_name_and_not_that_of_the_browser(site: WebSite) -> None:
    todo = todo_of(site, "Profile the build")
    work(site, todo)
    escalate(site, todo)
    (item,) = site.services.inbox.list()
    token = site.http.get(f"{API}/me").json()["name"]
    person = names.actor_name(f"person:{token}")
    assert token != person
    assert "detail" not in post(site, f"/inbox/{item.id}", action="keep", reason="The numbers are missing")
    (run,) = site.services.runs.for_todo(todo.id)
    chats = (site.services.missions.get(SLUG).conversation_id, run.conversation_id)
    told = [message.content for id in chats for message in site.services.conversations.messages(id)]
    assert any(person in text and "The numbers are missing" in text for text in told)
    assert [text for text in told if token in text] == []
    for chat in chats:
        assert token not in site.http.get(f"/chats/{chat}").text
    answer = ApprovalAnswer(ApprovalOutcome.CANCEL, Actor(Role.PERSON, token), reason="Not on Fridays")
    assert denial_message(answer) == f"{person} denied this call: Not on Fridays"
    assert Actor(Role.PERSON, "web-code-ada-l-0123abcd").known_name == "ada-l"
    # A token that a person named, and an agent of such a name.
    assert Actor(Role.PERSON, "web-shop").known_name == "web-shop"
    assert Actor(Role.OWNER, token).known_name == token


@pytest.mark.spec("M15")
@pytest.mark.parametrize("heading", ["[run {id}]", "[TODO {id}, run {id}]", "[cycle {id}]", "[helper, run {id}]"])
def test_a_notice_does_not_begin_with_the_ids_of_its_run(site: WebSite, heading: str) -> None:
    mission, id = site.services.missions.get(SLUG), "01a1f53b-62a0-7000-8000-000000000001"
    with site.services.store.write() as tx:
        write = lock_mission(tx, MissionScope("s", SYSTEM), SLUG)
        write.post(NoticeKind.NOTE, f"{heading.format(id=id)}\nThe run failed: no model")
    shown = site.http.get(f"/chats/{mission.conversation_id}").text
    assert "The run failed: no model" in shown
    assert id not in shown


@pytest.mark.spec("M15")
def test_the_bar_of_a_phone_marks_the_board_only_on_the_board_and_its_todos(site: WebSite) -> None:
    todo = todo_of(site, "Profile the build")
    mission = site.services.missions.get(SLUG)

    def marked(path: str) -> list[str]:
        page = site.http.get(path).text
        bar = page[page.index('class="topbar"') :]
        return re.findall(r'<a href="[^"]*" aria-current[^>]*>.*?</svg>(\w+)', bar[: bar.index("</nav>")], re.DOTALL)

    for path in (BOARD, f"{BOARD}?todo={todo.id}", f"/todos/{todo.id}", f"/missions/{SLUG}/new"):
        assert marked(path) == ["Board"], path
    for path in ("", "/chats", "/runs", "/flow", "/replay", "/settings"):
        assert marked(f"/missions/{SLUG}{path}") == [], path
    assert marked(f"/chats/{mission.conversation_id}") == []
    assert marked("/") == ["Attention"]


@pytest.mark.spec("M15")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Before ![the *slow* <part>](http://tracker.example/a.png) after", "Before the slow &lt;part&gt; after"),
        ("![](http://tracker.example/a.png)", "image"),
        ("![by reference][a]\n\n[a]: http://tracker.example/a.png", "by reference"),
    ],
)
def test_of_an_image_the_alternative_text_is_shown_and_nothing_is_fetched(text: str, shown: str) -> None:
    assert str(render_markdown(text)).strip() == f"<p>{shown}</p>"


# --- requests ---------------------------------------------------------------------------------------------


@pytest.mark.spec("M13", "I1")
def test_work_that_can_be_accepted_offers_that_first_and_a_new_deadline_only_if_it_is_overdue(
    site: WebSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    tomorrow = (site.services.store.clock() + timedelta(days=1)).date().isoformat()
    todo = todo_of(site, "Profile the build", deadline=tomorrow)
    escalate(site, todo)
    shown = site.http.get("/").text
    request = shown[shown.index('data-request="escalation"') : shown.index("</article>")]
    buttons = re.findall(r'<button class="button([^"]*)"[^>]*>(?:<svg.*?</svg>)?([^<]+)', request, re.DOTALL)
    assert [(tone.strip(), text) for tone, text in buttons] == [
        ("primary", "Accept the work"),
        ("", "Send back with feedback"),
        ("danger", "Cancel the todo"),
        ("quiet", "Later"),
    ]
    assert "New deadline" not in request
    later = site.services.store.clock() + timedelta(days=3)
    monkeypatch.setattr(site.services.store, "clock", lambda: later)
    _sweep(site)
    assert "New deadline" in site.http.get("/").text
    post(site, f"/todos/{todo.id}/complete", outcome="ts-loader takes 39 %")
    assert site.services.mission_todos.get(todo.id).status is TodoStatus.COMPLETED
    assert "escalation" not in [item.kind.value for item in site.services.inbox.list()]


def _sweep(site: WebSite) -> None:
    from punchlist.missions.planning.overdue import OverdueService

    mission = site.services.missions.get(SLUG)
    OverdueService(site.services.store).process_mission(MissionScope(mission.conversation_id, SYSTEM), mission.id)


@pytest.mark.spec("I3", "M10")
def test_without_a_model_one_notice_says_why_no_work_is_done(site: WebSite, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "PUNCHLIST_MODEL"):
        monkeypatch.delenv(name, raising=False)
    todo_of(site, "Profile the build")
    later = site.services.store.clock() + timedelta(hours=1)
    monkeypatch.setattr(site.services.store, "clock", lambda: later)
    assert [item.kind.value for item in site.services.inbox.list()] == ["worker"]
    home, mission = site.http.get("/").text, site.http.get(f"/missions/{SLUG}").text
    for shown in (home, mission):
        assert shown.count("data-missing-model") == 1
        assert 'data-request="worker"' not in shown
        assert "No worker" not in shown
    assert "waiting</span>" not in home
    # A server that leaves the work to others does not know why none of them runs.
    site.web.hosts_worker = False
    assert 'data-request="worker"' in site.http.get("/?all=0").text
    assert "No worker is alive" in site.http.get(f"/missions/{SLUG}?elsewhere").text
    site.web.hosts_worker = True
    # With a model, a person is told how to start a worker, without timestamps and backticks.
    site.web.model = "rehearsal:unused.yaml"
    shown = site.http.get("/?all=1").text
    request = shown[shown.index('data-request="worker"') : shown.index("</article>")]
    assert "<code>punchlist worker</code>" in request
    assert not re.search(r">[^<]*(`|\d{4}-\d\d-\d\dT)[^<]*<", request.replace("title=", ""))
    assert "<code>punchlist worker</code>" in site.http.get(f"/missions/{SLUG}?again").text


@pytest.mark.spec("S10", "M15")
def test_a_message_that_no_model_will_read_says_so(site: WebSite, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "PUNCHLIST_MODEL"):
        monkeypatch.delenv(name, raising=False)
    turn = site.services.conversations.open_turn(Scope("talk", ADA.actor))
    site.services.conversations.end_turn(Scope("talk", ADA.actor), reason="done")
    assert turn.conversation_id == "talk"
    assert "No messages yet." in site.http.get("/chats/talk").text
    post(site, "/chats/talk", text="Are you there?")
    shown = site.http.get("/chats/talk").text
    assert "No messages yet." not in shown
    assert "data-missing-model" in shown
    assert "waits for a model" in shown
    chat = site.services.missions.get(SLUG).conversation_id
    post(site, f"/chats/{chat}", text="What is next?")
    assert "waits for a worker" in site.http.get(f"/chats/{chat}").text


# --- the board --------------------------------------------------------------------------------------------


@pytest.mark.spec("M4", "M15")
def test_a_card_shows_the_state_of_its_todo(site: WebSite) -> None:
    todo = todo_of(site, "Profile the build")

    def badge() -> tuple[str, str]:
        card = site.http.get(BOARD).text.partition(f'id="card-{todo.id}"')[2]
        found = re.search(r'<span class="badge ([^"]*)"><span class="dot[^"]*"></span>([^<]+)', card)
        assert found
        return found.group(1).strip(), found.group(2)

    assert badge() == ("", "queued")
    queue, run = work(site, todo)
    assert badge() == ("working", "working")
    queue.wait(run.id, "run_command (bf445f3c): running commands needs approval in mode default")
    assert badge() == ("needs-you", "waiting")
    queue.wake(run.id, "It was answered.")
    queue.finish(run.id, "Done")
    assert badge() == ("needs-you", "to accept")


@pytest.mark.spec("M15")
def test_the_filter_of_labels_stays_and_a_filter_without_hits_says_so(site: WebSite) -> None:
    todo = todo_of(site, "Profile the build", started=False)
    todo_of(site, "Replace the loader", started=False)
    site.services.mission_todos.edit(ADA, SLUG, todo.id, EditedFields(labels=["build"]), "It is one")
    for query in ("", "?label=build", "?label=other", "?search=loader", "?search=nothing"):
        shown = site.http.get(f"{BOARD}{query}").text
        assert "<option selected>build</option>" in shown or "<option >build</option>" in shown, query
        assert ("Nothing matches" in shown) == (query in ("?label=other", "?search=nothing")), query
    assert f'href="{BOARD}" data-soft>Clear the filters' in site.http.get(f"{BOARD}?search=nothing").text


@pytest.mark.spec("M15")
def test_todos_beyond_a_page_of_the_board_are_on_the_next_one(site: WebSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("punchlist.surfaces.web.pages.board.MAX_LIMIT", 2)
    titles = ["Profile the build", "Replace the loader", "Share the cache"]
    for title in titles:
        todo_of(site, title, started=False)
    first = site.http.get(BOARD).text
    # They are open, not ended.
    (following,) = re.findall(r'More todos: <a class="link" href="([^"]+)"', first)
    second = site.http.get(unescape(following)).text
    shown = [[title for title in titles if f">{title}</a>" in page] for page in (first, second)]
    assert [len(each) for each in shown] == [2, 1]
    assert sorted([*shown[0], *shown[1]]) == sorted(titles)
    assert "More todos" not in second


# --- other addresses --------------------------------------------------------------------------------------


@pytest.mark.spec("X12", "M15")
def test_an_unknown_address_is_a_page_for_people_and_a_problem_for_programs(site: WebSite) -> None:
    told = site.http.get("/nope", headers=PAGE)
    assert (told.status_code, told.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "There is no page at /nope." in told.text
    assert 'aria-label="Navigation"' in told.text
    assert site.http.get("/inbox/1", headers=PAGE).status_code == 405
    for path, headers in (("/nope", {"Accept": "application/json"}), (f"{API}/nope", PAGE)):
        assert site.http.get(path, headers=headers).headers["content-type"] == "application/problem+json"
    attack = site.http.get("/<script>alert(1)</script>", headers=PAGE).text
    assert "<script>alert" not in attack


@pytest.mark.spec("M1", "M15")
def test_a_refused_field_is_named_by_its_label(site: WebSite) -> None:
    told = post(site, "/missions", **{"name": "Docs", "pillar-1": "Guides", "activeTodoLimit": "many"})
    assert told["detail"] == "Active todos at most: must be a whole number"
