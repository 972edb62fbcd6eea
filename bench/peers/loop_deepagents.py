"""deepagents with its defaults (files in its state, workers) and LangChain's todo list, which has to be added."""

from __future__ import annotations

from importlib.metadata import version

from deepagents import create_deep_agent  # type: ignore[import-not-found]
from iterations import Times, main  # type: ignore[import-not-found]  # in the folder of this script, which is run by path
from langchain.agents.middleware import TodoListMiddleware  # type: ignore[import-not-found]
from langchain_model import Instant, nothing, results  # type: ignore[import-not-found]


async def run(times: Times) -> int:
    agent = create_deep_agent(model=Instant(times=times), tools=[nothing], middleware=[TodoListMiddleware()])
    found: int = await results(agent, times)
    return found


if __name__ == "__main__":
    main("deepagents", version("deepagents"), run)
