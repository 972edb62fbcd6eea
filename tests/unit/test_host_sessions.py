"""Which running agent has which session, where several work in one project."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from punchlist import host_sessions
from punchlist.config import load
from punchlist.host_sessions import HostSessions
from punchlist.kernel.processes import ParentProcess, process_identity


@pytest.fixture
def session_file(tmp_path: Path) -> Path:
    folder = tmp_path / "project" / ".punchlist"
    folder.mkdir(parents=True)
    return folder / host_sessions.FILE_NAME


@pytest.fixture
def sessions(session_file: Path, tmp_path: Path) -> HostSessions:
    environment = {"HOME": str(tmp_path / "home")}
    return HostSessions(load(environment=environment, cwd=session_file.parent.parent), environment)


def works_for(monkeypatch: pytest.MonkeyPatch, pid: int) -> None:
    monkeypatch.setattr(host_sessions, "host_processes", lambda: [ParentProcess(pid, frozenset({"agent"}), ())])


@contextmanager
def running(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A program of an agent, on whose behalf we are."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as program:
        works_for(monkeypatch, program.pid)
        yield program.pid
        program.communicate()


@pytest.mark.spec("X2", "C16")
def test_an_agent_has_one_seat_and_leaves_it_for_one_that_it_had_before(
    sessions: HostSessions, session_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    works_for(monkeypatch, os.getpid())
    assert sessions.acquire("codex", "codex:a") == "default"
    with running(monkeypatch):
        own = sessions.acquire("codex", "codex:b")
        assert own.startswith("codex-")
        assert sessions.acquire("codex") == own
        # One that goes on in two windows at once has a list in each.
        assert sessions.acquire("codex", "codex:a") == own
    with running(monkeypatch) as pid:
        works_for(monkeypatch, pid)
        other = sessions.acquire("codex")
        assert other not in ("default", own)
        assert sessions.acquire("codex", "codex:b") == own
        assert sessions.acquire("codex") == own
        assert sorted(json.loads(session_file.read_text())["taken"]) == sorted(["default", own])


@pytest.mark.spec("X2")
def test_nobody_waits_for_an_agent_that_has_gone_or_is_of_another_machine(
    sessions: HostSessions, session_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    works_for(monkeypatch, os.getpid())
    _, _, pid_and_start = process_identity(os.getpid()).partition(":")
    for gone in (f"elsewhere:{pid_and_start}", f"{process_identity(os.getpid())}0", process_identity(2**22 + 1)):
        session_file.write_text(json.dumps({"taken": {"default": gone}}))
        assert sessions.acquire("codex") == "default"


@pytest.mark.spec("X2")
def test_where_nothing_can_be_written_everybody_has_the_usual_session(
    sessions: HostSessions, session_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    works_for(monkeypatch, os.getpid())
    session_file.with_suffix(".lock").mkdir()
    assert sessions.acquire("codex", "codex:a") == "default"
    assert not session_file.exists()


def test_only_the_last_sessions_are_kept(
    sessions: HostSessions, session_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    works_for(monkeypatch, os.getpid())
    session_file.write_text(json.dumps({"known": {f"codex:{number}": "default" for number in range(300)}}))
    sessions.acquire("codex", "codex:new")
    known = json.loads(session_file.read_text())["known"]
    assert (len(known), "codex:0" in known, "codex:new" in known) == (200, False, True)


@pytest.mark.spec("X2")
def test_a_book_that_has_no_names_of_agents_still_counts(
    sessions: HostSessions, session_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = process_identity(os.getpid())
    session_file.write_text(
        json.dumps({"taken": {"default": process_identity(os.getppid()), "codex-1": me}, "known": {"codex:a": "b"}})
    )
    works_for(monkeypatch, os.getpid())
    assert sessions.acquire("codex") == "codex-1"
    told = json.loads(session_file.read_text())
    assert told["taken"] == {"default": process_identity(os.getppid()), "codex-1": me}
    assert (told["agents"], told["known"]) == ({"codex-1": "codex"}, {"codex:a": "b"})


@pytest.mark.spec("X2")
@pytest.mark.parametrize("agents", [None, [], {"default": 1}, {"default": ["codex"]}, {"elsewhere": "codex"}])
def test_whatever_stands_there_as_an_agents_name_its_seat_is_its_own(
    sessions: HostSessions, session_file: Path, monkeypatch: pytest.MonkeyPatch, agents: object
) -> None:
    session_file.write_text(json.dumps({"taken": {"default": process_identity(os.getpid())}, "agents": agents}))
    works_for(monkeypatch, os.getpid())
    assert sessions.acquire("codex") == "default"
    assert json.loads(session_file.read_text())["agents"] == {"default": "codex"}


@pytest.mark.spec("X2")
def test_what_keeps_the_terminals_is_not_the_agent_in_one_of_them(
    sessions: HostSessions, session_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = ParentProcess(os.getppid(), frozenset({"tmux"}), ())
    monkeypatch.setattr(host_sessions, "host_processes", lambda: [keeper])
    assert sessions.acquire("codex") == "default"
    for terminal, shared in (("pts/1", False), ("", True)):
        below = ParentProcess(os.getpid(), frozenset({"codex"}), (), terminal)
        monkeypatch.setattr(host_sessions, "host_processes", lambda below=below: [below, keeper])
        assert (sessions.acquire("codex") == "default") is shared
        # For the next one, it is nobody's.
        session_file.write_text(
            json.dumps({**json.loads(session_file.read_text()), "taken": {"default": process_identity(os.getppid())}})
        )
