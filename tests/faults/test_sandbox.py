"""Commands in the sandbox, with real bubblewrap (X10)."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import Cli
from tests.faults.tools import Agent, gone

from punchlist.app import Services
from punchlist.config import load
from punchlist.surfaces.tui.person_calls import run_commands
from punchlist.tools import sandbox_command
from punchlist.tools.sandbox import SandboxMode, SandboxSettings, describe
from punchlist.tools.sandbox_command import SandboxUnavailable, macos_profile, sandboxed
from punchlist.trust import Trust

pytestmark = pytest.mark.spec("X10")

ON = SandboxSettings(SandboxMode.WORKSPACE)


def _problem() -> str:
    if not sys.platform.startswith("linux") or shutil.which("bwrap") is None:
        return "there is no bubblewrap"
    return sandbox_command._probe(shutil.which("bwrap") or "")


real = pytest.mark.skipif(bool(_problem()), reason=f"bubblewrap does not work here: {_problem()}")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def server() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@real
def test_a_command_writes_in_the_workspace_and_nowhere_else(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("before")
    agent = Agent(root, sandbox=ON)
    assert agent.runs("echo hello > file; mkdir -p a/b; cat file; pwd").split() == ["hello", str(root)]
    assert (root / "file").read_text() == "hello\n"
    places = [outside, tmp_path / "new", Path.home() / "sandbox-test", Path("/etc/sandbox-test"), Path("/sandbox-test")]
    for place in places:
        call = agent.tries("run_command", command=f"echo x > {place}")
        # The parents of the workspace in /tmp are private and empty: writing there is not an error, and reaches no one.
        assert str(place).startswith("/tmp") or "Read-only file system" in str(getattr(call, "error", ""))
    assert outside.read_text() == "before"
    assert not any(place.exists() for place in places[1:])
    (root / "link").symlink_to("/etc")
    agent.tries("run_command", command="echo x > link/sandbox-test")
    assert not Path("/etc/sandbox-test").exists()


@real
def test_a_command_reads_the_system_and_has_its_own_tmp(root: Path) -> None:
    agent = Agent(root, sandbox=ON)
    assert agent.runs("head -c 4 /etc/passwd; test -x /bin/sh && echo ok").endswith("ok\n")
    assert agent.runs("echo x > $TMPDIR/mine; ls /tmp/mine; ls /run").split() == ["/tmp/mine"]
    assert not Path("/tmp/mine").exists()


@real
def test_a_command_cannot_read_the_key_that_signs_answers(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(root / "data"))
    trust = Trust.of_user(os.environ)
    assert trust.key == trust.key_file.read_bytes()
    agent = Agent(root, sandbox=ON)
    assert agent.runs(f"cat {trust.key_file} 2> /dev/null | wc -c").strip() == "0"
    agent.tries("run_command", command=f"rm -f {trust.key_file}; echo x > {trust.key_file}")
    assert trust.key_file.read_bytes() == trust.key


@real
def test_a_command_has_no_network_unless_it_is_allowed(root: Path, server: int) -> None:
    connect = f"exec 3<>/dev/tcp/127.0.0.1/{server} && echo connected"
    refused = Agent(root, sandbox=ON).tries("run_command", command=connect)
    assert "Connection refused" in str(getattr(refused, "error", ""))
    allowed = SandboxSettings(SandboxMode.WORKSPACE, network=True)
    assert Agent(root, sandbox=allowed).runs(connect) == "connected\n"


@real
def test_further_folders_can_be_written_if_the_settings_say_so(root: Path, tmp_path: Path) -> None:
    cache, common = tmp_path / "cache", tmp_path / "common"
    cache.mkdir()
    common.mkdir()
    settings = SandboxSettings(SandboxMode.WORKSPACE, writable=(cache, tmp_path / "missing"))
    Agent(root, [common], sandbox=settings).runs(f"echo x > {cache}/file; echo y > {common}/file")
    assert [(cache / "file").read_text(), (common / "file").read_text()] == ["x\n", "y\n"]


@real
def test_a_command_cannot_see_or_signal_other_processes(root: Path) -> None:
    agent = Agent(root, sandbox=ON)
    seen = [int(name) for name in agent.runs("ls /proc").split() if name.isdigit()]
    assert len(seen) < 10
    told = str(agent.tries("run_command", command=f"kill -0 {os.getpid() + 10**6}; mount -o remount,rw / && echo done"))
    assert "No such process" in told
    assert "done" not in told.replace("remount,rw / && echo done", "")


@real
def test_no_process_of_a_sandbox_outlives_its_command(root: Path) -> None:
    """TRUST 13: not even one that leaves the session and clears its environment."""
    agent = Agent(root, sandbox=ON)
    agent.tries("run_command", command="env -i setsid sleep 4242 & sleep 0.1; exec sleep 30", timeout=0.5)
    assert gone("sleep\x004242", within=5)
    agent.tries("run_command", command="env -i setsid sleep 4243 >/dev/null 2>&1 & echo done")
    assert gone("sleep\x004243", within=5)


@real
def test_an_agent_of_a_project_with_a_sandbox_runs_in_it(punchlist: Cli, project: Path) -> None:
    """An untrusted project file can turn it on."""
    (project / "punchlist.toml").write_text('[sandbox]\ncommands = "workspace"\n')
    line = '{"command": "touch /etc/sandbox-test; echo inside > here"}'
    done = punchlist("tools", "call", "run_command", line, "--mode", "yolo")
    assert (project / "here").read_text() == "inside\n"
    assert "Read-only file system" in done.stdout + done.stderr


@real
def test_lines_of_slash_commands_and_collectors_of_missions_run_in_it_too(
    punchlist: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "punchlist.toml").write_text('[sandbox]\ncommands = "workspace"\n')
    outside = project.parent / "outside"
    monkeypatch.setenv("MY_API_KEY", "sk-not-for-a-model-0123456789")
    monkeypatch.chdir(project)
    services = Services(load())
    line = f"touch {outside} /etc/sandbox-test inside; env; echo sk-not-for-a-model-0123456789"
    printed = run_commands(services, [line])[line]
    assert "Read-only file system" in printed
    assert "PATH=" in printed
    assert "sk-not-for-a-model" not in printed
    services.close()
    assert (project / "inside").exists()
    mission = {
        "name": "M",
        "slug": "m",
        "pillars": [
            {
                "name": "P",
                "slug": "p",
                "metrics": [
                    {
                        "name": "N",
                        "slug": "n",
                        "unit": "s",
                        "target": 1,
                        "direction": "down",
                        "collector": {"type": "command", "command": ["sh", "-c", f"touch {outside} collected; echo 3"]},
                    }
                ],
            }
        ],
    }
    (project / "mission.json").write_text(json.dumps(mission))
    assert punchlist("mission", "apply", "mission.json", "--yes").returncode == 0
    assert punchlist("mission", "trust", "m", "--yes").returncode == 0
    done = punchlist("mission", "metric", "collect", "m", "--all")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (project / "collected").exists()
    assert not outside.exists()


# --- where there is no sandbox ---------------------------------------------------------------------------------


def test_nothing_runs_when_bubblewrap_is_missing(root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bin = tmp_path / "bin"
    bin.mkdir()
    for name in ("bash", "touch"):
        (bin / name).symlink_to(shutil.which(name) or "")
    monkeypatch.setenv("PATH", str(bin))
    told = str(getattr(Agent(root, sandbox=ON).tries("run_command", command="touch ran"), "error", ""))
    if sys.platform.startswith("linux"):
        assert "The sandbox needs bwrap, which is not installed. Commands do not run." in told
        assert "apt install bubblewrap" in told
    assert not (root / "ran").exists()


def test_nothing_runs_when_the_sandbox_does_not_start(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bin = tmp_path / "bin"
    bin.mkdir()
    (bin / "bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    (bin / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin}:{os.environ['PATH']}")
    with pytest.raises(SandboxUnavailable, match=r"No permissions to create new namespace.*Commands do not run"):
        sandboxed(["true"], ON, root, system="linux")
    told = Agent(root, sandbox=ON).tries("run_command", command="touch ran")
    assert sys.platform == "darwin" or "The sandbox cannot be started" in str(getattr(told, "error", ""))
    assert not (root / "ran").exists()


def test_a_sandbox_program_that_commands_could_replace_is_not_used(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "bwrap").write_text("#!/bin/sh\nexit 0\n")
    (root / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{root}:{os.environ['PATH']}")
    with pytest.raises(SandboxUnavailable, match="needs bwrap"):
        sandboxed(["true"], ON, root, system="linux")


def test_the_profile_of_macos_quotes_folders_and_denies_the_network() -> None:
    profile = macos_profile([Path('/a "b"'), Path("/c\\d")], network=False)
    assert '(allow file-write* (subpath "/a \\"b\\"") (subpath "/c\\\\d"))' in profile
    assert profile.endswith("(deny network*)")
    assert "network" not in macos_profile([Path("/a")], network=True)


def test_an_unknown_system_has_no_sandbox(root: Path) -> None:
    with pytest.raises(SandboxUnavailable, match=r"no sandbox for win32\. Commands do not run"):
        sandboxed(["true"], ON, root, system="win32")


def test_policy_explain_says_what_commands_can_reach(punchlist: Cli, project: Path) -> None:
    line = ("policy", "explain", "run_command", '{"command": "make"}')
    assert "Commands run without a sandbox" in punchlist(*line).stdout
    (project / "punchlist.toml").write_text('[sandbox]\ncommands = "workspace"\n')
    assert f"they can write to {project} and to a private /tmp, without network." in punchlist(*line).stdout
    assert "sandbox" not in punchlist("policy", "explain", "list_directory", "{}").stdout


def test_the_sandbox_is_described(root: Path) -> None:
    assert "without a sandbox" in describe(SandboxSettings(), root)
    assert describe(ON, root) == (
        f"Commands run in a sandbox: they can write to {root} and to a private /tmp, without network."
    )
