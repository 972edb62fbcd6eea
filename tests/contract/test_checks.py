"""Checks: what must hold after the work before a todo can be completed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import StoppedClock
from tests.contract.measured import BUILD_TIME, PERSON, measured

from punchlist.errors import IllegalTransition, InvalidInput
from punchlist.kernel.events import Actor, Role
from punchlist.missions.config.trust import check_name, trust_name, trusted_text
from punchlist.missions.metrics.service import Metrics
from punchlist.missions.model import Mission, MissionScope, MissionTodo, NewMissionTodo
from punchlist.missions.todos.checks import CompletionChecks
from punchlist.missions.todos.lifecycle import TodoAction, TodoStatus
from punchlist.missions.todos.service import MissionTodos
from punchlist.storage.store import Store
from punchlist.trust import Trust

LEAD = MissionScope("mission-fast", Actor(Role.LEAD, "mission-lead"))
OWNER = MissionScope("mission-fast", Actor(Role.OWNER, "pillar-owner"))


class Bench:
    """A todo in progress whose check is looked at."""

    def __init__(self, store: Store, root: Path) -> None:
        self.store = store
        self.root = root
        self.todos = MissionTodos(store)
        self.metrics = Metrics(store)
        self.trust = Trust(root.parent / "trust")
        self.mission: Mission | None = None

    def begin(self, check: dict[str, Any] | None, **checks: Any) -> MissionTodo:
        self.mission = measured(self.store, BUILD_TIME, checks={name: dict(one) for name, one in checks.items()})
        todo = self.todos.create(PERSON, "fast", NewMissionTodo("builds", "Make it fast", check=check)).todo
        return self.todos.update(PERSON, "fast", todo.id, TodoAction.START, "now").todo

    def trust_it(self) -> None:
        assert self.mission is not None
        self.trust.trust_text(trust_name("fast", self.root), trusted_text(self.mission) or "")

    def checks(self) -> CompletionChecks:
        return CompletionChecks(
            self.store,
            lambda mission: self.trust.trusts_text(trust_name(mission.slug, self.root), trusted_text(mission) or ""),
            self.root,
            self.todos.record_check,
            environment={"PATH": "/usr/bin:/bin", "API_KEY": "sesame-open-now"},
            is_trusted_command=lambda todo: self.trust.trusts_text(check_name(todo), todo.completion_check or ""),
        )

    def passes(self, todo: MissionTodo) -> bool:
        return self.checks().run(LEAD, todo).passed

    def detail(self, todo: MissionTodo) -> str:
        result = self.checks().run(LEAD, todo)
        assert not result.passed
        return result.detail

    def complete(self, todo: MissionTodo, **said: Any) -> TodoStatus:
        return self.todos.complete(LEAD, "fast", todo.id, "It is fast.", **said).todo.status


@pytest.fixture
def bench(store: Store, tmp_path: Path) -> Bench:
    root = tmp_path / "work"
    root.mkdir()
    return Bench(store, root)


@pytest.mark.spec("M16")
@pytest.mark.parametrize("bound", ["atMost", "atLeast"])
def test_a_metric_must_have_reached_its_level_after_the_work(bench: Bench, clock: StoppedClock, bound: str) -> None:
    bad, good = (61, 60) if bound == "atMost" else (59, 60)
    todo = bench.begin({"metric": "build-time", bound: 60})
    assert "has no reading since the last work on the todo" in bench.detail(todo)
    bench.metrics.record(PERSON, "fast", "build-time", bad)
    assert bench.detail(todo).startswith(f"Local build time is {bad} s; required: at {bound[2:].lower()} 60")
    bench.metrics.record(PERSON, "fast", "build-time", good)
    clock.advance(minutes=1)
    bench.todos.record_work(OWNER, todo.id)
    # It was good before the work; what is it now?
    assert "`punchlist mission metric record fast build-time VALUE`" in bench.detail(todo)
    with pytest.raises(IllegalTransition, match="check failed"):
        bench.complete(todo)
    clock.advance(minutes=1)
    bench.metrics.record(PERSON, "fast", "build-time", good)
    assert bench.passes(todo)
    assert bench.complete(todo) is TodoStatus.COMPLETED


@pytest.mark.spec("M16")
def test_an_old_reading_recorded_late_does_not_count(bench: Bench, clock: StoppedClock) -> None:
    todo = bench.begin({"metric": "build-time", "atMost": 60})
    bench.metrics.record(PERSON, "fast", "build-time", 10, at="2026-02-20")
    assert "has no reading since" in bench.detail(todo)


@pytest.mark.spec("M16")
def test_a_command_of_the_file_decides_once_the_file_is_trusted(bench: Bench) -> None:
    todo = bench.begin({"name": "tests"}, tests={"command": ["sh", "-c", "echo 3 failed; test -e fixed"]})
    assert "`punchlist mission trust fast`" in bench.detail(todo)
    bench.trust_it()
    told = bench.detail(todo)
    assert "ended with exit code 1.\n3 failed" in told
    kept = json.loads(bench.todos.record_check(LEAD, todo.id, False, told).check_result or "")
    assert kept["detail"] == told
    with pytest.raises(IllegalTransition, match="3 failed"):
        bench.complete(todo)
    (bench.root / "fixed").touch()
    assert bench.passes(todo)
    assert bench.complete(todo) is TodoStatus.COMPLETED


@pytest.mark.spec("M16", "V2")
def test_a_file_in_the_workspace_can_be_the_check(bench: Bench) -> None:
    todo = bench.begin({"file": "report.md", "contains": "Slowest plugins"})
    assert bench.detail(todo) == "report.md does not exist."
    (bench.root / "report.md").write_text("# Report\n")
    assert bench.detail(todo) == "report.md does not contain “Slowest plugins”."
    with pytest.raises(IllegalTransition, match="does not contain"):
        bench.complete(todo)
    (bench.root / "report.md").write_text("# Slowest plugins\n")
    assert bench.passes(todo)
    assert bench.complete(todo) is TodoStatus.COMPLETED


@pytest.mark.spec("M16", "V2")
def test_a_file_outside_of_the_workspace_is_never_read(bench: Bench, tmp_path: Path) -> None:
    (bench.root.parent / "secret").write_text("yes")
    with pytest.raises(InvalidInput, match="must be inside the workspace"):
        bench.begin({"file": "../secret"})
    (bench.root / "link").symlink_to("../secret")
    assert "is outside of the workspace" in bench.detail(bench.begin({"file": "link"}))


@pytest.mark.spec("M16")
def test_a_file_that_has_changed_is_trusted_no_longer(bench: Bench) -> None:
    todo = bench.begin({"name": "tests"}, tests={"command": ["true"]})
    bench.trust_it()
    assert bench.passes(todo)
    measured(bench.store, BUILD_TIME, checks={"tests": {"command": ["touch", "was-run"]}})
    assert "`punchlist mission trust fast`" in bench.detail(todo)
    assert not (bench.root / "was-run").exists()


@pytest.mark.spec("M16")
def test_trust_in_a_file_is_for_one_folder(bench: Bench, tmp_path: Path) -> None:
    todo = bench.begin({"name": "tests"}, tests={"command": ["./tests"]})
    bench.trust_it()
    bench.root = tmp_path / "another"
    bench.root.mkdir()
    assert "`punchlist mission trust fast`" in bench.detail(todo)


@pytest.mark.spec("M16")
def test_the_lead_can_override_a_check_for_a_reason_that_is_kept(bench: Bench) -> None:
    todo = bench.begin({"name": "tests"}, tests={"command": ["false"]})
    bench.trust_it()
    assert not bench.passes(todo)
    done = bench.todos.complete(LEAD, "fast", todo.id, "Good enough.", override_reason="The test is wrong.").todo
    assert (done.status, done.override_reason) == (TodoStatus.COMPLETED, "The test is wrong.")


@pytest.mark.spec("M16")
def test_a_command_of_a_todo_runs_only_for_whoever_gave_it(bench: Bench) -> None:
    todo = bench.begin({"command": ["touch", "was-run"]})
    assert "no user of this machine has given it" in bench.detail(todo)
    assert not (bench.root / "was-run").exists()
    bench.trust.trust_text(check_name(todo), todo.completion_check or "")
    assert bench.passes(todo)
    assert (bench.root / "was-run").exists()


@pytest.mark.spec("M16")
@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["no-such-program"], "cannot be started"),
        (["sh", "-c", "kill -9 $$"], "was killed by signal 9"),
        (["sh", "-c", "echo the key is sesame-open-now; exit 1"], "the key is [hidden API_KEY]"),
        (["sh", "-c", 'echo "<$API_KEY>"; exit 1'], "<>"),
        (["sh", "-c", "yes | head -c 1000000; echo the end; exit 1"], "\nthe end"),
        ([sys.executable, "-c", "import sys; sys.exit('no\\x1b[31m')"], "no\\x1b[31m"),
    ],
)
def test_what_a_command_did_is_told(bench: Bench, command: list[str], told: str) -> None:
    todo = bench.begin({"name": "tests"}, tests={"command": command})
    bench.trust_it()
    detail = bench.detail(todo)
    assert told in detail
    assert len(detail) < 2_000


@pytest.mark.spec("M16")
def test_a_command_that_hangs_has_not_passed(bench: Bench) -> None:
    todo = bench.begin({"name": "tests"}, tests={"command": ["sleep", "100"], "timeoutSeconds": 0.2})
    bench.trust_it()
    assert "exceeded its time limit of 0.2 s" in bench.detail(todo)


@pytest.mark.spec("M16")
def test_work_that_goes_on_during_a_check_is_checked_again(bench: Bench, clock: StoppedClock) -> None:
    todo = bench.begin({"name": "tests"}, tests={"command": ["true"]})
    bench.trust_it()

    def trust_while_somebody_works(work: Callable[[], object]) -> CompletionChecks:
        def trust_of(mission: Mission) -> bool:
            clock.advance(minutes=1)
            work()
            return True

        return CompletionChecks(bench.store, trust_of, bench.root, bench.todos.record_check, environment={})

    checks = trust_while_somebody_works(lambda: bench.todos.record_work(OWNER, todo.id))
    assert "todo changed while its check ran" in checks.run(LEAD, todo).detail
    with pytest.raises(IllegalTransition):
        bench.complete(todo)


def test_a_check_that_cannot_be_looked_at_has_not_passed(bench: Bench) -> None:
    todo = bench.begin({"name": "gone"}, tests={"command": ["true"]}, gone={"command": ["true"]})
    bench.mission = measured(bench.store, BUILD_TIME, checks={"tests": {"command": ["true"]}})
    bench.trust_it()
    assert "has no check 'gone'" in bench.detail(todo)


def test_a_metric_that_is_no_more_has_reached_nothing(bench: Bench) -> None:
    todo = bench.begin({"metric": "build-time", "atMost": 60})
    bench.metrics.record(PERSON, "fast", "build-time", 10)
    measured(bench.store, {**BUILD_TIME, "slug": "other"})
    assert bench.detail(todo) == "The mission has no metric 'build-time'."


def test_a_todo_without_a_check_has_nothing_to_run(bench: Bench) -> None:
    todo = bench.begin(None)
    with pytest.raises(InvalidInput, match="has no check"):
        bench.checks().run(LEAD, todo)
