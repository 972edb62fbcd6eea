"""Runs: who may do what to one in which state, what people want of it, and that only its worker moves it (M11)."""

from __future__ import annotations

import socket
from collections.abc import Callable
from itertools import product
from typing import Final

import pytest
from tests.conftest import StoppedClock
from tests.contract.front import nothing_changes, trail
from tests.contract.missions import developer_experience
from tests.sessions import start_session

from punchlist.conversations.model import Scope
from punchlist.errors import IllegalTransition, InvalidInput, NotAllowed, NotFound, PunchlistError
from punchlist.kernel.events import SYSTEM, Actor, Role
from punchlist.kernel.lifecycle import NEW
from punchlist.kernel.processes import current_process
from punchlist.missions.todos.lifecycle import TodoAction, TodoStatus
from punchlist.runs.lifecycle import RUN, ControlRequest, RunAction, RunStatus
from punchlist.runs.model import Run, RunKind, UsageIncrement
from punchlist.runs.queue import RunNotOwned, RunQueue
from punchlist.runs.service import Runs, event_stream
from punchlist.storage.store import Store

pytestmark = pytest.mark.spec("M11")

ADA: Final = Actor(Role.PERSON, "ada")
ELSEWHERE: Final = "elsewhere:1:1"
"""A worker on another machine, of which nobody here knows whether it lives."""
DEAD: Final = f"{socket.gethostname()}:999999999:1"
OWNED: Final = ("running", "waiting", "paused")
OPEN: Final = ("queued", "dispatched", *OWNED)

# What the table of a run has to be, said a second time: action to (from, to).
MOVES: Final[dict[str, dict[str, str]]] = {
    "queue": {NEW: "queued"},
    "dispatch": {"queued": "dispatched"},
    "begin": {"dispatched": "running", **{state: state for state in OWNED}},
    "at": {state: state for state in OWNED},
    "spend": {state: state for state in OWNED},
    "wait": {"running": "waiting", "waiting": "waiting"},
    "wake": {"waiting": "running"},
    "ask": {state: state for state in OPEN},
    "pause": {"running": "paused", "waiting": "paused"},
    "resume": {"paused": "running"},
    "finish": {"running": "done"},
    "fail": dict.fromkeys(("dispatched", *OWNED), "failed"),
    "stop": dict.fromkeys(OPEN, "stopped"),
    "retry": {"failed": "queued", "stopped": "queued"},
    "deliver": {state: state for state in ("done", "failed", "stopped")},
}
BY_PEOPLE: Final = ("ask", "stop", "retry")
LEADS: Final = ("person", "lead", "system")


class Shop:
    """A list of runs, people who want something of them, and a worker."""

    def __init__(self, store: Store) -> None:
        self.store, self.runs = store, Runs(store)
        self.book = RunQueue(store, current_process())
        self._chats = 0

    def scope(self, role: Role = Role.PERSON) -> Scope:
        return Scope("s", Actor(role, "ada"))

    def queue(self, kind: RunKind = RunKind.DELEGATE, chat: str | None = None, **more: object) -> Run:
        self._chats += 1
        chat = chat or f"chat-{self._chats}"
        start_session(self.store, Scope(chat, SYSTEM))
        wanted = {"kind": kind, "conversation_id": chat, "agent": "coder", "request": {"mission": "Look."}}
        return self.runs.enqueue(self.scope(), **wanted, **more)

    def begun(self, **more: object) -> Run:
        run = self.queue(**more)  # type: ignore[arg-type]
        assert self.book.dispatch(run) is not None
        found = self.book.begin(run.id)
        assert found is not None
        return found

    def run_in(self, status: RunStatus | str) -> Run:
        """A run that has come to a state as runs do."""
        if status in ("queued", "dispatched", "stopped"):
            run = self.queue()
            if status == "dispatched":
                assert self.book.dispatch(run)
            elif status == "stopped":
                self.runs.stop(self.scope(), run.id)
        else:
            run = self.begun()
            match status:
                case "waiting":
                    self.book.wait(run.id, "for a person")
                case "paused":
                    self.runs.pause(self.scope(), run.id)
                    self.book.pause(run.id)
                case "done":
                    self.book.finish(run.id, "Seen.")
                case "failed":
                    self.book.fail(run.id, "No model.")
        found = self.runs.get(run.id)
        assert found.status == status
        return found


@pytest.fixture
def shop(store: Store) -> Shop:
    return Shop(store)


