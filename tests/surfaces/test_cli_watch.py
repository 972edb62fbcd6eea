"""`--watch` and `--follow`: what others change is seen while it happens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import wcwidth
from tests.conftest import Cli
from tests.faults.processes import Program, eventually
from tests.faults.screen import ESCAPES, Screen, acting
from tests.faults.script import Script

from punchlist.checklist import repository as checklist_repository
from punchlist.checklist.lifecycle import ChecklistAction, ChecklistStatus
from punchlist.checklist.model import Checklist, ChecklistItem
from punchlist.kernel.events import Change
from punchlist.storage import event_log

EVIL = "".join(ESCAPES.values())


@pytest.fixture
def agent(project: Path) -> Iterator[Script]:
    """Somebody else who works on the project's list."""
    script = Script(str(project / ".punchlist" / "punchlist.db"), "default")
    script.house.checklists.add(script.scope, "Look around", reason="test")
    yield script
    script.close()


@pytest.mark.spec("W9")
def test_a_piped_watch_prints_the_list_whenever_somebody_changes_it(
    punchlist: Cli, project: Path, environment: dict[str, str], agent: Script
) -> None:
    agent.house.checklists.clear(agent.scope, reason="test")
    with Program(project, environment, "todos", "--watch") as watch:
        watch.wait_for("No todos.\n")
        punchlist("todos", "add", "Write the tests")
        watch.wait_for("Todo list updated:\n  2 ○ Write the tests\n")
        agent.house.checklists.advance(agent.scope, "1", ChecklistAction.START, reason="test")
        watch.wait_for("Todo list updated:\n  2 ▶ Write the tests\n")
        answer = watch.interrupt()
    assert answer.code == 130
    assert answer.err == b""
    assert answer.out.count(b"Todo list updated:") == 2


def test_a_watch_as_json_prints_one_object_a_line(project: Path, environment: dict[str, str], agent: Script) -> None:
    with Program(project, environment, "todos", "--watch", "--json") as watch:
        watch.wait_for("Look around")
        agent.house.checklists.advance(agent.scope, "1", ChecklistAction.START, reason="test")
        lines = watch.wait_for('"in_progress"').splitlines()
    assert [json.loads(line)["items"][0]["status"] for line in lines] == ["pending", "in_progress"]


@pytest.mark.spec("W9")
def test_a_watch_in_a_terminal_draws_over_the_last_box_and_stays_inside_it(
    project: Path, environment: dict[str, str], agent: Script
) -> None:
    long = "Prüfe 漢字 and 👩‍👩‍👧‍👦 " + "averyveryverylongword" * 6
    with Program(project, environment, "todos", "--watch", columns=40) as watch:
        watch.wait_for("Look around", "└")
        agent.house.checklists.add(agent.scope, long, reason="test")
        watch.wait_for("Prüfe")
        agent.house.checklists.advance(agent.scope, "1", ChecklistAction.COMPLETE, reason="test")
        shown = watch.wait_for("Progress: 1/2 (50%)", "✓ Look around")
        eventually(lambda: watch.output.count("└".encode()) == 3, "three boxes")
        screen = Screen().show(watch.output.decode())
        assert watch.interrupt().code == 130
    # Three boxes were drawn, one is to be seen.
    assert shown.count("┌") == 3
    assert [line[0] for line in screen] == ["┌", *"│" * (len(screen) - 2), "└"]
    assert max(wcwidth.width(line) for line in shown.replace("\x1b[J", "\n").splitlines() if "│" in line) <= 40
    assert max(wcwidth.width(line) for line in screen) <= 40


def test_a_list_longer_than_the_terminal_is_drawn_over_too(
    project: Path, environment: dict[str, str], agent: Script
) -> None:
    for number in range(15):
        agent.house.checklists.add(agent.scope, f"Item {number}", reason="test")
    with Program(project, environment, "todos", "--watch", columns=60, lines=10) as watch:
        watch.wait_for("Item 6")
        agent.house.checklists.advance(agent.scope, "1", ChecklistAction.COMPLETE, reason="test")
        shown = watch.wait_for("✓ Look around").replace("\r\n", "\n")
        first, _, _ = shown.partition("\x1b[J")
    drawn = first.count("\n")
    assert drawn < 10
    assert first.endswith(f"\x1b[{drawn}F")


def test_a_terminal_that_knows_no_escapes_gets_none(project: Path, environment: dict[str, str], agent: Script) -> None:
    with Program(project, environment, "todos", "--watch", columns=60, terminal="dumb") as watch:
        watch.wait_for("○ Look around")
        agent.house.checklists.advance(agent.scope, "1", ChecklistAction.COMPLETE, reason="test")
        assert "\x1b" not in watch.wait_for("✓ Look around")


def test_a_watch_follows_the_size_of_its_terminal(project: Path, environment: dict[str, str], agent: Script) -> None:
    agent.house.checklists.add(agent.scope, "a rather long item " * 8, reason="test")
    with Program(project, environment, "todos", "--watch", columns=100) as watch:
        watch.wait_for("└")
        watch.resize(40)
        eventually(lambda: watch.output.count("└".encode()) == 2, "a second box")
        second = watch.output.decode().rpartition("┌")[2]
    assert max(wcwidth.width(line) for line in second.splitlines()) <= 40


@pytest.mark.spec("W10")
@pytest.mark.parametrize("arguments", [("todos", "--watch"), ("log", "--follow")], ids=" ".join)
def test_hostile_text_that_appears_while_watching_is_spelled_out(
    project: Path, environment: dict[str, str], agent: Script, arguments: tuple[str, str]
) -> None:
    with Program(project, environment, *arguments) as watch:
        watch.wait_for("1" if arguments[0] == "log" else "Look around")
        with agent.house.store.write() as tx:
            items = (ChecklistItem("x", EVIL, EVIL, ChecklistStatus.PENDING),)
            checklist_repository.save_checklist(tx, "default", Checklist(items, 2, 1, "2026"))
            event_log.append(tx, Change(EVIL, "default", EVIL, EVIL, EVIL, EVIL, EVIL, "", {"title": EVIL}))
        watch.wait_for("\\x1b")
        answer = watch.interrupt()
    assert acting(answer.out) == []
    assert "\\x1b" in answer.out.decode()


@pytest.mark.spec("X5")
def test_following_the_log_shows_what_happens_from_now_on(
    project: Path, environment: dict[str, str], agent: Script
) -> None:
    with Program(project, environment, "log", "--follow", "--json") as log:
        log.wait_for('"reason": "test"')
        agent.house.checklists.add(agent.scope, "More", reason="because")
        lines = log.wait_for('"reason": "because"').splitlines()
        assert log.interrupt().code == 130
    events = [json.loads(line) for line in lines]
    assert [event["seq"] for event in events] == sorted({event["seq"] for event in events})
    assert events[-1]["data"]["items"][-1]["content"] == "More"
