"""Runs of the program against scripted servers, several at a time: starting it is most of what a run costs.

The runs over one wire share a project and its database, each in a session of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from tests.contract.asked import changes, problems
from tests.contract.scripted_http import Answer, Asked, Break, ScriptedServer
from tests.faults.processes import PATIENCE, Program

MODELS: Final = {"chat": "openai-chat:m", "responses": "openai:m", "messages": "anthropic:m"}
GOAL: Final = "Write x, and do it well."
OPEN: Final = [{"content": "Write x", "activeForm": "Writing x", "status": "pending"}]
DONE: Final = [{**OPEN[0], "status": "completed"}]
NOTES: Final = Answer("I note it down.", [("TodoWrite", {"todos": OPEN})])
MARKS: Final = Answer("", [("TodoWrite", {"todos": DONE})])
SAYS: Final = Answer("It is written.")
KEYS: Final = {"conversationId", "turnId", "reason", "text", "iterations", "continuations", "todos", "usage"}


@dataclass(frozen=True, slots=True)
class Case:
    answers: Sequence[Answer]
    flags: Sequence[str] = ()
    then: Sequence[Answer] = ()
    """What the model says after the person has approved what it waits for."""
    stopped: bool = False
    """A person presses Ctrl-C once an answer does not end."""


@dataclass(frozen=True, slots=True)
class Run:
    """What the program left behind, and what it had asked."""

    code: int
    out: str
    err: str
    asked: Sequence[Asked]
    resumed: Run | None = None

    @property
    def told(self) -> dict[str, Any]:
        assert self.out, f"exit code {self.code}: {self.err}"
        told: dict[str, Any] = json.loads(self.out)
        assert set(told) == KEYS
        return told

    @property
    def complaints(self) -> list[str]:
        """What a provider would have refused, or had to read anew."""
        return [*(problem for asked in self.asked for problem in problems(asked)), *changes(self.asked)]


@dataclass(slots=True)
class Wire:
    """The runs over one wire."""

    model: str
    project: Path
    environment: Mapping[str, str]
    runs: dict[str, Future[Run]] = field(default_factory=dict)

    def of(self, case: str) -> Run:
        return self.runs[case].result()

    def punchlist(self, *arguments: str, server: ScriptedServer | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "punchlist", *arguments],
            cwd=self.project,
            env={**self.environment, **(server.environment() if server else {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def perform(self, session: str, case: Case) -> Run:
        where = ("--model", self.model, "--lists", "checklist", "--session", session, "--json", *case.flags)
        with ScriptedServer(case.answers) as server:
            if case.stopped:
                return self._stopped(server, where)
            done = self.punchlist("run", GOAL, *where, server=server)
        resumed = self._resumed(session, case.then, where) if case.then else None
        return Run(done.returncode, done.stdout, done.stderr, server.asked, resumed)

    def _stopped(self, server: ScriptedServer, where: Sequence[str]) -> Run:
        environment = {**self.environment, **server.environment()}
        with Program(self.project, environment, "run", GOAL, *where) as program:
            assert server.hanging.wait(PATIENCE)
            done = program.interrupt()
        return Run(done.code, done.out.decode(), done.err.decode(), server.asked)

    def _resumed(self, session: str, answers: Sequence[Answer], where: Sequence[str]) -> Run:
        (asked,) = json.loads(self.punchlist("approvals", "--session", session, "--json").stdout)
        approved = self.punchlist("approvals", "approve", asked["callId"])
        assert approved.returncode == 0, approved.stderr
        with ScriptedServer(answers) as server:
            done = self.punchlist("run", "--resume", *where, server=server)
        return Run(done.returncode, done.stdout, done.stderr, server.asked)


class Stage:
    """All the runs of a file: begun together, looked at one by one."""

    def __init__(self, folder: Path, cases: Mapping[str, Case], chat: Mapping[str, Case]) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PUNCHLIST_", "XDG_"))}
        environment = {**kept, "HOME": str(folder / "home"), "COLUMNS": "80", "NO_COLOR": "1"}
        # Some of them only wait: a few more than there are processors.
        self._pool = ThreadPoolExecutor((os.cpu_count() or 1) + 2)
        self.wires = {name: Wire(model, folder / name, environment) for name, model in MODELS.items()}
        for wire in self.wires.values():
            (wire.project / ".git").mkdir(parents=True)
        for wire in self.wires.values():
            for name, case in {**cases, **(chat if wire.model == MODELS["chat"] else {})}.items():
                wire.runs[name] = self._pool.submit(wire.perform, name.replace(" ", "-"), case)

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


def stage(folder: Path, cases: Mapping[str, Case], chat: Mapping[str, Case] = MappingProxyType({})) -> closing[Stage]:
    """Each of the cases over each wire; those of `chat` over that one alone."""
    return closing(Stage(folder, cases, chat))


HANGS: Final = Answer("Once upon a time", broken=Break.TRICKLE)
