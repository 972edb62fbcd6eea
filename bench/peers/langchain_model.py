"""A LangChain chat model that replies at once: it writes its list, then calls `nothing` in every reply.

No `from __future__ import annotations` here: annotations of a tool that are strings are compiled at every call.
"""

from typing import Any

from iterations import TASKS, Times  # type: ignore[import-not-found]  # in the folder of this script, which is run by path
from langchain_core.language_models import BaseChatModel  # type: ignore[import-not-found]
from langchain_core.messages import AIMessage, ToolMessage  # type: ignore[import-not-found]
from langchain_core.outputs import ChatGeneration, ChatResult  # type: ignore[import-not-found]


async def nothing(n: int) -> int:
    """Do nothing."""
    return n


class Instant(BaseChatModel):  # type: ignore[misc]
    times: Any

    @property
    def _llm_type(self) -> str:
        return "instant"

    def bind_tools(self, *_: Any, **__: Any) -> "Instant":
        return self

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        raise NotImplementedError("Only the asynchronous method is used.")

    async def _agenerate(self, *_: Any, **__: Any) -> ChatResult:
        number = self.times.ask()
        calls = [{"name": "nothing", "args": {"n": number}, "id": f"call-{number}"}]
        if number == 1:
            todos = [{"content": task, "status": "pending"} for task in TASKS]
            calls = [{"name": "write_todos", "args": {"todos": todos}, "id": "call-1"}]
        done = number > self.times.iterations
        usage = {"input_tokens": 1_000, "output_tokens": 20, "total_tokens": 1_020}
        message = AIMessage("Done." if done else "", tool_calls=[] if done else calls, usage_metadata=usage)
        return self.times.reply(ChatResult(generations=[ChatGeneration(message=message)]))


async def results(agent: Any, times: Times) -> int:
    """The number of successful calls of a run. Raises if the list is incomplete."""
    # One iteration takes several steps of a graph.
    config = {"recursion_limit": 20 * (times.iterations + 1)}
    after = await agent.ainvoke({"messages": [{"role": "user", "content": "Begin."}]}, config)
    if len(after["todos"]) != len(TASKS):
        raise RuntimeError(f"{len(after['todos'])} of {len(TASKS)} todos are on the list.")
    returned = [message for message in after["messages"] if isinstance(message, ToolMessage)]
    return sum(message.status == "success" for message in returned)
