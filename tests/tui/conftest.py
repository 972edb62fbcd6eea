"""What tests of the terminal application share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from punchlist.app import Services
from punchlist.config import load
from punchlist.surfaces.tui.prompt_text import PromptText


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def keys_of_a_pilot(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pilot presses Enter as soon after a letter as a paste does."""
    monkeypatch.setattr(PromptText, "paste_seconds", 0.0)


@pytest.fixture
def services(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Services]:
    monkeypatch.chdir(project)
    built = Services(load(cwd=project))
    yield built
    built.close()
