"""Agents of other people's frameworks, each on a model that says what a script tells it to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents import Agent as OpenAIAgent
from agents import RunConfig, SQLiteSession
from agents import Usage as OpenAIUsage
from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import AgentRunResultEvent
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel
from pydantic_ai.usage import RequestUsage

from punchlist.adapters.langchain import PunchlistMiddleware
from punchlist.adapters.openai_agents import PunchlistTools
from punchlist.adapters.pydantic_ai import PunchlistCapability
from punchlist.adapters.session_lists import SessionLists

TOKENS = 100
"""That every reply costs."""

Call = tuple[str, Any]
Step = str | Sequence[Call] | Callable[["Heard"], "str | Sequence[Call]"]


@dataclass(frozen=True)
class Heard:
    """What the model is sent in one request."""

    said: list[str]
    """What people said, and whoever speaks in their place."""
    results: list[str]
    tools: list[str]
    system: str = ""

    @property
    def created(self) -> list[str]:
        """The ids of what was planned."""
        plans = [json.loads(result) for result in self.results if result.startswith('{"created"')]
        return [todo["id"] for plan in plans for todo in plan["created"]]


@dataclass
class Script:
    """What a model says, reply by reply; the last again and again."""

    steps: Sequence[Step]
    heard: list[Heard] = field(default_factory=list)

    def reply(self, heard: Heard) -> str | Sequence[Call]:
        step = self.steps[min(len(self.heard), len(self.steps) - 1)]
        self.heard.append(heard)
        return step(heard) if callable(step) else step

    def sent_back(self) -> int:
        """How often it heard that its list is not done."""
        return max(sum("still open" in text for text in heard.said) for heard in self.heard)


def plan(*titles: str, **more: Any) -> Sequence[Call]:
    return [("create_todo", {"items": [{"title": title, **more} for title in titles]})]


def complete(number: int) -> Step:
    return lambda heard: [("complete_todo", {"todoId": heard.created[number], "outcome": "done"})]


# --- LangChain -------------------------------------------------------------------------------------------


class Speaking(BaseChatModel):
    script: Any
    tools: tuple[str, ...] = ()

    @property
    def _llm_type(self) -> str:
        return "script"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Speaking:
        return Speaking(script=self.script, tools=tuple(tool.name for tool in tools))

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        told = [message for message in messages if message.type == "human"]
        results = [str(message.text) for message in messages if isinstance(message, ToolMessage)]
        system = "".join(message.text for message in messages if message.type == "system")
        reply = self.script.reply(Heard([str(message.text) for message in told], results, [*self.tools], system))
        text, calls = (reply, ()) if isinstance(reply, str) else ("", reply)
        made = [{"name": name, "args": args, "id": f"c{len(messages)}.{at}"} for at, (name, args) in enumerate(calls)]
        usage = {"input_tokens": TOKENS, "output_tokens": 0, "total_tokens": TOKENS}
        message = AIMessage(text, tool_calls=made, usage_metadata=usage)
        return ChatResult(generations=[ChatGeneration(message=message)])


def langchain_agent(lists: SessionLists, script: Script, *others: Any, **options: Any) -> Any:
    return create_agent(Speaking(script=script), middleware=[PunchlistMiddleware(lists), *others], **options)


def _asked(goal: str, conversation: str | None) -> tuple[Any, Any]:
    config = {"configurable": {"thread_id": conversation}} if conversation else None
    return {"messages": [{"role": "user", "content": goal}]}, config


def langchain(lists: SessionLists, script: Script, goal: str = "Do it.", conversation: str | None = None) -> str:
    return str(langchain_agent(lists, script).invoke(*_asked(goal, conversation))["messages"][-1].text)


async def langchain_async(
    lists: SessionLists, script: Script, goal: str = "Do it.", conversation: str | None = None
) -> str:
    result = await langchain_agent(lists, script).ainvoke(*_asked(goal, conversation))
    return str(result["messages"][-1].text)


def langchain_stream(lists: SessionLists, script: Script, goal: str = "Do it.", conversation: str | None = None) -> str:
    agent, (asked, config) = langchain_agent(lists, script), _asked(goal, conversation)
    said = [message for message, _ in agent.stream(asked, config, stream_mode="messages")]
    return str([message.text for message in said if isinstance(message, AIMessage | AIMessageChunk)][-1])


# --- Pydantic AI -----------------------------------------------------------------------------------------


def _heard(messages: list[ModelMessage], info: AgentInfo) -> Heard:
    parts = [part for message in messages for part in message.parts]
    said = [str(part.content) for part in parts if isinstance(part, UserPromptPart | SystemPromptPart)]
    results = [str(part.content) for part in parts if isinstance(part, ToolReturnPart)]
    return Heard(said, results, [tool.name for tool in info.function_tools], info.instructions or "")


def pydantic_agent(lists: SessionLists, script: Script, **options: Any) -> PydanticAgent[None, Any]:
    def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        said = script.reply(_heard(messages, info))
        parts = [TextPart(said)] if isinstance(said, str) else [ToolCallPart(name, args) for name, args in said]
        return ModelResponse(parts, usage=RequestUsage(input_tokens=TOKENS))

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        said = script.reply(_heard(messages, info))
        if isinstance(said, str):
            yield said
            return
        for at, (name, args) in enumerate(said):
            yield {at: DeltaToolCall(name, json.dumps(args), tool_call_id=f"c{len(messages)}.{at}")}

    model = FunctionModel(reply, stream_function=stream)
    return PydanticAgent(model, capabilities=[PunchlistCapability(lists)], **options)


async def pydantic_ai(
    lists: SessionLists, script: Script, goal: str = "Do it.", conversation: str | None = None
) -> str:
    return str((await pydantic_agent(lists, script).run(goal, conversation_id=conversation)).output)


def pydantic_ai_sync(lists: SessionLists, script: Script, goal: str = "Do it.", conversation: str | None = None) -> str:
    with asyncio.Runner() as runner:
        # Otherwise it makes an event loop that nobody closes.
        runner.get_loop()
        return str(pydantic_agent(lists, script).run_sync(goal, conversation_id=conversation).output)


async def pydantic_ai_stream(
    lists: SessionLists, script: Script, goal: str = "Do it.", conversation: str | None = None
) -> str:
    output = ""
    async with pydantic_agent(lists, script).run_stream_events(goal, conversation_id=conversation) as events:
        async for event in events:
            if isinstance(event, AgentRunResultEvent):
                output = str(event.result.output)
    return output


# --- the OpenAI Agents SDK -------------------------------------------------------------------------------


def openai_agent(punchlist: PunchlistTools, script: Script, **options: Any) -> OpenAIAgent[Any]:
    def reply(call: ModelCall) -> ModelStep:
        items = [{"role": "user", "content": call.input}] if isinstance(call.input, str) else call.input
        said = [str(item["content"]) for item in items if item.get("role") == "user"]
        results = [str(item["output"]) for item in items if item.get("type") == "function_call_output"]
        told = Heard(said, results, [tool.name for tool in call.tools], call.system_instructions or "")
        step = script.reply(told)
        usage = OpenAIUsage(requests=1, input_tokens=TOKENS, total_tokens=TOKENS)
        if isinstance(step, str):
            return ModelStep([assistant_message(step)], usage)
        calls = [function_call(name, args, call_id=f"c{len(items)}.{at}") for at, (name, args) in enumerate(step)]
        return ModelStep(calls, usage)

    model = ScriptedModel([ModelStep.respond(reply)] * 100)
    return OpenAIAgent("helper", model=model, tools=[*punchlist.tools], **options)


def untraced(conversation: str | None = None, **options: Any) -> dict[str, Any]:
    session = {"session": SQLiteSession(conversation)} if conversation else {}
    return {"run_config": RunConfig(tracing_disabled=True), **session, **options}


async def openai_agents(
    lists: SessionLists, script: Script, goal: str = "Do it.", conversation: str | None = None
) -> str:
    punchlist = PunchlistTools(lists)
    agent = openai_agent(punchlist, script)
    return str((await punchlist.run(agent, goal, max_turns=None, **untraced(conversation))).final_output)


def openai_agents_sync(
    lists: SessionLists, script: Script, goal: str = "Do it.", conversation: str | None = None
) -> str:
    punchlist = PunchlistTools(lists)
    return str(punchlist.run_sync(openai_agent(punchlist, script), goal, **untraced(conversation)).final_output)


async def openai_agents_stream(
    lists: SessionLists, script: Script, goal: str = "Do it.", conversation: str | None = None
) -> str:
    punchlist = PunchlistTools(lists)
    streamed = punchlist.run_streamed(openai_agent(punchlist, script), goal, **untraced(conversation))
    async for _ in streamed.stream_events():
        pass
    return str(streamed.final_output)


Framework = Callable[..., Any]
FRAMEWORKS: dict[str, Framework] = {
    "langchain": langchain,
    "pydantic-ai": pydantic_ai,
    "openai-agents": openai_agents,
}
WAYS: dict[str, Framework] = {
    **FRAMEWORKS,
    "langchain-async": langchain_async,
    "langchain-stream": langchain_stream,
    "pydantic-ai-sync": pydantic_ai_sync,
    "pydantic-ai-stream": pydantic_ai_stream,
    "openai-agents-sync": openai_agents_sync,
    "openai-agents-stream": openai_agents_stream,
}


def drive(way: Framework, lists: SessionLists, *steps: Step, **options: Any) -> tuple[str, Script]:
    """What came of it in the end, and what the model heard."""
    script = Script(steps)
    came = way(lists, script, **options)
    return (asyncio.run(came) if asyncio.iscoroutine(came) else came), script
