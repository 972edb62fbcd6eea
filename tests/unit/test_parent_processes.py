"""The processes above this one, and which of them do more than start others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from punchlist.kernel import processes

_NEAREST: Final = "from punchlist.kernel.processes import host_processes; print(host_processes()[0].pid)"
_PARENT: Final = """\
import os, subprocess, sys
print(os.getpid(), flush=True)
subprocess.run([sys.executable, "-c", sys.argv[1], "hook", "stop", "--for", "codex"], check=True)
"""


@pytest.mark.parametrize(
    ("arguments", "counts"),
    [(["tell me of hook stop --for codex"], True), (["hook", "stop", "--for", "codex"], False), ([], True)],
    ids=["a prompt that names them", "the same", "none"],
)
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="ps tells words, not arguments")
def test_a_program_that_hands_its_arguments_on_to_us_is_nobody_we_work_for(arguments: list[str], counts: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PARENT, _NEAREST, *arguments], capture_output=True, text=True, timeout=60, check=True
    )
    parent, nearest = done.stdout.split()
    assert (parent == nearest) is counts


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is only ps")
def test_ps_tells_of_the_same_processes(tmp_path: Path) -> None:
    above = list(processes._upwards(os.getppid(), processes._of_ps()))
    if not above:
        pytest.skip("there is no ps")
    there = processes.ancestors()
    assert [(one.pid, bool(one.terminal)) for one in above] == [(one.pid, bool(one.terminal)) for one in there]
    script = tmp_path / "of-any-name"
    script.write_text("#!/bin/sh\necho $$\nread line\n")
    script.chmod(0o755)
    with subprocess.Popen([script, "a", "b"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        found = processes._of_ps()(process.pid)
        process.communicate(b"\n", timeout=10)
    assert found is not None
    parent, one = found
    assert (parent, list(one.names), one.command[-2:]) == (os.getpid(), ["sh"], ("a", "b"))
