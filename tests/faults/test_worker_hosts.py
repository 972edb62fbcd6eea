"""Workers on several hosts, and workers that are frozen for longer than their lease (M9, TRUST 40)."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from tests.faults.mission_project import delegated, ended, in_hand, marks, mission_project, results, started, statuses
from tests.faults.mission_worker import Nursery, begin, until
from tests.faults.test_worker_fencing import WORDS

from punchlist.runs.workers import live_workers

LEASE: Final = 4.0
PATIENCE: Final = 120.0
HOST: Final = ("unshare", "--uts", "--net", "sh", "-c", 'hostname "$0" && exec "$@"')
"""A host with a name and a network of its own, which reaches the database through a socket in the file system."""


@pytest.fixture
def hosts() -> Iterator[tuple[Nursery, Nursery]]:
    if (
        not shutil.which("unshare")
        or subprocess.run([*HOST, "host", "true"], check=False, capture_output=True).returncode
    ):
        pytest.skip("this system does not let us make a namespace")
    pair = (Nursery(*HOST, "host-a"), Nursery(*HOST, "host-b"))
    yield pair
    for each in pair:
        each.close()


@pytest.mark.spec("M9")
@pytest.mark.parametrize("fault", [signal.SIGSTOP, signal.SIGKILL], ids=["frozen", "killed"])
def test_a_worker_takes_over_from_another_host(
    hosts: tuple[Nursery, Nursery], tmp_path: Path, postgres_url: str, fault: signal.Signals
) -> None:
    """Neither sees whether the process of the other exists."""
    take_over(hosts, tmp_path, postgres_url, fault)


@pytest.mark.spec("M9")
def test_a_worker_that_is_frozen_is_taken_over_and_fenced_when_it_wakes(
    nursery: Nursery, tmp_path: Path, database: str
) -> None:
    take_over((nursery, nursery), tmp_path, database, signal.SIGSTOP)


def take_over(hosts: tuple[Nursery, Nursery], folder: Path, database: str, fault: signal.Signals) -> None:
    task = mission_project(folder / "project", database, WORDS, until_idle=False, lease=LEASE)
    house = task.house()
    begin(house, cycles=False)
    pair = [started(host, task) for host in hosts]
    (run,) = delegated(house, "Slowly mark it")
    until(lambda: any(in_hand(house, life) for life in pair) and house.runs.get(run.id).turn_id, lambda: pair[0].said)
    first, second = sorted(pair, key=lambda life: not in_hand(house, life))
    first.kill(fault)
    until(lambda: in_hand(house, second), lambda: f"the other takes over\n{second.said}", PATIENCE)
    if fault == signal.SIGSTOP:
        first.kill(signal.SIGCONT)
    until(partial(ended, house, [run]), lambda: first.said, PATIENCE)
    assert statuses(house, [run]) == {"done": 1}, first.said
    assert results(house) == ["it is marked at last."], first.said
    assert max(Counter(marks(task)).values()) == 1
    if hosts[0] is not hosts[1]:
        with house.store.read() as tx:
            known = live_workers(tx, house.store.clock())
        assert {worker.id.partition(":")[0] for worker in known} >= {"host-b" if first is pair[0] else "host-a"}
    if fault == signal.SIGSTOP:
        # It is of use again.
        more = delegated(house, *(f"Mark {number}" for number in range(6)))
        until(partial(ended, house, more), lambda: first.said, PATIENCE)
        assert (first.code, second.code) == (None, None), first.said
    house.store.close()
