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
from punchlist.integrations.hook_service import EARLIER_LIST, LIST_UNTOUCHED, OWN_AGENT_WORKING, HookService
from punchlist.integrations.native_lists import LIST_TOOLS, merge_copy, parse_list, parse_tasks
from punchlist.kernel.events import Actor, Role
from punchlist.kernel.processes import current_process
from punchlist.plan.service import Plans
from punchlist.storage.store import Store

SUPERVISOR = BUILT_IN["supervisor"]
PERSON = Actor(Role.PERSON, "ann")
ServiceOf = Callable[..., HookService]


@pytest.fixture
def service(store: Store, conversations: Conversations) -> HookService:
    return HookService(store, conversations, SUPERVISOR)


@pytest.fixture
def service_of(store: Store, conversations: Conversations) -> ServiceOf:
    def made(agent: AgentDefinition = SUPERVISOR, **limits: Any) -> HookService:
        agent = replace(agent, limits=replace(agent.limits, **limits))
        return HookService(store, conversations, agent)

    return made


def stop(service: HookService, scope: Scope, session: str | None = "h1", host_limit: int | None = None) -> Decision:
    return service.stop_requested(scope, session, host_limit=host_limit).decision


def sent_back(service: HookService, scope: Scope, at_most: int = 50) -> int:
    """How often an agent that does nothing is sent back."""
    for count in range(at_most):
        if not isinstance(stop(service, scope), Continue):
            return count
    return at_most


@pytest.mark.spec("X2", "C3", "C13")
def test_one_that_stops_early_is_told_how_many_are_left_and_which_is_next(
    service: HookService, plans: Plans, turn: TurnScope
) -> None:
    first, second = plan(plans, turn, "Build it", "Try it")
    call(plans, turn, "start_todo", todoId=second)
    decision = stop(service, turn)
    assert isinstance(decision, Continue)
    assert "2 items are still open" in decision.prompt
    assert "“Try it”" in decision.prompt
    for id in (second, first):
        call(plans, turn, "complete_todo", todoId=id, outcome="done")
    assert stop(service, turn) == Stop(Reason.COMPLETED, "nothing is open")


@pytest.mark.spec("X2", "C5")
def test_one_that_does_nothing_is_let_go_as_stalled_and_a_change_begins_the_count_anew(
    service: HookService, checklists: Checklists, agent: Scope
) -> None:
    todo_write(checklists, agent, [todo("A"), todo("B")])
    assert sent_back(service, agent) == 3
    decision = stop(service, agent)
    assert isinstance(decision, Stop)
    assert decision.reason is Reason.STALLED
    todo_write(checklists, agent, [todo("A", "completed"), todo("B")])
    assert sent_back(service, agent) == 3
    todo_write(checklists, agent, [todo("A", "completed"), todo("B", "completed")])
    assert sent_back(service, agent) == 0


@pytest.mark.spec("X2", "C4")
def test_one_that_dawdles_is_capped_and_a_prompt_begins_the_count_anew(
    service_of: ServiceOf, checklists: Checklists, agent: Scope
) -> None:
    service = service_of(continuations=5)

    def dawdle() -> tuple[int, Decision]:
        for count in range(50):
            todo_write(checklists, agent, [todo("A"), todo(f"B{count}")])
            decision = stop(service, agent)
            if not isinstance(decision, Continue):
                return count, decision
        raise AssertionError("it went on without end")

    count, decision = dawdle()
    assert count == 5
    assert decision == Stop(Reason.CAPPED, "limit of 5 continuations reached")
    service.prompt_submitted(agent, "Go on!")
    assert dawdle()[0] == 5


@pytest.mark.spec("X2", "C4")
def test_counting_does_not_lose_count_however_much_happens_in_between(
    service_of: ServiceOf, plans: Plans, turn: TurnScope
) -> None:
    service = service_of(continuations=2)
    plan(plans, turn, "never done")
    for _ in range(2):
        assert isinstance(stop(service, turn), Continue)
        for _ in range(4):
            for id in plan(plans, turn, *(f"step {number}" for number in range(50))):
                call(plans, turn, "complete_todo", todoId=id, outcome="not needed", status="cancelled")
    assert stop(service, turn) == Stop(Reason.CAPPED, "limit of 2 continuations reached")


