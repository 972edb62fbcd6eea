"""Workers that are taken for dead and are not, databases that go and come back, and two workers at once (M9)."""

from __future__ import annotations

import random
import signal
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest
from tests.faults.mission_project import delegated, ended, in_hand, marks, mission_project, results, started, statuses
from tests.faults.mission_worker import Nursery, begin, until
from tests.faults.processes import spin

from punchlist.runs.model import Run

WORDS: Final = """
scenes:
  - agent: coder
    when: "Mark (?P<name>[0-9a-z]+)"
    replies:
      - {delay: 0.05, calls: [{tool: run_command, arguments: {command: "echo {{ name }} >> marks"}}]}
      - {delay: 0.05, text: "{{ name }} is marked."}
  - agent: coder
    when: "Slowly mark (?P<name>[0-9a-z]+)"
    replies:
      - {delay: 2, calls: [{tool: run_command, arguments: {command: "echo {{ name }}-1 >> marks"}}]}
      - calls:
          - tool: run_command
            arguments: {command: "echo {{ name }}-2 >> marks; sleep 3; echo {{ name }}-3 >> marks"}
      - {delay: 1, text: "{{ name }} is marked at last."}
"""


class Server:
    """The database's side: who is connected, and how they are cut off."""

    def __init__(self, url: str) -> None:
        self._url = url

    def _ask(self, sql: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self._url, autocommit=True) as connection:
            return connection.execute(sql.encode()).fetchall()

    def cut_all(self) -> int:
        """Everybody's connection, but the one that does it."""
        return len(
            self._ask(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        )

    def lock_holders(self) -> set[int]:
        held = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND database = "
        return {pid for (pid,) in self._ask(f"{held}(SELECT oid FROM pg_database WHERE datname = current_database())")}

    def cut(self, pid: int) -> None:
        self._ask(f"SELECT pg_terminate_backend({pid})")


@pytest.fixture
def server(postgres_url: str) -> Server:
    return Server(postgres_url)


@pytest.mark.spec("M9")
@pytest.mark.parametrize("moment", ["while the model thinks", "while a command runs"])
@pytest.mark.parametrize("stopped", [True, False], ids=["stopped", "alive"])
def test_a_worker_that_was_taken_for_dead_changes_nothing_any_more(
    nursery: Nursery, tmp_path: Path, postgres_url: str, server: Server, moment: str, stopped: bool
) -> None:
    task = mission_project(tmp_path / "project", postgres_url, WORDS, until_idle=False)
    house = task.house()
    begin(house, cycles=False)
    locks: dict[int, int] = {}
    pair = []
    for _ in range(2):
        pair.append(started(nursery, task))
        locks[pair[-1].pid] = next(iter(server.lock_holders() - {*locks.values()}))
    (run,) = delegated(house, "Slowly mark it")
    until(lambda: any(in_hand(house, life) for life in pair), lambda: pair[0].said)
    first, second = sorted(pair, key=lambda life: not in_hand(house, life))
    until(lambda: house.runs.get(run.id).turn_id, lambda: first.said)
    if moment == "while a command runs":
        until(lambda: "it-2" in marks(task), lambda: first.said)
    if stopped:
        first.kill(signal.SIGSTOP)
    server.cut(locks[first.pid])
    if stopped:
        until(lambda: in_hand(house, second), lambda: f"the other takes over\n{second.said}")
        spin(random.Random(1).uniform(0, 0.3))
        first.kill(signal.SIGCONT)
    until(partial(ended, house, [run]), lambda: first.said)
    assert statuses(house, [run]) == {"done": 1}, first.said
    assert results(house) == ["it is marked at last."], first.said
    assert max(Counter(marks(task)).values()) == 1
    turns = house.conversations.turns(run.conversation_id)
    assert [turn.open for turn in turns] == [False]
    # Both are of use again.
    more = delegated(house, *(f"Mark {number}" for number in range(6)))
    until(partial(ended, house, more), lambda: first.said)
    assert (first.code, second.code) == (None, None), first.said
    assert statuses(house, more) == {"done": 6}
    house.store.close()


@pytest.mark.spec("M9")
@pytest.mark.parametrize(
    ("runs", "cuts"), [(12, 3), pytest.param(200, 60, marks=pytest.mark.soak)], ids=["seconds", "full"]
)
def test_all_runs_finish_though_the_database_goes_again_and_again(
    nursery: Nursery, tmp_path: Path, postgres_url: str, server: Server, runs: int, cuts: int
) -> None:
    dice = random.Random(cuts)
    task = mission_project(tmp_path / "project", postgres_url, WORDS, until_idle=False)
    house = task.house()
    begin(house, cycles=False)
    pair = [started(nursery, task) for _ in range(2)]
    queued = delegated(house, *(f"Mark {number}" for number in range(runs)))
    for cut in range(cuts):
        wanted = (cut + 1) * runs // (cuts + 1)
        until(lambda wanted=wanted: len(results(house)) >= wanted, lambda: f"runs go on\n{pair[0].said}")  # type: ignore[misc]
        spin(dice.uniform(0, 0.1))
        server.cut_all()
    until(partial(ended, house, queued), lambda: f"{statuses(house, queued)}\n{pair[0].said}", 120)
    assert statuses(house, queued) == {"done": runs}, pair[0].said
    assert sorted(results(house)) == sorted(f"{number} is marked." for number in range(runs))
    assert max(Counter(marks(task)).values()) == 1
    assert [life.code for life in pair] == [None, None], pair[0].said
    house.store.close()


@pytest.mark.spec("M9")
def test_two_workers_share_what_there_is_to_do(nursery: Nursery, tmp_path: Path, database: str) -> None:
    task = mission_project(tmp_path / "project", database, WORDS, slots=4, until_idle=False)
    house = task.house()
    begin(house, cycles=False)
    # At the same moment, on a database in which the engine has nothing yet.
    pair = [nursery.start(task) for _ in range(2)]
    until(lambda: all(f"{life.pid}: worker" in life.said for life in pair), lambda: pair[0].said)
    queued: list[Run] = []
    # Whoever looks first may take all that is there: so again and again, until both have had some.
    while not all(f"{life.pid}: delegate" in task.log.read_text() for life in pair):
        assert len(queued) < 240, pair[0].said
        queued += delegated(house, *(f"Mark {len(queued) + number}" for number in range(12)))
        until(partial(ended, house, queued), lambda: pair[0].said)
    assert statuses(house, queued) == {"done": len(queued)}
    assert sorted(marks(task)) == sorted(str(number) for number in range(len(queued)))
    assert [life.end(signal.SIGTERM) for life in pair] == [0, 0], pair[0].said
    house.store.close()
