"""The lists in a Pydantic AI agent: `python examples/in_pydantic_ai.py`. It needs no API key."""

import json
from tempfile import TemporaryDirectory
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from punchlist.adapters.pydantic_ai import PunchlistCapability, SessionLists


def weather(city: str) -> str:
    """The weather in a city."""
    return {"Oslo": "rain", "Rome": "sun"}[city]


def main(folder: str) -> None:
    lists = SessionLists(database=f"{folder}/lists.db")
    agent = Agent(FunctionModel(scripted), tools=[weather], capabilities=[PunchlistCapability(lists)])
    result = agent.run_sync("Oslo or Rome?")
    print(*(f"{todo.title}: {todo.status}" for todo in lists.todos()), sep=" · ")
    run = lists.last(result.conversation_id)
    print(f"{lists.reason}, continued {run.continuations if run else 0} of 10 times")
    print(result.output)


def scripted(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    """A scripted model: it plans two todos, stops after the first, and does the second when it is continued."""
    done = sum(isinstance(message, ModelResponse) for message in messages)
    parts = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    plan = next((str(part.content) for part in parts if part.tool_name == "create_todo"), '{"created": [0, 0]}')
    oslo, rome = json.loads(plan)["created"]
    reply: Any = [
        lambda: ToolCallPart("create_todo", {"items": [{"title": "Ask for Oslo"}, {"title": "Ask for Rome"}]}),
        lambda: ToolCallPart("weather", {"city": "Oslo"}),
        lambda: ToolCallPart("complete_todo", {"todoId": oslo["id"], "outcome": "rain"}),
        lambda: TextPart("It rains in Oslo. I'll continue with Rome…"),
        lambda: ToolCallPart("weather", {"city": "Rome"}),
        lambda: ToolCallPart("complete_todo", {"todoId": rome["id"], "outcome": "sun"}),
        lambda: TextPart("Go to Rome."),
    ][done]
    return ModelResponse([reply()])


with TemporaryDirectory() as folder:
    main(folder)
