"""LangChain: a middleware for `create_agent`.

    lists = SessionLists()
    agent = create_agent(model, tools, middleware=[PunchlistMiddleware(lists)])
    result = agent.invoke({"messages": "Oslo or Rome?"})
    result["punchlist"]["reason"]

The run is part of the agent's state: each thread has its own, a checkpointer stores it, and it survives an
interrupt. Put this middleware first: a jump back to the model skips the hooks of the middlewares before it.
A thread's session is named after its `thread_id`, unless `SessionLists` names one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from hashlib import sha256
from typing import Annotated, Any, Final, NotRequired

from punchlist.adapters.run_state import AdapterRun
from punchlist.adapters.session_lists import SessionLists
from punchlist.agent.continuation import Reason, Stop
from punchlist.errors import MissingExtra

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse, hook_config
    from langchain.agents.middleware.types import OmitFromInput, PrivateStateAttr, ToolCallRequest
    from langchain.tools import ToolRuntime
    from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
    from langchain_core.tools import BaseTool, StructuredTool, ToolException
    from langgraph.config import get_config
    from langgraph.errors import GraphBubbleUp
    from langgraph.managed.is_last_step import RemainingStepsManager
    from langgraph.runtime import Runtime
    from langgraph.types import Command
except ImportError as error:
    raise ImportError(str(MissingExtra("LangChain support", "langchain"))) from error

from punchlist.kernel.tool import ListToolSpec

__all__ = ["PunchlistMiddleware", "SessionLists"]

STEPS: Final = 10
"""Graph steps that a continuation needs at least: a reply, a call and a reply, with their hooks."""
NO_STEPS: Final = Stop(Reason.CAPPED, "the recursion limit of the graph is reached")
ENDED: Final = Stop(Reason.OPEN, "another middleware ended the run")


class ListsState(AgentState[Any]):
    punchlist: NotRequired[Annotated[dict[str, Any], OmitFromInput]]
    """The run as a dictionary; its `reason` says how it ended."""
    punchlist_state: NotRequired[Annotated[str, PrivateStateAttr]]
    """The list state for the next model request."""
    # Private, since LangGraph sets it.
    remaining_steps: NotRequired[Annotated[int, PrivateStateAttr, RemainingStepsManager]]


class PunchlistMiddleware(AgentMiddleware[ListsState, Any, Any]):
    """Gives an agent the lists, and continues it until they are clear."""

    state_schema = ListsState

    def __init__(self, lists: SessionLists | None = None) -> None:
        super().__init__()
        self.lists = lists or SessionLists()
        self.tools = [self._tool(tool) for tool in self.lists.tools]

    # --- the run begins -----------------------------------------------------------------------------------

    def before_agent(self, state: ListsState, runtime: Runtime[Any]) -> dict[str, Any]:  # noqa: ARG002
        return _run_update(self.lists.begin(_conversation()))

    async def abefore_agent(self, state: ListsState, runtime: Runtime[Any]) -> dict[str, Any]:
        return await self.lists.bridge(self.before_agent, state, runtime)

    def _run(self, state: Any) -> AdapterRun:
        # A thread that was interrupted before the middleware was added has no run.
        return AdapterRun(**state["punchlist"]) if "punchlist" in state else self.lists.begin(_conversation())

    # --- before each request ------------------------------------------------------------------------------

    def before_model(self, state: ListsState, runtime: Runtime[Any]) -> dict[str, Any]:  # noqa: ARG002
        run, text = self.lists.before(self._run(state))
        return {**_run_update(run), "punchlist_state": text}

    async def abefore_model(self, state: ListsState, runtime: Runtime[Any]) -> dict[str, Any]:
        return await self.lists.bridge(self.before_model, state, runtime)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        with self._recording_errors(request.state):
            return handler(self._with_lists(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        with self._recording_errors(request.state):
            return await handler(self._with_lists(request))

    def _with_lists(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        """Stable text comes first and the lists last, for caching; neither becomes part of the conversation."""
        own = request.system_message
        before: list[Any] = [] if own is None else [*own.content_blocks]
        system = SystemMessage(content=[*before, {"type": "text", "text": self.lists.guidance}])
        messages: list[AnyMessage] = [*request.messages]
        if state := request.state.get("punchlist_state"):
            messages.append(HumanMessage(str(state)))
        return request.override(system_message=system, messages=messages)

    # --- after each reply ---------------------------------------------------------------------------------

    @hook_config(can_jump_to=["model"])
    def after_model(self, state: ListsState, runtime: Runtime[Any]) -> dict[str, Any]:  # noqa: ARG002
        run = self._run(state).count_reply(_tokens(state))
        if not _stops(state):
            return _run_update(run)
        run, prompt = self.lists.after(run, otherwise=_no_steps_left(state))
        if prompt is None:
            return _run_update(run)
        message = HumanMessage(prompt, additional_kwargs={"lc_source": "punchlist"})
        return {**_run_update(run), "messages": [message], "jump_to": "model"}

    @hook_config(can_jump_to=["model"])
    async def aafter_model(self, state: ListsState, runtime: Runtime[Any]) -> dict[str, Any]:
        return await self.lists.bridge(self.after_model, state, runtime)

    # --- the run fails ------------------------------------------------------------------------------------

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        with self._recording_errors(request.state):
            return handler(request)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        with self._recording_errors(request.state):
            return await handler(request)

    @contextmanager
    def _recording_errors(self, state: Any) -> Iterator[None]:
        """Record an exception of a model or tool as the end of the run. An interrupt does not end it."""
        try:
            yield
        except GraphBubbleUp:
            raise
        except BaseException as error:
            if "punchlist" in state:
                self.lists.fail(AdapterRun(**state["punchlist"]), error)
            raise

    # --- the run ends -------------------------------------------------------------------------------------

    def after_agent(self, state: ListsState, runtime: Runtime[Any]) -> dict[str, Any] | None:  # noqa: ARG002
        """Another middleware ended the run before the lists were checked."""
        run = self._run(state)
        return _run_update(self.lists.after(run, otherwise=ENDED)[0]) if run.reason is None else None

    async def aafter_agent(self, state: ListsState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        return await self.lists.bridge(self.after_agent, state, runtime)

    # --- the tools ----------------------------------------------------------------------------------------

    def _tool(self, tool: ListToolSpec[Any]) -> BaseTool:
        def call(runtime: ToolRuntime, **arguments: Any) -> str:
            answer = self.lists.call(self._run(runtime.state), tool.name, arguments)
            if answer.failed:
                raise ToolException(answer.text)
            return answer.text

        async def acall(runtime: ToolRuntime, **arguments: Any) -> str:
            return await self.lists.bridge(call, runtime, **arguments)

        return StructuredTool(
            name=tool.name,
            description=tool.description,
            args_schema=tool.input_schema,
            func=call,
            coroutine=acall,
            handle_tool_error=True,
        )


def _conversation() -> str | None:
    """The thread, and the position in the graph for a nested agent, since others share its thread."""
    config = get_config().get("configurable", {})
    if (thread := config.get("thread_id")) is None:
        return None
    around, _, inside = str(config.get("checkpoint_ns") or "").rpartition("|")
    return f"{thread}/{sha256(around.encode()).hexdigest()[:12]}" if around and inside else str(thread)


def _run_update(run: AdapterRun) -> dict[str, Any]:
    return {"punchlist": asdict(run)}


def _last(state: ListsState) -> AIMessage | None:
    return next((message for message in reversed(state["messages"]) if isinstance(message, AIMessage)), None)


def _tokens(state: ListsState) -> int:
    last = _last(state)
    return last.usage_metadata["total_tokens"] if last is not None and last.usage_metadata else 0


def _stops(state: ListsState) -> bool:
    """Whether `create_agent` would end the run here."""
    last = _last(state)
    if last is None or not last.tool_calls:
        return True
    answered = {message.tool_call_id for message in state["messages"] if isinstance(message, ToolMessage)}
    if any(call["id"] not in answered for call in last.tool_calls):
        return False
    return state.get("structured_response") is not None


def _no_steps_left(state: ListsState) -> Stop | None:
    return NO_STEPS if state.get("remaining_steps", STEPS) < STEPS else None
