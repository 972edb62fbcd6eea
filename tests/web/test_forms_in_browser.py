"""What happens after a form is sent: where the focus is, what is shown, and where errors stand."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect
from tests.contract.missions import BUILD, FILE, SLUG
from tests.web.conftest import PERSON, LogIn, Serve
from tests.web.site import PHONE
from tests.web.test_pages import REHEARSAL

from punchlist.app import Services
from punchlist.kernel.events import SYSTEM, Actor, Role
from punchlist.missions.changes import lock_mission
from punchlist.missions.config import file
from punchlist.missions.escalations.service import escalate_stuck_work
from punchlist.missions.model import Mission, MissionScope, NewMissionTodo
from punchlist.missions.todos.lifecycle import TodoAction, TodoStatus
from punchlist.views.todo_detail import read_detail

BOARD = f"/missions/{SLUG}/board"
ONE_DATABASE = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
LEAD = MissionScope("s", Actor(Role.LEAD, "mission-lead"), SLUG)
FOCUS = "document.activeElement.textContent.trim() || document.activeElement.name || document.activeElement.tagName"


def make(services: Services, title: str, *, started: bool = False, target: TodoStatus = TodoStatus.PENDING) -> str:
    new = NewMissionTodo(BUILD, title, completion_criteria="A list of three", target=target)
    id = services.mission_todos.create(MissionScope("s", PERSON), SLUG, new).todo.id
    if started:
        services.mission_todos.update(LEAD, SLUG, id, TodoAction.START, "It is next")
    return id


def escalate(services: Services, id: str) -> None:
    with services.store.write() as tx:
        write = lock_mission(tx, MissionScope("s", SYSTEM), SLUG)
        escalate_stuck_work(write, services.mission_todos.get(id), "Please accept it.")


def go(page: Page, url: str) -> None:
    page.goto(url)
    page.wait_for_selector("body.ready")


def wait_for_focus(page: Page, text: str) -> None:
    page.wait_for_function(f"text => ({FOCUS}).startsWith(text)", arg=text)


@pytest.mark.spec("M15")
@ONE_DATABASE
def test_the_focus_stays_where_the_work_goes_on(
    serve: Serve, person: LogIn, services: Services, mission: Mission
) -> None:
    first, second = make(services, "Profile the build", started=True), make(services, "Replace the loader")
    escalate(services, first)
    escalate(services, second)
    server = serve("--no-worker", "--model", "rehearsal:unused.yaml")
    page = person(server)
    # After an answer, the next request; after the last one, the heading of the list.
    requests = page.locator("[data-request=escalation]")
    requests.first.get_by_label("What was done").fill("ts-loader takes 39 %")
    requests.first.get_by_role("button", name="Accept the work").click()
    expect(requests).to_have_count(1)
    wait_for_focus(page, "The work needs a decision")
    requests.get_by_role("button", name="Extend").press("Enter")
    expect(requests).to_have_count(0)
    wait_for_focus(page, "Waiting for you")

    # After an edit the form is closed, its summary has the focus, and the text that was changed is shown.
    go(page, f"{server.url}{BOARD}?todo={second}")
    drawer = page.locator("#drawer")
    drawer.locator("summary", has_text="Edit").click()
    drawer.get_by_label("Done when").fill("A list of four")
    drawer.locator("form[action$='/edit']").get_by_label("Reason").fill("One was forgotten")
    drawer.get_by_role("button", name="Save").click()
    wait_for_focus(page, "Edit")
    expect(drawer.locator("form[action$='/edit']")).to_be_hidden()
    expect(drawer.locator("[data-field=completionCriteria]")).to_contain_text("A list of four")
    expect(drawer.locator("[data-field=completionCriteria]")).to_be_in_viewport()
    # After an action, the actions that are possible now.
    drawer.locator("summary", has_text="Start").click()
    drawer.locator("form[action$='/start']").get_by_label("Reason").fill("Now")
    drawer.locator("form[action$='/start'] button").click()
    expect(drawer.locator(".todo-head .badge", has_text="in progress")).to_be_visible()
    page.wait_for_function("document.querySelector('#drawer').contains(document.activeElement)")
    # After a comment or a message, the field for the next one.
    drawer.get_by_label("Comment").fill("Look at the cache")
    drawer.get_by_label("Comment").press("Enter")
    expect(drawer).to_contain_text("Look at the cache")
    page.wait_for_function("document.activeElement.name === 'text'")
    go(page, f"{server.url}/chats/{mission.conversation_id}")
    page.get_by_label("Message").fill("What is next?")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#live .message", has_text="What is next?")).to_be_visible()
    page.wait_for_function("document.activeElement.id === 'message'")


@pytest.mark.spec("M1", "M3", "M15")
@ONE_DATABASE
def test_messages_outlive_a_navigation_and_errors_stand_at_their_field(
    serve: Serve, person: LogIn, services: Services, mission: Mission
) -> None:
    server = serve("--no-worker")
    page = person(server)
    go(page, f"{server.url}/missions/new")
    page.get_by_label("Name").first.fill("Docs")
    page.locator("#pillar-1").fill("Guides")
    page.get_by_label("Active todos at most").fill("many")
    page.get_by_role("button", name="Create the mission").click()
    field = page.get_by_label("Active todos at most")
    expect(field).to_be_focused()
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(page.locator(".error-text", has_text="Must be a whole number")).to_be_visible()
    field.fill("1")
    page.get_by_role("button", name="Create the mission").click()
    expect(page.locator(".toast")).to_contain_text("Created Docs")
    for title in ("One", "Two"):
        go(page, f"{server.url}/missions/docs/new")
        page.get_by_label("Title").fill(title)
        page.get_by_role("button", name="Create").click()
        page.wait_for_url(f"{server.url}/missions/docs/board?todo=*")
    expect(page.locator(".toast.failed")).to_contain_text("Created in backlog instead")
    page.reload()
    page.wait_for_selector("body.ready")
    expect(page.locator(".toast")).to_have_count(0)


@pytest.mark.spec("M15")
@ONE_DATABASE
def test_keys_and_taps_work_on_every_page(serve: Serve, person: LogIn, services: Services) -> None:
    server = serve("--no-worker")
    page = person(server)
    page.keyboard.press("c")
    page.wait_for_url(f"{server.url}/missions/new")
    text = json.dumps(FILE)
    services.missions.apply(MissionScope("s", PERSON), file.parse_mission(text), text)
    for path in ("/", "/runs", "/settings"):
        go(page, server.url + path)
        page.keyboard.press("c")
        page.wait_for_url(f"{server.url}/missions/{SLUG}/new")
    go(page, f"{server.url}/runs")
    page.keyboard.press("g")
    page.keyboard.press("b")
    page.wait_for_url(server.url + BOARD)
    page.wait_for_selector("body.ready")
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_contain_text("conversations")
    phone = person_on_phone(page)
    go(phone, f"{server.url}/runs")
    phone.get_by_role("button", name="More").tap()
    expect(phone.locator("#sidebar")).to_be_visible()
    phone.touchscreen.tap(350, 300)
    expect(phone.locator("#sidebar")).to_be_hidden()
    phone.context.close()


def person_on_phone(page: Page) -> Page:
    browser = page.context.browser
    assert browser is not None
    return browser.new_context(**PHONE, storage_state=page.context.storage_state()).new_page()


@pytest.mark.spec("M4", "M15")
@ONE_DATABASE
def test_a_selection_is_cleared_a_drop_note_moves_nothing_and_a_reason_is_shown_on_focus(
    serve: Serve, person: LogIn, services: Services, mission: Mission
) -> None:
    id = make(services, "Profile the build")
    later = make(services, "Replace the loader", target=TodoStatus.BACKLOG)
    server = serve("--no-worker")
    page = person(server)
    go(page, f"{server.url}{BOARD}?todo={id}")
    for clear in ("Escape", "button"):
        page.locator(f"#card-{id} a").focus()
        page.keyboard.press("x")
        expect(page.locator("#bulk")).to_be_visible()
        if clear == "Escape":
            page.keyboard.press("Escape")
        else:
            page.get_by_role("button", name="Clear").click()
        expect(page.locator("#bulk")).to_be_hidden()
        expect(page.locator(".pick:checked")).to_have_count(0)
    # The first Esc left the drawer open.
    expect(page.locator("#drawer")).to_be_visible()

    card = page.locator(f"#card-{later}")
    before = card.bounding_box()
    page.evaluate(
        "id => document.querySelector('#card-' + id).dispatchEvent("
        "new DragEvent('dragstart', {bubbles: true, dataTransfer: new DataTransfer()}))",
        id,
    )
    expect(page.locator("#column-backlog .drop-note")).to_be_visible()
    assert card.bounding_box() == before
    page.evaluate(f"document.querySelector('#card-{id}').dispatchEvent(new DragEvent('dragend', {{bubbles: true}}))")

    for number in range(49):
        make(services, f"Later {number}", target=TodoStatus.BACKLOG)
    go(page, f"{server.url}/todos/{id}")
    button = page.get_by_role("button", name="Move to backlog")
    why = page.get_by_text("The backlog is full (50 of 50).")
    # Playwright waits for `aria-disabled` to end, which a person does not.
    button.click(force=True)
    expect(why).to_be_visible()
    box = why.bounding_box()
    assert box is not None
    assert box["height"] > 10
    assert button.get_attribute("aria-describedby") == why.get_attribute("id")


@pytest.mark.spec("S5", "M15")
@ONE_DATABASE
def test_a_waiting_run_can_be_read_and_answered_at_360_px(
    serve: Serve, person: LogIn, services: Services, mission: Mission, project: Path
) -> None:
    rehearsal = project / "rehearsal.yaml"
    rehearsal.write_text(REHEARSAL)
    id = make(services, "Profile the build")
    server = serve("--model", f"rehearsal:{rehearsal}", "--mode", "default")
    page = person(server, **PHONE)
    services.mission_todos.update(LEAD, SLUG, id, TodoAction.START, "Now")
    expect(page.locator("[data-request=approval]")).to_be_visible()
    (run,) = services.runs.for_todo(id)
    for path in (f"/chats/{run.conversation_id}", f"/runs/{run.id}", f"/todos/{id}"):
        go(page, server.url + path)
        text = page.locator(".run-bar > p")
        expect(text).to_contain_text("Pillar owner is waiting: a command needs your approval")
        box = text.bounding_box()
        assert box is not None
        assert box["width"] > 250, path
        assert box["height"] < 80, path
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        if "runs" not in path:
            button = page.get_by_role("button", name="Approve", exact=True)
            button.scroll_into_view_if_needed()
            assert button.evaluate(
                "b => { const r = b.getBoundingClientRect();"
                " return b.contains(document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2)); }"
            ), path
    page.get_by_role("button", name="Approve", exact=True).tap()
    expect(page.locator(".badge.done", has_text="completed")).to_be_visible()


@pytest.mark.spec("M15", "X12")
@ONE_DATABASE
def test_a_form_whose_answer_was_lost_is_sent_again_and_done_once(
    serve: Serve, person: LogIn, services: Services, mission: Mission
) -> None:
    server = serve("--no-worker")
    id = make(services, "Profile")
    page = person(server)
    page.goto(f"{server.url}/todos/{id}")
    page.wait_for_selector("body.ready")

    def lose_answer(route: Route) -> None:
        route.fetch()
        route.abort()

    page.route("**/comment", lose_answer, times=1)
    comment = page.locator(f"#comment-{id}")
    add = page.get_by_role("button", name="Add", exact=True)

    def comments() -> int:
        return sum(each.action == "comment" for each in read_detail(services.store, id).history)

    comment.fill("Once")
    add.click()
    expect(page.locator(".toast.failed")).to_contain_text("not done twice")
    expect(comment).to_have_value("Once")
    assert comments() == 1
    add.click()
    expect(comment).to_have_value("")
    assert comments() == 1
    # What was answered can be said again.
    comment.fill("Once")
    add.click()
    expect(comment).to_have_value("")
    assert comments() == 2


@pytest.mark.spec("M15")
@ONE_DATABASE
def test_beside_an_open_drawer_every_column_is_seen_and_no_card_leaves_its_column(
    serve: Serve, person: LogIn, services: Services, mission: Mission
) -> None:
    deadline = (services.store.clock() + timedelta(days=1)).date().isoformat()
    new = NewMissionTodo(
        BUILD, "Profile", deadline=deadline, labels=("a-long-label-of-one-word",), target=TodoStatus.BACKLOG
    )
    id = services.mission_todos.create(MissionScope("s", PERSON), SLUG, new).todo.id
    server = serve("--no-worker", "--model", "rehearsal:unused.yaml")
    page = person(server)
    page.set_viewport_size({"width": 1440, "height": 900})
    go(page, f"{server.url}{BOARD}?todo={id}")
    edges = page.evaluate(
        """() => {
            const right = (node) => node.getBoundingClientRect().right;
            const outside = [...document.querySelectorAll(".card, .card .meta *")]
                .filter((node) => right(node) > right(node.closest(".column")));
            const hidden = [...document.querySelectorAll(".column")]
                .filter((node) => right(node) > right(document.querySelector(".board")));
            const titles = [...document.querySelectorAll(".column > header > *")]
                .filter((node) => right(node) > right(node.closest(".column")));
            return [outside.length, hidden.length, titles.length];
        }"""
    )
    assert edges == [0, 0, 0]
    badge, close = page.locator(".todo-head .badge").first, page.get_by_role("link", name="Close")
    one, other = badge.bounding_box(), close.bounding_box()
    assert one is not None
    assert other is not None
    assert other["y"] < one["y"] + one["height"]
    assert other["x"] > one["x"] + one["width"]
