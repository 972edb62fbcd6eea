"""The programs that people run, with a model that does what it is told: planned, sent back, finished (X2)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from threading import Event

import pytest
from tests.agents import served
from tests.agents.conftest import FOLDER
from tests.agents.hosts import ENOUGH, HOSTS, PROMPT, ClaudeCode, Host, OpenCode, Setting
from tests.agents.programs import PROGRAMS
from tests.agents.scripted import Asked, Reply, Script, ScriptedModel, serving
from tests.agents.scripts import DONE, FIRST, SECOND, SENT_BACK, drains, gives_up, keeps_tasks

PUNCHLIST = Path(sys.executable).with_name("punchlist")
MOST = 20
"""Questions to a model that does nothing; one that is asked more often is in a loop."""
A_WHILE = 5.0
"""Seconds, in which a program that is sent back has asked the model again."""

pytestmark = [pytest.mark.spec("X2"), pytest.mark.timeout(300)]


class Beside:
    """A program in a project, with a home of its own."""

    def __init__(self, name: str, folder: Path, host: Host | None = None) -> None:
        program = PROGRAMS[name]
        root = Path(FOLDER or "").resolve()
        if not program.is_whole(root):
            pytest.fail(f"{program} is not in {root}: `make test-agents` puts it there")
        self.name = name
        self.host = host or HOSTS[name]
        self.setting = Setting(program, program.path(root), folder / "project", folder / "home")
        self.setting.project.mkdir()
        # The lists are in the project, so that they are those of this test.
        (self.setting.project / ".punchlist").mkdir()
        self.setting.home.mkdir()
        self.host.settle(self.setting)

    def punchlist(self, *arguments: str) -> str:
        done = subprocess.run(
            [PUNCHLIST, *arguments],
            cwd=self.setting.project,
            env=self.setting.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def run(self, script: Script) -> tuple[ScriptedModel, str]:
        with serving(script, [self.host.wire]) as model:
            return model, self.host.run(self.setting, model.url)

    def statuses(self) -> Counter[tuple[str, str]]:
        """The title and state of each todo, in whichever session it is."""
        found: Counter[tuple[str, str]] = Counter()
        for session in json.loads(self.punchlist("sessions", "--json")):
            for turn in json.loads(self.punchlist("sessions", "show", session["id"], "--json"))["turns"]:
                asked = ("todos", "--session", session["id"], "--turn", turn["id"], "--json")
                items = json.loads(self.punchlist(*asked))["items"]
                found.update((item["title"], item["status"]) for item in items if item["list"] == "plan")
        return found

    def files(self) -> dict[str, bytes]:
        """The files in the project, but for our lists and for what the program keeps for itself."""
        kept = {}
        for path in sorted(self.setting.project.rglob("*")):
            parts = path.relative_to(self.setting.project).parts
            if path.is_file() and parts[0] != ".punchlist" and not set(parts) & set(self.host.own_files):
                kept["/".join(parts)] = path.read_bytes()
        return kept


@pytest.fixture(params=list(HOSTS))
def beside(request: pytest.FixtureRequest, tmp_path: Path) -> Beside:
    return Beside(request.param, tmp_path)


REQUESTS = (5, 6)
"""Two items, one early stop, and the question about items for which no call was made (V1); opencode reports fewer
calls."""


def test_an_agent_that_stops_early_is_sent_back_and_finishes_its_list(beside: Beside) -> None:
    before = beside.files()
    beside.punchlist("install", beside.name, "--yes")
    assert beside.files() != before
    model, wrote = beside.run(drains())
    early = [asked for asked in model.asked if SENT_BACK not in asked.heard]
    assert len(early) == 2, "it is sent back when it stops, not before"
    assert len(model.asked) in REQUESTS, "and only once"
    assert DONE in wrote
    assert beside.statuses() == {(FIRST, "completed"): 1, (SECOND, "completed"): 1}
    beside.punchlist("uninstall", beside.name, "--yes")
    assert beside.files() == before


def test_it_works_for_all_projects_of_a_user(beside: Beside) -> None:
    beside.punchlist("install", beside.name, "--user", "--yes")
    model, wrote = beside.run(drains())
    assert (len(model.asked) in REQUESTS, model.heard(SENT_BACK), DONE in wrote) == (True, True, True)
    beside.punchlist("uninstall", beside.name, "--user", "--yes")


def test_the_tasks_that_claude_code_keeps_itself_are_finished(tmp_path: Path) -> None:
    beside = Beside("claude-code", tmp_path, ClaudeCode("claude-sonnet-4-5"))
    beside.punchlist("install", "claude-code", "--yes")
    model, wrote = beside.run(keeps_tasks())
    sent_back = [SENT_BACK in asked.heard for asked in model.asked]
    assert (sent_back, DONE in wrote) == ([False] * 4 + [True] * 3, True)
    (session,) = json.loads(beside.punchlist("sessions", "--json"))
    todos = json.loads(beside.punchlist("todos", "--session", session["id"], "--json"))["items"]
    assert [(todo["title"], todo["status"]) for todo in todos] == [(FIRST, "completed"), (SECOND, "completed")]


def test_an_agent_that_does_nothing_is_let_go(beside: Beside) -> None:
    beside.punchlist("install", beside.name, "--yes")
    model, _ = beside.run(gives_up())
    assert model.heard(SENT_BACK)
    assert len(model.asked) <= MOST
    assert beside.statuses() == {(FIRST, "pending"): 1, (SECOND, "pending"): 1}


def test_an_agent_that_a_person_interrupts_is_not_sent_back(tmp_path: Path) -> None:
    """In opencode, where it is our plugin that sends it back."""
    beside = Beside("opencode", tmp_path)
    beside.punchlist("install", "opencode", "--yes")
    at_work, interrupted, again = Event(), Event(), Event()
    plans = gives_up()

    def script(asked: Asked) -> Reply:
        if interrupted.is_set():
            again.set()
        elif len(model.asked) > 1:
            at_work.set()
            interrupted.wait(ENOUGH)
        return plans(asked)

    with serving(script, [beside.host.wire]) as model:
        environment = OpenCode().environment(beside.setting, model.url)
        with served.serving([str(beside.setting.path)], beside.setting.project, environment, ENOUGH) as session:
            session.ask(PROMPT)
            assert at_work.wait(ENOUGH)
            session.abort()
            next(event for event, _ in session.events() if event == "session.idle")
            interrupted.set()
            assert not again.wait(A_WHILE)