@pytest.mark.spec("X2", "C4")
def test_a_completed_item_gives_one_continuation_back(
    service_of: ServiceOf, plans: Plans, checklists: Checklists, turn: TurnScope
) -> None:
    service = service_of(continuations=2)
    ids = plan(plans, turn, *(f"step {number}" for number in range(6)))
    for id in ids:
        assert isinstance(stop(service, turn), Continue)
        call(plans, turn, "complete_todo", todoId=id, outcome="done")
    # The same for the checklist; moving items about gives nothing back.
    items = [todo(f"Item {number}") for number in range(6)]
    todo_write(checklists, turn, items)
    for number in range(6):
        assert isinstance(stop(service, turn), Continue)
        items[number] = todo(f"Item {number}", "completed")
        todo_write(checklists, turn, items)
    for number in range(2):
        todo_write(checklists, turn, [*items[1:], todo("More", id="more"), todo(f"Even more {number}", id="even")])
        assert isinstance(stop(service, turn), Continue)
    todo_write(checklists, turn, [todo("More", id="more"), todo("Even more", id="even")])
    assert stop(service, turn) == Stop(Reason.CAPPED, "limit of 2 continuations reached")


@pytest.mark.spec("X2", "C4")
def test_the_pause_before_it_is_sent_back_grows_as_long_as_nothing_comes_of_it(
    service_of: ServiceOf, checklists: Checklists, agent: Scope
) -> None:
    todo_write(checklists, agent, [todo("A")])
    service = service_of(replace(SUPERVISOR, check_interval=0.5))
    assert [service.stop_requested(agent, "h1").pause for _ in range(4)] == [0.5, 1.0, 2.0, 0.0]


@pytest.mark.spec("X2")
def test_a_host_that_lets_itself_be_sent_back_only_so_often_is_told_why_in_time(
    service: HookService, checklists: Checklists, agent: Scope
) -> None:
    for content in ("A", "B"):
        todo_write(checklists, agent, [todo(content)])
        for _ in range(2):
            assert isinstance(stop(service, agent, host_limit=2), Continue)
        decision = stop(service, agent, host_limit=2)
        assert decision == Stop(Reason.CAPPED, "its host accepts at most 2 continuations in a row")


@pytest.mark.spec("X2", "C10")
def test_a_list_that_waits_lets_go_and_says_for_what(service: HookService, plans: Plans, turn: TurnScope) -> None:
    (id,) = plan(plans, turn, "Deploy")
    call(plans, turn, "wait_todo", todoId=id, **{"for": {"person": "May I?"}})
    decision = stop(service, turn)
    assert isinstance(decision, Wait)
    assert "May I?" in decision.on[0]


@pytest.mark.spec("X2", "C6")
def test_a_budget_of_time_lets_go(service_of: ServiceOf, plans: Plans, turn: TurnScope, clock: StoppedClock) -> None:
    service = service_of(seconds=60.0)
    plan(plans, turn, "Slow work")
    assert isinstance(stop(service, turn), Continue)
    clock.advance(seconds=61)
    decision = stop(service, turn)
    assert isinstance(decision, Stop)
    assert decision.reason is Reason.BUDGET


@pytest.mark.spec("X2", "C1")
def test_with_continuation_switched_off_it_may_stop(service_of: ServiceOf, plans: Plans, turn: TurnScope) -> None:
    plan(plans, turn, "Open")
    decision = stop(service_of(replace(SUPERVISOR, todo_driven=False)), turn)
    assert isinstance(decision, Stop)
    assert decision.reason is Reason.OPEN


@pytest.mark.spec("X2", "C14")
def test_a_person_who_ends_the_turn_wins_until_there_is_a_new_prompt(
    service: HookService, checklists: Checklists, conversations: Conversations, plans: Plans, agent: Scope
) -> None:
    todo_write(checklists, agent, [todo("A")])
    assert isinstance(stop(service, agent), Continue)
    conversations.end_turn(Scope(agent.conversation_id, PERSON), reason="enough")
    # The agent, still at work, opens a turn by using its plan: the person has not changed their mind.
    opened = conversations.open_turn(agent)
    plan(plans, TurnScope(agent.conversation_id, agent.actor, opened.id), "One more thing")
    decision = stop(service, agent)
    assert isinstance(decision, Stop)
    assert (decision.reason, "enough" in decision.why) == (Reason.CANCELLED, True)
    service.prompt_submitted(agent, "Now go on.")
    assert isinstance(stop(service, agent), Continue)


