"""Pydantic AI: a capability.

    lists = SessionLists()
    agent = Agent(model, capabilities=[PunchlistCapability(lists)])
    result = agent.run_sync("Oslo or Rome?")
    lists.reason

Each run of the agent has its own instance. Its session is named after the conversation (`conversation_id`, or
that of its `message_history`), unless `SessionLists` names one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from pydantic_ai import CallToolsNode, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ModelRequest, ModelResponse, UserPromptPart
from pydantic_ai.tools import DeferredToolRequests, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema
from pydantic_graph import End

from punchlist.adapters.run_state import AdapterRun
from punchlist.adapters.session_lists import SessionLists
from punchlist.agent.continuation import Reason, Stop

if TYPE_CHECKING:
    from pydantic_ai.capabilities import AgentNode, NodeResult, WrapRunHandler
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.run import AgentRunResult

__all__ = ["PunchlistCapability", "SessionLists"]

_ANYTHING: Final = SchemaValidator(
    core_schema.no_info_after_validator_function(lambda raw: {} if raw is None else raw, core_schema.any_schema())
)
"""Accepts everything: the lists' own validation gives better messages than the schema."""
RETRIES: Final = 5
"""For arguments that are not JSON; other errors do not count as retries."""
STREAMED: Final = Stop(Reason.OPEN, "the final answer was already streamed; use `run_stream_events` for continuation")


class PunchlistCapability(AbstractCapability[Any]):
    """Gives an agent the lists, and continues it until they are clear."""

    def __init__(self, lists: SessionLists | None = None) -> None:
        self.lists = lists or SessionLists()
        self._run: AdapterRun | None = None

    @classmethod
    def get_serialization_name(cls) -> str | None:
        return None

    async def for_run(self, ctx: RunContext[Any]) -> PunchlistCapability:  # noqa: ARG002
        return PunchlistCapability(self.lists)

    async def wrap_run(self, ctx: RunContext[Any], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        self._run = await self.lists.bridge(self.lists.begin, ctx.conversation_id)
        try:
            return await handler()
        except BaseException as error:
            if self.run.reason is None:
                self._run = self.lists.fail(self.run, error)
            raise

    @property
    def run(self) -> AdapterRun:
        assert self._run is not None, "wrap_run sets it"
        return self._run

    # --- requests to the model ----------------------------------------------------------------------------

    def get_instructions(self) -> str:
        return self.lists.guidance

    def get_toolset(self) -> AbstractToolset[Any]:
        return _Tools(self)

    async def before_model_request(
        self,
        ctx: RunContext[Any],  # noqa: ARG002
        request_context: ModelRequestContext,
    ) -> ModelRequestContext:
        """Add the list state as the last message; it does not become part of the conversation."""
        self._run, text = await self.lists.bridge(self.lists.before, self.run)
        if text:
            request_context.messages = [*request_context.messages, ModelRequest([UserPromptPart(text)])]
        return request_context

    async def after_model_request(
        self,
        ctx: RunContext[Any],  # noqa: ARG002
        *,
        request_context: ModelRequestContext,  # noqa: ARG002
        response: ModelResponse,
    ) -> ModelResponse:
        self._run = self.run.count_reply(response.usage.total_tokens)
        return response

    # --- when it stops ------------------------------------------------------------------------------------

    async def after_node_run(
        self,
        ctx: RunContext[Any],
        *,
        node: AgentNode[Any],
        result: NodeResult[Any],
    ) -> NodeResult[Any]:
        if isinstance(result, End):
            waits = _waits_for(result.data.output)
            # `run_stream` ends at a different node than the other methods.
            otherwise = _request_limit(ctx) if isinstance(node, CallToolsNode) else STREAMED
            self._run, prompt = await self.lists.bridge(
                self.lists.after, self.run, waits_for=waits, otherwise=otherwise
            )
            if prompt is not None:
                ctx.enqueue(prompt)
        return result


class _Tools(AbstractToolset[Any]):
    def __init__(self, capability: PunchlistCapability) -> None:
        self._capability = capability

    @property
    def id(self) -> str:
        return "punchlist"

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:  # noqa: ARG002
        return {
            tool.name: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=tool.name, description=tool.description, parameters_json_schema=tool.input_schema
                ),
                max_retries=RETRIES,
                args_validator=_ANYTHING,
            )
            for tool in self._capability.lists.tools
        }

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],  # noqa: ARG002
        tool: ToolsetTool[Any],  # noqa: ARG002
    ) -> str:
        lists = self._capability.lists
        answer = await lists.bridge(lists.call, self._capability.run, name, tool_args)
        if answer.failed:
            # ToolFailed does not count as a retry; too many retries end the run.
            raise ToolFailed(answer.text)
        return answer.text


def _waits_for(output: object) -> Sequence[str]:
    if not isinstance(output, DeferredToolRequests):
        return ()
    return [f"{call.tool_name} ({call.tool_call_id})" for call in (*output.approvals, *output.calls)]


def _request_limit(ctx: RunContext[Any]) -> Stop | None:
    """Set if the caller's request limit is reached."""
    limit = ctx.usage_limits.request_limit if ctx.usage_limits else None
    if limit is None or ctx.usage.requests < limit:
        return None
    return Stop(Reason.CAPPED, f"limit of {limit} requests reached")
