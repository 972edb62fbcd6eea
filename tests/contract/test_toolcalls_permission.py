"""What may run, what is asked about, and what each answer means (S4)."""

from __future__ import annotations

import pytest
from tests.contract.front import nothing_changes
from tests.contract.toolcalls import (
    AGENT,
    ANN,
    BOB,
    Desk,
    ServerTool,
    approval,
    request,
    run,
    soon,
    steps,
    stored,
    way,
    yes,
)

from punchlist.conversations.model import Scope
from punchlist.conversations.service import Conversations
from punchlist.errors import InvalidInput, NotAllowed
from punchlist.kernel.events import Actor, Role
from punchlist.kernel.ids import new_id
from punchlist.storage.store import Store
from punchlist.toolcalls.approvals import ApprovalAnswer, ApprovalOutcome
from punchlist.toolcalls.lifecycle import CallStatus
from punchlist.toolcalls.model import CancelledToolCall, ScheduledToolCall, SuccessfulToolCall, WaitingToolCall
from punchlist.toolcalls.policy import Mode, Rule, RuleLifetime, Verdict
from punchlist.toolcalls.tool import Effect

pytestmark = pytest.mark.spec("S4")

ALLOW, ASK, DENY = Verdict.ALLOW, Verdict.ASK, Verdict.DENY


