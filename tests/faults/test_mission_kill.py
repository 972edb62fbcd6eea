"""`kill -9` of workers at any moment of a mission, again and again: it goes on, and nothing is done twice (M9)."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from tests.faults.mission_project import DELAYED, in_hand, marks, mission_project, progress, standing
from tests.faults.mission_worker import PERSON, SLUG, Life, Nursery, Task, begin, until
from tests.faults.processes import spin

from punchlist.app import Services
from punchlist.conversations.message_queue import MessageQueue
from punchlist.conversations.model import Scope
from punchlist.engine.database import engine_database
from punchlist.runs.model import Run
from punchlist.storage.open import open_store
from punchlist.storage.store import Store

KILLS: Final = 8
TAKEN_OVER: Final = 10.0
"""Seconds until somebody else goes on with what a dead worker left."""


def sqlite(folder: Path) -> str:
    return f"sqlite:///{folder}/store/punchlist.db"


def undisturbed(nursery: Nursery, task: Task) -> dict[str, Any]:
    """How it all stands when nobody is killed."""
    life = nursery.start(task)
    assert life.wait() == 0, life.said
    assert sorted(marks(task)) == ["measure", "profile", "share"]
    return standing(task.house())


def kill_at_random(nursery: Nursery, task: Task, dice: random.Random) -> int:
    """Let workers do the mission and kill each at some moment; the last one is left alone. How many were killed."""
    store = open_store(task.database)
    try:
        for number in range(KILLS):
            life = nursery.start(task)
            wanted = progress(store) + dice.randint(0, 20)
            until(partial(_there_or_dead, store, wanted, life), lambda life=life: life.said)  # type: ignore[misc]
            # To some point inside of what follows.
            spin(dice.uniform(0, 0.1))
            if life.end() == 0:
                return number
        last = nursery.start(task)
        assert last.wait() == 0, last.said
        return KILLS
    finally:
        store.close()


def _there_or_dead(store: Store, wanted: int, life: Life) -> bool:
    return progress(store) >= wanted or life.code is not None


@pytest.mark.spec("M9", "M8", "M12")
@pytest.mark.parametrize(
    "seeds", [range(1), pytest.param(range(1, 27), marks=pytest.mark.soak)], ids=["seconds", "full"]
)
def test_a_mission_whose_workers_are_killed_at_any_moment_comes_to_the_same_end(
    nursery: Nursery, tmp_path: Path, seeds: range
) -> None:
    def task(name: str) -> Task:
        return mission_project(tmp_path / name / "project", sqlite(tmp_path / name), begins=True)

    wanted = undisturbed(nursery, task("undisturbed"))
    killed = 0
    for seed in seeds:
        # Shown when it fails.
        print(f"seed {seed}, {killed} killed so far")
        disturbed = task(str(seed))
        killed += kill_at_random(nursery, disturbed, random.Random(seed))
        house = disturbed.house()
        assert standing(house) == wanted
        assert max(Counter(marks(disturbed)).values()) == 1
        succeeded = _commands(house.store, "success")
        assert [name for name in succeeded if name not in marks(disturbed)] == []
        house.store.close()
    assert killed >= len(seeds) * KILLS // 2


def _commands(store: Store, status: str) -> list[str]:
    """The scripts of the calls that have come to this."""
    with store.read() as tx:
        found = tx.raw("SELECT arguments, status FROM tool_calls WHERE tool = 'run_command'")
    return [str(arguments).partition("sh ")[2].partition(".sh")[0] for arguments, came in found if came == status]


# --- two workers on PostgreSQL ------------------------------------------------------------------------------


@pytest.mark.spec("M9")
@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(n, marks=pytest.mark.soak) for n in range(2, 52))])
def test_what_a_killed_worker_had_in_hand_goes_on_with_another_one_within_seconds(
    nursery: Nursery, tmp_path: Path, postgres_url: str, seed: int
) -> None:
    dice = random.Random(seed)
    task = mission_project(tmp_path / "project", postgres_url, DELAYED, until_idle=False)
    house = task.house()
    begin(house)
    pair = [nursery.start(task) for _ in range(2)]
    until(lambda: any(in_hand(house, life) for life in pair), lambda: f"a run is begun\n{pair[0].said}")
    spin(dice.uniform(0, 0.5))
    # Whoever has something to lose; one of them may have it all.
    victim, other = sorted(pair, key=lambda life: not in_hand(house, life))
    victim.end()
    left = in_hand(house, victim)
    taken = until(lambda: not in_hand(house, victim), lambda: f"another goes on\n{other.said}", TAKEN_OVER)
    print(f"seed {seed}: {len(left)} runs were taken over after {taken:.2f} s")
    until(partial(_done, house), lambda: other.said)
    other.end()
    calm = mission_project(tmp_path / "calm" / "project", sqlite(tmp_path / "calm"), begins=True)
    assert standing(house) == undisturbed(nursery, calm)
    assert max(Counter(marks(task)).values()) == 1
    house.store.close()


def _done(house: Services) -> bool:
    mission = house.missions.get(SLUG)
    runs = house.runs.list(mission_id=mission.id, ended=True)
    return {run.kind for run in runs} >= {"cycle", "plan", "execute", "delegate", "collect"} and not _open(runs)


def _open(runs: list[Run]) -> list[Run]:
    return [run for run in runs if run.ended_at is None]


# --- at every boundary of a step ----------------------------------------------------------------------------

MESSAGES: Final = 16
"""Each is answered in three steps of the engine, with a worker's help; another step finds that none is left."""
ANSWERING: Final = """
scenes:
  - agent: mission-lead
    when: "Do step (?P<step>[0-9]+)"
    replies:
      - text: "I begin with step {{ step }}."
        calls: [{tool: delegate, arguments: {type: coder, mission: "Mark {{ step }}"}}]
      - text: "Step {{ step }} is done."
  - agent: coder
    when: "Mark (?P<step>[0-9]+)"
    replies:
      - calls: [{tool: run_command, arguments: {command: "echo {{ step }} >> marks"}}]
      - text: Marked.
"""


