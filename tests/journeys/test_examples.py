"""The examples do what they say."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.conftest import ROOT


@pytest.mark.spec("S2", "S4")
def test_own_tools_with_a_person_asked() -> None:
    path = ROOT / "examples" / "own_tools.py"
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "book awaiting_approval" in done.stdout
    assert done.stdout.endswith("['90', '2 booked to Oslo']\n")
    assert len(path.read_text().splitlines()) <= 30
