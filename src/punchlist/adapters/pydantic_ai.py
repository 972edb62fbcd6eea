"""Pydantic AI: a capability.

    lists = Lists()
    agent = Agent(model, capabilities=[PunchlistCapability(lists)])
    result = agent.run_sync("Oslo or Rome?")
    lists.reason

Every run of the agent has an instance of its own. Its session is named after the conversation that it belongs to
(`conversation_id`, or that of its `message_history`), unless `Lists` names one.
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
"""The list's own rules say what is wrong with a call, and better than its schema."""
RETRIES: Final = 5
"""For arguments that are no JSON; what else is wrong with a call uses up none."""
STREAMED: Final = Stop(Reason.OPEN, "its answer was streamed as the last already; `run_stream_events` has a way back")


class PunchlistCapability(AbstractCapability[Any]):
    """Gives an agent the lists, and sends it back to them until they are clear."""

    def __init__(self, lists: SessionLists | None = None) -> None:
        self.lists = lists or SessionLists()
        self._now: AdapterRun | None = None

    @classmethod
    def get_serialization_name(cls) -> str | None:
        return None

    async def for_run(self, ctx: RunContext[Any]) -> PunchlistCapability:  # noqa: ARG002
        return PunchlistCapability(self.lists)

    async def wrap_run(self, ctx: RunContext[Any], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        self._now = await self.lists.bridge(self.lists.begin, ctx.conversation_id)
        try:
            return await handler()
        except BaseException as error:
            if self.run.reason is None:
                self._now = self.lists.fail(self.run, error)
            raise

    @property
    def run(self) -> AdapterRun:
        assert self._now is not None, "it has begun"
        return self._now

    # --- what the model is told ---------------------------------------------------------------------------

    def get_instructions(self) -> str:
        return self.lists.guidance

    def get_toolset(self) -> AbstractToolset[Any]:
        return _Tools(self)

    async def before_model_request(
        self,
        ctx: RunContext[Any],  # noqa: ARG002
        request_context: ModelRequestContext,
    ) -> ModelRequestContext:
        """The lists come last, and do not become part of the conversation."""
        self._now, text = await self.lists.bridge(self.lists.before, self.run)
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
        self._now = self.run.count_reply(response.usage.total_tokens)
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
            # `run_stream` ends at another node than all others.
            otherwise = _full(ctx) if isinstance(node, CallToolsNode) else STREAMED
            self._now, prompt = await self.lists.bridge(
                self.lists.after, self.run, waits_for=waits, otherwise=otherwise
            )
            if prompt is not None:
                ctx.enqueue(prompt)
        return result


class _Tools(AbstractToolset[Any]):
    def __init__(self, of: PunchlistCapability) -> None:
        self._of = of

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
            for tool in self._of.lists.tools
        }

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],  # noqa: ARG002
        tool: ToolsetTool[Any],  # noqa: ARG002
    ) -> str:
        lists = self._of.lists
        said = await lists.bridge(lists.call, self._of.run, name, tool_args)
        if said.failed:
            # Not a retry: those are counted, and too many end the run.
            raise ToolFailed(said.text)
        return said.text


def _waits_for(output: object) -> Sequence[str]:
    if not isinstance(output, DeferredToolRequests):
        return ()
    return [f"{call.tool_name} ({call.tool_call_id})" for call in (*output.approvals, *output.calls)]


def _full(ctx: RunContext[Any]) -> Stop | None:
    """Whether another request is more than the caller has allowed."""
    most = ctx.usage_limits.request_limit if ctx.usage_limits else None
    if most is None or ctx.usage.requests < most:
        return None
    return Stop(Reason.CAPPED, f"{most} requests, the limit of the run")
