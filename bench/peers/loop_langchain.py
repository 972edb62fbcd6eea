"""LangChain's `create_agent` with its todo list, without a checkpointer."""

from __future__ import annotations

from importlib.metadata import version

from iterations import Times, main  # type: ignore[import-not-found]  # in the folder of this script, which is run by path
from langchain.agents import create_agent  # type: ignore[import-not-found]
from langchain.agents.middleware import TodoListMiddleware  # type: ignore[import-not-found]
from langchain_model import Instant, nothing, results  # type: ignore[import-not-found]


async def run(times: Times) -> int:
    agent = create_agent(Instant(times=times), tools=[nothing], middleware=[TodoListMiddleware()])
    found: int = await results(agent, times)
    return found


if __name__ == "__main__":
    main("LangChain create_agent", version("langchain"), run)
