"""What tests of the terminal application share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from punchlist.app import Services
from punchlist.config import load


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def services(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Services]:
    monkeypatch.chdir(project)
    built = Services(load(cwd=project))
    yield built
    built.close()
