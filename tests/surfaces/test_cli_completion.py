"""`--install-completion` changes files of the user: only after a confirmation, and not for an agent (S4)."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import Cli
from tests.faults.processes import answered

PROGRAM = f"{shlex.quote(sys.executable)} -m punchlist"


def in_bash(line: str, project: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    # More than one command, or bash would be replaced by it.
    return subprocess.run(
        ["bash", "-c", f"{line}; exit $?"],
        cwd=project,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def files(environment: dict[str, str]) -> list[str]:
    home = Path(environment["HOME"])
    return sorted(path.name for path in home.rglob("*bash*")) if home.exists() else []


@pytest.mark.spec("S4")
@pytest.mark.parametrize("words", ["--install-completion", "--install-completion bash"])
def test_completion_is_not_installed_without_a_confirmation(
    project: Path, environment: dict[str, str], words: str
) -> None:
    done = in_bash(f"{PROGRAM} {words}", project, environment)
    assert (done.returncode, "nothing was changed. Confirm with --yes" in done.stderr) == (1, True)
    assert "~/.bashrc" in done.stderr
    assert files(environment) == []
    assert answered(project, environment, b"?", b"n\n", "--install-completion").returncode == 1
    assert files(environment) == []


@pytest.mark.spec("S4")
@pytest.mark.parametrize("words", ["--install-completion --yes", "-y --install-completion"])
def test_completion_is_installed_with_yes(project: Path, environment: dict[str, str], words: str) -> None:
    done = in_bash(f"{PROGRAM} {words}", project, environment)
    assert done.returncode == 0, done.stderr
    assert files(environment) == [".bash_completions", ".bashrc"]


@pytest.mark.spec("S4")
def test_an_agent_cannot_install_completion(punchlist: Cli, environment: dict[str, str]) -> None:
    command = json.dumps({"command": f"{PROGRAM} --install-completion --yes 2>&1; echo code $?"})
    told = punchlist("tools", "call", "run_command", command, "--mode", "yolo").stdout
    assert "inside an agent's tool call" in told
    assert "code 1" in told
    assert files(environment) == []


def test_completion_is_printed_for_the_current_shell(project: Path, environment: dict[str, str]) -> None:
    done = in_bash(f"{PROGRAM} --show-completion", project, environment)
    assert (done.returncode, "_PUNCHLIST_COMPLETE=complete_bash" in done.stdout) == (0, True)


def test_yes_alone_is_a_usage_error(punchlist: Cli) -> None:
    assert punchlist("--yes", "todos").returncode == 2
