"""How far a turn goes: iterations, continuations and their pauses, budgets; and whose counters these are."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from tests.conftest import Cli
from tests.contract.rehearsing import Rehearse, Rehearsing, calls, completes, plans, says
from tests.contract.test_context import looks

from punchlist.agent import turn
from punchlist.agent.continuation import Limits, Reason, TurnCounters, limit_warning
from punchlist.agent.definitions import BUILT_IN, AgentDefinition
from punchlist.agent.events import Continued
from punchlist.conversations.model import Scope
from punchlist.kernel.cancellation import CancelSignal
from punchlist.models.model import ModelInfo, ModelRequest, Reply, TextListener
from punchlist.models.rehearsal import RehearsedReply
from punchlist.storage.store import Store

SOON = says("Soon.")
PLANNED = plans("Look")
LISTED = calls(("TodoWrite", {"todos": [{"content": "Look", "activeForm": "Looking", "status": "pending"}]}))

# --- iterations -------------------------------------------------------------------------------------------


@pytest.mark.spec("T9")
@pytest.mark.parametrize(
    ("limits", "lines", "iterations"),
    [
        ({"base_iterations": 2}, looks(9), 2),
        # The list is clear after the second reply; what it was given until then stays.
        ({"base_iterations": 2, "more_iterations": 3}, [plans("Look"), completes(0), *looks(9)], 4),
        ({"base_iterations": 2, "more_iterations": 0}, [plans("Look"), completes(0), *looks(9)], 2),
        ({"base_iterations": 2, "more_iterations": 3, "max_iterations": 7}, [plans("Look"), *looks(9)], 7),
    ],
    ids=["base", "more", "no more", "most"],
)
def test_iterations_are_given_as_they_are_set(
    rehearse: Rehearse, limits: dict[str, int], lines: list[RehearsedReply], iterations: int
) -> None:
    ended = rehearse(*lines).limits(**limits).run()
    assert (ended.reason, ended.iterations, ended.why) == (
        Reason.CAPPED,
        iterations,
        f"limit of {iterations} iterations reached",
    )


# --- continuations ----------------------------------------------------------------------------------------


@pytest.mark.spec("C1")
@pytest.mark.parametrize(
    ("who", "lists", "reason"),
    [
        ("supervisor", PLANNED, Reason.STALLED),
        ("coder", LISTED, Reason.STALLED),
        ("researcher", LISTED, Reason.OPEN),
        ("writer", LISTED, Reason.OPEN),
    ],
    ids=["supervisor", "coder", "researcher", "writer"],
)
def test_who_is_sent_back_to_its_list_without_any_settings(
    rehearse: Rehearse, who: str, lists: RehearsedReply, reason: Reason
) -> None:
    scene = rehearse(lists, *[SOON] * 5)
    scene.agent = BUILT_IN[who]
    ended = scene.run()
    assert (ended.reason, [item.title for item in ended.open]) == (reason, ["Look"])


@pytest.mark.spec("C1")
def test_a_flag_beats_the_environment_and_that_beats_the_file(punchlist: Cli, tmp_path: Path) -> None:
    users = tmp_path / "home/.config/punchlist"
    users.mkdir(parents=True)
    (tmp_path / "script.yaml").write_text(
        "- calls: [{tool: create_todo, arguments: {items: [{title: Look}]}}]\n" + "- Soon.\n" * 5
    )
    (users / "punchlist.toml").write_text(
        f'[agent]\nmodel = "rehearsal:{tmp_path}/script.yaml"\nmax_todo_continuations = 2\n'
    )
    environment = {"PUNCHLIST_MAX_TODO_CONTINUATIONS": "1"}

    def continuations(*flags: str, **env: str) -> int:
        told = json.loads(punchlist("run", "Do it.", "--json", *flags, env=env).stdout)
        assert told["reason"] == "capped"
        return int(told["continuations"])

    assert continuations() == 2
    assert continuations(**environment) == 1
    assert continuations("--max-todo-continuations", "0", **environment) == 0


@pytest.mark.spec("C4")
def test_a_new_message_begins_a_new_count(rehearse: Rehearse) -> None:
    report = says("One item is left.")
    scene = rehearse(plans("Look"), SOON, SOON, report, plans("Write"), SOON, SOON, report).limits(continuations=1)
    outcomes = [scene.run("One."), scene.run("Two.")]
    assert [(ended.reason, ended.continuations) for ended in outcomes] == [(Reason.CAPPED, 1)] * 2
    assert [(news.count, news.limit) for news in scene.news if isinstance(news, Continued)] == [(1, 1)] * 2


@pytest.mark.spec("C4")
@pytest.mark.parametrize(
    ("interval", "pauses"), [(0.0, [0, 0, 0]), (2.0, [2, 4, 8]), (40.0, [40, 60, 60])], ids=["none", "grows", "ends"]
)
def test_pauses_grow_while_the_list_does_not_change_and_have_an_end(
    rehearse: Rehearse, monkeypatch: pytest.MonkeyPatch, interval: float, pauses: list[float]
) -> None:
    paused = _paused(monkeypatch)
    scene = rehearse(plans("Look"), *[SOON] * 4)
    scene.agent = replace(scene.agent, check_interval=interval)
    assert scene.run().reason is Reason.STALLED
    # Then the item is tried in a fresh context, which has pauses of its own.
    assert paused[:3] == pauses
    assert paused[3:5] == pauses[:2]


@pytest.mark.spec("C4", "C5")
def test_a_change_of_the_list_makes_the_next_pause_short_again(
    rehearse: Rehearse, monkeypatch: pytest.MonkeyPatch
) -> None:
    paused = _paused(monkeypatch)
    scene = rehearse(plans("Look", "Write"), SOON, SOON, completes(0), SOON, SOON, completes(1), says("Done."))
    scene.agent = replace(scene.agent, check_interval=1.0)
    assert scene.run().reason is Reason.COMPLETED
    assert paused == [1, 2, 1, 2]


def _paused(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long it would have been waited, from now on."""
    paused: list[float] = []

    async def pause(_: CancelSignal, seconds: float) -> None:
        paused.append(seconds)

    monkeypatch.setattr(turn, "sleep_unless_cancelled", pause)
    return paused