# --- the table ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", list(RunAction))
def test_every_action_from_every_state_by_every_role(action: RunAction) -> None:
    for state, role in product([NEW, *RunStatus], Role):
        may_queue = action == "queue" and role != "viewer"
        allowed = may_queue or role == "system" or (action in BY_PEOPLE and role in LEADS)
        if not allowed:
            with pytest.raises(NotAllowed, match=f"An? {role} may not {action} a run"):
                RUN.advance(state, action, role)
        elif state in MOVES[action]:
            assert RUN.advance(state, action, role) == MOVES[action][state]
        else:
            with pytest.raises(IllegalTransition, match=f"Cannot {action} a run that is"):
                RUN.advance(state, action, role)


Ask = Callable[[Runs, Scope, str], Run]
WISHES: Final[dict[str, Ask]] = {
    "pause": lambda runs, scope, run: runs.pause(scope, run, "later"),
    "resume": lambda runs, scope, run: runs.resume(scope, run, "now"),
    "redirect": lambda runs, scope, run: runs.redirect(scope, run, "Use SWC."),
    "stop": lambda runs, scope, run: runs.stop(scope, run, "enough"),
}
# What people may want of a run in a state, and how it stands then: its status, wish and message.
HELD: Final = {
    ("pause", "queued"): ("queued", "pause", None),
    ("pause", "dispatched"): ("dispatched", "pause", None),
    ("pause", "running"): ("running", "pause", None),
    ("pause", "waiting"): ("waiting", "pause", None),
    ("resume", "paused"): ("paused", None, None),
    ("resume", "failed"): ("queued", None, None),
    ("resume", "stopped"): ("queued", None, None),
    **{("redirect", state): (state, "pause" if state == "paused" else None, "Use SWC.") for state in OPEN},
    # Nobody has these in hand, so that they end at once.
    ("stop", "queued"): ("stopped", None, None),
    ("stop", "dispatched"): ("stopped", None, None),
    **{("stop", state): (state, "stop", None) for state in OWNED},
}


@pytest.mark.parametrize("wish", list(WISHES))
def test_what_people_want_of_a_run_in_every_state(shop: Shop, wish: str) -> None:
    for state in RunStatus:
        run = shop.run_in(state)
        expected = HELD.get((wish, state.value))
        if expected is None:
            with nothing_changes(shop.store), pytest.raises(IllegalTransition):
                WISHES[wish](shop.runs, shop.scope(), run.id)
            continue
        after = WISHES[wish](shop.runs, shop.scope(), run.id)
        assert (after.status, after.wish, after.message) == expected, state
        assert after == shop.runs.get(run.id)
        last = trail(shop.store, event_stream(run.id))[-1]
        assert (last.actor, last.from_status, last.to_status) == ("person:ada", state, after.status)


def test_who_may_want_something_of_a_run(shop: Shop) -> None:
    for wish, role in product(WISHES, Role):
        run = shop.run_in("failed" if wish == "resume" else "running")
        if role in LEADS:
            WISHES[wish](shop.runs, shop.scope(role), run.id)
            continue
        with nothing_changes(shop.store), pytest.raises(NotAllowed):
            WISHES[wish](shop.runs, shop.scope(role), run.id)


# --- the list -----------------------------------------------------------------------------------------------


def test_the_same_id_makes_one_run(shop: Shop) -> None:
    first = shop.queue(id="cycle-x-2026")
    with nothing_changes(shop.store):
        assert shop.runs.enqueue(
            shop.scope(), kind="delegate", conversation_id="chat-1", agent="coder", request={}, id="cycle-x-2026"
        ) == first  # fmt: skip
    assert [event.action for event in trail(shop.store, event_stream(first.id))] == ["queue"]


def test_a_run_is_found_by_the_end_of_its_id(shop: Shop) -> None:
    one, other = shop.queue(id="aa-1-xyz"), shop.queue(id="bb-2-xyz")
    assert shop.runs.find("1-xyz") == one
    assert shop.runs.find(other.id) == other
    with pytest.raises(InvalidInput, match="several ids"):
        shop.runs.find("xyz")
    for nonsense in ("", "%", "_", "nobody"):
        with pytest.raises(NotFound, match="There is no run"):
            shop.runs.find(nonsense)


def test_runs_are_listed_newest_first_and_those_that_ended_only_if_asked_for(shop: Shop, clock: StoppedClock) -> None:
    team = developer_experience(shop.store)
    ended = shop.run_in("done")
    clock.advance(minutes=1)
    open_run = shop.run_in("running")
    clock.advance(minutes=1)
    ours = shop.queue(mission_id=team.mission.id)
    assert [run.id for run in shop.runs.list()] == [ours.id, open_run.id]
    assert [run.id for run in shop.runs.list(ended=True)] == [ours.id, open_run.id, ended.id]
    assert [run.id for run in shop.runs.list(mission_id=team.mission.id)] == [ours.id]
    assert [run.id for run in shop.runs.list(mission_id=team.mission.id, ended=True)] == [ours.id]
    assert [run.id for run in shop.runs.list(ended=True, limit=1)] == [ours.id]


