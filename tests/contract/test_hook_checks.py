"""The checks of what a third-party agent has completed are run before it may stop (V2, X2)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contract.front import call, todo, todo_write
from tests.faults.processes import has_ended

from punchlist.agent.continuation import Continue, Reason, Stop
from punchlist.agent.definitions import BUILT_IN
from punchlist.audit.check import check as check_database
from punchlist.checklist.lifecycle import ChecklistAction
from punchlist.checklist.service import Checklists
from punchlist.conversations.model import Scope, TurnScope
from punchlist.conversations.service import Conversations
from punchlist.integrations.hook_service import HookService
from punchlist.integrations.host_checks import HostChecks
from punchlist.kernel.events import SYSTEM, Actor, Role
from punchlist.plan.lifecycle import PlanStatus
from punchlist.plan.model import NewTodo, TurnTodo
from punchlist.plan.service import Plans
from punchlist.storage.schema_version import SCHEMA_VERSION
from punchlist.storage.store import Store
from punchlist.toolcalls.policy import Rule, Verdict
from punchlist.tools.settings import PolicySettings, ToolSettings
from punchlist.tools.tool_session import ToolSite
from punchlist.verification.model import Check, CheckOutcome, Verification

PERSON = Actor(Role.PERSON, "ann")
SUPERVISOR = BUILT_IN["supervisor"]
ServiceWith = Callable[..., HookService]


@pytest.fixture
def service_with(store: Store, conversations: Conversations, agent: Scope, tmp_path: Path) -> ServiceWith:
    """A service whose checks run in the test's folder, under the given rules."""

    def made(rules: Sequence[Rule] = (), *, trusted: bool = True) -> HookService:
        settings = ToolSettings(PolicySettings(rules=tuple(rules)))
        site = ToolSite(store, agent, tmp_path, settings, tmp_path, os.environ)
        checks = HostChecks(tmp_path, store.clock, lambda: site, lambda check: trusted and check.by_person)
        return HookService(store, conversations, SUPERVISOR, checks)

    return made


def first(plans: Plans, turn: TurnScope) -> TurnTodo:
    return plans.list(turn, list(PlanStatus)).items[0]


def completed(plans: Plans, turn: TurnScope, check: Check, *, by: Actor = PERSON) -> str:
    """The id of a todo with a check that its agent has completed."""
    (made,) = plans.create(replace(turn, actor=by), [NewTodo("Fix it", check=check)]).todos
    complete(plans, turn, made.id)
    return made.id


def complete(plans: Plans, turn: TurnScope, todo_id: str) -> None:
    call(plans, turn, "complete_todo", todoId=todo_id, outcome="done")


def prompt(service: HookService, scope: Scope, deadline: float | None = None) -> str:
    limit = time.monotonic() + 30 if deadline is None else deadline
    decision = service.stop_requested(scope, "h1", deadline=limit).decision
    assert isinstance(decision, Continue), decision
    return decision.prompt


@pytest.mark.spec("V2", "X2")
def test_a_todo_whose_check_fails_is_open_again_and_the_agent_gets_the_failing_lines(
    store: Store, service_with: ServiceWith, plans: Plans, turn: TurnScope, tmp_path: Path
) -> None:
    service = service_with()
    command = "printf 'line %s\\n' $(seq 100) >&2; cat answer.txt"
    id = completed(plans, turn, Check(command=command))
    sent = prompt(service, turn)
    assert "The check of “Fix it” failed" in sent
    assert "answer.txt: No such file" in sent
    assert "line 100" in sent
    assert "line 60" not in sent, "only the last lines"
    assert "1 item is still open" in sent
    open_again = first(plans, turn)
    assert (open_again.status, open_again.outcome, open_again.completed_at) == ("pending", None, None)
    assert open_again.verified().result is not None
    (tmp_path / "answer.txt").write_text("42")
    complete(plans, turn, id)
    assert service.stop_requested(turn, "h1").decision == Stop(Reason.COMPLETED, "nothing is open")
    assert first(plans, turn).verified().mark == "checked"
    assert check_database(store, SCHEMA_VERSION).problems == []


@pytest.mark.spec("V2", "X2")
def test_an_item_of_the_checklist_whose_check_fails_is_open_again(
    store: Store, service_with: ServiceWith, checklists: Checklists, agent: Scope, tmp_path: Path
) -> None:
    service = service_with()
    todo_write(checklists, agent, [todo("Write it"), todo("Other", "completed")])
    item = checklists.get(agent.conversation_id).items[0]
    check = Check(file="README.md", contains="Usage")
    checklists.verify(Scope(agent.conversation_id, PERSON), item.id, Verification(check))
    assert "failed" not in prompt(service, agent), "it was not claimed"
    for content, problem in ((None, "does not exist"), ("Hello", "does not contain “Usage”")):
        if content is not None:
            (tmp_path / "README.md").write_text(content)
        checklists.advance(agent, item.id, ChecklistAction.COMPLETE, reason="TodoWrite")
        assert problem in prompt(service, agent)
        assert checklists.get(agent.conversation_id).items[0].status == "pending"
    (tmp_path / "README.md").write_text("# Usage")
    checklists.advance(agent, item.id, ChecklistAction.COMPLETE, reason="TodoWrite")
    assert isinstance(service.stop_requested(agent, "h1").decision, Stop)
    assert checklists.get(agent.conversation_id).items[0].verification.mark == "checked"
    assert check_database(store, SCHEMA_VERSION).problems == []


