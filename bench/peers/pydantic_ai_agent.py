"""pydantic-ai: a whole run of an agent, whose model requests all calls at once and then answers."""

from __future__ import annotations

from importlib.metadata import version

from pydantic_ai import Agent  # type: ignore[import-not-found]
from pydantic_ai.messages import (  # type: ignore[import-not-found]
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel  # type: ignore[import-not-found]
from pydantic_ai.usage import RequestUsage  # type: ignore[import-not-found]
from rounds import Round, main  # type: ignore[import-not-found]  # in the folder of this script, which is run by path


async def nothing(n: int) -> int:
    """Do nothing."""
    return n


def prepare(calls: int) -> Round:
    asked = [ToolCallPart("nothing", {"n": n}, f"call-{n}") for n in range(calls)]
    # Without a usage, the scripted model would count the tokens of every part.
    usage = RequestUsage(input_tokens=1, output_tokens=1)
    answers = iter([ModelResponse(asked, usage=usage), ModelResponse([TextPart("Done.")], usage=usage)])

    async def answer(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        return next(answers)

    agent = Agent(FunctionModel(answer), tools=[nothing])

    async def run() -> list[int]:
        result = await agent.run("Begin.")
        parts = (part for message in result.new_messages() for part in message.parts)
        return [part.content for part in parts if isinstance(part, ToolReturnPart)]

    return run


if __name__ == "__main__":
    main("pydantic-ai", version("pydantic-ai-slim"), prepare)