@pytest.mark.spec("C4", "C14")
def test_a_pause_ends_when_somebody_has_had_enough(rehearse: Rehearse) -> None:
    scene = rehearse(plans("Look"), SOON)
    scene.agent = replace(scene.agent, check_interval=50.0)
    scene.runtime = replace(scene.runtime, model_for=lambda _: _Then(scene, lambda: scene.signal.set("enough")))
    began = monotonic()
    ended = scene.run()
    assert (ended.reason, ended.why) == (Reason.CANCELLED, "enough")
    assert monotonic() - began < 25


class _Then:
    """A model that has said all it has to say; a moment later something happens."""

    def __init__(self, scene: Rehearsing, happens: Any) -> None:
        self._scene, self._happens = scene, happens
        self.name, self.info = scene.model.name, scene.model.info

    async def ask(self, request: ModelRequest, on_text: TextListener | None = None) -> Reply:
        reply = await self._scene.model.ask(request, on_text)
        if not reply.calls:
            asyncio.get_running_loop().call_later(0.05, self._happens)
        return reply


# --- budgets ----------------------------------------------------------------------------------------------


NEXT = "the next request needs about"
PRICED = ModelInfo(1_000_000, input_price=2.0, output_price=9.0)


def spends(tokens: int, many: int) -> list[RehearsedReply]:
    return [replace(line, tokens=tokens) for line in looks(many)]


@pytest.mark.spec("C6")
@pytest.mark.parametrize(
    ("info", "limits", "tokens", "iterations", "why"),
    [
        (
            ModelInfo(context_window=1_000),
            {},
            900,
            1,
            "the next request needs about 904 of 1,000 tokens of the context window",
        ),
        (ModelInfo(), {"tokens": 30_000}, 9_000, 2, f"18,000 of 30,000 tokens are used; {NEXT} 9,004"),
        (
            ModelInfo(1_000_000, input_price=2.0, output_price=9.0),
            {"cost": 1.3},
            200_000,
            2,
            "$0.8000 of $1.3 are used; the next request costs about $0.4000",
        ),
    ],
    ids=["window", "tokens", "cost"],
)
def test_a_budget_ends_the_turn_before_the_next_request(
    rehearse: Rehearse, info: ModelInfo, limits: dict[str, float], tokens: int, iterations: int, why: str
) -> None:
    scene = rehearse(*spends(tokens, 6)).limits(**limits)
    scene.model.info = info
    ended = scene.run()
    assert (ended.reason, ended.iterations, ended.why) == (Reason.BUDGET, iterations, why)
    # After them there is at most the report, which has no tools.
    assert [bool(request.tools) for request in scene.asked[:iterations]] == [True] * iterations
    assert [bool(request.tools) for request in scene.asked[iterations:]] in ([], [False])


