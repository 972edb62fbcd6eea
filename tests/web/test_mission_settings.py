"""The settings of a mission in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from tests.contract.missions import SLUG
from tests.web.conftest import LogIn, Serve
from tests.web.test_pages import BOARD, LEAD, ONE_DATABASE, make

from punchlist.app import Services
from punchlist.missions.config.policy import policy_of
from punchlist.missions.model import Mission
from punchlist.missions.todos.lifecycle import TodoAction

pytestmark = pytest.mark.spec("M15")
SETTINGS = f"/missions/{SLUG}/settings"


@pytest.mark.spec("M1", "M19")
@ONE_DATABASE
def test_settings_are_saved_refused_when_stale_and_the_mission_is_paused(
    serve: Serve, person: LogIn, services: Services, mission: Mission
) -> None:
    server = serve("--no-worker")
    page = person(server)
    page.goto(server.url + SETTINGS)
    page.wait_for_selector("body.ready")
    other = page.context.new_page()
    other.goto(server.url + SETTINGS)
    other.wait_for_selector("body.ready")
    limit = page.get_by_label("Active todos at most")
    limit.fill("7")
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url(f"{server.url}{SETTINGS}?at=*#limits")
    expect(limit).to_have_value("7")
    expect(page.locator(".toasts")).to_contain_text("activeTodoLimit")
    # The other page shows the settings as they were: what is written there is kept, and nothing is overwritten.
    other.get_by_label("Backlog at most").fill("3")
    other.get_by_role("button", name="Save", exact=True).click()
    expect(other.locator(".toasts")).to_contain_text("were changed since you opened them")
    expect(other.get_by_label("Backlog at most")).to_have_value("3")
    policy = policy_of(services.missions.get(SLUG))
    assert (policy.active_todo_limit, policy.backlog_todo_limit) == (7, 50)
    page.get_by_role("button", name="Pause the mission").click()
    expect(page.get_by_role("button", name="Resume the mission")).to_be_visible()
    page.goto(server.url + BOARD)
    expect(page.get_by_role("link", name="paused")).to_be_visible()


@ONE_DATABASE
def test_axe_finds_nothing_serious_on_settings_runs_and_relations(
    serve: Serve, person: LogIn, services: Services, mission: Mission
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    id, other = make(services), make(services, "Another")
    run = services.mission_todos.update(LEAD, SLUG, id, TodoAction.START, "Now").run_id
    server = serve("--no-worker")
    page = person(server)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme="light" if scheme == "light" else "dark")
        for path in (SETTINGS, f"/runs/{run}", f"/todos/{other}", "/settings", "/search"):
            page.goto(server.url + path)
            page.wait_for_selector("body.ready")
            for details in page.locator("main details").all():
                details.evaluate("one => { one.open = true; }")
            found = Axe().run(page).response["violations"]
            serious = [
                (each["id"], each["nodes"][0]["html"][:200])
                for each in found
                if each["impact"] in ("serious", "critical")
            ]
            assert serious == [], (scheme, path)
