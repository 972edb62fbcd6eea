"""pydantic-ai's `Agent`, in memory; it keeps no list."""

from __future__ import annotations

from importlib.metadata import version

from iterations import Times, main  # type: ignore[import-not-found]  # in the folder of this script, which is run by path
from pydantic_ai import Agent  # type: ignore[import-not-found]
from pydantic_ai.messages import (  # type: ignore[import-not-found]
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel  # type: ignore[import-not-found]
from pydantic_ai.usage import RequestUsage, UsageLimits  # type: ignore[import-not-found]

# Without a usage, the scripted model would count the tokens of every part.
USAGE = RequestUsage(input_tokens=1_000, output_tokens=20)


async def nothing(n: int) -> int:
    """Do nothing."""
    return n


async def run(times: Times) -> int:
    async def answer(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        number = times.ask()
        done = number > times.iterations
        part = TextPart("Done.") if done else ToolCallPart("nothing", {"n": number}, f"call-{number}")
        reply: ModelResponse = times.reply(ModelResponse([part], usage=USAGE))
        return reply

    agent = Agent(FunctionModel(answer), tools=[nothing])
    result = await agent.run("Begin.", usage_limits=UsageLimits(request_limit=None))
    parts = (part for message in result.new_messages() for part in message.parts)
    returned = [part.content for part in parts if isinstance(part, ToolReturnPart)]
    return sum(content == n for n, content in enumerate(returned, start=1))


if __name__ == "__main__":
    main("pydantic-ai", version("pydantic-ai-slim"), run)
