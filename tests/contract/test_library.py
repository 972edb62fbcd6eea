"""`punchlist.Agent`: a turn inside of somebody's own program."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from tests.conftest import StoppedClock

import punchlist
from punchlist import (
    Agent,
    CallChanged,
    Continued,
    Limits,
    ListChanged,
    PunchlistError,
    Reason,
    TransientFailure,
    TurnEnded,
    TurnStarted,
    tool,
)
from punchlist.kernel.events import Actor, Role
from punchlist.toolcalls.approvals import ApprovalAnswer, ApprovalOutcome
from punchlist.toolcalls.lifecycle import CallStatus
from punchlist.toolcalls.model import WaitingToolCall

PLAN = "- calls: [{tool: create_todo, arguments: {items: [{title: Look}]}}]\n"
LOOK = "- calls: [{tool: list_directory}]\n"
DONE = "- calls: [{tool: complete_todo, arguments: {todoId: '{{ created[0].id }}', outcome: done}}]\n"

Make = Callable[..., Agent]


@tool
def weather(city: str) -> str:
    """Today's weather in a city."""
    return f"Sunny in {city}."


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".punchlist").mkdir()

    def agent(script: str, **options: object) -> Agent:
        path = tmp_path / "script.yaml"
        path.write_text(script)
        return Agent(f"rehearsal:{path}", workspace=tmp_path, **options)  # type: ignore[arg-type]

    return agent


@pytest.mark.spec("T10", "C13")
def test_a_turn_runs_with_own_tools_and_without_an_event_loop(make: Make) -> None:
    agent = make(
        PLAN + "- calls: [{tool: weather, arguments: {city: Oslo}}]\n- Soon.\n" + DONE + "- Sunny.\n", tools=[weather]
    )
    result = agent.run_sync("How is it?")
    assert (result.reason, result.text, result.continuations) == (Reason.COMPLETED, "Soon.\n\nSunny.", 1)
    assert [(task.title, task.status) for task in result.todos] == [("Look", "completed")]


@pytest.mark.spec("C15")
def test_what_happens_comes_as_it_happens(make: Make) -> None:
    agent = make(PLAN + LOOK + "- Soon.\n" + DONE + "- Done.\n")

    async def listen() -> list[object]:
        return [news async for news in agent.events("Do it.")]

    news = asyncio.run(listen())
    assert isinstance(news[0], TurnStarted)
    assert isinstance(news[-1], TurnEnded)
    assert news[-1].result.reason is Reason.COMPLETED
    assert [one.count for one in news if isinstance(one, Continued)] == [1]
    assert [one.lists.items[0].status for one in news if isinstance(one, ListChanged)] == ["pending", "completed"]
    ended = [
        one.call.request.tool for one in news if isinstance(one, CallChanged) and one.call.status is CallStatus.SUCCESS
    ]
    assert ended == ["create_todo", "list_directory", "complete_todo"]


@pytest.mark.spec("C14")
def test_whoever_stops_listening_ends_the_turn(make: Make) -> None:
    agent = make(PLAN + "- {text: never, delay: 600}\n")

    async def listen() -> None:
        news = agent.events("Do it.")
        async for one in news:
            if isinstance(one, ListChanged):
                break
        await news.aclose()  # type: ignore[attr-defined]
        (turn,) = agent._app.conversations.turns(agent.session)
        assert str(turn.end_reason).startswith("cancelled: the event iterator was closed")

    asyncio.run(asyncio.wait_for(listen(), 30))


@pytest.mark.spec("C9")
def test_a_person_is_asked_by_the_program(make: Make) -> None:
    asked: list[str] = []

    async def ask(call: WaitingToolCall, problem: str | None) -> ApprovalAnswer:
        asked.append(call.request.tool)
        return ApprovalAnswer(ApprovalOutcome.PROCEED_ONCE, Actor(Role.PERSON, "ada"))

    agent = make("- calls: [{tool: write_file, arguments: {path: x, content: y}}]\n- Written.\n", ask=ask)
    assert agent.run_sync("Write it.").reason is Reason.COMPLETED
    assert asked == ["write_file"]