@pytest.mark.spec("C6")
@pytest.mark.parametrize(
    ("info", "limits", "tokens"),
    [
        (ModelInfo(context_window=1_000), {}, 890),
        (ModelInfo(), {"tokens": 120_000}, 14_900),
        (PRICED, {"cost": 3.0}, 200_000),
    ],
    ids=["window", "tokens", "cost"],
)
def test_what_is_not_used_up_ends_nothing(
    rehearse: Rehearse, info: ModelInfo, limits: dict[str, float], tokens: int
) -> None:
    scene = rehearse(*spends(tokens, 5), says("Done.")).limits(**limits)
    scene.model.info = info
    assert scene.run().reason is Reason.COMPLETED


@pytest.mark.spec("C6")
def test_the_last_reply_may_use_up_the_rest(rehearse: Rehearse) -> None:
    assert rehearse(says("Done.", tokens=50_000)).limits(tokens=20_000).run().reason is Reason.COMPLETED


@pytest.mark.spec("C6", "T12")
def test_the_time_of_a_turn_ends_its_workers_too(rehearse: Rehearse) -> None:
    delegated = calls(("delegate", {"type": "writer", "mission": "Write."}))
    scene = rehearse(delegated, says("Never said."), writer=[says("never", delay=600)])
    assert scene.limits(seconds=0.5).run().reason is Reason.BUDGET
    turns = scene.runtime.conversations.turns("s")
    assert [turn.agent_id for turn in turns if turn.open] == []
    assert [turn.agent_id for turn in turns if str(turn.end_reason).startswith("cancelled: ")] == ["writer"]


# --- several sessions -------------------------------------------------------------------------------------


@pytest.mark.spec("C16")
def test_sessions_at_the_same_time_share_neither_counters_nor_lists(store: Store, agent: Scope, tmp_path: Path) -> None:
    stalls = Rehearsing(store, Scope("a", agent.actor), tmp_path, plans("Look A"), *[SOON] * 9)
    listed = calls(("list_todo", {}))
    steps = [plans("Look B"), SOON, listed, completes(0), says("Done.")]
    finishes = Rehearsing(store, Scope("b", agent.actor), tmp_path, *steps)

    async def both() -> Any:
        # Each waits for the other before it asks its model.
        step = asyncio.Barrier(2)
        for scene in (stalls, finishes):
            scene.runtime = replace(scene.runtime, model_for=_InStep(scene, step).for_agent)

        async def work(scene: Rehearsing) -> Any:
            try:
                return await scene.runtime.run(scene.agent, "Do it.", scene.signal)
            finally:
                # The other goes on alone.
                await step.abort()

        return await asyncio.wait_for(asyncio.gather(work(stalls), work(finishes)), 60)

    first, second = (outcome for outcome in asyncio.run(both()))
    assert (first.reason, first.continuations, [item.title for item in first.open]) == (Reason.STALLED, 3, ["Look A"])
    assert (second.reason, second.continuations, second.open) == (Reason.COMPLETED, 1, ())
    assert not any("Look B" in repr(request.messages) for request in stalls.asked)
    assert not any("Look A" in repr(request.messages) for request in finishes.asked)


class _InStep:
    def __init__(self, scene: Rehearsing, step: asyncio.Barrier) -> None:
        self._scene, self._step = scene, step
        self.name, self.info = scene.model.name, scene.model.info

    def for_agent(self, _: AgentDefinition) -> _InStep:
        return self

    async def ask(self, request: ModelRequest, on_text: TextListener | None = None) -> Reply:
        with suppress(asyncio.BrokenBarrierError):
            await self._step.wait()
        return await self._scene.model.ask(request, on_text)


