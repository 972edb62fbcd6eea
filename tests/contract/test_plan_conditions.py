"""What todos wait for: a person, a time, an event, another todo, and what another one claims (C10, C11, C12)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import Any

import pytest
from sqlalchemy import text
from tests.conftest import StoppedClock
from tests.contract.front import by_hand, call, everything, nothing_changes, plan, trail
from tests.tables import engine_of, our_tables

from punchlist.audit.check import check
from punchlist.conversations.model import TurnScope
from punchlist.conversations.service import Conversations
from punchlist.errors import Conflict, IllegalTransition, InvalidInput, NotAllowed, NotFound
from punchlist.kernel.events import SYSTEM, Actor, Role
from punchlist.plan.model import NewCondition, plan_stream
from punchlist.plan.replay import replay_conditions, replay_todos
from punchlist.plan.service import Plans
from punchlist.storage.schema_version import SCHEMA_VERSION
from punchlist.storage.statements import Statement
from punchlist.storage.store import Store, Transaction

ADA = Actor(Role.PERSON, "ada")
BOB = Actor(Role.PERSON, "bob")
AT_TEN = "2026-02-21T10:00:00Z"


def create(plans: Plans, turn: TurnScope, *items: dict[str, Any]) -> list[str]:
    return [made["id"] for made in call(plans, turn, "create_todo", items=list(items))["created"]]


def item(title: str, *blocked_by: Any, **more: Any) -> dict[str, Any]:
    return {"title": title, "blockedBy": list(blocked_by), **more}


def waits(plans: Plans, turn: TurnScope) -> dict[str, list[str]]:
    """By title, what is waited for; the list and the look of the loop must agree."""
    listed = call(plans, turn, "list_todo", status="all")["items"]
    look = plans.snapshot(turn)
    assert [todo.id for todo in look.todos] == [told["id"] for told in listed]
    assert {told["id"]: told["waitsFor"] for told in listed if "waitsFor" in told} == look.waits
    return {told["title"]: told["waitsFor"] for told in listed if "waitsFor" in told}


def asked(plans: Plans, session: str = "s") -> list[str]:
    return [held.condition.subject for held in plans.open_conditions(session)]


def condition_id(plans: Plans, subject: str) -> str:
    (found,) = [held.condition.id for held in plans.open_conditions("s") if held.condition.subject == subject]
    return found


# --- waiting -----------------------------------------------------------------------------------------


@pytest.mark.spec("C10")
def test_a_todo_says_in_words_what_it_waits_for(plans: Plans, turn: TurnScope) -> None:
    (first,) = create(plans, turn, {"title": "Survey"})
    create(
        plans,
        turn,
        item("Deploy", {"person": " Which region? "}, {"time": AT_TEN}, {"event": "built"}, {"todo": first}, "Build"),
        item("Build"),
        item("Clean up", first, first, {"todo": "deploy"}),
    )
    assert waits(plans, turn) == {
        "Deploy": [
            "an answer to “Which region?”",
            "2026-02-21T10:00:00Z",
            "the event “built”",
            "“Survey” (number 1)",
            "“Build” (number 3)",
        ],
        "Clean up": ["“Survey” (number 1)", "“Deploy” (number 2)"],
    }


@pytest.mark.spec("C10")
def test_a_todo_that_waits_cannot_be_started_until_what_it_waits_for_has_ended(
    store: Store, plans: Plans, turn: TurnScope
) -> None:
    build, ship = create(plans, turn, item("Build"), item("Ship", "Build"))
    with (
        nothing_changes(store),
        pytest.raises(IllegalTransition, match=r"“Ship” \(number 2\) .* waits for “Build” \(number 1\)\. Leave"),
    ):
        call(plans, turn, "start_todo", todoId=ship)
    call(plans, turn, "start_todo", todoId=build)
    assert waits(plans, turn) == {"Ship": ["“Build” (number 1)"]}
    call(plans, turn, "complete_todo", todoId=build, outcome="done")
    assert waits(plans, turn) == {}
    assert call(plans, turn, "start_todo", todoId=ship)["status"] == "in_progress"


@pytest.mark.spec("C10")
def test_a_cancelled_todo_holds_nothing_up_and_whoever_waited_is_told(plans: Plans, turn: TurnScope) -> None:
    build, ship = create(plans, turn, item("Build"), item("Ship", "Build"))
    call(plans, turn, "complete_todo", todoId=build, outcome="no compiler", status="cancelled")
    assert waits(plans, turn) == {}
    (told,) = call(plans, turn, "list_todo")["items"]
    assert told["notes"] == ["“Build” (number 1), which this waited for, was cancelled: no compiler"]
    assert plans.snapshot(turn).notes == {ship: told["notes"]}
    call(plans, turn, "start_todo", todoId=ship)


@pytest.mark.spec("C10")
def test_a_time_comes_by_itself(plans: Plans, turn: TurnScope, clock: StoppedClock) -> None:
    create(plans, turn, item("Wait", {"time": "2026-02-21T11:00:00+01:00"}))
    clock.advance(minutes=59, seconds=59)
    assert (waits(plans, turn), asked(plans)) == ({"Wait": [AT_TEN]}, [AT_TEN])
    clock.advance(seconds=1)
    assert (waits(plans, turn), asked(plans)) == ({}, [])


@pytest.mark.spec("C10")
def test_a_todo_in_progress_that_is_told_to_wait_is_pending_again(plans: Plans, turn: TurnScope) -> None:
    (todo_id,) = plan(plans, turn, "Deploy")
    call(plans, turn, "start_todo", todoId=todo_id)
    assert call(plans, turn, "wait_todo", todoId=todo_id, **{"for": {"person": "Which region?"}}) == {
        "id": todo_id,
        "title": "Deploy",
        "status": "pending",
        "waitsFor": ["an answer to “Which region?”"],
    }
    (told,) = call(plans, turn, "list_todo")["items"]
    assert (told["status"], told["startedAt"]) == ("pending", None)
    told = call(plans, turn, "wait_todo", todoId=todo_id, **{"for": {"event": "built"}})
    assert told["waitsFor"] == ["an answer to “Which region?”", "the event “built”"]


@pytest.mark.spec("C10")
def test_what_is_waited_for_already_is_not_waited_for_twice(store: Store, plans: Plans, turn: TurnScope) -> None:
    todo_id, _ = create(plans, turn, item("Deploy", {"person": "Which region?"}, "Build"), item("Build"))
    with nothing_changes(store):
        for need in ({"person": "Which region?"}, {"todo": "build"}):
            told = call(plans, turn, "wait_todo", todoId=todo_id, **{"for": need})
            assert len(told["waitsFor"]) == 2


@pytest.mark.spec("C10")
def test_a_todo_waits_for_twenty_things_and_no_more(store: Store, plans: Plans, turn: TurnScope) -> None:
    (todo_id,) = create(plans, turn, item("A", *({"event": f"e{number}"} for number in range(20))))
    with nothing_changes(store), pytest.raises(InvalidInput, match="for: “A” waits for 20 things already"):
        call(plans, turn, "wait_todo", todoId=todo_id, **{"for": {"event": "another"}})


@pytest.mark.spec("C10")
def test_only_who_plans_can_have_a_todo_wait_and_only_while_it_is_open(
    store: Store, plans: Plans, turn: TurnScope
) -> None:
    (todo_id,) = plan(plans, turn, "A")
    call(plans, turn, "complete_todo", todoId=todo_id, outcome="done")
    worker = TurnScope("s", Actor(Role.WORKER, "coder"), turn.turn_id)
    with nothing_changes(store):
        with pytest.raises(IllegalTransition, match="Cannot wait a plan todo that is completed"):
            call(plans, turn, "wait_todo", todoId=todo_id, **{"for": {"event": "built"}})
        with pytest.raises(NotAllowed):
            call(plans, worker, "wait_todo", todoId=todo_id, **{"for": {"event": "built"}})
        with pytest.raises(NotFound):
            call(plans, turn, "wait_todo", todoId="nothing", **{"for": {"event": "built"}})


# --- what is said wrongly ------------------------------------------------------------------------------


@pytest.mark.spec("C10")
@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"blockedBy": "Build"}, "blockedBy: must be an array, got text"),
        ({"blockedBy": [{"event": "e"}] * 21}, "blockedBy: at most 20 entries, got 21"),
        ({"blockedBy": [5]}, "blockedBy[0]: this turn has no todo “5”; give the id, the number or the exact"),
        (
            {"blockedBy": [True]},
            "blockedBy[0]: must be a todo's number, id or title, or an object with one of person, ",
        ),
        ({"blockedBy": [{"who": "me"}]}, "blockedBy[0]: must be a todo's number, id or title, or an object"),
        (
            {"blockedBy": [{"person": "a", "event": "b"}]},
            "blockedBy[0]: must be a todo's number, id or title, or an object",
        ),
        ({"blockedBy": [{"resource": "a"}]}, "blockedBy[0]: must be a todo's number, id or title, or an object"),
        ({"blockedBy": [{"event": "a"}, {"person": " "}]}, "blockedBy[1].person: must be 1 to 1000 characters"),
        ({"blockedBy": [{"person": "a\x1bb"}]}, "blockedBy[0].person: must not contain control characters"),
        ({"blockedBy": [{"event": 5}]}, "blockedBy[0].event: must be text, got a number"),
        ({"blockedBy": [{"time": "tomorrow"}]}, "blockedBy[0].time: must be a time with its zone, such as 2026-"),
        ({"blockedBy": [{"time": "2026-11-20T09:00:00"}]}, "blockedBy[0].time: must be a time with its zone"),
        ({"blockedBy": [{"time": "0001-01-01T00:00:00+09:00"}]}, "blockedBy[0].time: must be a time with its zone"),
        (
            {"blockedBy": ["Nowhere"]},
            "blockedBy[0]: this turn has no todo “Nowhere”; give the id, the number or the exact",
        ),
        ({"blockedBy": ["b"]}, "blockedBy[0]: a todo cannot wait for itself"),
        ({"blockedBy": ["Twin"]}, "blockedBy[0]: 2 todos have the title “Twin”; give an id instead"),
        ({"resources": "a.py"}, "resources: must be an array, got text"),
        ({"resources": ["a.py", ""]}, "resources[1]: must be 1 to 500 characters"),
        ({"resources": ["x"] * 21}, "resources: at most 20 entries, got 21"),
    ],
)
def test_a_need_that_is_said_wrongly_is_refused_with_its_place(
    store: Store, plans: Plans, turn: TurnScope, said: dict[str, Any], problem: str
) -> None:
    plan(plans, turn, "Twin", "Twin")
    with nothing_changes(store), pytest.raises(InvalidInput) as refused:
        call(plans, turn, "create_todo", items=[{"title": "A"}, {"title": "B", **said}])
    (told,) = refused.value.problems
    assert told.startswith(f"items[1].{problem}")


@pytest.mark.spec("C10")
@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (
            None,
            '^for: must be a todo.s number, id or title, or an object .*, such as {"person": "Which one\\?"}, got null',
        ),
        ({}, "^for: .* got an object with 0 keys"),
        ({"time": "soon"}, "^for.time: must be a time with its zone"),
        ("A", "^for: a todo cannot wait for itself"),
        ({"todo": "Nowhere"}, "^for: this turn has no todo “Nowhere”"),
    ],
)
def test_a_wait_that_is_said_wrongly_is_refused(
    store: Store, plans: Plans, turn: TurnScope, said: Any, problem: str
) -> None:
    (todo_id,) = plan(plans, turn, "A")
    with nothing_changes(store), pytest.raises(InvalidInput, match=problem):
        call(plans, turn, "wait_todo", todoId=todo_id, **{"for": said})


@pytest.mark.spec("C10", "T11")
def test_items_to_wait_for_are_named_by_number_as_a_number_or_as_text(plans: Plans, turn: TurnScope) -> None:
    create(plans, turn, {"title": "A"}, item("B", 1), item("C", {"todo": 2}), item("D", "1"))
    assert waits(plans, turn) == {"B": ["“A” (number 1)"], "C": ["“B” (number 2)"], "D": ["“A” (number 1)"]}
    assert call(plans, turn, "wait_todo", todoId=3, **{"for": 1})["waitsFor"] == ["“B” (number 2)", "“A” (number 1)"]
    assert call(plans, turn, "wait_todo", todoId=4, **{"for": {"todo": 3}})["waitsFor"][-1] == "“C” (number 3)"
    refused = call_refused(plans, turn, "start_todo", todoId=2)
    assert refused.startswith("“B” (number 2) cannot be started yet. It waits for “A” (number 1).")
    # A person sees other numbers, which count all items of the session.
    by_person = replace(turn, actor=ADA)
    assert plans.list(by_person).waits[plans.find(turn, "2").id] == ["“A”"]
    with pytest.raises(
        IllegalTransition, match=r"“A”\. Run `punchlist answer` to answer a question, or cancel the todo"
    ):
        plans.start(by_person, "2")


@pytest.mark.spec("C10")
@pytest.mark.parametrize("given", [{"person": "Which?"}, {"question": "Which?"}, {"for": {"person": "Which?"}}])
def test_a_question_can_be_given_without_its_object(plans: Plans, turn: TurnScope, given: dict[str, Any]) -> None:
    plan(plans, turn, "A")
    assert call(plans, turn, "wait_todo", todoId=1, **given)["waitsFor"] == ["an answer to “Which?”"]


def call_refused(plans: Plans, turn: TurnScope, tool: str, **arguments: Any) -> str:
    with pytest.raises(IllegalTransition) as refused:
        call(plans, turn, tool, **arguments)
    return str(refused.value)


@pytest.mark.spec("C10", "C8")
@pytest.mark.parametrize("condition", [{"person": "Which?"}, {"event": "built"}, {"todo": "A"}])
def test_a_todo_that_waits_cannot_be_failed_away(
    store: Store, plans: Plans, turn: TurnScope, condition: dict[str, str]
) -> None:
    create(plans, turn, {"title": "A"}, item("B", condition))
    for _ in range(2):
        with nothing_changes(store):
            told = call_refused(plans, turn, "complete_todo", todoId=2, outcome="no", status="failed")
        assert told.startswith("“B” (number 2) cannot be marked as failed: it waits for ")
    cancelled = call(plans, turn, "complete_todo", todoId=2, outcome="not needed", status="cancelled")
    assert cancelled["status"] == "cancelled"


@pytest.mark.spec("C10", "T7")
def test_a_todo_of_another_turn_cannot_be_waited_for(
    store: Store, plans: Plans, turn: TurnScope, other_turn: TurnScope
) -> None:
    (elsewhere,) = plan(plans, other_turn, "Elsewhere")
    with nothing_changes(store), pytest.raises(InvalidInput, match="this turn has no todo"):
        create(plans, turn, item("A", elsewhere))


# --- what was waited for has come ----------------------------------------------------------------------


@pytest.mark.spec("C10")
def test_an_answer_frees_the_todo_and_reaches_the_model(plans: Plans, turn: TurnScope, clock: StoppedClock) -> None:
    (todo_id,) = create(plans, turn, item("Deploy", {"person": "Which region?"}))
    held = plans.resolve("s", condition_id(plans, "Which region?")[-8:], " eu-west ", ADA)
    assert (held.todo.id, held.condition.answer, held.condition.resolved_by) == (todo_id, "eu-west", "person:ada")
    assert (waits(plans, turn), asked(plans)) == ({}, [])
    (told,) = call(plans, turn, "list_todo")["items"]
    assert told["answers"] == [{"question": "Which region?", "answer": "eu-west"}]
    assert [answer.text for answer in plans.snapshot(turn).answers[todo_id]] == ["eu-west"]
    call(plans, turn, "start_todo", todoId=todo_id)


@pytest.mark.spec("C10")
def test_the_first_answer_stands(store: Store, plans: Plans, turn: TurnScope) -> None:
    create(plans, turn, item("Deploy", {"person": "Which region?"}))
    asked_as = condition_id(plans, "Which region?")
    plans.resolve("s", asked_as, "eu-west", ADA)
    with nothing_changes(store):
        for wanted in (asked_as, asked_as[-8:]):
            with pytest.raises(Conflict, match=r"^person:ada answered already, at 2026-02-21T09:00:00.*: eu-west\."):
                plans.resolve("s", wanted, "us-east", BOB)


@pytest.mark.spec("C10", "X5")
def test_of_many_answers_at_the_same_moment_one_stands(store: Store, plans: Plans, turn: TurnScope) -> None:
    create(plans, turn, item("Deploy", {"person": "Which region?"}))
    asked_as = condition_id(plans, "Which region?")
    ready = Barrier(4)

    def say(number: int) -> str | None:
        ready.wait(10)
        try:
            return plans.resolve("s", asked_as, f"region {number}", Actor(Role.PERSON, f"p{number}")).condition.answer
        except Conflict:
            return None

    with ThreadPoolExecutor(4) as people:
        said = [answer for answer in people.map(say, range(4)) if answer]
    assert [answer.text for told in plans.snapshot(turn).answers.values() for answer in told] == said
    assert len(said) == 1
    assert check(store, SCHEMA_VERSION).problems == []


@pytest.mark.spec("C10")
def test_an_event_frees_all_that_wait_for_it_and_nothing_else(
    plans: Plans, turn: TurnScope, other_turn: TurnScope
) -> None:
    for scope in (turn, other_turn):
        create(plans, scope, item("A", {"event": "built"}), item("B", {"event": "built"}, {"event": "tested"}))
    woken = plans.report_event("s", "built", SYSTEM, note="build 7")
    assert sorted(held.todo.title for held in woken) == ["A", "B"]
    assert waits(plans, turn) == {"B": ["the event “tested”"]}
    assert set(waits(plans, other_turn)) == {"A", "B"}
    plans.report_event("s", "tested", ADA)
    told = call(plans, turn, "list_todo")["items"]
    assert [one["answers"] for one in told] == [
        [{"event": "built", "answer": "build 7"}],
        [{"event": "built", "answer": "build 7"}, {"event": "tested", "answer": "It has happened."}],
    ]


@pytest.mark.spec("C10")
def test_a_model_cannot_answer_its_own_question(store: Store, plans: Plans, turn: TurnScope) -> None:
    create(plans, turn, item("Deploy", {"person": "May I?"}, {"event": "approved"}))
    with nothing_changes(store):
        with pytest.raises(NotAllowed, match="supervisor may not resolve a condition; person or system may"):
            plans.resolve("s", condition_id(plans, "May I?"), "yes", turn.actor)
        with pytest.raises(NotAllowed):
            plans.report_event("s", "approved", turn.actor)


@pytest.mark.spec("C10")
def test_an_answer_to_nothing_is_refused_with_the_reason(
    store: Store, plans: Plans, turn: TurnScope, other_turn: TurnScope
) -> None:
    create(plans, turn, item("A", {"person": "One?"}), item("B", {"person": "Two?"}, {"time": AT_TEN}))
    create(plans, other_turn, item("C", {"person": "Three?"}))
    elsewhere = plans.open_conditions("another")[0].condition.id
    with nothing_changes(store):
        for wanted in ("nothing", "", elsewhere, condition_id(plans, AT_TEN)):
            with pytest.raises(NotFound, match=r"No question has the id .*`punchlist answer` lists open questions"):
                plans.resolve("s", wanted, "yes", ADA)
        with pytest.raises(NotFound, match=r"No todo waits for the event 'built'.*`punchlist wake`"):
            plans.report_event("s", "built", ADA)
        with pytest.raises(InvalidInput, match="answer: must be 1 to 20000 characters"):
            plans.resolve("s", condition_id(plans, "One?"), "  ", ADA)


@pytest.mark.spec("C10")
def test_the_end_of_an_id_must_be_the_end_of_one(store: Store, plans: Plans, turn: TurnScope) -> None:
    create(plans, turn, *(item(f"T{number}", {"person": f"{number}?"}) for number in range(17)))
    ends = [held.condition.id[-1] for held in plans.open_conditions("s")]
    twice = next(end for end in ends if ends.count(end) > 1)
    with nothing_changes(store), pytest.raises(InvalidInput, match=rf"\d+ ids end with '{twice}'; give more"):
        plans.resolve("s", twice, "yes", ADA)


@pytest.mark.spec("C10", "T14")
def test_what_has_ended_takes_no_answer(
    store: Store, plans: Plans, conversations: Conversations, turn: TurnScope
) -> None:
    first, _ = create(plans, turn, item("A", {"person": "One?"}), item("B", {"person": "Two?"}, {"event": "built"}))
    one, two = condition_id(plans, "One?"), condition_id(plans, "Two?")
    call(plans, turn, "complete_todo", todoId=first, outcome="not needed", status="cancelled")
    assert asked(plans) == ["Two?", "built"]
    with pytest.raises(IllegalTransition, match="The todo that waited for this is cancelled"):
        plans.resolve("s", one, "yes", ADA)
    conversations.end_turn(turn, reason="enough")
    assert asked(plans) == []
    with nothing_changes(store):
        with pytest.raises(IllegalTransition, match=r"The turn that asked has ended \(enough\)"):
            plans.resolve("s", two, "yes", ADA)
        with pytest.raises(NotFound, match="No todo waits for the event"):
            plans.report_event("s", "built", ADA)


# --- conflicts -----------------------------------------------------------------------------------------


@pytest.mark.spec("C12", "T2")
def test_a_plan_without_conflicts_says_nothing_of_them(plans: Plans, turn: TurnScope) -> None:
    told = call(plans, turn, "create_todo", items=[item("A"), item("B", "A", resources=["a.py"])])
    assert set(told) == {"created", "totalPending"}


@pytest.mark.spec("C12")
def test_two_open_todos_of_one_title_are_named_and_both_stay(plans: Plans, turn: TurnScope) -> None:
    (done,) = plan(plans, turn, "Write it")
    call(plans, turn, "complete_todo", todoId=done, outcome="done")
    assert "conflicts" not in call(plans, turn, "create_todo", items=[{"title": "Write it"}])
    told = call(plans, turn, "create_todo", items=[{"title": "write  IT"}, {"title": "Other"}])
    first, second = [todo.id for todo in plans.snapshot(turn).todos if todo.title.casefold().startswith("write")][1:]
    assert told["conflicts"] == [
        f"2 open todos are called “write  IT”: ids {first[-6:]}, {second[-6:]}. All are kept; cancel those that "
        "describe the same work."
    ]


@pytest.mark.spec("C12")
def test_in_a_circle_the_first_of_the_plan_goes_first(plans: Plans, turn: TurnScope) -> None:
    told = call(plans, turn, "create_todo", items=[item("A", "C"), item("B", "A"), item("C", "B")])
    a, b, c = [made["id"] for made in told["created"]]
    assert told["conflicts"] == [
        "“A”, “B” and “C” wait for each other. “A” (number 1) comes first in the plan, so it goes first and does not "
        "wait for the others."
    ]
    assert waits(plans, turn) == {"B": ["“A” (number 1)"], "C": ["“B” (number 2)"]}
    for todo_id in (a, b, c):
        call(plans, turn, "start_todo", todoId=todo_id)
        call(plans, turn, "complete_todo", todoId=todo_id, outcome="done")


@pytest.mark.spec("C12")
def test_a_wait_that_closes_a_circle_says_so(plans: Plans, turn: TurnScope) -> None:
    first, second = create(plans, turn, item("A"), item("B", "A"))
    told = call(plans, turn, "wait_todo", todoId=first, **{"for": "B"})
    assert told["waitsFor"] == []
    assert told["conflicts"][0].startswith("“A” and “B” wait for each other. “A” (number 1) comes first")
    assert waits(plans, turn) == {"B": ["“A” (number 1)"]}
    assert second in plans.snapshot(turn).waits


@pytest.mark.spec("C12")
def test_of_two_todos_that_claim_the_same_the_first_goes_first(plans: Plans, turn: TurnScope) -> None:
    first, _ = create(plans, turn, item("A", resources=["src/app.py", "b.py"]), item("B", resources=["b.py"]))
    told = call(plans, turn, "create_todo", items=[item("C", resources=["src/app.py"])])
    assert told["conflicts"] == [
        "“A” and “C” claim src/app.py. “A” (number 1) comes first in the plan, so it goes first and the other waits "
        "for it."
    ]
    assert waits(plans, turn) == {"B": ["“A”, which claims b.py too"], "C": ["“A”, which claims src/app.py too"]}
    call(plans, turn, "complete_todo", todoId=first, outcome="done")
    assert waits(plans, turn) == {}


@pytest.mark.spec("C10", "C12")
def test_a_todo_that_waits_keeps_nobody_from_what_it_claims(plans: Plans, turn: TurnScope) -> None:
    first, second = create(
        plans, turn, item("A", {"person": "How?"}, resources=["a.py"]), item("B", resources=["a.py"])
    )
    assert waits(plans, turn) == {"A": ["an answer to “How?”", "“B”, which claims a.py too"]}
    call(plans, turn, "start_todo", todoId=second)
    plans.resolve("s", condition_id(plans, "How?"), "so", ADA)
    assert waits(plans, turn) == {"A": ["“B”, which claims a.py too"]}
    call(plans, turn, "complete_todo", todoId=second, outcome="done")
    call(plans, turn, "start_todo", todoId=first)


# --- the look of the loop --------------------------------------------------------------------------------


@pytest.mark.spec("C10")
def test_a_look_takes_one_statement_and_one_more_for_conditions(
    plans: Plans, turn: TurnScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[Statement] = []
    for name in ("all", "one"):
        run = getattr(Transaction, name)

        def counting(tx: Transaction, statement: Statement, /, run: Any = run, **params: Any) -> Any:
            counted.append(statement)
            return run(tx, statement, **params)

        monkeypatch.setattr(Transaction, name, counting)

    def statements() -> int:
        counted.clear()
        plans.snapshot(turn)
        return len(counted)

    assert statements() == 2
    plan(plans, turn, "A", "B")
    assert statements() == 1
    create(plans, turn, item("C", "A"))
    assert statements() == 2


@pytest.mark.spec("T7", "C16")
def test_nobody_looks_at_the_plan_of_another_session(plans: Plans, turn: TurnScope, other_turn: TurnScope) -> None:
    for _ in range(2):
        for turn_id in (other_turn.turn_id, "nowhere"):
            with pytest.raises(NotFound, match="has no turn"):
                plans.snapshot(TurnScope("s", turn.actor, turn_id))
        plan(plans, other_turn, "A")
    assert plans.snapshot(turn).todos == []


@pytest.mark.spec("C11")
def test_malformed_rows_are_reported_and_left_out(store: Store, plans: Plans, turn: TurnScope) -> None:
    good, forged, empty, waiting = create(
        plans, turn, item("Good"), item("Forged"), item("Empty"), item("Waiting", "Forged", {"time": AT_TEN})
    )
    by_hand(store, "UPDATE turn_todos SET title = 'x' WHERE id = :id", id=forged)
    todo = next(todo for todo in plans.snapshot(turn).todos if todo.id == empty)._replace(title=" ")
    by_hand(store, "UPDATE turn_todos SET title = ' ', checksum = :sum WHERE id = :id", id=empty, sum=todo.checksum())
    by_hand(store, "UPDATE todo_conditions SET subject = 'whenever' WHERE kind = 'time'")
    look = plans.snapshot(turn)
    assert [todo.id for todo in look.todos] == [good, waiting]
    assert look.waits == {}
    damaged, without_title, no_time = look.problems
    assert damaged.startswith(f"Todo '{forged}' of the plan is not what was written")
    assert without_title == f"Todo '{empty}' has no title; it is skipped."
    assert no_time.startswith("Condition ")


@pytest.mark.spec("C11")
def test_a_status_that_no_todo_can_have_is_reported(store: Store, plans: Plans, turn: TurnScope) -> None:
    good, bad = plan(plans, turn, "Good", "Bad")
    todo = plans.snapshot(turn).todos[1]
    forged = todo._replace(status="finished").checksum()  # type: ignore[arg-type]
    unguarded = "PRAGMA ignore_check_constraints = 1"
    if store.database.kind != "sqlite":
        unguarded = "ALTER TABLE turn_todos DROP CONSTRAINT ck_turn_todos_status"
    update = "UPDATE turn_todos SET status = 'finished', checksum = :sum WHERE id = :id"
    with engine_of(store).begin() as connection:
        connection.execute(text(unguarded))
        connection.execute(text(update), {"sum": forged, "id": bad})
    look = plans.snapshot(turn)
    assert [todo.id for todo in look.todos] == [good]
    assert look.problems == [f"Todo '{bad}' has the unknown status 'finished'; it is skipped."]


# --- the trail -------------------------------------------------------------------------------------------


@pytest.fixture
def eventful(plans: Plans, turn: TurnScope) -> TurnScope:
    """A plan with conditions of every kind, open and resolved."""
    first, second = create(
        plans,
        turn,
        item("A", {"person": "Which?"}, {"event": "built"}, resources=["a.py"]),
        item("B", "A", {"time": AT_TEN}),
    )
    plans.wait(turn, second, NewCondition(plans.open_conditions("s")[0].condition.kind, "Why?"))
    plans.resolve("s", condition_id(plans, "Which?"), "that", ADA)
    plans.report_event("s", "built", ADA)
    call(plans, turn, "start_todo", todoId=first)
    call(plans, turn, "wait_todo", todoId=first, **{"for": {"event": "tested"}})
    return turn


@pytest.mark.spec("X5", "C10")
def test_the_trail_tells_of_every_condition(store: Store, plans: Plans, eventful: TurnScope) -> None:
    assert check(store, SCHEMA_VERSION).problems == []
    events = trail(store, plan_stream(eventful.turn_id))
    assert [tuple(one) for one in sorted(replay_conditions(eventful.turn_id, events).values())] == [
        tuple(row) for row in everything(store)["todo_conditions"]
    ]
    assert list(replay_todos(eventful.turn_id, events).values()) == plans.snapshot(eventful).todos


@pytest.mark.spec("X5", "C10")
def test_a_condition_that_was_edited_is_noticed_whatever_was_edited(store: Store, eventful: TurnScope) -> None:
    # The other columns are held by foreign keys and checks.
    columns = [column.name for column in our_tables().tables["todo_conditions"].c]
    held = {"id", "conversation_id", "turn_id", "todo_id"}
    for row in everything(store)["todo_conditions"]:
        for column, old in zip(columns, row, strict=True):
            if column in held:
                continue
            new = {"kind": "person" if old != "person" else "event", "status": "resolved" if old == "open" else "open"}
            update = f"UPDATE todo_conditions SET {column} = :it WHERE id = :id"
            by_hand(store, update, it=new.get(column, f"{old or ''}x"), id=row[0])
            assert check(store, SCHEMA_VERSION).problems, column
            by_hand(store, update, it=old, id=row[0])
    assert check(store, SCHEMA_VERSION).problems == []


@pytest.mark.spec("X5", "C10")
def test_a_condition_that_is_gone_or_came_from_nowhere_is_noticed(store: Store, eventful: TurnScope) -> None:
    columns = ", ".join(column.name for column in our_tables().tables["todo_conditions"].c if column.name != "id")
    copy = f"INSERT INTO todo_conditions (id, {columns}) SELECT 'forged', {columns} FROM todo_conditions"
    by_hand(store, f"{copy} WHERE subject = 'built'")
    problems = check(store, SCHEMA_VERSION).problems
    assert f"plan:{eventful.turn_id}: condition forged differs from its events" in problems
    assert "todo_conditions: has 8 rows, its events made 7" in problems
    by_hand(store, "DELETE FROM todo_conditions WHERE id = 'forged'")
    assert check(store, SCHEMA_VERSION).problems == []
    by_hand(store, "DELETE FROM todo_conditions WHERE subject = 'built'")
    assert "todo_conditions: has 6 rows, its events made 7" in check(store, SCHEMA_VERSION).problems
