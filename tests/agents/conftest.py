"""Tests with the programs that people run. They need Node, and a folder in which the programs are installed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

_HERE = Path(__file__).parent
FOLDER = os.environ.get("PUNCHLIST_TEST_AGENTS")


def _reason() -> str | None:
    """Why they cannot run here, if they cannot."""
    if not FOLDER:
        return "the real agents run under `make test-agents`"
    if not shutil.which("node"):
        return "there is no Node here, which the agents need"
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = _reason()
    for item in items:
        if reason and _HERE in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=reason))