# --- before the first request, and before the end -----------------------------------------------------------


@pytest.mark.spec("C6")
@pytest.mark.parametrize("limits", [{"tokens": 2_000}, {"cost": 0.005}], ids=["tokens", "cost"])
def test_the_first_request_is_not_sent_beyond_a_budget(rehearse: Rehearse, limits: dict[str, float]) -> None:
    scene = rehearse(says("Done.")).limits(**limits)
    scene.model.info = PRICED
    ended = scene.run("Do it. " * 4_000)
    assert (ended.reason, ended.iterations, scene.asked) == (Reason.BUDGET, 0, [])


@pytest.mark.spec("C6", "T12")
def test_the_first_request_of_a_worker_is_not_sent_beyond_what_is_left(rehearse: Rehearse) -> None:
    delegated = calls(("delegate", {"type": "writer", "mission": "Write. " * 400}))
    scene = rehearse(replace(delegated, tokens=9_000), says("Done."), writer=[says("Written.")]).limits(tokens=10_000)
    ended = scene.run()
    assert (ended.reason, "writer" in scene.model.requests) == (Reason.BUDGET, False)
    assert ended.usage.total <= 10_000


@pytest.mark.spec("T9", "C6")
@pytest.mark.parametrize("limits", [{"tokens": 40_000}, {"cost": 0.08}], ids=["tokens", "cost"])
def test_a_budget_leaves_room_for_a_report(rehearse: Rehearse, limits: dict[str, float]) -> None:
    scene = rehearse(plans("Look"), *spends(7_000, 9)).limits(**limits)
    scene.model.info = PRICED
    ended = scene.run()
    assert ended.reason is Reason.BUDGET
    assert scene.asked[-1].tools == ()
    assert "Report to the user now" in str(scene.asked[-1].messages)
    warned = [request for request in scene.asked if "left before the" in str(request.messages[-1])]
    assert len(warned) >= 2


@pytest.mark.spec("T9")
@pytest.mark.parametrize(
    ("spent", "limits", "warning"),
    [
        (TurnCounters(5, seconds=50.0), Limits(seconds=75.0), "About 2 model calls are left before the time limit."),
        (TurnCounters(5, seconds=50.0), Limits(seconds=300.0), None),
        (TurnCounters(9, continuations=8), Limits(continuations=10), None),
        (TurnCounters(9, continuations=9), Limits(continuations=10), "If you stop twice more"),
        (TurnCounters(9, continuations=10), Limits(continuations=10), "If you stop once more"),
    ],
)
def test_the_model_is_warned_before_limits_of_time_and_continuations(
    spent: TurnCounters, limits: Limits, warning: str | None
) -> None:
    told = limit_warning(spent._replace(allowed=40), replace(limits, max_iterations=50), True)
    assert (told is None) if warning is None else (told is not None and told.startswith(warning))


# --- replies that only announce -----------------------------------------------------------------------------


@pytest.mark.spec("C2", "C13")
@pytest.mark.parametrize(
    "text",
    [
        "I'll look at the parser first and then fix it.",
        "Sure, let me run the tests.",
        "Next I will update the README and the changelog.",
    ],
)
def test_a_reply_that_only_announces_work_is_sent_back_once(rehearse: Rehearse, text: str) -> None:
    scene = rehearse(says(text), calls(("list_directory", {})), says("It was empty."))
    ended = scene.run()
    assert (ended.reason, ended.text, ended.continuations) == (Reason.COMPLETED, "It was empty.", 1)
    again = rehearse(says(text), says(text))
    assert (again.run().reason, len(again.asked)) == (Reason.COMPLETED, 2)


@pytest.mark.spec("C13")
@pytest.mark.parametrize(
    "text",
    [
        "Hello! Let me know what you need.",
        "I will not do that, because the key is private.",
        "I'll do it when you tell me the port.",
        "I'll put it plainly: the port is 8913.",
        "Let me be clear: no.",
        "The port is 8913.",
        "I will need the password. What is it?",
    ],
)
def test_an_answer_is_no_announcement(rehearse: Rehearse, text: str) -> None:
    scene = rehearse(says(text), says("Never said."))
    assert (scene.run().text, len(scene.asked)) == (text, 1)
