"""An agent in your own program, watched while it works: `python examples/agent.py`. No key is needed."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from punchlist import Agent, Continued, ListChanged, TurnEnded, tool


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return {"Oslo": "rain", "Rome": "sun"}[city]


async def main(folder: str) -> None:
    model = f"rehearsal:{Path(__file__).with_name('weather.yaml')}"  # with a key: "anthropic:MODEL", …
    async with Agent(model, tools=[weather], workspace=folder, database=f"{folder}/agent.db") as agent:
        async for news in agent.events("Oslo or Rome?"):
            match news:
                case ListChanged(lists=view):
                    print(*(f"{task.title}: {task.status}" for task in view.items), sep=" · ")
                case Continued(count=count, limit=most):
                    print(f"It stopped early, and was sent back: {count} of {most} times")
                case TurnEnded(result=ended):
                    print(f"{ended.reason}: {ended.text}")


with TemporaryDirectory() as folder:
    asyncio.run(main(folder))
