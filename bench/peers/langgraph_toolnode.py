"""LangGraph's `ToolNode`, as the only node of a graph without a checkpointer; it cannot run outside a graph.

No `from __future__ import annotations` here: annotations of a tool that are strings are compiled at every call.
"""

from importlib.metadata import version

from langchain_core.messages import AIMessage, ToolMessage  # type: ignore[import-not-found]
from langgraph.graph import END, START, MessagesState, StateGraph  # type: ignore[import-not-found]
from langgraph.prebuilt import ToolNode  # type: ignore[import-not-found]
from rounds import Round, main  # type: ignore[import-not-found]  # in the folder of this script, which is run by path


async def nothing(n: int) -> int:
    """Do nothing."""
    return n


def prepare(calls: int) -> Round:
    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode([nothing]))
    graph.add_edge(START, "tools")
    graph.add_edge("tools", END)
    compiled = graph.compile()
    asked = [{"name": "nothing", "args": {"n": n}, "id": f"call-{n}"} for n in range(calls)]
    state = {"messages": [AIMessage("", tool_calls=asked)]}

    async def run() -> list[int]:
        after = await compiled.ainvoke(state)
        return [int(message.content) for message in after["messages"] if isinstance(message, ToolMessage)]

    return run


if __name__ == "__main__":
    main("LangGraph ToolNode", version("langgraph"), prepare)
