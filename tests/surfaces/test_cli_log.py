"""`punchlist log --follow` over a database that is put back to a copy, or made anew."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.faults.processes import Program
from tests.faults.script import Script

from punchlist.storage.maintenance import backup, restore
from punchlist.storage.open import connect

ROLLED_BACK = 4
CHANGED = "The database was replaced"


@pytest.fixture
def agent(project: Path) -> Iterator[Script]:
    """Somebody else, who added an item before the copy was made, and some after it."""
    script = Script(str(project / ".punchlist" / "punchlist.db"), "default")
    _add(script, "early")
    backup(script.house.store, project / "copy.db")
    for _ in range(ROLLED_BACK):
        _add(script, "rolled back")
    yield script
    script.close()


def _add(script: Script, reason: str) -> None:
    script.house.checklists.add(script.scope, "Look around", reason=reason)


def _put_back(project: Path) -> None:
    restore(connect(str(project / ".punchlist" / "punchlist.db")), project / "copy.db")


def _reasons(lines: str) -> list[str]:
    return [event["reason"] for event in map(json.loads, lines.splitlines()) if event["stream"] == "checklist:default"]


@pytest.mark.spec("X5")
@pytest.mark.parametrize("whose", [(), ("--all",)], ids=["of a session", "of all"])
def test_following_goes_on_with_what_happens_after_a_restore(
    project: Path, environment: dict[str, str], agent: Script, whose: tuple[str, ...]
) -> None:
    with Program(project, environment, "log", "--follow", "--json", *whose) as log:
        log.wait_for("rolled back")
        _put_back(project)
        _add(agent, "afterwards")
        log.wait_for("afterwards")
        answer = log.interrupt()
    assert _reasons(answer.out.decode()) == ["early", *["rolled back"] * ROLLED_BACK, "afterwards"]
    assert answer.err.decode().count(CHANGED) == 1
    assert len(answer.err.splitlines()) == 1


@pytest.mark.spec("X5")
def test_following_misses_nothing_even_if_more_came_after_a_restore_than_it_took_away(
    project: Path, environment: dict[str, str], agent: Script
) -> None:
    with Program(project, environment, "log", "--follow", "--json") as log:
        log.wait_for("rolled back")
        # Nothing is seen of it before the numbers have gone beyond those that were shown.
        log.process.send_signal(signal.SIGSTOP)
        _put_back(project)
        for _ in range(ROLLED_BACK * 2):
            _add(agent, "afterwards")
        _add(agent, "at last")
        log.process.send_signal(signal.SIGCONT)
        log.wait_for("at last")
        answer = log.interrupt()
    told = ["early", *["rolled back"] * ROLLED_BACK, *["afterwards"] * ROLLED_BACK * 2, "at last"]
    assert _reasons(answer.out.decode()) == told


@pytest.mark.spec("X5")
def test_following_misses_nothing_even_if_the_clock_was_set_back(
    project: Path, environment: dict[str, str], agent: Script
) -> None:
    with Program(project, environment, "log", "--follow", "--json") as log:
        log.wait_for("rolled back")
        log.process.send_signal(signal.SIGSTOP)
        for back in ("afterwards", "after that"):
            _put_back(project)
            agent.house.store.clock = lambda: datetime.now(UTC) - timedelta(days=1)
            _add(agent, back)
            log.process.send_signal(signal.SIGCONT)
            log.wait_for(back)
            log.process.send_signal(signal.SIGSTOP)
        log.process.send_signal(signal.SIGCONT)
        answer = log.interrupt()
    assert _reasons(answer.out.decode()) == ["early", *["rolled back"] * ROLLED_BACK, "afterwards", "after that"]


@pytest.mark.spec("X5")
def test_following_goes_on_with_a_database_that_was_made_anew(
    project: Path, environment: dict[str, str], agent: Script
) -> None:
    with Program(project, environment, "log", "--follow", "--json") as log:
        log.wait_for("rolled back")
        shutil.rmtree(project / ".punchlist")
        _add(agent, "afterwards")
        log.wait_for("afterwards")
        answer = log.interrupt()
    assert _reasons(answer.out.decode()) == ["early", *["rolled back"] * ROLLED_BACK, "afterwards"]
    assert answer.err.decode().count(CHANGED) == 1


def test_people_are_told_in_one_line_which_is_not_part_of_the_trail(
    project: Path, environment: dict[str, str], agent: Script
) -> None:
    with Program(project, environment, "log", "--follow") as log:
        log.wait_for("rolled back")
        _put_back(project)
        _add(agent, "afterwards")
        log.wait_for("afterwards")
        answer = log.interrupt()
    assert CHANGED.encode() not in answer.out
    assert answer.err.decode().startswith(f"punchlist: {CHANGED}")
