"""The examples do what they say."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import ROOT, Cli


def test_the_rehearsal_in_the_documents_runs_to_its_end(punchlist: Cli, project: Path) -> None:
    (script,) = re.findall(r"^```yaml\n(.*?)^```", (ROOT / "docs" / "run.md").read_text(), re.MULTILINE | re.DOTALL)
    (project / "script.yaml").write_text(script)
    done = punchlist("run", "Look around.", "--model", "rehearsal:script.yaml", "--json")
    told = json.loads(done.stdout)
    assert (told["reason"], told["continuations"], told["text"]) == ("completed", 1, "All done.")


@pytest.mark.spec("S2", "S4")
def test_own_tools_with_a_person_asked() -> None:
    path = ROOT / "examples" / "own_tools.py"
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "book awaiting_approval" in done.stdout
    assert done.stdout.endswith("['90', '2 booked to Oslo']\n")
    assert len(path.read_text().splitlines()) <= 30


@pytest.mark.spec("C3", "C13")
def test_an_agent_in_ones_own_program_is_watched_until_its_list_is_clear() -> None:
    path = ROOT / "examples" / "agent.py"
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "Ask for Oslo: pending · Ask for Rome: pending",
        "Ask for Oslo: completed · Ask for Rome: pending",
        "It stopped early and was continued: 1 of 10 times",
        "Ask for Oslo: completed · Ask for Rome: completed",
        "completed: Go to Rome.",
    ]
    assert len(path.read_text().splitlines()) <= 30
