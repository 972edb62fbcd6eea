"""Answering a question: what fits on small terminals, and what a person types who did not mean to answer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from tests.tui.stage import SESSION, Stage, opened, rehearsal
from textual.content import Content

from punchlist.app import Services
from punchlist.config import load
from punchlist.conversations.message_queue import MessageQueue
from punchlist.surfaces.tui.approval_lines import approval_layout
from punchlist.surfaces.tui.approval_panel import ApprovalPanel
from punchlist.surfaces.tui.backend import Backend
from punchlist.surfaces.tui.composer import Composer
from punchlist.surfaces.tui.screen_state import HomeRow, HomeState, PendingApproval
from punchlist.surfaces.tui.status_line import StatusLine

pytestmark = pytest.mark.anyio
SCREENS = Path(__file__).parent / "screens"
COMMAND = (
    "python3 tools/build.py --release --with-every-page --output public/pages/of/this/release && cp -r public away"
)
CALL = {"calls": [{"tool": "run_command", "arguments": {"command": COMMAND}}]}
SENTENCES = ("first queued", "please add a test", "no, do that later", "yes and edit it")


@pytest.fixture
def services(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Services]:
    monkeypatch.setattr(ApprovalPanel, "arm_seconds", 0.0)
    monkeypatch.chdir(project)
    built = Services(load(cwd=project))
    yield built
    built.close()


APPROVAL = PendingApproval(
    "c1",
    SESSION,
    "run_command",
    {"command": COMMAND},
    f"$ {COMMAND}",
    "running commands needs approval in mode default",
    "/work/project",
    "2026-01-01T00:00:00Z",
    {"tool": "every call of run_command", "prefix": "commands that begin with `python3 tools/build.py`"},
)


def compare(name: str, stage: Stage) -> None:
    shown, file = f"{stage.text}\n", SCREENS / f"{name}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        file.write_text(shown)
    assert shown == file.read_text(), f"{file} differs; UPDATE_SNAPSHOTS=1 writes it anew"


@pytest.mark.spec("S4", "W9")
async def test_a_question_on_small_terminals_as_pictures(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    read = Backend.conversation
    monkeypatch.setattr(Backend, "now", lambda _: datetime(2026, 1, 1, tzinfo=UTC))
    monkeypatch.setattr(
        Backend, "conversation", lambda self, session: replace(read(self, session), approvals=[APPROVAL])
    )
    row = HomeRow("c1", "needs_you", "needs_you", COMMAND, (), "", SESSION, "approval", "c1")
    monkeypatch.setattr(Backend, "home", lambda _: HomeState([row], {"c1": APPROVAL}, 1))
    async with opened(services, "rehearsal:x.yaml") as stage:
        await stage.asked_for("run_command")
        for width, height in ((24, 10), (40, 12), (40, 20)):
            await resized(stage, width, height)
            compare(f"approval-{width}x{height}", stage)
        await resized(stage, 80, 24)
        await stage.pilot.press("ctrl+b")
        await stage.until(lambda: "Needs you  1" in stage.text)
        await stage.pilot.press("space")
        await stage.until(lambda: "y once" in stage.text)
        await resized(stage, 80, 24)
        compare("approval-peek-80x24", stage)


async def resized(stage: Stage, width: int, height: int) -> None:
    await stage.pilot.resize_terminal(width, height)
    for _ in range(4):
        await stage.pilot.pause()


@pytest.mark.spec("S4", "W9")
@pytest.mark.parametrize(("width", "height"), [(24, 10), (40, 12), (40, 20), (80, 24), (200, 60)])
async def test_a_question_leaves_room_for_prompt_and_status(
    services: Services, project: Path, width: int, height: int
) -> None:
    async with opened(services, rehearsal(project, CALL, {"text": "Done."}), goal="Build.") as stage:
        await stage.asked_for("run_command")
        await resized(stage, width, height)
        parts = [stage.panel.region, stage.conversation.query_one(Composer).region]
        parts.append(stage.conversation.query_one(StatusLine).region)
        for before, after in pairwise(parts):
            assert before.bottom <= after.y
        assert parts[0].y >= 0
        assert parts[-1].bottom <= height
        assert all(part.height >= 1 for part in parts)
        text = stage.text
        assert "1 waiting" in text
        assert all(f"{key} " in text for key in "yedn") or "y e d n" in text
        if height <= 20:
            assert "python3" in text
            # What "always" would allow cannot be chosen before it could be read.
            await stage.pilot.press("p")
            await stage.until(lambda: not stage.panel.holds_key)
            assert stage.panel.approval is not None
            for _ in range(60):
                await stage.pilot.press("pagedown")
        assert stage.panel.unavailable_reason("always_prefix") is None
        await stage.pilot.press("p")
        await stage.until(lambda: "p again or Enter" in stage.text)
        await stage.pilot.press("escape")
        await stage.until(lambda: "p again or Enter" not in stage.text)
        assert stage.panel.approval is not None


@pytest.mark.spec("S4")
async def test_the_peek_of_home_shows_what_always_means_before_it_can_be_chosen(
    services: Services, project: Path
) -> None:
    async with opened(services, rehearsal(project, CALL, {"text": "Done."}), goal="Build.", size=(80, 24)) as stage:
        await stage.until(lambda: stage.panel.approval is not None)
        await stage.pilot.press("ctrl+b")
        await stage.until(lambda: "Needs you  1" in stage.text)
        await stage.pilot.press("space")
        await stage.until(lambda: "y once" in stage.text)
        panel = stage.app.screen.query_one("#peek-approval", ApprovalPanel)
        await stage.pilot.pause()
        assert panel.region.bottom <= 23
        await stage.until(lambda: "p always" in stage.text or panel.unavailable_reason("always_prefix") is not None)
        for _ in range(10):
            await stage.pilot.press("pagedown")
        assert panel.unavailable_reason("always_prefix") is None
        assert "p always" in stage.text


@pytest.mark.spec("S4", "S10")
@pytest.mark.parametrize("sentence", SENTENCES)
async def test_a_person_who_types_a_sentence_answers_no_question(
    services: Services, project: Path, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITOR", "false")
    # The keys of a person come faster than those of a test on a busy machine.
    monkeypatch.setattr(ApprovalPanel, "text_seconds", 5.0)
    async with opened(services, rehearsal(project, CALL, {"text": "Done."}), goal="Build.") as stage:
        await stage.asked_for("run_command")
        await stage.type(sentence)
        assert stage.conversation.composer.text == sentence
        await stage.pilot.press("enter")
        queue = MessageQueue(services.store)
        await stage.until(lambda: [one.content for one in queue.pending(SESSION)] == [sentence])
        assert stage.panel.approval is not None
        assert len(services.approvals.waiting(SESSION)) == 1


@pytest.mark.spec("S4")
async def test_always_needs_a_second_press(services: Services, project: Path) -> None:
    call = {"calls": [{"tool": "write_file", "arguments": {"path": "a.txt", "content": "one\n"}}]}
    async with opened(services, rehearsal(project, call, {"text": "Done."}), goal="Write.") as stage:
        await stage.asked_for("write_file")
        await stage.pilot.press("a")
        await stage.until(lambda: "a again or Enter" in stage.text)
        assert len(services.approvals.waiting(SESSION)) == 1
        await stage.pilot.press("enter")
        await stage.until((project / "a.txt").exists)


@pytest.mark.spec("S4")
async def test_always_is_said_in_full_also_while_it_is_confirmed(services: Services, project: Path) -> None:
    call = {"calls": [{"tool": "run_command", "arguments": {"command": "for i in 1 2; do sleep 0; echo $i; done"}}]}
    async with opened(services, rehearsal(project, call, {"text": "Done."}), goal="Wait.", size=(90, 40)) as stage:
        await stage.asked_for("run_command")
        covered = stage.panel.approval.always["prefix"]  # type: ignore[union-attr]
        assert covered.startswith("every command that begins with `sleep`")
        # The line begins with `for`, and the rule allows lines of its kind.
        assert covered.endswith("in lines with nothing else but loops and cd, echo, false, printf, pwd, true")
        await stage.pilot.press("p")
        await stage.until(lambda: "p again or Enter" in stage.text)
        words = " ".join(stage.text.replace("│", " ").split())
        assert covered in words
        assert "Esc: not now" in words


def test_a_layout_never_takes_more_rows_than_there_are() -> None:
    for room in range(2, 60):
        for width in (16, 20, 36, 76, 200):
            layout = approval_layout(APPROVAL, width, room)
            rows = len(layout.head) + layout.rows + len(layout.keys)
            rows += 2 * layout.is_spaced + 2 * layout.is_framed
            assert rows <= room, (room, width, layout)
            assert layout.rows >= 1
            assert all(Content(each.plain.rstrip()).cell_length <= width for each in [*layout.head, *layout.keys])
            whole = "".join(each.plain for each in [*layout.body, *layout.keys])
            assert "every call of run_command" in whole or width < 30