def test_what_is_asked_about_does_not_run_and_the_question_says_what_and_why(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            (call,) = await desk.waiting(request("shell", {"line": "git push"}))
            assert isinstance(call, WaitingToolCall)
            assert "git push" in call.question.text
            assert call.question.why == "running commands needs approval in mode default"
            assert desk.ran == []

    run(scene())
    assert approval(store).question.count("git push") == 1


def test_what_is_denied_never_runs_and_the_model_is_told_why(store: Store) -> None:
    async def scene() -> None:
        rule = Rule(DENY, "work", why="not on Fridays", source="punchlist.toml")
        async with Desk(store, rules=[rule]) as desk:
            (call,) = await desk.do(request("work"))
            assert isinstance(call, CancelledToolCall)
            assert call.reason == "Denied: deny work (punchlist.toml): not on Fridays."
            assert desk.ran == []

    run(scene())
    assert way(store) == ["validating", "scheduled", "cancelled"]
    assert {event.actor for event in steps(store)} == {"supervisor:agent", "system:punchlist"}


def test_plan_mode_reads_and_does_nothing_else(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.PLAN) as desk:
            calls = await desk.do(
                request("look", {}, "a"), request("edit", {"path": "x"}, "b"), request("work", {}, "c")
            )
            assert [call.status for call in calls] == [CallStatus.SUCCESS, CallStatus.CANCELLED, CallStatus.CANCELLED]
            assert desk.ran == ["it"]

    run(scene())


def test_once_means_once(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            await desk.waiting(request("work"))
            await desk.say("a", ApprovalOutcome.PROCEED_ONCE)
            (again,) = await desk.waiting(request("work", {}, "b"))
            assert again.status is CallStatus.AWAITING_APPROVAL

    run(scene())


def test_always_for_a_tool_releases_those_that_wait_and_lets_later_ones_run(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            await desk.waiting(
                request("work", {"on": "1"}, "a"),
                request("work", {"on": "2"}, "b"),
                request("edit", {"path": "x"}, "c"),
            )
            await desk.say("a", ApprovalOutcome.PROCEED_ALWAYS_TOOL)
            (later,) = await desk.do(request("work", {"on": "3"}, "d"))
            assert later.status is CallStatus.SUCCESS
            assert sorted(desk.ran) == ["1", "2", "3"]
            (left,) = desk.scheduler.calls
            assert left.request.call_id == "c"

    run(scene())
    assert approval(store, "b").answered_by == "person:ann"


def test_always_holds_in_this_session_after_a_restart_and_in_no_other(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            await desk.waiting(request("work"))
            await desk.say("a", ApprovalOutcome.PROCEED_ALWAYS_TOOL)
            await desk.over()
        async with Desk(store, Mode.DEFAULT) as again:
            (call,) = await again.do(request("work", {}, "b"))
            assert call.status is CallStatus.SUCCESS
        async with Desk(store, Mode.DEFAULT, scope=Scope("another", AGENT.actor)) as elsewhere:
            (asked,) = await elsewhere.waiting(request("work", {}, "c"))
            assert asked.status is CallStatus.AWAITING_APPROVAL

    run(scene())


def test_a_deny_of_the_settings_beats_always(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            await desk.waiting(request("work"))
            await desk.say("a", ApprovalOutcome.PROCEED_ALWAYS_TOOL)
            await desk.over()
        async with Desk(store, Mode.DEFAULT, rules=[Rule(DENY, "work")]) as again:
            (call,) = await again.do(request("work", {}, "b"))
            assert (call.status, again.ran) == (CallStatus.CANCELLED, [])

    run(scene())


def test_always_does_not_reach_into_plan_mode(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            await desk.waiting(request("work"))
            await desk.say("a", ApprovalOutcome.PROCEED_ALWAYS_TOOL)
            await desk.over()
        async with Desk(store, Mode.PLAN) as planning:
            (call,) = await planning.do(request("work", {}, "b"))
            assert (call.status, planning.ran) == (CallStatus.CANCELLED, [])

    run(scene())


def test_always_for_a_prefix_allows_commands_that_begin_so_and_no_others(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            (asked,) = await desk.waiting(request("shell", {"line": "git status --short"}))
            assert isinstance(asked, WaitingToolCall)
            assert asked.question.prefixes == (("git", "status"),)
            await desk.say("a", ApprovalOutcome.PROCEED_ALWAYS_PREFIX)
            await desk.over()
        async with Desk(store, Mode.DEFAULT) as desk:
            lines = ["git status", "git push", "git status && rm x", "git status | tee y", "git status $(rm x)"]
            calls = await desk.waiting(*[request("shell", {"line": line}, f"c{n}") for n, line in enumerate(lines)])
            assert [call.status for call in calls] == [CallStatus.SUCCESS, *[CallStatus.AWAITING_APPROVAL] * 4]
            assert desk.ran == ["git status"]

    run(scene())


def test_always_for_an_exact_command_does_not_cover_what_its_input_says(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            await desk.waiting(request("shell", {"line": "ssh h sh"}))
            await desk.say("a", ApprovalOutcome.PROCEED_ALWAYS_PREFIX, lifetime=RuleLifetime.PERMANENT)
            await desk.over()
        async with Desk(store, Mode.DEFAULT) as desk:
            lines = ["ssh h sh", "ssh h sh <<< 'rm x'", "ssh h sh <<E\nrm x\nE", "echo rm x | ssh h sh", "ssh h sh < a"]
            calls = await desk.waiting(*[request("shell", {"line": line}, f"c{n}") for n, line in enumerate(lines)])
            assert [call.status for call in calls] == [CallStatus.SUCCESS, *[CallStatus.AWAITING_APPROVAL] * 4]
            for call in calls[1:]:
                assert isinstance(call, WaitingToolCall)
                assert ApprovalOutcome.PROCEED_ALWAYS_PREFIX not in call.question.outcomes
            assert desk.ran == ["ssh h sh"]

    run(scene())


def test_always_for_a_server_allows_its_tools_and_no_others(store: Store) -> None:
    async def scene() -> None:
        tools = [ServerTool("s_a", "s"), ServerTool("s_b", "s", Effect.EXECUTE), ServerTool("t_a", "t")]
        async with Desk(store, Mode.DEFAULT, tools=tools) as desk:
            await desk.waiting(request("s_a"))
            await desk.say("a", ApprovalOutcome.PROCEED_ALWAYS_SERVER)
            calls = await desk.waiting(request("s_b", {}, "b"), request("t_a", {}, "c"), request("work", {}, "d"))
            waits = CallStatus.AWAITING_APPROVAL
            assert [call.status for call in calls] == [CallStatus.SUCCESS, waits, waits]

    run(scene())


def test_always_ends_when_the_server_says_something_else_of_its_tool(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT, tools=[ServerTool(fingerprint="1")]) as desk:
            await desk.waiting(request("srv_do"))
            await desk.say("a", ApprovalOutcome.PROCEED_ALWAYS_SERVER)
            await desk.over()
        async with Desk(store, Mode.DEFAULT, tools=[ServerTool(fingerprint="2")]) as again:
            (call,) = await again.waiting(request("srv_do", {}, "b"))
            assert isinstance(call, WaitingToolCall)
            assert "has changed" in call.question.why
            await again.say("b")
            await again.over()
            (after,) = await again.do(request("srv_do", {}, "c"))
            assert after.status is CallStatus.SUCCESS

    run(scene())


@pytest.mark.parametrize("outcome", [ApprovalOutcome.PROCEED_ALWAYS_PREFIX, ApprovalOutcome.PROCEED_ALWAYS_SERVER])
def test_an_answer_that_makes_no_sense_is_refused(store: Store, outcome: ApprovalOutcome) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            await desk.waiting(request("work"))
            with nothing_changes(store), pytest.raises(InvalidInput, match="is not possible for this question"):
                await desk.say("a", outcome)
            assert [call.status for call in desk.scheduler.calls] == [CallStatus.AWAITING_APPROVAL]

    run(scene())


def test_modified_arguments_are_those_that_run_and_those_on_record(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            batch = desk.scheduler.schedule(request("work", {"on": "prod"}))
            await batch.settled()
            await desk.say("a", ApprovalOutcome.MODIFY, arguments={"on": "test", "times": 2})
            (call,) = await soon(batch.ended())
            assert isinstance(call, SuccessfulToolCall)
            assert call.request.arguments == {"on": "test", "times": 2}
            assert desk.ran == ["test"]

    run(scene())
    assert stored(store).arguments == '{"on":"test","times":2}'


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"on": 5}, "on: "),
        ({"off": "x"}, "off: is not a parameter"),
        (None, "arguments: required"),
        ({"on": "prod"}, "policy denies"),
    ],
)
def test_arguments_that_cannot_be_leave_the_call_waiting(
    store: Store, arguments: dict[str, object] | None, why: str
) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT, rules=[Rule(DENY, "work", arguments={"on": "prod"})]) as desk:
            await desk.waiting(request("work", {"on": "test"}))
            with nothing_changes(store), pytest.raises(InvalidInput, match=why):
                await desk.say("a", ApprovalOutcome.MODIFY, arguments=arguments)
            await desk.say("a")
            await desk.over()
            assert desk.ran == ["test"]

    run(scene())


def test_a_modified_file_is_the_one_that_is_locked() -> None:
    async def scene() -> None:
        async with Desk(None, Mode.DEFAULT) as desk:
            await desk.waiting(request("edit", {"path": "x"}))
            await desk.say("a", ApprovalOutcome.MODIFY, arguments={"path": "y"})
            await desk.over()
            assert desk.ran == ["y"]
            assert not desk.scheduler._calls._locks._keys

    run(scene())


def test_a_no_tells_the_model_who_and_why(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            batch = desk.scheduler.schedule(request("work"))
            await batch.settled()
            await desk.say("a", ApprovalOutcome.CANCEL, reason="use the staging server")
            (call,) = await soon(batch.ended())
            assert isinstance(call, CancelledToolCall)
            assert call.reason == "ann denied this call: use the staging server"
            assert desk.ran == []

    run(scene())
    assert stored(store).explanation == "ann denied this call: use the staging server"
    assert (steps(store, "a")[-1].action, steps(store, "a")[-1].actor) == ("deny", "person:ann")


@pytest.mark.parametrize("reason", ["\x1b[31m", "x" * 2_001, "\ud800"])
def test_a_reason_that_cannot_be_kept_is_refused(store: Store, reason: str) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            await desk.waiting(request("work"))
            with nothing_changes(store), pytest.raises(InvalidInput, match="reason: "):
                await desk.say("a", ApprovalOutcome.CANCEL, reason=reason)

    run(scene())


@pytest.mark.spec("S5")
def test_nobody_but_a_person_answers(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            await desk.waiting(request("work"))
            with nothing_changes(store):
                for role in (Role.WORKER, Role.SUPERVISOR, Role.SYSTEM):
                    for outcome in (
                        ApprovalOutcome.PROCEED_ONCE,
                        ApprovalOutcome.PROCEED_ALWAYS_TOOL,
                        ApprovalOutcome.CANCEL,
                    ):
                        with pytest.raises(NotAllowed):
                            await desk.say("a", outcome, by=Actor(role, "x"))
            (call,) = desk.scheduler.calls
            assert (call.status, desk.ran, desk.policy.session_rules) == (CallStatus.AWAITING_APPROVAL, [], [])

    run(scene())


@pytest.mark.spec("S5")
def test_what_a_worker_wants_instead_never_runs_when_a_person_says_yes_to_what_they_saw(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            await desk.waiting(request("work", {"on": "good"}))
            with pytest.raises(NotAllowed):
                await desk.say("a", ApprovalOutcome.MODIFY, by=Actor(Role.WORKER, "w"), arguments={"on": "evil"})
            await desk.say("a")
            await desk.over()
            assert desk.ran == ["good"]

    run(scene())


def test_modifying_one_of_two_identical_calls_says_nothing_of_the_other() -> None:
    async def scene() -> None:
        async with Desk(None, Mode.DEFAULT) as desk:
            batch = desk.scheduler.schedule([request("work", {"on": "prod"}, id) for id in "ab"])
            await batch.settled()
            await desk.say("a", ApprovalOutcome.MODIFY, arguments={"on": "test"})
            await soon(batch.settled())
            assert batch.calls[0].status is CallStatus.SUCCESS
            assert batch.calls[1].status is CallStatus.AWAITING_APPROVAL

    run(scene())


def test_the_one_who_asks_gets_the_question_and_its_answer_is_taken(store: Store) -> None:
    async def scene() -> None:
        asked: list[str] = []

        async def ask(call: WaitingToolCall, problem: str | None) -> ApprovalAnswer:
            asked.append(call.request.call_id)
            return yes(ApprovalOutcome.CANCEL, BOB, reason="no") if call.request.call_id == "b" else yes(by=ANN)

        async with Desk(store, Mode.DEFAULT, ask=ask) as desk:
            calls = await desk.do(*[request("work", {"on": id}, id) for id in "abc"])
            assert [call.status for call in calls] == [CallStatus.SUCCESS, CallStatus.CANCELLED, CallStatus.SUCCESS]
            assert asked == ["a", "b", "c"]

    run(scene())


def test_one_who_asks_in_vain_or_fails_leaves_the_call_waiting(store: Store) -> None:
    async def scene() -> None:
        async def ask(call: WaitingToolCall, problem: str | None) -> None:
            if call.request.call_id == "b":
                raise LookupError("the terminal is gone")

        async with Desk(store, Mode.DEFAULT, ask=ask) as desk:
            await desk.waiting(*[request("work", {"on": id}, id) for id in "ab"])
            await desk.say("a")
            await desk.say("b")
            await desk.over()
            assert sorted(desk.ran) == ["a", "b"]

    run(scene())


def test_a_call_that_was_let_run_says_who_let_it() -> None:
    async def scene() -> None:
        async with Desk(None, Mode.DEFAULT) as desk:
            await desk.waiting(request("work"))
            await desk.say("a")
            await desk.over()
            allowed = [one.call for one in desk.heard.transitions if one.action == "approve"]
            assert isinstance(allowed[0], ScheduledToolCall)
            assert allowed[0].permission is not None
            assert allowed[0].permission.why == "person:ann said proceed once"

    run(scene())


def test_a_change_of_the_mode_takes_effect_at_once(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            await desk.waiting(request("work", {"on": "1"}, "a"))
            desk.policy.mode = Mode.YOLO
            await desk.heard_of("a")
            (next_one,) = await desk.do(request("work", {"on": "2"}, "b"))
            assert next_one.status is CallStatus.SUCCESS
            assert desk.ran == ["1", "2"]
            desk.policy.mode = Mode.DEFAULT
            await desk.waiting(request("work", {"on": "3"}, "c"))
            desk.policy.mode = Mode.PLAN
            await desk.heard_of("c")
            assert desk.ran == ["1", "2"]

    run(scene())
    assert stored(store, "c").status == CallStatus.CANCELLED
    assert "in mode plan" in (stored(store, "c").explanation or "")


def test_a_permanent_always_holds_in_other_sessions_of_the_project(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            await desk.waiting(request("shell", {"line": "git status"}))
            await desk.say("a", ApprovalOutcome.PROCEED_ALWAYS_PREFIX, lifetime=RuleLifetime.PERMANENT)
            await desk.over()
        async with Desk(store, Mode.DEFAULT, scope=Scope("another", AGENT.actor)) as elsewhere:
            (call,) = await elsewhere.do(request("shell", {"line": "git status -s"}, "b"))
            assert call.status is CallStatus.SUCCESS

    run(scene())


def test_an_always_for_this_run_ends_with_the_turn_also_in_a_process_that_goes_on(store: Store) -> None:
    """A worker's process lasts for months, and an interrupted turn goes on in another process."""
    conversations = Conversations(store)

    async def scene(turn: str, *, asked: bool, always: bool = False) -> None:
        async with Desk(store, Mode.DEFAULT, turn_id=turn) as desk:
            (call,) = await desk.waiting(request("shell", {"line": "git status"}, f"{turn}-{new_id()}"))
            assert (call.status is CallStatus.AWAITING_APPROVAL) == asked
            if always:
                outcome = ApprovalOutcome.PROCEED_ALWAYS_PREFIX
                await desk.say(call.request.call_id, outcome, lifetime=RuleLifetime.RUN)
                await desk.over()

    first = conversations.open_turn(AGENT).id
    run(scene(first, asked=True, always=True))
    run(scene(first, asked=False))
    conversations.end_turn(AGENT, reason="completed")
    second = conversations.open_turn(AGENT).id
    run(scene(second, asked=True))