def test_one_run_at_a_time_works_in_a_chat(shop: Shop) -> None:
    first, second = shop.queue(chat="one"), shop.queue(chat="one")
    beside = shop.queue(RunKind.COLLECT, chat="one")
    assert shop.book.dispatch(first) is not None
    assert shop.book.dispatch(second) is None
    assert shop.book.dispatch(beside) is not None
    assert shop.book.ready(10) == []
    shop.book.begin(first.id)
    shop.book.finish(first.id, "Seen.")
    assert [run.id for run in shop.book.ready(10)] == [second.id]
    assert shop.book.dispatch(second) is not None
    assert shop.book.dispatch(second) is None


# --- what people want ---------------------------------------------------------------------------------------


def test_a_run_that_is_paused_before_it_began_is_not_given_out_until_it_is_resumed(shop: Shop) -> None:
    run = shop.queue()
    shop.runs.pause(shop.scope(), run.id, "not today")
    assert (shop.book.ready(10), shop.book.dispatch(run)) == ([], None)
    assert shop.runs.get(run.id).why == "not today"
    shop.runs.resume(shop.scope(), run.id)
    assert [one.id for one in shop.book.ready(10)] == [run.id]
    assert shop.book.dispatch(run) is not None


def test_its_worker_sees_to_a_pause_and_to_going_on(shop: Shop) -> None:
    run = shop.begun()
    assert shop.book.with_requests() == []
    shop.runs.pause(shop.scope(), run.id)
    assert [one.wish for one in shop.book.with_requests()] == [ControlRequest.PAUSE]
    assert shop.book.pause(run.id).status == "paused"
    with pytest.raises(IllegalTransition, match="is already paused"):
        shop.runs.pause(shop.scope(), run.id)
    shop.runs.resume(shop.scope(), run.id)
    assert shop.book.with_requests() == []
    resumed = shop.book.resume(run.id)
    assert resumed is not None
    assert resumed.status == "running"
    assert [event.action for event in trail(shop.store, event_stream(run.id))][-4:] == ["ask", "pause", "ask", "resume"]


def test_what_is_said_to_a_run_waits_until_its_agent_was_told(shop: Shop) -> None:
    run = shop.begun()
    shop.runs.redirect(shop.scope(), run.id, " Use SWC. ")
    told = shop.book.with_requests()[0].message
    assert told == "Use SWC."
    # Something is said while the agent is being told.
    shop.runs.redirect(shop.scope(), run.id, "And measure.")
    shop.book.message_delivered(run.id, told)
    assert shop.runs.get(run.id).message == "And measure."
    shop.book.message_delivered(run.id, "And measure.")
    assert shop.runs.get(run.id).message is None
    assert shop.book.with_requests() == []


def test_nothing_that_cannot_be_said_is_said_to_a_run(shop: Shop) -> None:
    run = shop.begun()
    for message in ("", " \n", "half a pair \ud83d", "\x00", "x" * 50_001):
        with nothing_changes(shop.store), pytest.raises(InvalidInput, match="message"):
            shop.runs.redirect(shop.scope(), run.id, message)


def test_a_run_without_an_agent_that_listens_is_not_redirected(shop: Shop) -> None:
    for kind in (RunKind.CYCLE, RunKind.PLAN, RunKind.COLLECT):
        run = shop.begun(kind=kind)
        with nothing_changes(shop.store), pytest.raises(IllegalTransition, match="has no agent to redirect"):
            shop.runs.redirect(shop.scope(), run.id, "Use SWC.")


def test_a_run_whose_worker_has_died_is_stopped_at_once(shop: Shop) -> None:
    run = shop.begun()
    dead = RunQueue(shop.store, DEAD)
    assert dead.begin(run.id) is not None
    after = shop.runs.stop(shop.scope(), run.id, "enough")
    assert (after.status, after.why, after.executor) == ("stopped", "enough", None)
    assert after.ended_at is not None


def test_a_run_of_a_worker_on_another_machine_is_left_to_it_to_stop(shop: Shop) -> None:
    run = shop.begun()
    there = RunQueue(shop.store, ELSEWHERE)
    assert there.begin(run.id) is not None
    assert shop.runs.stop(shop.scope(), run.id).status == "running"
    assert [one.wish for one in there.with_requests()] == [ControlRequest.STOP]
    after = there.stop(run.id, "a person stopped it")
    assert (after.status, after.wish) == ("stopped", None)


