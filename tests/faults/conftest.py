"""What only the tests share that do harm."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.faults.mission_worker import Nursery


@pytest.fixture(scope="module")
def every_worker() -> Iterator[Nursery]:
    opened = Nursery()
    yield opened
    opened.close()


@pytest.fixture
def nursery(every_worker: Nursery) -> Iterator[Nursery]:
    """Where workers are born; none outlives the test."""
    yield every_worker
    every_worker.clear()