@pytest.mark.spec("T7", "X2")
def test_a_prompt_ends_the_turn_and_tells_what_was_left_of_its_plan(
    service: HookService, conversations: Conversations, checklists: Checklists, plans: Plans, turn: TurnScope
) -> None:
    plan(plans, turn, "Left over")
    todo_write(checklists, turn, [todo("On the checklist")])
    told = service.prompt_submitted(turn, "Something else")
    assert "Left over" in told
    assert "On the checklist" not in told
    assert conversations.turn(turn.turn_id).end_reason == "a new prompt"
    new = conversations.current_turn(turn.conversation_id)
    assert new is not None
    assert [(m.role, m.content) for m in conversations.turn_messages(new.id)] == [(MessageRole.USER, "Something else")]
    assert service.prompt_submitted(turn, "  ") == ""


@pytest.mark.spec("X2", "X6")
def test_a_plan_that_a_person_has_made_before_they_say_anything_is_the_agents(
    service: HookService, conversations: Conversations, plans: Plans, agent: Scope
) -> None:
    person = Scope(agent.conversation_id, PERSON)
    turn = TurnScope(agent.conversation_id, PERSON, conversations.open_turn(person, reason="import").id)
    plan(plans, replace(turn, actor=agent.actor), "Imported")
    assert "Imported" in service.prompt_submitted(agent, "Do what is planned.")
    decision = stop(service, agent)
    assert isinstance(decision, Continue)
    assert "“Imported”" in decision.prompt
    # What the user says next is a new turn, as always.
    assert "not finished" in service.prompt_submitted(agent, "Something else.")
    assert stop(service, agent) == Stop(Reason.COMPLETED, "nothing is open")


@pytest.mark.spec("C4", "X2")
def test_our_own_words_handed_on_as_a_prompt_begin_nothing(
    service: HookService, checklists: Checklists, agent: Scope
) -> None:
    """Gemini CLI tells its prompt hook of the reason with which it was sent back."""
    todo_write(checklists, agent, [todo("A")])
    count = 0
    while isinstance(decision := stop(service, agent), Continue):
        service.prompt_submitted(agent, f"<hook>{decision.prompt}</hook>")
        count += 1
        assert count < 10
    assert count == 3


@pytest.mark.spec("X2")
def test_a_list_of_an_earlier_session_sends_back_once_until_it_is_touched(
    service: HookService, checklists: Checklists, agent: Scope
) -> None:
    todo_write(checklists, agent, [todo("Of yesterday")])
    assert "Of yesterday" in service.session_started(agent, "new", is_new=True)
    for _ in range(2):
        service.prompt_submitted(agent, "Just a question.")
    decision = stop(service, agent, "new")
    assert isinstance(decision, Continue)
    assert "Otherwise leave it unchanged and answer the user." in decision.prompt
    service.prompt_submitted(agent, "Another question.")
    assert stop(service, agent, "new") == Stop(Reason.OPEN, EARLIER_LIST)
    todo_write(checklists, agent, [todo("Of yesterday", "in_progress")])
    assert isinstance(stop(service, agent, "new"), Continue)
    # One that goes on, or was compacted, has no list of before: it is its own.
    assert "in_progress" not in service.session_started(agent, "new", is_new=False)
    assert "Of yesterday" in service.session_started(agent, "new", is_new=False)


@pytest.mark.spec("W7")
def test_a_session_without_a_list_is_reminded_once(
    service: HookService, service_of: ServiceOf, checklists: Checklists, agent: Scope
) -> None:
    assert "no todo list yet" in service.session_started(agent, "a", is_new=True)
    assert service.session_started(agent, "a", is_new=True) == ""
    assert service.session_started(agent, "a", is_new=False) == ""
    assert service_of(replace(SUPERVISOR, remind_after=None)).session_started(agent, "b", is_new=True) == ""


@pytest.mark.spec("W7")
def test_one_that_works_on_without_touching_its_list_is_reminded_once_for_each_state_of_it(
    service: HookService, checklists: Checklists, agent: Scope
) -> None:
    assert service.tools_used(agent, "a", 10) == ""
    todo_write(checklists, agent, [todo("A"), todo("B")])
    assert "has not changed for 10" in service.tools_used(agent, "a", 10)
    assert service.tools_used(agent, "a", 10) == ""
    todo_write(checklists, agent, [todo("A", "completed"), todo("B")])
    assert "“B”" in service.tools_used(agent, "a", 10)


