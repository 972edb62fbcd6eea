"""The processes that tests start end with them, also when a test fails or the test run is killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import ROOT
from tests.contract.crowd import Crowd
from tests.faults.mission_writer import Crew, Task
from tests.faults.processes import eventually, has_ended

STARTS_A_WRITER = """
import sys, time
from tests.faults.processes import Writer
writer = Writer(sys.argv[1])
writer.wait_for(1)
print(writer._process.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has ended")
def test_a_writer_ends_when_the_test_run_is_killed(tmp_path: Path) -> None:
    run = subprocess.Popen(
        [sys.executable, "-c", STARTS_A_WRITER, f"sqlite:///{tmp_path}/p.db"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert run.stdout is not None
    writer = int(run.stdout.readline())
    assert not has_ended(writer)
    run.kill()
    run.communicate(timeout=60)
    eventually(lambda: has_ended(writer), "the writer ends")


def test_a_failed_test_ends_the_writers_that_it_started(tmp_path: Path) -> None:
    crowd, crew = Crowd(), Crew()
    with pytest.raises(Exception, match=r".*"):
        crowd.go(f"sqlite:///{tmp_path}/p.db", "no_such_job", processes=2)
    assert crowd.workers == []
    with pytest.raises(Exception, match=r".*"):
        crew.go(Task(f"sqlite:///{tmp_path}/p.db", "no_such_job", 0, 1, 1), 2)
    assert crew._processes == []
