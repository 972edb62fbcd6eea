"""openai-agents, in memory; it keeps no list."""

from __future__ import annotations

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
from iterations import Times, main  # type: ignore[import-not-found]  # in the folder of this script, which is run by path
from openai.types.responses import (  # type: ignore[import-not-found]
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)


async def nothing(n: int) -> int:
    """Do nothing."""
    return n


class Instant(Model):  # type: ignore[misc]
    def __init__(self, times: Times) -> None:
        self._times = times

    async def get_response(self, *_: Any, **__: Any) -> ModelResponse:
        number = self._times.ask()
        output = _done() if number > self._times.iterations else _call(number)
        return self._times.reply(ModelResponse(output=[output], usage=Usage(), response_id=None))

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("Streaming is not used.")


def _call(number: int) -> ResponseFunctionToolCall:
    arguments = f'{{"n": {number}}}'
    return ResponseFunctionToolCall(name="nothing", arguments=arguments, call_id=f"call-{number}", type="function_call")


def _done() -> ResponseOutputMessage:
    text = ResponseOutputText(text="Done.", annotations=[], type="output_text")
    return ResponseOutputMessage(id="done", content=[text], role="assistant", status="completed", type="message")


async def run(times: Times) -> int:
    agent = Agent("bench", model=Instant(times), tools=[function_tool(nothing)])
    config = RunConfig(tracing_disabled=True)
    result = await Runner.run(agent, "Begin.", max_turns=times.iterations + 1, run_config=config)
    outputs = [item.output for item in result.new_items if isinstance(item, ToolCallOutputItem)]
    return sum(output == n for n, output in enumerate(outputs, start=1))


if __name__ == "__main__":
    main("openai-agents", version("openai-agents"), run)