def test_a_failed_run_is_tried_again_from_the_queue(shop: Shop) -> None:
    run = shop.run_in("failed")
    again = shop.runs.resume(shop.scope(), run.id)
    assert (again.status, again.leg, again.why, again.ended_at, again.executor) == ("queued", 1, "", None, None)
    assert again.workflow_id != run.workflow_id
    assert [one.id for one in shop.book.ready(10)] == [run.id]


@pytest.mark.spec("M4")
def test_cancelling_a_todo_stops_the_work_on_it(store: Store, shop: Shop) -> None:
    team = developer_experience(store)
    waiting, working = (team.todo_in(TodoStatus.IN_PROGRESS, title) for title in ("A", "B"))
    (queued,), (run,) = shop.runs.for_todo(waiting.id), shop.runs.for_todo(working.id)
    team.update(waiting, TodoAction.CANCEL, "no longer needed")
    assert shop.runs.get(queued.id).status == "stopped"
    assert shop.book.dispatch(run) is not None
    shop.book.begin(run.id)
    team.todos.update(team.owner, team.slug, working.id, TodoAction.CANCEL, "no longer needed")
    after = shop.runs.get(run.id)
    assert (after.status, after.wish) == ("running", ControlRequest.STOP)


# --- only its worker moves it -------------------------------------------------------------------------------

STEPS: Final[dict[str, Callable[[RunQueue, str], object]]] = {
    "ours": lambda book, run: book.get_owned(run),
    "spend": lambda book, run: book.add_usage(run, "t", UsageIncrement(1, 1)),
    "wait": lambda book, run: book.wait(run, "for a person"),
    "wake": lambda book, run: book.wake(run, "it can go on"),
    "pause": lambda book, run: book.pause(run),
    "resume": lambda book, run: book.resume(run),
    "heard": lambda book, run: book.message_delivered(run, "Use SWC."),
    "finish": lambda book, run: book.finish(run, "Seen."),
    "fail": lambda book, run: book.fail(run, "No model."),
    "stopped": lambda book, run: book.stop(run, "enough"),
}


def test_a_worker_that_was_thought_dead_changes_nothing_any_more(shop: Shop) -> None:
    run = shop.begun()
    shop.runs.redirect(shop.scope(), run.id, "Use SWC.")
    other = RunQueue(shop.store, ELSEWHERE)
    taken = other.begin(run.id)
    assert taken is not None
    assert (taken.executor, taken.attempts, taken.started_at) == (ELSEWHERE, 2, run.started_at)
    for take in STEPS.values():
        with nothing_changes(shop.store), pytest.raises(RunNotOwned, match=f"owned by {ELSEWHERE}"):
            take(shop.book, run.id)


def test_a_run_that_somebody_stopped_is_nobodys(shop: Shop) -> None:
    run = shop.run_in("stopped")
    with nothing_changes(shop.store):
        assert shop.book.begin(run.id) is None
        for step, take in STEPS.items():
            if step == "stopped":
                take(shop.book, run.id)
                continue
            with pytest.raises(RunNotOwned):
                take(shop.book, run.id)


def test_a_step_that_was_taken_is_not_taken_twice(shop: Shop) -> None:
    taken = {"waiting": "wait", "running": "wake", "paused": "pause", "done": "finish", "failed": "fail"}
    for state, step in taken.items():
        run = shop.run_in(state)
        with nothing_changes(shop.store):
            STEPS[step](shop.book, run.id)
            assert shop.book.begin(run.id) == (None if state in ("done", "failed") else run)


def test_a_run_adds_up_what_it_uses(shop: Shop) -> None:
    run = shop.begun()
    for turn in ("first", "second", "second"):
        shop.book.add_usage(run.id, turn, UsageIncrement(100, 10, 0.5, 3, 1.5))
    told = shop.book.finish(run.id, "Seen.").as_json()
    assert told["usage"] == {"inputTokens": 200, "outputTokens": 20}
    assert (told["cost"], told["toolCalls"], told["seconds"], told["result"]) == (1.0, 6, 3.0, "Seen.")
    assert (told["status"], told["worker"]) == ("done", current_process())


def test_a_run_that_is_not_there_is_told(shop: Shop) -> None:
    get: Ask = lambda runs, _scope, run: runs.get(run)  # noqa: E731
    for ask in (*WISHES.values(), get):
        with pytest.raises(NotFound, match=r"There is no run 'x'\. `punchlist mission runs --all` lists"):
            ask(shop.runs, shop.scope(), "x")
    assert shop.book.begin("x") is None
    with pytest.raises(PunchlistError, match="Run x does not exist"):
        shop.book.get_owned("x")