@pytest.mark.spec("X2")
def test_a_list_that_the_agent_keeps_itself_is_copied_and_finished(
    service: HookService, checklists: Checklists, agent: Scope
) -> None:
    def update(*plan: tuple[str, str]) -> bool:
        arguments = {"plan": [{"step": step, "status": status} for step, status in plan]}
        todos = parse_list("update_plan", arguments)
        assert todos is not None
        return service.copy_native_list(agent, todos)

    assert update(("Read", "in_progress"), ("Write", "pending"))
    decision = stop(service, agent)
    assert isinstance(decision, Continue)
    assert "“Read”" in decision.prompt
    assert update(("Read", "completed"), ("Write", "completed"))
    assert stop(service, agent) == Stop(Reason.COMPLETED, "nothing is open")
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
    tool=st.sampled_from(sorted(LIST_TOOLS)),
    items=st.lists(_item | st.none() | st.text(), max_size=40),
)
@settings(max_examples=300, deadline=None)
def test_whatever_an_agent_keeps_itself_can_be_copied(tool: str, items: list[Any]) -> None:
    from punchlist.checklist import validation as checklist_validation

    for key in ("todos", "plan"):
        todos = parse_list(tool, {key: items})
        assert todos is None or len(checklist_validation.parse_todos(merge_copy(todos))) == min(
            len(todos), checklist_validation.MAX_ITEMS
        )
    assert parse_list(tool, None) is None
    assert parse_list("Bash", {"todos": items}) is None


@pytest.mark.spec("X2")
def test_what_is_open_stays_on_a_copy_before_what_is_done() -> None:
    statuses = ["completed"] * 17 + ["pending"] * 5 + ["in_progress"]
    own = [{"content": f"{number}", "activeForm": "", "status": status} for number, status in enumerate(statuses)]
    others = [
        {"id": f"{number}", "content": f"Of a person {number}", "activeForm": "", "status": "in_progress"}
        for number in range(3)
    ]
    kept = merge_copy(own, [*others, {**own[20], "id": "taken over"}], ["0", "1", "2", "taken over"])
    assert [item["content"] for item in kept] == [
        *(f"{number}" for number in range(6, 23)),
        *(item["content"] for item in others),
    ]
    assert [item["content"] for item in kept if item["status"] == "in_progress"] == ["22"]
    assert [item["status"] for item in own] == statuses


