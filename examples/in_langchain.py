"""The lists in a LangChain agent: `python examples/in_langchain.py`. It needs no API key."""

import json
from tempfile import TemporaryDirectory
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from punchlist.adapters.langchain import PunchlistMiddleware, SessionLists


def weather(city: str) -> str:
    """The weather in a city."""
    return {"Oslo": "rain", "Rome": "sun"}[city]


def main(folder: str) -> None:
    lists = SessionLists(database=f"{folder}/lists.db")
    agent = create_agent(Scripted(), tools=[weather], middleware=[PunchlistMiddleware(lists)])
    result = agent.invoke({"messages": [{"role": "user", "content": "Oslo or Rome?"}]})
    print(*(f"{todo.title}: {todo.status}" for todo in lists.todos()), sep=" · ")
    print(f"{lists.reason}, continued {result['punchlist']['continuations']} of 10 times")
    print(result["messages"][-1].text)


class Scripted(BaseChatModel):
    """A scripted model: it plans two todos, stops after the first, and does the second when it is continued."""

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        done = sum(isinstance(message, AIMessage) for message in messages)
        plan = next((message.text for message in messages if message.name == "create_todo"), '{"created": [0, 0]}')
        oslo, rome = json.loads(plan)["created"]
        reply: Any = [
            lambda: call("create_todo", items=[{"title": "Ask for Oslo"}, {"title": "Ask for Rome"}]),
            lambda: call("weather", city="Oslo"),
            lambda: call("complete_todo", todoId=oslo["id"], outcome="rain"),
            lambda: AIMessage("It rains in Oslo. I'll continue with Rome…"),
            lambda: call("weather", city="Rome"),
            lambda: call("complete_todo", todoId=rome["id"], outcome="sun"),
            lambda: AIMessage("Go to Rome."),
        ][done]
        return ChatResult(generations=[ChatGeneration(message=reply())])

    def bind_tools(self, *_: Any, **__: Any) -> "Scripted":
        return self

    @property
    def _llm_type(self) -> str:
        return "scripted"


def call(tool: str, **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": tool, "args": arguments, "id": f"{tool} {arguments}"}])


with TemporaryDirectory() as folder:
    main(folder)
