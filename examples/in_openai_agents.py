"""The lists in an agent of the OpenAI Agents SDK: `python examples/in_openai_agents.py`. It needs no API key."""

import json
from tempfile import TemporaryDirectory
from typing import Any

from agents import Agent, function_tool, set_tracing_disabled
from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call

from punchlist.adapters.openai_agents import PunchlistTools, SessionLists


@function_tool
def weather(city: str) -> str:
    """The weather in a city."""
    return {"Oslo": "rain", "Rome": "sun"}[city]


def main(folder: str) -> None:
    lists = SessionLists(database=f"{folder}/lists.db")
    punchlist = PunchlistTools(lists)
    agent = Agent("helper", model=scripted(), tools=[weather, *punchlist.tools])
    result = punchlist.run_sync(agent, "Oslo or Rome?")
    print(*(f"{todo.title}: {todo.status}" for todo in lists.todos()), sep=" · ")
    run = lists.last()
    print(f"{lists.reason}, continued {run.continuations if run else 0} of 10 times")
    print(result.final_output)


def scripted() -> ScriptedModel:
    """A scripted model: it plans two todos, stops after the first, and does the second when it is continued."""
    titles = ["Ask for Oslo", "Ask for Rome"]
    return ScriptedModel(
        [
            call("create_todo", items=[{"title": title} for title in titles]),
            call("weather", city="Oslo"),
            complete(0, "rain"),
            [assistant_message("It rains in Oslo. I'll continue with Rome…")],
            call("weather", city="Rome"),
            complete(1, "sun"),
            [assistant_message("Go to Rome.")],
        ]
    )


def call(tool: str, **arguments: Any) -> Any:
    return [function_call(tool, arguments, call_id=f"{tool} {arguments}")]


def complete(number: int, outcome: str) -> ModelStep:
    def reply(request: ModelCall) -> Any:
        plan = next(item["output"] for item in request.input if item.get("type") == "function_call_output")
        return call("complete_todo", todoId=json.loads(plan)["created"][number]["id"], outcome=outcome)

    return ModelStep.respond(reply)


set_tracing_disabled(True)
with TemporaryDirectory() as folder:
    main(folder)
