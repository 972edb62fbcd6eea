"""A test that fails ends the processes that it has started, so that they do not disturb the next ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults.processes import ROOT, eventually


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes through /proc")
def test_a_failed_test_leaves_no_process_behind(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/faults/leaves_processes.py"],
        cwd=ROOT,
        env={**os.environ, "PUNCHLIST_LEFTOVERS": str(file)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "as intended" in done.stdout
    shell, sleep = map(int, file.read_text().split())
    eventually(lambda: not _runs(shell) and not _runs(sleep), "the processes of the failed test end")


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
