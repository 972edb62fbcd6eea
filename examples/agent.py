"""An agent in your own program, with its events: `python examples/agent.py`. It needs no API key."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from punchlist import Agent, Continued, ListChanged, TurnEnded, tool


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return {"Oslo": "rain", "Rome": "sun"}[city]


async def main(folder: str) -> None:
    model = f"rehearsal:{Path(__file__).with_name('weather.yaml')}"  # with an API key: "anthropic:MODEL"
    async with Agent(model, tools=[weather], workspace=folder, database=f"{folder}/agent.db") as agent:
        async for event in agent.events("Oslo or Rome?"):
            match event:
                case ListChanged(lists=view):
                    print(*(f"{task.title}: {task.status}" for task in view.items), sep=" · ")
                case Continued(count=count, limit=limit):
                    print(f"It stopped early and was continued: {count} of {limit} times")
                case TurnEnded(result=result):
                    print(f"{result.reason}: {result.text}")


with TemporaryDirectory() as folder:
    asyncio.run(main(folder))
