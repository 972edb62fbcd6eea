"""Logins with named tokens of other roles than a person's."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect
from tests.web.conftest import PERSON, Serve
from tests.web.test_pages import BOARD, ONE_DATABASE, column, make

from punchlist.app import Services
from punchlist.conversations.model import Scope
from punchlist.kernel.events import Role
from punchlist.missions.model import Mission


@pytest.mark.spec("M15", "X11", "X12")
@ONE_DATABASE
def test_a_viewer_logs_in_with_a_token_follows_the_board_and_is_offered_nothing_to_change(
    serve: Serve, browser: Browser, services: Services, mission: Mission
) -> None:
    server = serve("--no-worker")
    token = services.tokens.create(Scope("s", PERSON), "board-on-the-wall", Role.VIEWER, None)
    page = browser.new_page()
    page.goto(f"{server.url}/")
    page.set_viewport_size({"width": 360, "height": 740})
    box = page.locator("main").bounding_box()
    assert box is not None
    assert (box["x"], box["width"]) == (16, 328)
    page.set_viewport_size({"width": 1280, "height": 720})
    page.get_by_label("Token").fill("punchlist_0123456789ab_wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.locator("main")).to_contain_text("This token is unknown")
    page.get_by_label("Token").fill(token.text)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{server.url}/")
    page.goto(server.url + BOARD)
    page.wait_for_selector("body.ready")
    make(services, "Seen by a viewer")
    column(page, "pending", "Seen by a viewer")
    page.locator(".card a", has_text="Seen by a viewer").click()
    expect(page.locator("#drawer")).to_contain_text("Seen by a viewer")
    assert page.locator("form[method=post]:visible").count() == 0
    page.goto(f"{server.url}/settings")
    expect(page.locator("main")).to_contain_text("board-on-the-wall (viewer)")
    page.get_by_role("button", name="Log out").click()
    page.wait_for_url(f"{server.url}/login")
    page.goto(server.url + BOARD)
    expect(page.locator("main")).to_contain_text("You are not logged in.")
    page.context.close()
