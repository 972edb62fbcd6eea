"""openai-agents: a whole run of an agent, whose model requests all calls at once and then answers."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

from agents import (  # type: ignore[import-not-found]
    Agent,
    Model,
    ModelResponse,
    RunConfig,
    Runner,
    ToolCallOutputItem,
    Usage,
    function_tool,
)
from openai.types.responses import (  # type: ignore[import-not-found]
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from rounds import Round, main  # type: ignore[import-not-found]  # in the folder of this script, which is run by path


async def nothing(n: int) -> int:
    """Do nothing."""
    return n


class Scripted(Model):  # type: ignore[misc]
    def __init__(self, answers: Iterable[list[Any]]) -> None:
        self._answers = iter(answers)

    async def get_response(self, *_: Any, **__: Any) -> ModelResponse:
        return ModelResponse(output=next(self._answers), usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("Streaming is not used.")


def prepare(calls: int) -> Round:
    asked = [
        ResponseFunctionToolCall(name="nothing", arguments=f'{{"n": {n}}}', call_id=f"call-{n}", type="function_call")
        for n in range(calls)
    ]
    text = ResponseOutputText(text="Done.", annotations=[], type="output_text")
    done = ResponseOutputMessage(id="done", content=[text], role="assistant", status="completed", type="message")
    agent = Agent("bench", model=Scripted([asked, [done]]), tools=[function_tool(nothing)])

    async def run() -> list[int]:
        result = await Runner.run(agent, "Begin.", run_config=RunConfig(tracing_disabled=True))
        return [item.output for item in result.new_items if isinstance(item, ToolCallOutputItem)]

    return run


if __name__ == "__main__":
    main("openai-agents", version("openai-agents"), prepare)