@pytest.mark.spec("V2", "C5")
def test_a_check_that_fails_as_before_is_no_progress_and_never_loops(
    service_with: ServiceWith, plans: Plans, turn: TurnScope
) -> None:
    service = service_with()
    id = completed(plans, turn, Check(command="date +%N | sed 's/^/took 0./;s/$/s/'; echo 1 failed; exit 1"))
    for _ in range(SUPERVISOR.limits.stall_after):
        prompt(service, turn)
        complete(plans, turn, id)
    decision = service.stop_requested(turn, "h1").decision
    assert isinstance(decision, Stop)
    assert decision.reason is Reason.STALLED
    assert first(plans, turn).status is PlanStatus.PENDING, "what is not done is not shown as done"


@pytest.mark.spec("V2", "C5")
def test_another_failure_than_before_is_progress(
    service_with: ServiceWith, plans: Plans, turn: TurnScope, tmp_path: Path
) -> None:
    service = service_with()
    id = completed(plans, turn, Check(command="cat left.txt; exit 1"))
    for left in range(SUPERVISOR.limits.stall_after + 2, 0, -1):
        (tmp_path / "left.txt").write_text(f"{left} failed")
        assert f"{left} failed" in prompt(service, turn)
        complete(plans, turn, id)


@pytest.mark.spec("V2")
def test_a_check_that_takes_too_long_counts_as_not_run_and_leaves_nothing_behind(
    service_with: ServiceWith, plans: Plans, turn: TurnScope, tmp_path: Path
) -> None:
    completed(plans, turn, Check(command="sleep 60 & echo $! > pid; wait"))
    begun = time.monotonic()
    stopped = service_with().stop_requested(turn, "h1", deadline=begun + 2)
    assert time.monotonic() - begun < 10
    assert stopped.decision == Stop(Reason.COMPLETED, "nothing is open")
    assert "was not run" in stopped.notice()
    result = first(plans, turn).verified().result
    assert result is not None
    assert result.outcome is CheckOutcome.NOT_RUN
    assert first(plans, turn).verified().mark == "claimed"
    assert has_ended(int((tmp_path / "pid").read_text()))
    assert service_with().stop_requested(turn, "h1").notice() == "", "it is not tried at every stop"


@pytest.mark.spec("V2")
def test_what_no_time_is_left_for_is_run_at_the_next_stop(
    service_with: ServiceWith, plans: Plans, turn: TurnScope
) -> None:
    completed(plans, turn, Check(command="false"))
    past = time.monotonic()
    assert service_with().stop_requested(turn, "h1", deadline=past).decision == Stop(
        Reason.COMPLETED, "nothing is open"
    )
    assert "failed" in prompt(service_with(), turn)


@pytest.mark.spec("V2")
@pytest.mark.parametrize(
    ("by", "trusted", "rules", "runs"),
    [
        (PERSON, True, [], True),
        (PERSON, False, [], False),
        (SYSTEM, True, [], False),
        (SYSTEM, True, [Rule(Verdict.ALLOW, "run_command", (("touch",),))], True),
        (PERSON, True, [Rule(Verdict.DENY, "run_command", (("touch",),))], False),
    ],
    ids=["person", "forged", "agent", "allowed", "denied"],
)
def test_only_what_a_person_wrote_or_policy_allows_is_run(
    service_with: ServiceWith,
    plans: Plans,
    turn: TurnScope,
    tmp_path: Path,
    by: Actor,
    trusted: bool,
    rules: list[Rule],
    runs: bool,
) -> None:
    completed(plans, turn, Check(command="touch ran"), by=by)
    stopped = service_with(rules, trusted=trusted).stop_requested(turn, "h1")
    assert (tmp_path / "ran").exists() == runs
    assert isinstance(stopped.decision, Stop)
    assert ("was not run" in stopped.notice()) is not runs
    assert first(plans, turn).verified().mark == ("checked" if runs else "claimed")


@pytest.mark.spec("V2", "X2")
def test_secrets_reach_neither_the_command_nor_the_agent(
    service_with: ServiceWith, plans: Plans, turn: TurnScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-verysecretverysecretverysecret")
    completed(plans, turn, Check(command='echo "key=$OPENAI_API_KEY"; exit 1'))
    assert "verysecret" not in prompt(service_with(), turn)


@pytest.mark.spec("V2")
@pytest.mark.parametrize("file", ["../outside.txt", "/etc/hostname", "link", "pipe"])
def test_a_file_outside_of_the_workspace_or_of_another_kind_is_not_read(
    service_with: ServiceWith, plans: Plans, turn: TurnScope, tmp_path: Path, file: str
) -> None:
    (tmp_path.parent / "outside.txt").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path.parent / "outside.txt")
    os.mkfifo(tmp_path / "pipe")
    completed(plans, turn, Check(file=file, contains="x"))
    assert "was not run" in service_with().stop_requested(turn, "h1").notice()


@pytest.mark.spec("V2", "V4")
def test_what_a_person_has_accepted_is_not_checked(service_with: ServiceWith, plans: Plans, turn: TurnScope) -> None:
    id = completed(plans, turn, Check(command="false"))
    plans.accept(replace(turn, actor=PERSON), id)
    assert service_with().stop_requested(turn, "h1").decision == Stop(Reason.COMPLETED, "nothing is open")


@pytest.mark.spec("V2")
def test_an_agent_that_is_not_sent_back_is_not_checked(
    store: Store, conversations: Conversations, service_with: ServiceWith, plans: Plans, turn: TurnScope
) -> None:
    completed(plans, turn, Check(command="false"))
    conversations.end_turn(Scope(turn.conversation_id, PERSON), reason="lunch")
    assert isinstance(service_with().stop_requested(turn, "h1").decision, Stop)
    with store.read():
        assert plans.list(turn, list(PlanStatus)).items[0].status is PlanStatus.COMPLETED