@pytest.mark.spec("X2")
def test_a_change_of_a_person_at_the_same_moment_is_not_lost(
    service: HookService, checklists: Checklists, agent: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.copy_native_list(agent, parse_tasks(['{"subject": "Read", "status": "pending"}']))
    rewrite = Checklists.rewrite

    def slowly(*args: Any, **kwargs: Any) -> Any:
        if len(checklists.get(agent.conversation_id).items) == 1:
            checklists.add(Scope(agent.conversation_id, PERSON), "Of a person", reason="todos add")
        return rewrite(*args, **kwargs)

    monkeypatch.setattr(Checklists, "rewrite", slowly)
    assert service.copy_native_list(agent, parse_tasks(['{"subject": "Read", "status": "completed"}']))
    assert [item.content for item in checklists.get(agent.conversation_id).items] == ["Read", "Of a person"]


@pytest.mark.spec("X2")
def test_tasks_that_the_model_does_not_know_of_are_not_copied() -> None:
    hidden = '{"subject": "Hidden", "status": "pending", "metadata": {"_internal": true}}'
    shown = '{"subject": "Shown", "status": "pending", "metadata": {"_internal": false}}'
    assert [item["content"] for item in parse_tasks([hidden, shown, "[]", "{", "null"])] == ["Shown"]


@pytest.mark.spec("C16", "X2")
def test_sessions_do_not_share_their_counts(service: HookService, checklists: Checklists, agent: Scope) -> None:
    other = Scope("another", agent.actor)
    for scope in (agent, other):
        todo_write(checklists, scope, [todo("A")])
    assert sent_back(service, agent) == 3
    assert sent_back(service, other) == 3


@pytest.mark.spec("C14", "X2")
def test_our_own_words_do_not_undo_that_a_person_has_ended_the_turn(
    service: HookService, checklists: Checklists, conversations: Conversations, agent: Scope
) -> None:
    todo_write(checklists, agent, [todo("A")])
    decision = stop(service, agent)
    assert isinstance(decision, Continue)
    conversations.end_turn(Scope(agent.conversation_id, PERSON), reason="enough")
    service.prompt_submitted(agent, decision.prompt)
    after = stop(service, agent)
    assert isinstance(after, Stop)
    assert after.reason is Reason.CANCELLED


@pytest.mark.spec("X2", "C16")
def test_nobody_is_sent_back_to_what_one_of_our_own_agents_works_on(
    service: HookService, conversations: Conversations, plans: Plans, agent: Scope
) -> None:
    turn = conversations.begin_turn(agent, reason="a new request", owner=current_process())
    plan(plans, TurnScope(agent.conversation_id, agent.actor, turn.id), "Of ours")
    assert stop(service, agent) == Stop(Reason.OPEN, OWN_AGENT_WORKING)
    assert conversations.turn_messages(turn.id) == []


@pytest.mark.spec("X2")
def test_of_a_prompt_only_what_is_no_secret_is_kept(
    service: HookService, conversations: Conversations, agent: Scope
) -> None:
    service.prompt_submitted(agent, "Use hunter2", redact=lambda text: text.replace("hunter2", "[hidden]"))
    turn = conversations.current_turn(agent.conversation_id)
    assert turn is not None
    assert [message.content for message in conversations.turn_messages(turn.id)] == ["Use [hidden]"]


@pytest.mark.spec("X2")
def test_a_session_whose_memory_was_compacted_is_still_held_to_its_list_and_told_of_its_request(
    service: HookService, checklists: Checklists, agent: Scope
) -> None:
    service.session_started(agent, "a", is_new=True)
    service.prompt_submitted(agent, "Build\nthe house")
    todo_write(checklists, agent, [todo("A")])
    told = service.session_started(agent, "a", is_new=False)
    assert "Your list, as Punchlist stored it" in told
    assert "last request was: Build the house" in told
    assert [type(stop(service, agent, "a")) for _ in range(3)] == [Continue] * 3
    assert "earlier session left it" in service.session_started(agent, "b", is_new=True)
    # The one that has begun since has not touched the list; the first one has.
    todo_write(checklists, agent, [todo("A", "in_progress")])
    service.session_started(agent, "c", is_new=True)
    assert [type(stop(service, agent, "a")) for _ in range(2)] == [Continue] * 2
    todo_write(checklists, agent, [todo("A", "completed")])
    assert "earlier session left it" not in service.session_started(agent, "d", is_new=True)


@pytest.mark.spec("X2")
def test_one_that_plans_is_held_to_its_plan_whatever_list_it_has_found(
    service: HookService, checklists: Checklists, conversations: Conversations, plans: Plans, agent: Scope
) -> None:
    todo_write(checklists, agent, [todo("Of yesterday")])
    service.session_started(agent, "new", is_new=True)
    turn = conversations.open_turn(agent)
    plan(plans, TurnScope(agent.conversation_id, agent.actor, turn.id), "Mine")
    assert [type(stop(service, agent, "new")) for _ in range(2)] == [Continue] * 2


@pytest.mark.spec("T7", "X2")
def test_a_prompt_is_kept_in_part_when_it_is_long_and_leaves_a_turn_of_our_own_agents_alone(
    service: HookService, conversations: Conversations, agent: Scope
) -> None:
    service.prompt_submitted(agent, "x" * 30_000)
    turn = conversations.current_turn(agent.conversation_id)
    assert turn is not None
    assert [len(message.content) for message in conversations.turn_messages(turn.id)] == [20_000]
    ours = conversations.begin_turn(agent, reason="a new request", owner=current_process())
    assert service.prompt_submitted(agent, "Hello") == ""
    assert conversations.current_turn(agent.conversation_id) == ours


@pytest.mark.spec("C14", "X2")
def test_a_turn_that_no_person_has_ended_stops_nobody(
    service: HookService, checklists: Checklists, conversations: Conversations, agent: Scope
) -> None:
    todo_write(checklists, agent, [todo("A")])
    conversations.open_turn(agent)
    conversations.end_turn(agent, reason="what it was for has ended")
    assert isinstance(stop(service, agent), Continue)


@pytest.mark.spec("W7")
def test_after_a_prompt_the_same_list_is_worth_a_reminder_again(
    service: HookService, checklists: Checklists, agent: Scope
) -> None:
    todo_write(checklists, agent, [todo("A")])
    assert service.tools_used(agent, "a", 10)
    service.prompt_submitted(agent, "Go on")
    assert service.tools_used(agent, "a", 10)


@pytest.mark.spec("X2", "C16")
def test_what_was_said_to_others_before_does_not_count_for_a_new_session(
    service: HookService, checklists: Checklists, conversations: Conversations, agent: Scope
) -> None:
    todo_write(checklists, agent, [todo("A")])
    # One of our own agents was told to go on, too.
    conversations.add_message(agent, MessageRole.USER, "Go on.", kind=CONTINUATION)
    assert isinstance(stop(service, agent, "old"), Continue)
    service.session_started(agent, "new", is_new=True)
    assert isinstance(stop(service, agent, "new"), Continue)
    assert stop(service, agent, "new") == Stop(Reason.OPEN, EARLIER_LIST)


@pytest.mark.spec("X2", "C4")
def test_a_list_that_was_left_when_the_user_said_something_new_does_not_outrank_them(
    service: HookService, checklists: Checklists, clock: StoppedClock, agent: Scope
) -> None:
    todo_write(checklists, agent, [todo("Written before")])
    clock.advance(seconds=1)
    service.prompt_submitted(agent, "Wait, why that way?")
    asked = service.stop_requested(agent, "h1", worked=False).decision
    assert isinstance(asked, Continue)
    assert "“Written before”" in asked.prompt
    assert "answer the user" in asked.prompt
    assert service.stop_requested(agent, "h1", worked=False).decision == Stop(Reason.OPEN, LIST_UNTOUCHED)
    clock.advance(seconds=1)
    todo_write(checklists, agent, [todo("Written before", "in_progress")])
    taken_up = stop(service, agent)
    assert isinstance(taken_up, Continue)
    assert "Answer the user when the list is clear" in taken_up.prompt


@pytest.mark.spec("X2", "C5")
def test_one_that_works_beside_its_list_is_sent_back_as_often_as_any_other(
    service: HookService, checklists: Checklists, clock: StoppedClock, agent: Scope
) -> None:
    todo_write(checklists, agent, [todo("Written before")])
    clock.advance(seconds=1)
    service.prompt_submitted(agent, "Go on.")
    assert sent_back(service, agent) == 3


@pytest.mark.spec("X2")
def test_a_list_that_one_new_session_has_left_alone_does_not_hold_up_the_next(
    service: HookService, checklists: Checklists, agent: Scope
) -> None:
    todo_write(checklists, agent, [todo("Of yesterday")])
    for session, again in (("one", True), ("two", False), ("three", False)):
        service.session_started(agent, session, is_new=True)
        service.prompt_submitted(agent, f"A question of {session}.")
        assert isinstance(stop(service, agent, session), Continue) is again
    todo_write(checklists, agent, [todo("Of yesterday"), todo("Of today")])
    service.session_started(agent, "four", is_new=True)
    assert isinstance(stop(service, agent, "four"), Continue)


@pytest.mark.spec("X2", "X6")
def test_what_a_person_has_planned_between_two_prompts_is_the_agents(
    service: HookService, conversations: Conversations, plans: Plans, clock: StoppedClock, agent: Scope
) -> None:
    service.prompt_submitted(agent, "Hello.")
    assert stop(service, agent) == Stop(Reason.COMPLETED, "nothing is open")
    clock.advance(minutes=1)
    turn = conversations.current_turn(agent.conversation_id)
    assert turn is not None
    imported = TurnScope(agent.conversation_id, PERSON, turn.id)
    plan(plans, imported, "Imported")
    clock.advance(minutes=1)
    assert "Imported" in service.prompt_submitted(agent, "Work through the plan.")
    assert sent_back(service, agent) == 3
    clock.advance(minutes=1)
    assert "not finished" in service.prompt_submitted(agent, "Something else."), "it is the plan of the turn by now"
    assert stop(service, agent) == Stop(Reason.COMPLETED, "nothing is open")


@pytest.mark.spec("X2", "C10")
def test_an_agent_that_waits_for_its_own_work_is_let_go_without_being_counted(
    service: HookService, plans: Plans, turn: TurnScope
) -> None:
    plan(plans, turn, "Sum up")
    helper = ("subagent", "Read the code")
    for _ in range(5):
        assert service.stop_requested(turn, "h1", background=[helper]).decision == Wait(
            ("its subagent “Read the code”",)
        )
    assert isinstance(stop(service, turn), Continue), "nothing was counted"


@pytest.mark.spec("X2", "C10")
def test_a_command_that_runs_beside_an_agent_is_waited_for_when_it_stops_again(
    service: HookService, plans: Plans, turn: TurnScope
) -> None:
    plan(plans, turn, "Sum up")
    server = [("shell", "npm run dev")]
    assert isinstance(service.stop_requested(turn, "h1", background=server).decision, Continue), "it may be a server"
    assert service.stop_requested(turn, "h1", background=server).decision == Wait(("its shell “npm run dev”",))
