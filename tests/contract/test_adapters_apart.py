"""The lists in other people's frameworks: what only one of them has."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, MaxTurnsExceeded, RunConfig, Runner, SQLiteSession, function_tool, handoff
from agents.run_config import CallModelData, ModelInputData
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, ModelCallLimitMiddleware
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from pydantic import BaseModel
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import DeferredToolRequests, DeferredToolResults, ToolOutput
from pydantic_ai.messages import ModelRequest, UserPromptPart
from pydantic_ai.usage import UsageLimits
from tests.contract.frameworks import (
    Heard,
    Script,
    Speaking,
    Step,
    complete,
    langchain_agent,
    openai_agent,
    plan,
    pydantic_agent,
    untraced,
)

from punchlist.adapters.openai_agents import PunchlistTools
from punchlist.adapters.pydantic_ai import PunchlistCapability
from punchlist.adapters.session_lists import SessionLists
from punchlist.agent.continuation import Reason
from punchlist.errors import InvalidInput

ASKED: Any = {"messages": [{"role": "user", "content": "Do it."}]}


class Answer(BaseModel):
    city: str


@pytest.fixture
def lists(tmp_path: Path) -> Iterator[SessionLists]:
    with SessionLists(database=str(tmp_path / "lists.db")) as lists:
        yield lists


def thread(name: str, **more: Any) -> Any:
    return {"configurable": {"thread_id": name}, **more}


def by_itself(heard: Heard) -> Any:
    """Knows where it is from what it hears, so that many can be asked at once."""
    sent_back = any("still open" in text for text in heard.said)
    return [plan("Ask"), complete(0)(heard) if sent_back else "Soon…", "Done."][len(heard.results)]  # type: ignore[operator]


# --- LangChain -------------------------------------------------------------------------------------------


@pytest.mark.spec("C13", "C16")
def test_langchain_every_run_of_a_batch_has_lists_of_its_own(lists: SessionLists) -> None:
    first = Script([plan("Oslo"), "Soon…"])
    agent = langchain_agent(lists, first)
    one, two = agent.batch([ASKED, ASKED], {"max_concurrency": 1})
    assert one["punchlist"]["session"] != two["punchlist"]["session"]
    assert one["punchlist"]["reason"] == Reason.STALLED


def test_langchain_what_was_said_has_continuations_but_not_the_state(lists: SessionLists) -> None:
    result = langchain_agent(lists, Script([plan("Oslo"), "Soon…", complete(0), "Done."])).invoke(ASKED)
    said = [message for message in result["messages"] if isinstance(message, HumanMessage)]
    assert [message.additional_kwargs.get("lc_source") for message in said] == [None, "punchlist"]
    assert not any("<state>" in message.text for message in result["messages"])
    assert "punchlist_state" not in result


@pytest.mark.spec("C9")
def test_langchain_after_an_interrupt_it_is_where_it_was(lists: SessionLists) -> None:
    script = Script([plan("Oslo"), "Soon…", complete(0), "Done."])
    asks = HumanInTheLoopMiddleware({"complete_todo": {"allowed_decisions": ["approve", "reject"]}})
    agent = langchain_agent(lists, script, asks, checkpointer=InMemorySaver())
    paused = agent.invoke(ASKED, thread("trip"))
    assert "__interrupt__" in paused
    assert paused["punchlist"]["reason"] is None
    result = agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), thread("trip"))
    assert (result["punchlist"]["reason"], result["punchlist"]["continuations"]) == (Reason.COMPLETED, 1)
    assert result["messages"][-1].text == "Done."


def test_langchain_a_tool_that_raises_and_a_run_that_is_cancelled_have_a_reason(lists: SessionLists) -> None:
    begun = asyncio.Event()

    async def fails() -> str:
        """Fails."""
        raise RuntimeError("no such file")

    async def hangs() -> str:
        """Hangs."""
        begun.set()
        await asyncio.Event().wait()
        return ""

    async def cancelled() -> None:
        agent = langchain_agent(lists, Script([plan("Oslo"), [("hangs", {})]]), tools=[hangs])
        running = asyncio.create_task(agent.ainvoke(ASKED))
        await asyncio.wait_for(begun.wait(), 30)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    agent = langchain_agent(lists, Script([plan("Oslo"), [("fails", {})]]), tools=[fails])
    with pytest.raises(RuntimeError, match="no such file"):
        asyncio.run(agent.ainvoke(ASKED))
    assert (lists.reason, lists.why) == (Reason.ERROR, "RuntimeError: no such file")
    asyncio.run(cancelled())
    assert lists.reason is Reason.CANCELLED
    assert [task.title for task in lists.todos()] == ["Oslo"]


def test_langchain_an_interrupt_in_a_tool_is_no_end(lists: SessionLists) -> None:
    def ask() -> str:
        """Asks."""
        return str(interrupt("Which city?"))

    steps: list[Step] = [plan("Oslo"), [("ask", {})], "Soon…", complete(0), "Done."]
    agent = langchain_agent(lists, Script(steps), tools=[ask], checkpointer=InMemorySaver())
    assert "__interrupt__" in agent.invoke(ASKED, thread("t"))
    assert lists.reason is None
    assert agent.invoke(Command(resume="Oslo"), thread("t"))["punchlist"]["continuations"] == 1
    assert lists.reason is Reason.COMPLETED


def test_langchain_a_thread_counts_anew_with_each_run(lists: SessionLists) -> None:
    script = Script([plan("Oslo"), "Soon…", "Soon…", "Soon…", "Soon…", complete(0), "Done."])
    agent = langchain_agent(lists, script, checkpointer=InMemorySaver())
    assert agent.invoke(ASKED, thread("trip"))["punchlist"]["reason"] == Reason.STALLED
    result = agent.invoke(ASKED, thread("trip"))
    assert (result["punchlist"]["reason"], result["punchlist"]["continuations"]) == (Reason.COMPLETED, 0)


def test_langchain_a_thread_that_began_without_lists_goes_on_with_them(lists: SessionLists) -> None:
    saver, script = InMemorySaver(), Script([plan("Oslo"), "Soon…", complete(0), "Done."])
    create_agent(Speaking(script=script), checkpointer=saver, interrupt_before=["model"]).invoke(ASKED, thread("trip"))
    result = langchain_agent(lists, script, checkpointer=saver).invoke(None, thread("trip"))
    assert (result["messages"][-1].text, lists.reason) == ("Done.", Reason.COMPLETED)


def test_langchain_an_answer_with_a_schema_is_held_back_too(lists: SessionLists) -> None:
    answer = [("Answer", {"city": "Rome"})]
    script = Script([plan("Oslo"), answer, complete(0), answer])
    result = langchain_agent(lists, script, response_format=ToolStrategy(Answer)).invoke(ASKED)
    assert (result["structured_response"], lists.reason) == (Answer(city="Rome"), Reason.COMPLETED)
    assert script.sent_back() == 1


@pytest.mark.spec("C4")
def test_langchain_limits_of_others_are_respected(lists: SessionLists) -> None:
    result = langchain_agent(lists, Script([plan("Oslo"), "Soon…"])).invoke(ASKED, {"recursion_limit": 15})
    assert (lists.reason, lists.why) == (Reason.CAPPED, "the recursion limit of the graph is reached")
    assert result["messages"][-1].text == "Soon…"
    limit = ModelCallLimitMiddleware(run_limit=3)
    script = Script([plan("Oslo"), "Soon…"])
    result = langchain_agent(lists, script, limit).invoke(ASKED)
    assert (result["punchlist"]["reason"], len(script.heard)) == (Reason.OPEN, 3)


@pytest.mark.spec("C16")
def test_langchain_an_agent_inside_of_another_has_a_list_of_its_own(lists: SessionLists) -> None:
    inner = Script([plan("Book a seat"), complete(0), "Booked."])

    def book() -> str:
        """Book a seat."""
        return str(langchain_agent(lists, inner).invoke(ASKED)["messages"][-1].text)

    outer = Script([plan("Oslo"), [("book", {})], "Soon…", complete(0), "Done."])
    agent = langchain_agent(lists, outer, tools=[book], checkpointer=InMemorySaver())
    result = agent.invoke(ASKED, thread("trip"))
    assert (result["messages"][-1].text, result["punchlist"]["session"]) == ("Done.", "trip")
    assert not any("Oslo" in text for heard in inner.heard for text in heard.said)
    assert [todo.title for todo in lists.todos("trip")] == ["Oslo"]


@pytest.mark.spec("C16")
def test_langchain_one_agent_works_for_many_at_once(lists: SessionLists) -> None:
    agent = langchain_agent(lists, Script([by_itself]))
    results = asyncio.run(agent.abatch([ASKED] * 5, [thread(f"c{number}") for number in range(5)]))
    told = [result["punchlist"] for result in results]
    assert [(run["session"], run["reason"], run["continuations"]) for run in told] == [
        (f"c{number}", Reason.COMPLETED, 1) for number in range(5)
    ]


# --- Pydantic AI -----------------------------------------------------------------------------------------


@pytest.mark.spec("W6")
def test_pydantic_ai_a_conversation_goes_on_with_its_history(lists: SessionLists) -> None:
    async def talk() -> None:
        first = await pydantic_agent(lists, Script([plan("Oslo"), "Soon…"])).run("Do it.")
        assert lists.reason is Reason.STALLED
        agent = pydantic_agent(lists, Script([complete(0), "Done."]))
        await agent.run("Go on.", message_history=first.all_messages())
        assert (lists.reason, [todo.status for todo in lists.todos()]) == (Reason.COMPLETED, ["completed"])
        said = [
            str(part.content)
            for message in first.all_messages()
            if isinstance(message, ModelRequest)
            for part in message.parts
            if isinstance(part, UserPromptPart)
        ]
        assert len(said) == 4
        assert not any("<state>" in text for text in said)

    asyncio.run(talk())


def test_pydantic_ai_an_answer_with_a_schema_is_held_back_too(lists: SessionLists) -> None:
    answer = [("final_result", {"city": "Rome"})]
    script = Script([plan("Oslo"), answer, complete(0), answer])
    result = asyncio.run(pydantic_agent(lists, script, output_type=ToolOutput(Answer)).run("Do it."))
    assert (result.output, lists.reason, script.sent_back()) == (Answer(city="Rome"), Reason.COMPLETED, 1)


@pytest.mark.spec("C9")
def test_pydantic_ai_a_call_that_a_person_must_approve_lets_go(lists: SessionLists) -> None:
    script = Script([plan("Oslo"), [("book", {})], complete(0), "Done."])
    agent = pydantic_agent(lists, script, output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def book() -> str:
        return "booked"

    async def work() -> None:
        paused = await agent.run("Do it.")
        assert (lists.reason, lists.why[:6]) == (Reason.WAITING, "book (")
        approved = DeferredToolResults(approvals={call.tool_call_id: True for call in paused.output.approvals})
        result = await agent.run(message_history=paused.all_messages(), deferred_tool_results=approved)
        assert (result.output, lists.reason) == ("Done.", Reason.COMPLETED)

    asyncio.run(work())


@pytest.mark.spec("C4")
def test_pydantic_ai_the_limit_of_requests_is_respected(lists: SessionLists) -> None:
    agent = pydantic_agent(lists, Script([plan("Oslo"), "Soon…"]))
    result = asyncio.run(agent.run("Do it.", usage_limits=UsageLimits(request_limit=3)))
    assert (result.output, lists.reason) == ("Soon…", Reason.CAPPED)
    assert lists.why == "limit of 3 requests reached"


def test_pydantic_ai_it_can_be_given_to_one_run_alone(lists: SessionLists) -> None:
    script = Script([plan("Oslo"), "Soon…", complete(0), "Done."])
    model = pydantic_agent(lists, script).model
    result = asyncio.run(PydanticAgent(model).run("Do it.", capabilities=[PunchlistCapability(lists)]))
    assert (result.output, lists.reason) == ("Done.", Reason.COMPLETED)


def test_pydantic_ai_run_stream_has_no_way_back_and_says_so(lists: SessionLists) -> None:
    async def work() -> str:
        async with pydantic_agent(lists, Script([plan("Oslo"), "Soon…"])).run_stream("Do it.") as stream:
            return str(await stream.get_output())

    assert asyncio.run(work()) == "Soon…"
    assert lists.reason is Reason.OPEN


@pytest.mark.spec("C16")
def test_pydantic_ai_one_agent_works_for_many_at_once(lists: SessionLists) -> None:
    agent = pydantic_agent(lists, Script([by_itself]))

    async def work() -> list[str]:
        runs = (agent.run("Do it.", conversation_id=f"c{number}") for number in range(5))
        return [str(result.output) for result in await asyncio.gather(*runs)]

    assert asyncio.run(work()) == ["Done."] * 5
    assert [getattr(lists.last(f"c{number}"), "continuations", None) for number in range(5)] == [1] * 5


# --- the OpenAI Agents SDK -------------------------------------------------------------------------------


@pytest.mark.spec("C9")
def test_openai_agents_a_call_that_a_person_must_approve_lets_go(lists: SessionLists) -> None:
    @function_tool(needs_approval=True)
    def book() -> str:
        return "booked"

    punchlist = PunchlistTools(lists)
    agent = openai_agent(punchlist, Script([plan("Oslo"), [("book", {})], complete(0), "Done."]))
    agent.tools.append(book)

    async def work() -> None:
        session = SQLiteSession("trip")
        paused = await punchlist.run(agent, "Do it.", **untraced(), session=session)
        assert (lists.reason, lists.why[:6]) == (Reason.WAITING, "book (")
        state = paused.to_state()
        state.approve(paused.interruptions[0])
        result = await punchlist.run(agent, state, **untraced(), session=session)
        assert (result.final_output, lists.reason) == ("Done.", Reason.COMPLETED)

    asyncio.run(work())


def test_openai_agents_the_session_keeps_what_was_said_but_not_the_state(lists: SessionLists) -> None:
    punchlist, session = PunchlistTools(lists), SQLiteSession("trip")
    script = Script([plan("Oslo"), "Soon…", complete(0), "Done."])

    async def work() -> list[Any]:
        await punchlist.run(openai_agent(punchlist, script), "Do it.", **untraced(), session=session)
        return [item.get("content") for item in await session.get_items() if item.get("role") == "user"]

    said = asyncio.run(work())
    assert (said[0], "still open" in said[1], len(said)) == ("Do it.", True, 2)
    assert lists.last("trip") is not None


def test_openai_agents_whoever_was_handed_the_work_is_sent_back(lists: SessionLists) -> None:
    punchlist = PunchlistTools(lists)
    other = openai_agent(punchlist, Script([plan("Oslo"), "Soon…", complete(0), "Done."]))
    first = openai_agent(punchlist, Script([[("transfer_to_helper", {})]]), handoffs=[handoff(other)])
    result = asyncio.run(punchlist.run(first, "Do it.", **untraced()))
    assert (result.final_output, result.last_agent, lists.reason) == ("Done.", other, Reason.COMPLETED)


@pytest.mark.spec("C4")
def test_openai_agents_the_limit_of_turns_is_for_all_of_it(lists: SessionLists) -> None:
    punchlist = PunchlistTools(lists)
    agent = openai_agent(punchlist, Script([plan("Oslo"), "Soon…"]))
    result = asyncio.run(punchlist.run(agent, "Do it.", max_turns=3, **untraced()))
    assert (result.final_output, lists.reason) == ("Soon…", Reason.CAPPED)
    assert lists.why == "limit of 3 turns reached"


@pytest.mark.spec("C4")
def test_openai_agents_a_run_that_is_sent_back_has_the_turns_that_are_left(lists: SessionLists) -> None:
    punchlist, script = PunchlistTools(lists), Script([plan("Oslo"), "Soon…", [("list_todo", {})]])
    with pytest.raises(MaxTurnsExceeded):
        asyncio.run(punchlist.run(openai_agent(punchlist, script), "Do it.", max_turns=4, **untraced()))
    assert (len(script.heard), lists.reason) == (4, Reason.ERROR)


@pytest.mark.spec("C16")
def test_openai_agents_one_agent_works_for_many_at_once(lists: SessionLists) -> None:
    punchlist = PunchlistTools(lists)
    agent = openai_agent(punchlist, Script([by_itself]))

    async def work() -> list[str]:
        runs = (punchlist.run(agent, "Do it.", **untraced(f"c{number}")) for number in range(5))
        return [str(result.final_output) for result in await asyncio.gather(*runs)]

    assert asyncio.run(work()) == ["Done."] * 5
    assert [getattr(lists.last(f"c{number}"), "continuations", None) for number in range(5)] == [1] * 5


def test_openai_agents_a_filter_of_the_program_comes_first(lists: SessionLists) -> None:
    def theirs(data: CallModelData[Any]) -> ModelInputData:
        return ModelInputData([{"role": "user", "content": "Filtered."}], "Be brief.")

    punchlist, script = PunchlistTools(lists), Script(["Hello."])
    config = RunConfig(tracing_disabled=True, call_model_input_filter=theirs)
    asyncio.run(punchlist.run(openai_agent(punchlist, script), "Do it.", run_config=config))
    assert script.heard[0].said[0] == "Filtered."
    assert script.heard[0].system.startswith("Be brief.\n\n## Your plan")


@pytest.mark.parametrize("kept", [{"conversation_id": "conv"}, {"auto_previous_response_id": True}])
def test_openai_agents_a_conversation_that_the_provider_keeps_is_not_told_the_state(
    kept: dict[str, Any], lists: SessionLists
) -> None:
    write = [("TodoWrite", {"todos": [{"content": "Ask", "activeForm": "Asking", "status": "in_progress"}]})]
    done = [("TodoWrite", {"todos": [{"content": "Ask", "activeForm": "Asking", "status": "completed"}]})]
    punchlist, script = PunchlistTools(lists), Script([write, "Soon…", done, "Done."])
    result = asyncio.run(punchlist.run(openai_agent(punchlist, script), "Do it.", **untraced(), **kept))
    assert (result.final_output, lists.reason) == ("Done.", Reason.COMPLETED)
    assert not any("<state>" in text for heard in script.heard for text in heard.said)
    assert "Ask" in script.heard[2].system.rpartition("<state>")[2]
    assert [len(heard.said) for heard in script.heard] == [1, 0, 1, 0]


def test_openai_agents_the_tools_work_without_anybody_who_sends_back(lists: SessionLists) -> None:
    punchlist = PunchlistTools(lists)
    agent = openai_agent(punchlist, Script([plan("Oslo"), "Soon…"]))
    result = asyncio.run(Runner.run(agent, "Do it.", **untraced()))
    assert result.final_output == "Soon…"
    assert (lists.reason, [todo.title for todo in lists.todos()]) == (None, ["Oslo"])


def test_openai_agents_sync_inside_of_an_event_loop_is_refused(lists: SessionLists) -> None:
    async def work() -> None:
        PunchlistTools(lists).run_sync(Agent("x"), "Do it.")

    with pytest.raises(InvalidInput, match="inside an event loop"):
        asyncio.run(work())


@pytest.mark.spec("C14")
def test_openai_agents_whoever_stops_listening_ends_the_run(lists: SessionLists) -> None:
    punchlist = PunchlistTools(lists)
    streamed = punchlist.run_streamed(openai_agent(punchlist, Script([plan("Oslo"), "Soon…"])), "x", **untraced())

    async def work() -> None:
        events = streamed.stream_events()
        async for _ in events:
            break
        await events.aclose()  # type: ignore[attr-defined]

    asyncio.run(work())
    assert lists.reason is Reason.CANCELLED
