"""Mission control in a real browser: a todo's life by clicks, drag and keyboard, and changes of others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Page, expect
from tests.contract.missions import BUILD, SLUG
from tests.web.conftest import PERSON, LogIn, Serve

from punchlist.app import Services
from punchlist.kernel.actors import Actor, Role
from punchlist.missions.model import Mission, MissionScope, NewMissionTodo
from punchlist.missions.todos.lifecycle import TodoAction, TodoStatus

BOARD = f"/missions/{SLUG}/board"
TITLE = "Profile webpack build to identify top 3 slow plugins"
LEAD = MissionScope("s", Actor(Role.LEAD, "lead"), SLUG)


def column(page: Page, status: str, title: str = TITLE) -> None:
    """Wait until the card is in the column."""
    expect(page.locator(f"#column-{status} .card", has_text=title)).to_be_visible()


def make(services: Services, title: str = TITLE, target: TodoStatus = TodoStatus.PENDING) -> str:
    new = NewMissionTodo(BUILD, title, completion_criteria="A list of three plugins", target=target)
    return services.mission_todos.create(MissionScope("s", PERSON), SLUG, new).todo.id


@pytest.mark.spec("M1", "M5", "M6", "M15")
def test_a_person_takes_a_todo_from_its_creation_to_its_completion(
    serve: Serve, person: LogIn, services: Services
) -> None:
    """Section 8 of the source document, by clicks."""
    server = serve("--no-worker")
    page = person(server)
    page.get_by_role("link", name="Create a mission").click()
    page.get_by_label("Name").first.fill("Developer Experience")
    page.get_by_label("Goal").fill("Builds are fast.")
    page.locator("#pillar-1").fill("Build Performance")
    page.locator("#metric-1").fill("Local build time")
    page.locator("#unit-1").fill("s")
    page.locator("#target-1").fill("60")
    page.locator("#warning-1").fill("90")
    page.get_by_role("button", name="Create the mission").click()
    expect(page.get_by_role("heading", name="Developer Experience", exact=True)).to_be_visible()
    for reading in ("55", "63", "72"):
        page.get_by_label("New reading of Local build time").fill(reading)
        page.get_by_role("button", name="Record").click()
        expect(page.locator("#metric-local-build-time .value")).to_contain_text(reading)
    expect(page.locator("#metric-local-build-time")).to_contain_text("degrading")

    page.keyboard.press("Escape")
    page.locator("h1").click()
    page.keyboard.press("c")
    page.get_by_label("Title").fill(TITLE)
    page.get_by_label("What to do").fill("Run webpack --profile --json")
    page.get_by_label("Done when").fill("The top 3 plugins with their share")
    page.get_by_label("Why now").fill("Build time is 72s, 12s above the 60s target")
    page.get_by_label("Deadline").fill((datetime.now(UTC) + timedelta(days=3)).date().isoformat())
    page.get_by_role("button", name="Create").click()
    column(page, "pending")
    drawer = page.locator("#drawer")
    expect(drawer).to_contain_text("Run webpack --profile --json")

    drawer.locator("summary", has_text="Start").click()
    drawer.get_by_label("Reason").locator("visible=true").fill("Degradation confirmed by 3 consecutive readings.")
    drawer.locator("form[action$='/start'] button").click()
    column(page, "in_progress")

    drawer.locator("summary", has_text="Complete").click()
    drawer.get_by_label("What was done").fill("Identified ts-loader (39%), css-loader (17%), terser (12%).")
    drawer.get_by_label("Local build time").check()
    drawer.locator("form[action$='/complete'] button").click()
    column(page, "completed")
    expect(drawer.locator(".marks li.yes", has_text="Accepted")).to_be_visible()
    expect(drawer).to_contain_text("Degradation confirmed by 3 consecutive readings.")
    (todo,) = services.mission_todos.list(SLUG, status=[TodoStatus.COMPLETED]).items
    assert todo.outcome == "Identified ts-loader (39%), css-loader (17%), terser (12%)."
    (collection,) = [run for run in services.runs.list(limit=10) if run.kind == "collect"]
    assert collection.parameters == {"metrics": ["local-build-time"]}


@pytest.mark.spec("M4", "M15")
def test_a_card_moves_by_drag_and_by_keys_with_a_reason(
    serve: Serve, person: LogIn, services: Services, mission: Mission
) -> None:
    id = make(services)
    page = person(serve("--no-worker"))
    page.goto(page.url.rstrip("/") + BOARD)
    page.wait_for_selector("body.ready")
    card = page.locator(f"#card-{id}")
    card.drag_to(page.locator("#column-backlog"))
    dialog = page.locator("#move")
    expect(dialog).to_be_visible()
    # It is drawn in its new column before the server was asked.
    column(page, "backlog")
    assert services.mission_todos.get(id).status is TodoStatus.PENDING
    dialog.get_by_label("Reason").fill("Later")
    dialog.get_by_label("Reason").press("Enter")
    expect(dialog).to_be_hidden()
    column(page, "backlog")
    assert services.mission_todos.get(id).status is TodoStatus.BACKLOG

    # An impossible move is not offered and says why.
    card.locator("a").focus()
    page.keyboard.press("m")
    expect(dialog.get_by_label("in progress")).to_be_disabled()
    expect(dialog).to_contain_text("Promote it first; only pending todos can start.")
    dialog.get_by_label("pending").check()
    dialog.get_by_label("Reason").fill("Now")
    dialog.get_by_role("button", name="Promote").click()
    column(page, "pending")
    assert services.mission_todos.get(id).status is TodoStatus.PENDING


@pytest.mark.spec("M15", "X5")
def test_two_browsers_see_each_others_changes_also_after_a_restart_of_the_server(
    serve: Serve, person: LogIn, services: Services, mission: Mission
) -> None:
    server = serve("--no-worker")
    id = make(services)
    ada, ben = person(server), None
    link = services_login(services)
    ben = person_with(person, server, link)
    for page in (ada, ben):
        page.goto(server.url + BOARD)
        page.wait_for_selector("body.ready")
    ben.get_by_label("Filter todos").focus()
    ben.keyboard.type("Pro")
    ada.locator(f"#card-{id} a").focus()
    ada.keyboard.press("m")
    ada.locator("#move").get_by_label("in progress").check()
    ada.locator("#move").get_by_label("Reason").fill("Start")
    ada.locator("#move").get_by_role("button", name="Start").click()
    column(ben, "in_progress")
    # Neither the focus nor the half-typed text was taken.
    expect(ben.get_by_label("Filter todos")).to_be_focused()
    expect(ben.get_by_label("Filter todos")).to_have_value("Pro")

    server.stop()
    services.mission_todos.update(LEAD, SLUG, id, TodoAction.CANCEL, "While the server was down")
    server.start()
    for page in (ada, ben):
        column(page, "cancelled")
    make(services, "Profile again")
    column(ben, "pending", "Profile again")


def services_login(services: Services) -> str:
    from punchlist.surfaces.web.logins import Logins

    return Logins(services).new_code()


def person_with(person: LogIn, server: object, code: str) -> Page:
    from tests.web.site import Server

    assert isinstance(server, Server)
    server.link = f"{server.url}/login?code={code}"
    return person(server)
