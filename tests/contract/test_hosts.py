"""Agents of others: sent back to their list by the governor that our own agents have, and never without end (X2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import StoppedClock
from tests.contract.front import call, plan, todo, todo_write

from punchlist.agent.continuation import Continue, Decision, Reason, Stop, Wait
from punchlist.agent.definitions import BUILT_IN, AgentDefinition
from punchlist.agent.message_kinds import CONTINUATION
from punchlist.checklist.lifecycle import ChecklistAction
from punchlist.checklist.service import Checklists
from punchlist.conversations.model import MessageRole, Scope, TurnScope
from punchlist.conversations.service import Conversations
from punchlist.integrations.background_work import BackgroundWork
from punchlist.integrations.hook_service import LEFT, OF_BEFORE, OF_OURS, HookService
from punchlist.integrations.native_lists import OWN_TOOLS, fitted, own_list, own_tasks
from punchlist.kernel.actors import Actor, Role
from punchlist.kernel.process_id import this_process
from punchlist.plan.service import Plans
from punchlist.storage.store import Store

SUPERVISOR = BUILT_IN["supervisor"]
PERSON = Actor(Role.PERSON, "ann")
HostsOf = Callable[..., HookService]


@pytest.fixture
def hosts(store: Store, conversations: Conversations, checklists: Checklists) -> HookService:
    return HookService(store, conversations, checklists, SUPERVISOR)


@pytest.fixture
def hosts_of(store: Store, conversations: Conversations, checklists: Checklists) -> HostsOf:
    def made(agent: AgentDefinition = SUPERVISOR, **limits: Any) -> HookService:
        agent = replace(agent, limits=replace(agent.limits, **limits))
        return HookService(store, conversations, checklists, agent)

    return made


def stop(hosts: HookService, scope: Scope, session: str | None = "h1", most: int | None = None) -> Decision:
    return hosts.stopped(scope, session, most=most).decision


def sent_back(hosts: HookService, scope: Scope, at_most: int = 50) -> int:
    """How often an agent that does nothing is sent back."""
    for count in range(at_most):
        if not isinstance(stop(hosts, scope), Continue):
            return count
    return at_most


@pytest.mark.spec("X2", "C3", "C13")
def test_one_that_stops_early_is_told_how_many_are_left_and_which_is_next(
    hosts: HookService, plans: Plans, turn: TurnScope
) -> None:
    first, second = plan(plans, turn, "Build it", "Try it")
    call(plans, turn, "start_todo", todoId=second)
    decision = stop(hosts, turn)
    assert isinstance(decision, Continue)
    assert "2 items are not done yet" in decision.prompt
    assert "“Try it”" in decision.prompt
    for id in (second, first):
        call(plans, turn, "complete_todo", todoId=id, outcome="done")
    assert stop(hosts, turn) == Stop(Reason.COMPLETED, "nothing is open")


@pytest.mark.spec("X2", "C5")
def test_one_that_does_nothing_is_let_go_as_stalled_and_a_change_begins_the_count_anew(
    hosts: HookService, checklists: Checklists, agent: Scope
) -> None:
    todo_write(checklists, agent, [todo("A"), todo("B")])
    assert sent_back(hosts, agent) == 3
    decision = stop(hosts, agent)
    assert isinstance(decision, Stop)
    assert decision.reason is Reason.STALLED
    todo_write(checklists, agent, [todo("A", "completed"), todo("B")])
    assert sent_back(hosts, agent) == 3
    todo_write(checklists, agent, [todo("A", "completed"), todo("B", "completed")])
    assert sent_back(hosts, agent) == 0


@pytest.mark.spec("X2", "C4")
def test_one_that_dawdles_is_capped_and_a_prompt_begins_the_count_anew(
    hosts_of: HostsOf, checklists: Checklists, agent: Scope
) -> None:
    hosts = hosts_of(continuations=5)

    def dawdle() -> tuple[int, Decision]:
        for count in range(50):
            todo_write(checklists, agent, [todo("A"), todo(f"B{count}")])
            decision = stop(hosts, agent)
            if not isinstance(decision, Continue):
                return count, decision
        raise AssertionError("it went on without end")

    count, decision = dawdle()
    assert count == 5
    assert decision == Stop(Reason.CAPPED, "continued 5 times, the limit")
    hosts.prompted(agent, "Go on!")
    assert dawdle()[0] == 5


@pytest.mark.spec("X2", "C4")
def test_counting_does_not_lose_count_however_much_happens_in_between(
    hosts_of: HostsOf, plans: Plans, turn: TurnScope
) -> None:
    hosts = hosts_of(continuations=2)
    plan(plans, turn, "never done")
    for _ in range(2):
        assert isinstance(stop(hosts, turn), Continue)
        for _ in range(4):
            for id in plan(plans, turn, *(f"step {number}" for number in range(50))):
                call(plans, turn, "complete_todo", todoId=id, outcome="done")
    assert stop(hosts, turn) == Stop(Reason.CAPPED, "continued 2 times, the limit")


@pytest.mark.spec("X2", "C4")
def test_the_pause_before_it_is_sent_back_grows_as_long_as_nothing_comes_of_it(
    hosts_of: HostsOf, checklists: Checklists, agent: Scope
) -> None:
    todo_write(checklists, agent, [todo("A")])
    hosts = hosts_of(replace(SUPERVISOR, check_interval=0.5))
    assert [hosts.stopped(agent, "h1").pause for _ in range(4)] == [0.5, 1.0, 2.0, 0.0]


@pytest.mark.spec("X2")
def test_a_host_that_lets_itself_be_sent_back_only_so_often_is_told_why_in_time(
    hosts: HookService, checklists: Checklists, agent: Scope
) -> None:
    for content in ("A", "B"):
        todo_write(checklists, agent, [todo(content)])
        for _ in range(2):
            assert isinstance(stop(hosts, agent, most=2), Continue)
        decision = stop(hosts, agent, most=2)
        assert decision == Stop(Reason.CAPPED, "its program lets itself be sent back 2 times in a row")


@pytest.mark.spec("X2", "C10")
def test_a_list_that_waits_lets_go_and_says_for_what(hosts: HookService, plans: Plans, turn: TurnScope) -> None:
    (id,) = plan(plans, turn, "Deploy")
    call(plans, turn, "wait_todo", todoId=id, **{"for": {"person": "May I?"}})
    decision = stop(hosts, turn)
    assert isinstance(decision, Wait)
    assert "May I?" in decision.on[0]


@pytest.mark.spec("X2", "C6")
def test_a_budget_of_time_lets_go(hosts_of: HostsOf, plans: Plans, turn: TurnScope, clock: StoppedClock) -> None:
    hosts = hosts_of(seconds=60.0)
    plan(plans, turn, "Slow work")
    assert isinstance(stop(hosts, turn), Continue)
    clock.advance(seconds=61)
    decision = stop(hosts, turn)
    assert isinstance(decision, Stop)
    assert decision.reason is Reason.BUDGET


@pytest.mark.spec("X2", "C1")
def test_with_continuation_switched_off_it_may_stop(hosts_of: HostsOf, plans: Plans, turn: TurnScope) -> None:
    plan(plans, turn, "Open")
    decision = stop(hosts_of(replace(SUPERVISOR, todo_driven=False)), turn)
    assert isinstance(decision, Stop)
    assert decision.reason is Reason.OPEN


@pytest.mark.spec("X2", "C14")
def test_a_person_who_ends_the_turn_wins_until_there_is_a_new_prompt(
    hosts: HookService, checklists: Checklists, conversations: Conversations, plans: Plans, agent: Scope
) -> None:
    todo_write(checklists, agent, [todo("A")])
    assert isinstance(stop(hosts, agent), Continue)
    conversations.end_turn(Scope(agent.conversation_id, PERSON), reason="enough")
    # The agent, still at work, opens a turn by using its plan: the person has not changed their mind.
    opened = conversations.open_turn(agent)
    plan(plans, TurnScope(agent.conversation_id, agent.actor, opened.id), "One more thing")
    decision = stop(hosts, agent)
    assert isinstance(decision, Stop)
    assert (decision.reason, "enough" in decision.why) == (Reason.CANCELLED, True)
    hosts.prompted(agent, "Now go on.")
    assert isinstance(stop(hosts, agent), Continue)


@pytest.mark.spec("T7", "X2")
def test_a_prompt_ends_the_turn_and_tells_what_was_left_of_its_plan(
    hosts: HookService, conversations: Conversations, checklists: Checklists, plans: Plans, turn: TurnScope
) -> None:
    plan(plans, turn, "Left over")
    todo_write(checklists, turn, [todo("On the checklist")])
    told = hosts.prompted(turn, "Something else")
    assert "Left over" in told
    assert "On the checklist" not in told
    assert conversations.turn(turn.turn_id).end_reason == "a new prompt"
    new = conversations.current_turn(turn.conversation_id)
    assert new is not None
    assert [(m.role, m.content) for m in conversations.of_turn(new.id)] == [(MessageRole.USER, "Something else")]
    assert hosts.prompted(turn, "  ") == ""


@pytest.mark.spec("X2", "X6")
def test_a_plan_that_a_person_has_made_before_they_say_anything_is_the_agents(
    hosts: HookService, conversations: Conversations, plans: Plans, agent: Scope
) -> None:
    person = Scope(agent.conversation_id, PERSON)
    turn = TurnScope(agent.conversation_id, PERSON, conversations.open_turn(person, reason="import").id)
    plan(plans, replace(turn, actor=agent.actor), "Imported")
    assert "Imported" in hosts.prompted(agent, "Do what is planned.")
    decision = stop(hosts, agent)
    assert isinstance(decision, Continue)
    assert "“Imported”" in decision.prompt
    # What the user says next is a new turn, as always.
    assert "not finished" in hosts.prompted(agent, "Something else.")
    assert stop(hosts, agent) == Stop(Reason.COMPLETED, "nothing is open")


@pytest.mark.spec("C4", "X2")
def test_our_own_words_handed_on_as_a_prompt_begin_nothing(
    hosts: HookService, checklists: Checklists, agent: Scope
) -> None:
    """Gemini CLI tells its prompt hook of the reason with which it was sent back."""
    todo_write(checklists, agent, [todo("A")])
    count = 0
    while isinstance(decision := stop(hosts, agent), Continue):
        hosts.prompted(agent, f"<hook>{decision.prompt}</hook>")
        count += 1
        assert count < 10
    assert count == 3


@pytest.mark.spec("X2")
def test_a_list_of_an_earlier_session_sends_back_once_until_it_is_touched(
    hosts: HookService, checklists: Checklists, agent: Scope
) -> None:
    todo_write(checklists, agent, [todo("Of yesterday")])
    assert "Of yesterday" in hosts.began(agent, "new", fresh=True)
    for _ in range(2):
        hosts.prompted(agent, "Just a question.")
    decision = stop(hosts, agent, "new")
    assert isinstance(decision, Continue)
    assert "If not, leave it, and answer the user." in decision.prompt
    hosts.prompted(agent, "Another question.")
    assert stop(hosts, agent, "new") == Stop(Reason.OPEN, OF_BEFORE)
    todo_write(checklists, agent, [todo("Of yesterday", "in_progress")])
    assert isinstance(stop(hosts, agent, "new"), Continue)
    # One that goes on, or was compacted, has no list of before: it is its own.
    assert "in_progress" not in hosts.began(agent, "new", fresh=False)
    assert "Of yesterday" in hosts.began(agent, "new", fresh=False)


@pytest.mark.spec("W7")
def test_a_session_without_a_list_is_reminded_once(
    hosts: HookService, hosts_of: HostsOf, checklists: Checklists, agent: Scope
) -> None:
    assert "no list yet" in hosts.began(agent, "a", fresh=True)
    assert hosts.began(agent, "a", fresh=True) == ""
    assert hosts.began(agent, "a", fresh=False) == ""
    assert hosts_of(replace(SUPERVISOR, remind_after=None)).began(agent, "b", fresh=True) == ""


@pytest.mark.spec("W7")
def test_one_that_works_on_without_touching_its_list_is_reminded_once_for_each_state_of_it(
    hosts: HookService, checklists: Checklists, agent: Scope
) -> None:
    assert hosts.used(agent, "a", 10) == ""
    todo_write(checklists, agent, [todo("A"), todo("B")])
    assert "has not changed for 10" in hosts.used(agent, "a", 10)
    assert hosts.used(agent, "a", 10) == ""
    todo_write(checklists, agent, [todo("A", "completed"), todo("B")])
    assert "“B”" in hosts.used(agent, "a", 10)


@pytest.mark.spec("X2")
def test_a_list_that_the_agent_keeps_itself_is_copied_and_finished(
    hosts: HookService, checklists: Checklists, agent: Scope
) -> None:
    def update(*plan: tuple[str, str]) -> bool:
        arguments = {"plan": [{"step": step, "status": status} for step, status in plan]}
        todos = own_list("update_plan", arguments)
        assert todos is not None
        return hosts.copied(agent, todos)

    assert update(("Read", "in_progress"), ("Write", "pending"))
    decision = stop(hosts, agent)
    assert isinstance(decision, Continue)
    assert "“Read”" in decision.prompt
    assert update(("Read", "completed"), ("Write", "completed"))
    assert stop(hosts, agent) == Stop(Reason.COMPLETED, "nothing is open")
    # What a person adds to the copy stays on it, and the copying goes on.
    assert update(("Read", "pending"))
    checklists.add(Scope(agent.conversation_id, PERSON), "Of a person", reason="todos add")
    for status in ("in_progress", "pending", "completed"):
        assert update(("Read", status))
        assert [(item.content, item.status) for item in checklists.get(agent.conversation_id).items] == [
            ("Read", status),
            ("Of a person", "pending"),
        ]
    # One is in progress: it is the agent's, while it has one.
    checklists.advance(Scope(agent.conversation_id, PERSON), "2", ChecklistAction.START, reason="todos start")
    assert update(("Read", "in_progress"))
    assert [item.status for item in checklists.get(agent.conversation_id).items] == ["in_progress", "pending"]
    # What a person wants to be done again is not what was done before.
    assert update(("Read", "completed"), ("Of a person", "completed"))
    checklists.add(Scope(agent.conversation_id, PERSON), "Read", reason="todos add")
    assert update(("Read", "completed"), ("Of a person", "completed"), ("More", "completed"))
    assert [(item.content, item.status) for item in checklists.get(agent.conversation_id).items][-1] == (
        "Read",
        "pending",
    )
    checklists.clear(Scope(agent.conversation_id, PERSON), reason="todos clear")
    # A list that was written with our tool is not overwritten by one of another kind.
    todo_write(checklists, agent, [todo("Ours")])
    assert not update(("Theirs", "pending"))
    assert [item.content for item in checklists.get(agent.conversation_id).items] == ["Ours"]


_status = st.sampled_from(["pending", "in_progress", "completed", "cancelled", "done", "odd", 7, None])
_item = st.fixed_dictionaries(
    {},
    optional={
        "content": st.text() | st.none(),
        "step": st.text(max_size=700),
        "description": st.text(),
        "status": _status,
        "activeForm": st.text() | st.integers(),
    },
)


@given(
    tool=st.sampled_from(sorted(OWN_TOOLS)),
    items=st.lists(_item | st.none() | st.text(), max_size=40),
)
@settings(max_examples=300, deadline=None)
def test_whatever_an_agent_keeps_itself_can_be_copied(tool: str, items: list[Any]) -> None:
    from punchlist.checklist import validation as checklist_validation

    for key in ("todos", "plan"):
        todos = own_list(tool, {key: items})
        assert todos is None or len(checklist_validation.parse_todos(fitted(todos))) == min(
            len(todos), checklist_validation.MAX_ITEMS
        )
    assert own_list(tool, None) is None
    assert own_list("Bash", {"todos": items}) is None


@pytest.mark.spec("X2")
def test_what_is_open_stays_on_a_copy_before_what_is_done() -> None:
    statuses = ["completed"] * 17 + ["pending"] * 5 + ["in_progress"]
    own = [{"content": f"{number}", "activeForm": "", "status": status} for number, status in enumerate(statuses)]
    others = [
        {"id": f"{number}", "content": f"Of a person {number}", "activeForm": "", "status": "in_progress"}
        for number in range(3)
    ]
    kept = fitted(own, [*others, {**own[20], "id": "taken over"}], ["0", "1", "2", "taken over"])
    assert [item["content"] for item in kept] == [
        *(f"{number}" for number in range(6, 23)),
        *(item["content"] for item in others),
    ]
    assert [item["content"] for item in kept if item["status"] == "in_progress"] == ["22"]
    assert [item["status"] for item in own] == statuses


@pytest.mark.spec("X2")
def test_a_change_of_a_person_at_the_same_moment_is_not_lost(
    hosts: HookService, checklists: Checklists, agent: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts.copied(agent, own_tasks(['{"subject": "Read", "status": "pending"}']))
    rewrite = checklists.rewrite

    def slowly(*args: Any, **kwargs: Any) -> Any:
        if len(checklists.get(agent.conversation_id).items) == 1:
            checklists.add(Scope(agent.conversation_id, PERSON), "Of a person", reason="todos add")
        return rewrite(*args, **kwargs)

    monkeypatch.setattr(checklists, "rewrite", slowly)
    assert hosts.copied(agent, own_tasks(['{"subject": "Read", "status": "completed"}']))
    assert [item.content for item in checklists.get(agent.conversation_id).items] == ["Read", "Of a person"]


@pytest.mark.spec("X2")
def test_tasks_that_the_model_does_not_know_of_are_not_copied() -> None:
    hidden = '{"subject": "Hidden", "status": "pending", "metadata": {"_internal": true}}'
    shown = '{"subject": "Shown", "status": "pending", "metadata": {"_internal": false}}'
    assert [item["content"] for item in own_tasks([hidden, shown, "[]", "{", "null"])] == ["Shown"]


@pytest.mark.spec("C16", "X2")
def test_sessions_do_not_share_their_counts(hosts: HookService, checklists: Checklists, agent: Scope) -> None:
    other = Scope("another", agent.actor)
    for scope in (agent, other):
        todo_write(checklists, scope, [todo("A")])
    assert sent_back(hosts, agent) == 3
    assert sent_back(hosts, other) == 3


@pytest.mark.spec("C14", "X2")
def test_our_own_words_do_not_undo_that_a_person_has_ended_the_turn(
    hosts: HookService, checklists: Checklists, conversations: Conversations, agent: Scope
) -> None:
    todo_write(checklists, agent, [todo("A")])
    decision = stop(hosts, agent)
    assert isinstance(decision, Continue)
    conversations.end_turn(Scope(agent.conversation_id, PERSON), reason="enough")
    hosts.prompted(agent, decision.prompt)
    after = stop(hosts, agent)
    assert isinstance(after, Stop)
    assert after.reason is Reason.CANCELLED


@pytest.mark.spec("X2", "C16")
def test_nobody_is_sent_back_to_what_one_of_our_own_agents_works_on(
    hosts: HookService, conversations: Conversations, plans: Plans, agent: Scope
) -> None:
    turn = conversations.begin_turn(agent, reason="a new request", owner=this_process())
    plan(plans, TurnScope(agent.conversation_id, agent.actor, turn.id), "Of ours")
    assert stop(hosts, agent) == Stop(Reason.OPEN, OF_OURS)
    assert conversations.of_turn(turn.id) == []


@pytest.mark.spec("X2")
def test_of_a_prompt_only_what_is_no_secret_is_kept(
    hosts: HookService, conversations: Conversations, agent: Scope
) -> None:
    hosts.prompted(agent, "Use hunter2", hide=lambda text: text.replace("hunter2", "[hidden]"))
    turn = conversations.current_turn(agent.conversation_id)
    assert turn is not None
    assert [message.content for message in conversations.of_turn(turn.id)] == ["Use [hidden]"]


@pytest.mark.spec("X2")
def test_a_session_whose_memory_was_compacted_is_still_held_to_its_list_and_told_of_its_request(
    hosts: HookService, checklists: Checklists, agent: Scope
) -> None:
    hosts.began(agent, "a", fresh=True)
    hosts.prompted(agent, "Build\nthe house")
    todo_write(checklists, agent, [todo("A")])
    told = hosts.began(agent, "a", fresh=False)
    assert "Your list so far" in told
    assert "last request was: Build the house" in told
    assert [type(stop(hosts, agent, "a")) for _ in range(3)] == [Continue] * 3
    assert "somebody has left it" in hosts.began(agent, "b", fresh=True)
    # The one that has begun since has not touched the list; the first one has.
    todo_write(checklists, agent, [todo("A", "in_progress")])
    hosts.began(agent, "c", fresh=True)
    assert [type(stop(hosts, agent, "a")) for _ in range(2)] == [Continue] * 2
    todo_write(checklists, agent, [todo("A", "completed")])
    assert "somebody has left it" not in hosts.began(agent, "d", fresh=True)


@pytest.mark.spec("X2")
def test_one_that_plans_is_held_to_its_plan_whatever_list_it_has_found(
    hosts: HookService, checklists: Checklists, conversations: Conversations, plans: Plans, agent: Scope
) -> None:
    todo_write(checklists, agent, [todo("Of yesterday")])
    hosts.began(agent, "new", fresh=True)
    turn = conversations.open_turn(agent)
    plan(plans, TurnScope(agent.conversation_id, agent.actor, turn.id), "Mine")
    assert [type(stop(hosts, agent, "new")) for _ in range(2)] == [Continue] * 2


@pytest.mark.spec("T7", "X2")
def test_a_prompt_is_kept_in_part_when_it_is_long_and_leaves_a_turn_of_our_own_agents_alone(
    hosts: HookService, conversations: Conversations, agent: Scope
) -> None:
    hosts.prompted(agent, "x" * 30_000)
    turn = conversations.current_turn(agent.conversation_id)
    assert turn is not None
    assert [len(message.content) for message in conversations.of_turn(turn.id)] == [20_000]
    ours = conversations.begin_turn(agent, reason="a new request", owner=this_process())
    assert hosts.prompted(agent, "Hello") == ""
    assert conversations.current_turn(agent.conversation_id) == ours


@pytest.mark.spec("C14", "X2")
def test_a_turn_that_no_person_has_ended_stops_nobody(
    hosts: HookService, checklists: Checklists, conversations: Conversations, agent: Scope
) -> None:
    todo_write(checklists, agent, [todo("A")])
    conversations.open_turn(agent)
    conversations.end_turn(agent, reason="what it was for has ended")
    assert isinstance(stop(hosts, agent), Continue)


@pytest.mark.spec("W7")
def test_after_a_prompt_the_same_list_is_worth_a_reminder_again(
    hosts: HookService, checklists: Checklists, agent: Scope
) -> None:
    todo_write(checklists, agent, [todo("A")])
    assert hosts.used(agent, "a", 10)
    hosts.prompted(agent, "Go on")
    assert hosts.used(agent, "a", 10)


@pytest.mark.spec("X2", "C16")
def test_what_was_said_to_others_before_does_not_count_for_a_new_session(
    hosts: HookService, checklists: Checklists, conversations: Conversations, agent: Scope
) -> None:
    todo_write(checklists, agent, [todo("A")])
    # One of our own agents was told to go on, too.
    conversations.say(agent, MessageRole.USER, "Go on.", kind=CONTINUATION)
    assert isinstance(stop(hosts, agent, "old"), Continue)
    hosts.began(agent, "new", fresh=True)
    assert isinstance(stop(hosts, agent, "new"), Continue)
    assert stop(hosts, agent, "new") == Stop(Reason.OPEN, OF_BEFORE)


@pytest.mark.spec("X2", "C4")
def test_a_list_that_was_left_when_the_user_said_something_new_does_not_outrank_them(
    hosts: HookService, checklists: Checklists, clock: StoppedClock, agent: Scope
) -> None:
    todo_write(checklists, agent, [todo("Written before")])
    clock.advance(seconds=1)
    hosts.prompted(agent, "Wait, why that way?")
    asked = hosts.stopped(agent, "h1", worked=False).decision
    assert isinstance(asked, Continue)
    assert "“Written before”" in asked.prompt
    assert "answer them" in asked.prompt
    assert hosts.stopped(agent, "h1", worked=False).decision == Stop(Reason.OPEN, LEFT)
    clock.advance(seconds=1)
    todo_write(checklists, agent, [todo("Written before", "in_progress")])
    taken_up = stop(hosts, agent)
    assert isinstance(taken_up, Continue)
    assert "Do not answer the user before the list is clear" in taken_up.prompt


@pytest.mark.spec("X2", "C5")
def test_one_that_works_beside_its_list_is_sent_back_as_often_as_any_other(
    hosts: HookService, checklists: Checklists, clock: StoppedClock, agent: Scope
) -> None:
    todo_write(checklists, agent, [todo("Written before")])
    clock.advance(seconds=1)
    hosts.prompted(agent, "Go on.")
    assert sent_back(hosts, agent) == 3


@pytest.mark.spec("X2")
def test_a_list_that_one_new_session_has_left_alone_does_not_hold_up_the_next(
    hosts: HookService, checklists: Checklists, agent: Scope
) -> None:
    todo_write(checklists, agent, [todo("Of yesterday")])
    for session, again in (("one", True), ("two", False), ("three", False)):
        hosts.began(agent, session, fresh=True)
        hosts.prompted(agent, f"A question of {session}.")
        assert isinstance(stop(hosts, agent, session), Continue) is again
    todo_write(checklists, agent, [todo("Of yesterday"), todo("Of today")])
    hosts.began(agent, "four", fresh=True)
    assert isinstance(stop(hosts, agent, "four"), Continue)


@pytest.mark.spec("X2", "X6")
def test_what_a_person_has_planned_between_two_prompts_is_the_agents(
    hosts: HookService, conversations: Conversations, plans: Plans, clock: StoppedClock, agent: Scope
) -> None:
    hosts.prompted(agent, "Hello.")
    assert stop(hosts, agent) == Stop(Reason.COMPLETED, "nothing is open")
    clock.advance(minutes=1)
    turn = conversations.current_turn(agent.conversation_id)
    assert turn is not None
    imported = TurnScope(agent.conversation_id, PERSON, turn.id)
    plan(plans, imported, "Imported")
    clock.advance(minutes=1)
    assert "Imported" in hosts.prompted(agent, "Work through the plan.")
    assert sent_back(hosts, agent) == 3
    clock.advance(minutes=1)
    assert "not finished" in hosts.prompted(agent, "Something else."), "it is the plan of the turn by now"
    assert stop(hosts, agent) == Stop(Reason.COMPLETED, "nothing is open")


@pytest.mark.spec("X2", "C10")
def test_an_agent_that_waits_for_its_own_work_is_let_go_without_being_counted(
    hosts: HookService, plans: Plans, turn: TurnScope
) -> None:
    plan(plans, turn, "Sum up")
    helper = BackgroundWork("subagent", "Read the code")
    for _ in range(5):
        assert hosts.stopped(turn, "h1", work=[helper]).decision == Wait(("its subagent “Read the code”",))
    assert isinstance(stop(hosts, turn), Continue), "nothing was counted"


@pytest.mark.spec("X2", "C10")
def test_a_command_that_runs_beside_an_agent_is_waited_for_when_it_stops_again(
    hosts: HookService, plans: Plans, turn: TurnScope
) -> None:
    plan(plans, turn, "Sum up")
    server = [BackgroundWork("shell", "npm run dev")]
    assert isinstance(hosts.stopped(turn, "h1", work=server).decision, Continue), "it may be a server"
    assert hosts.stopped(turn, "h1", work=server).decision == Wait(("its shell “npm run dev”",))
