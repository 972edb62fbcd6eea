"""`punchlist demo serve`: what a person who sees Punchlist for the first time is told to try, they can do."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.web.conftest import LogIn
from tests.web.site import Server


@pytest.mark.spec("M6", "M15", "I1", "S5")
def test_a_person_answers_approves_edits_and_accepts_in_the_demo(
    tmp_path: Path, environment: dict[str, str], person: LogIn
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    server = Server(tmp_path, {**environment, "TMPDIR": str(scratch)}, command=("demo", "serve"))
    server.start()
    try:
        page = person(server)
        overdue = page.locator(".panel", has_text="Quarantine")
        overdue.get_by_role("button", name="Extend").click()
        expect(overdue).to_have_count(0)
        # The agents plan, begin to work, and ask before they run a command or write a file.
        for asked in ("sh scripts/profile.sh", "docs/first-day.md"):
            request = page.locator("[data-request=approval]", has_text=asked)
            expect(request).to_be_visible()
            request.get_by_role("button", name="Approve", exact=True).click()
        page.get_by_role("link", name="Developer Experience").first.click()
        page.get_by_role("link", name="Board", exact=True).first.click()
        for title in ("Profile the build", "Write a guide"):
            expect(page.locator("#column-completed .card", has_text=title)).to_be_visible()
        (folder,) = scratch.glob("punchlist-demo-*")
        assert "make database" in (folder / "docs/first-day.md").read_text()

        page.get_by_role("link", name="Evaluate esbuild-loader").click()
        drawer = page.locator("#drawer")
        drawer.locator("summary", has_text="Edit").click()
        drawer.get_by_label("Done when").fill("A build takes less than 50 s.")
        drawer.locator("form[action$='/edit']").get_by_label("Reason").fill("So that it can be judged")
        drawer.get_by_role("button", name="Save").click()
        drawer.locator("summary", has_text="Start").click()
        drawer.locator("form[action$='/start']").get_by_label("Reason").fill("Now it can")
        drawer.locator("form[action$='/start'] button").click()
        expect(drawer).to_contain_text("Judged by: A build takes less than 50 s.")

        page.get_by_role("link", name="Attention").first.click()
        review = page.locator(".panel", has_text="calendar").filter(has_text="needs a decision")
        expect(review).to_contain_text("please accept this TODO")
        review.get_by_label("What was done").fill("The cause is named.")
        review.get_by_role("button", name="Accept the work").click()
        expect(page.get_by_text("Nothing waits for you")).to_be_visible()
        expect(page.locator("#done-title + *, .list")).to_contain_text(["calendar"])
    finally:
        server.stop()
    assert list(scratch.iterdir()) == []


@pytest.mark.spec("M8", "M16", "I1", "S5")
def test_a_denied_change_ends_in_a_decision_that_can_be_understood(
    tmp_path: Path, environment: dict[str, str], person: LogIn
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    server = Server(tmp_path, {**environment, "TMPDIR": str(scratch)}, command=("demo", "serve"))
    server.start()
    try:
        page = person(server)
        request = page.locator("[data-request=approval]", has_text="docs/first-day.md")
        expect(request).to_be_visible()
        request.get_by_label("Reason for a denial").fill("Name the mentor")
        request.get_by_role("button", name="Deny").click()
        decision = page.locator(".panel", has_text="Write a guide").filter(has_text="needs a decision")
        expect(decision).to_contain_text("After 1 round of work, the Lead has not completed it.")
        expect(decision).to_contain_text("Its check failed: ")
        expect(decision).to_contain_text("If you denied the change, say what the guide should say instead")
        expect(decision.get_by_label("Accept it without its check because")).to_be_visible()
        decision.get_by_label("Feedback").fill("Say that a mentor helps.")
        decision.get_by_role("button", name="Send back with feedback").click()
        again = page.locator("[data-request=approval]", has_text="tell your mentor")
        expect(again).to_be_visible()
        again.get_by_role("button", name="Approve", exact=True).click()
        expect(page.locator("#done-title + *, .list")).to_contain_text(["Write a guide"])
    finally:
        server.stop()
