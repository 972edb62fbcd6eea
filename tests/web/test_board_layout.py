"""The board has all columns in view, at any width of a screen and beside an open todo."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect
from tests.contract.missions import BUILD, SLUG
from tests.web.conftest import PERSON, LogIn, Serve

from punchlist.app import Services
from punchlist.missions.model import Mission, MissionScope, NewMissionTodo

BOARD = f"/missions/{SLUG}/board"
WIDTHS = (1024, 1100, 1200, 1240, 1280, 1366, 1399, 1400, 1920, 3840)
ONE_DATABASE = pytest.mark.parametrize("database", ["sqlite"], indirect=True)

hidden_width = "(board) => board.scrollWidth - board.clientWidth"


def hidden_pixels(page: Page, width: int) -> int:
    """How much of the board is out of view."""
    page.set_viewport_size({"width": width, "height": 900})
    found: int = page.locator("[data-board]").evaluate(hidden_width)
    return found


@pytest.mark.spec("M15")
@ONE_DATABASE
def test_no_column_is_out_of_view_at_any_width_and_a_narrow_one_takes_a_drop(
    serve: Serve, person: LogIn, services: Services, mission: Mission
) -> None:
    title = "Profile the internationalisation pipeline"
    made = services.mission_todos.create(MissionScope("s", PERSON), SLUG, NewMissionTodo(BUILD, title)).todo
    server = serve("--no-worker")
    page = person(server)
    page.goto(f"{server.url}{BOARD}")
    assert [width for width in WIDTHS if hidden_pixels(page, width)] == []
    page.goto(f"{server.url}{BOARD}?todo={made.id}")
    page.wait_for_selector("body.ready")
    # Below 1240 px the todo lies over the board.
    assert [width for width in WIDTHS if hidden_pixels(page, width)] == []

    page.set_viewport_size({"width": 1280, "height": 900})
    page.locator(f"#card-{made.id}").drag_to(page.locator("#column-cancelled"))
    page.get_by_label("Reason", exact=True).last.fill("It serves no metric.")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(page.locator("#column-cancelled [data-count]")).to_have_text("1")
