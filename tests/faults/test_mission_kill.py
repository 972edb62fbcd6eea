"""`kill -9` of workers at any moment of a mission, again and again: it goes on, and nothing is done twice (M9)."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.mission_project import calls, marks, mission_project, progress, standing
from tests.faults.mission_worker import Life, Nursery, Task, until
from tests.faults.processes import spin

from punchlist.audit.check import check
from punchlist.storage.opening import open_store


@pytest.fixture(scope="module")
def _nursery() -> Iterator[Nursery]:
    opened = Nursery()
    yield opened
    opened.close()


@pytest.fixture
def nursery(_nursery: Nursery) -> Iterator[Nursery]:
    yield _nursery
    _nursery.clear()


def sqlite(folder: Path) -> str:
    return f"sqlite:///{folder}/store/punchlist.db"


@pytest.fixture(scope="module")
def undisturbed(_nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """How the mission stands when nobody is killed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    task = mission_project(folder / "project", sqlite(folder), begins=True)
    life = _nursery.start(task)
    assert life.wait() == 0, life.said
    assert marks(task) == ["profile", "share"]
    return standing(task.house())
