"""A disk that fails, fills up or may not be written: a clean error, nothing half written (trust test 2)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.faults.processes import ROOT, Answer, module, run_module
from tests.faults.script import Script

NEEDS_POSIX = pytest.mark.skipif(sys.platform == "win32", reason="limits of file sizes are POSIX")


@NEEDS_POSIX
@pytest.mark.parametrize(
    "changes", [30, pytest.param(200, marks=pytest.mark.soak)], ids=lambda changes: f"{changes}-changes"
)
@pytest.mark.parametrize("fault", ["every-write", "growing"])
def test_a_write_that_fails_is_said_and_leaves_nothing_behind(tmp_path: Path, fault: str, changes: int) -> None:
    outcome = json.loads(
        run_module("tests.faults.failing_disk", fault, f"sqlite:///{tmp_path}/punchlist.db", str(changes))
    )
    assert outcome["wrong"] == []
    # How often the log is brought into the database, so how often a write fails, depends on the machine.
    assert outcome["failures"] > changes
    assert [message for message in outcome["messages"] if "was not changed" not in message] == []


@pytest.mark.parametrize(
    "changes", [30, pytest.param(200, marks=pytest.mark.soak)], ids=lambda changes: f"{changes}-changes"
)
def test_a_full_disk_is_said_and_work_goes_on_when_there_is_space_again(tmp_path: Path, changes: int) -> None:
    address = f"sqlite:///{tmp_path}/punchlist.db"
    done = _on_a_small_disk(tmp_path, module("tests.faults.failing_disk", "full", address, str(changes)))
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert outcome["wrong"] == []
    assert outcome["failures"] >= changes
    assert [message for message in outcome["messages"] if "The disk is full" not in message] == []


def test_a_command_that_starts_on_a_full_disk_can_read(tmp_path: Path, environment: dict[str, str]) -> None:
    steps = """
        python="$1" disk="$2"
        mkdir -p "$disk/project/.git" && cd "$disk/project"
        "$python" -m punchlist todos add "Free some space" >/dev/null || exit 90
        dd if=/dev/zero of="$disk/ballast" bs=4096 2>/dev/null
        exec "$python" -m punchlist todos
    """
    done = _on_a_small_disk(tmp_path, ["sh", "-c", steps, "sh", sys.executable, str(tmp_path)], environment)
    answer = Answer(done)
    assert answer.code == 0, answer
    assert b"Free some space" in answer.out
    assert b"was opened for reading only" in answer.err


@pytest.mark.parametrize("ending", ["closed", "killed"])
@pytest.mark.parametrize("how", ["read-only", "full"])
def test_everything_can_be_read_where_nothing_can_be_written(
    tmp_path: Path, environment: dict[str, str], how: str, ending: str
) -> None:
    """The last changes of a process that was killed are only in the log, which is read too."""
    place = tmp_path / "disk"
    place.mkdir()
    done = _on_a_small_disk(place, module("tests.faults.unwritable", str(place), how, ending), environment)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told.pop("unchanged") == {"code": 1}
    assert (told.pop("log")["size"] > 0) == (ending == "killed")
    refused = told.pop("todos add More")
    assert refused["code"] == 1
    assert ("The disk is full" if how == "full" else "read-only file system") in refused["err"]
    for event in ("stop", "prompt", "session-start"):
        # The agent proceeds.
        assert (told[f"hook {event}"]["code"], told.pop(f"hook {event}")["out"]) == (0, "{}\n")
    log = Path(environment["HOME"], ".local/share/punchlist/hooks.log")
    assert "hook stop" in log.read_text()
    assert {name: answer["err"] for name, answer in told.items() if name != "copy" and answer["code"]} == {}
    assert json.loads(told.pop("db check --json")["out"])["healthy"] is True
    for command, out in told.pop("copy").items():
        # As it is where everything can be written.
        assert told[command]["out"] == out, command
    assert all("was opened for reading only" in answer["err"] for answer in told.values())


@NEEDS_POSIX
@pytest.mark.parametrize("in_use", [False, True], ids=["at rest", "in use by its owner"])
def test_a_database_of_somebody_else_is_not_changed_and_the_error_says_so(open_folder: Path, in_use: bool) -> None:
    file = open_folder / "punchlist.db"
    owner = Script(f"sqlite:///{file}")
    owner.perform_all(8)
    if not in_use:
        owner.close()
    for path in (file, *open_folder.iterdir()):
        path.chmod(0o444)
    open_folder.chmod(0o555)
    before = file.read_bytes()
    outcome = json.loads(run_module("tests.faults.stranger", str(file), "8"))
    assert all(told.startswith("NotAllowed") and "belongs to another user" in told for told in outcome.values())
    assert file.read_bytes() == before
    owner.close()


@NEEDS_POSIX
def test_a_database_in_a_folder_of_somebody_else_says_that_it_cannot_be_used(open_folder: Path) -> None:
    closed = open_folder / "closed"
    closed.mkdir(mode=0o555)
    for name in ("punchlist.db", "deeper/punchlist.db"):
        outcome: dict[str, Any] = json.loads(run_module("tests.faults.stranger", str(closed / name), "0"))
        assert [told for told in outcome.values() if not told.startswith("StoreUnavailable: Cannot ")] == []
    assert list(closed.iterdir()) == []


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can reach too; pytest's own are private."""
    folder = Path(tempfile.mkdtemp(prefix="punchlist-faults-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def _on_a_small_disk(
    place: Path, command: list[str], environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a command while `place` is a file system of eight megabytes."""
    prefix = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    mount = 'mount -t tmpfs -o size=8M tmpfs "$0" && exec "$@"'
    if not shutil.which("unshare") or subprocess.run([*prefix, mount, str(place), "true"], check=False).returncode:
        pytest.skip("this machine does not let us mount a small file system")
    env = {**(environment or os.environ), "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run([*prefix, mount, str(place), *command], cwd=ROOT, env=env, capture_output=True, check=False)