@pytest.mark.spec("M9", "M10")
@pytest.mark.parametrize("every", [10, pytest.param(1, marks=pytest.mark.soak)], ids=["every tenth", "every"])
def test_a_crash_at_the_boundaries_of_a_run_of_fifty_steps_repeats_none_of_them(
    nursery: Nursery, tmp_path: Path, every: int
) -> None:
    task = mission_project(tmp_path / "project", sqlite(tmp_path), ANSWERING)
    house = task.house()
    begin(house, cycles=False)
    chat = house.missions.get(SLUG).conversation_id
    for number in range(MESSAGES):
        MessageQueue(house.store).add(Scope(chat, PERSON), f"Do step {number:02}")
    engine = engine_database(house.store).engine
    assert engine is not None

    def steps() -> int:
        with engine.connect() as connection:
            return int(connection.exec_driver_sql("SELECT count(*) FROM operation_outputs").scalar_one())

    for boundary in range(0, 3 * MESSAGES + 1, every):
        life = nursery.start(task)
        if boundary == 0:
            until(lambda life=life: "is ready" in life.said, "the first worker is ready")  # type: ignore[misc]
        until(lambda wanted=boundary: steps() >= wanted, lambda life=life: life.said)  # type: ignore[misc]
        assert life.end() == -9
    last = nursery.start(task)
    assert last.wait() == 0, last.said
    assert steps() == 3 * MESSAGES + 1
    (run,) = house.runs.list(ended=True)
    assert (run.status, run.result) == ("done", f"{MESSAGES} answered.")
    made = marks(task)
    assert sorted(made) == sorted(set(made))
    replies = [one.content for one in house.conversations.messages(chat) if one.role == "assistant"]
    for number in range(MESSAGES):
        assert [f"Step {number:02} is done." in reply for reply in replies].count(True) == 1
        assert [f"I begin with step {number:02}." in reply for reply in replies].count(True) == 1
    engine.dispose()
    house.store.close()