@pytest.mark.spec("C13")
def test_without_a_person_the_turn_waits_and_limits_are_kept(make: Make) -> None:
    assert (
        make("- calls: [{tool: write_file, arguments: {path: x, content: y}}]\n").run_sync("x").reason is Reason.WAITING
    )
    capped = make(PLAN + "- Soon.\n" * 9, limits=Limits(continuations=1)).run_sync("x")
    assert (capped.reason, capped.continuations) == (Reason.CAPPED, 1)
    assert make(PLAN + "- That was it.\n", continues=False).run_sync("x").reason is Reason.OPEN


@pytest.mark.spec("C8")
def test_a_tool_that_fails_for_a_passing_reason_is_tried_once_more(make: Make) -> None:
    tries: list[int] = []

    @tool
    def flaky(fails: int) -> str:
        """Fails so many times."""
        tries.append(len(tries))
        if len(tries) <= fails:
            raise TransientFailure("The line was busy.")
        return "through"

    script = "- calls: [{{tool: flaky, arguments: {{fails: {0}}}}}]\n- Ended.\n"
    for fails, status in ((1, CallStatus.SUCCESS), (9, CallStatus.ERROR)):
        tries.clear()
        agent = make(script.format(fails), tools=[flaky])

        async def listen(agent: Agent = agent) -> list[object]:
            return [news async for news in agent.events("Call.")]

        calls = [news.call for news in asyncio.run(listen()) if isinstance(news, CallChanged)]
        assert calls[-1].status is status
        assert len(tries) == 2


def test_a_wrong_model_is_named_before_any_work(make: Make, tmp_path: Path) -> None:
    with pytest.raises(PunchlistError, match="nobody"):
        Agent("nobody:x", workspace=tmp_path).run_sync("x")
    with pytest.raises(PunchlistError, match="goal"):
        make("- x\n").run_sync("  ")


def test_its_turns_follow_each_other(make: Make) -> None:
    agent = make("- {text: slow, delay: 600}\n- x\n")

    async def twice() -> None:
        first = asyncio.create_task(agent.run("One."))
        await asyncio.sleep(0)
        with pytest.raises(PunchlistError, match="already running a turn"):
            await agent.run("Two.")
        with pytest.raises(PunchlistError, match="inside an event loop"):
            agent.run_sync("Three.")
        agent.cancel()
        assert (await first).reason is Reason.CANCELLED

    asyncio.run(twice())


@pytest.mark.spec("S6")
@pytest.mark.parametrize("ordered", [True, False])
def test_a_program_chooses_whether_the_calls_of_a_reply_are_ordered(make: Make, ordered: bool) -> None:
    running: set[str] = set()
    together: list[set[str]] = []

    @tool
    async def change(name: str) -> str:
        """Change something."""
        running.add(name)
        for _ in range(20):
            await asyncio.sleep(0)
        together.append(set(running))
        running.discard(name)
        return name

    both = "[{tool: change, arguments: {name: a}}, {tool: change, arguments: {name: b}}]"
    agent = make(f"- calls: {both}\n- Done.\n", tools=[change], ordered_calls=ordered)
    assert agent.run_sync("Go.").reason is Reason.COMPLETED
    assert together[0] == ({"a"} if ordered else {"a", "b"})


@pytest.mark.spec("S1", "S4", "S5")
def test_states_decisions_and_expiry_are_public(tmp_path: Path) -> None:
    async def scene() -> None:
        clock = StoppedClock()
        deny = punchlist.ApprovalExpiry(punchlist.OnExpiry.DENY, timedelta(minutes=1))
        scheduler = punchlist.CoreToolScheduler([weather], punchlist.Policy(), expiry=deny, clock=clock)
        batch: punchlist.CallBatch = scheduler.schedule(punchlist.ToolCallRequest("weather", {"city": "Oslo"}))
        (waiting,) = await batch.settled()
        assert isinstance(waiting, punchlist.WaitingToolCall)
        assert waiting.question.on_expiry is punchlist.OnExpiry.DENY
        clock.advance(seconds=61)
        (call,) = await asyncio.wait_for(batch.ended(), 20)
        assert isinstance(call, punchlist.CancelledToolCall)
        await scheduler.close()

    asyncio.run(scene())
    states = {kind.status for kind in punchlist.ToolCall.__args__}
    assert states == set(punchlist.CallStatus)
    assert {kind.__name__ for kind in punchlist.ToolCall.__args__} <= set(dir(punchlist))
    assert punchlist.PolicyDecision(punchlist.Verdict.ALLOW, "x").verdict is punchlist.Verdict.ALLOW
