"""The OpenAI Agents SDK: a set of tools, and `run` around `Runner.run`.

    lists = SessionLists()
    punchlist = PunchlistTools(lists)
    agent = Agent("helper", model=model, tools=[*punchlist.tools])
    result = await punchlist.run(agent, "Oslo or Rome?")          # or run_sync, or run_streamed
    lists.reason

The SDK ends a run when the model stops, so `run` calls the runner again with the whole conversation as long as
items are open. With plain `Runner.run` the tools work too, but without continuation. A run's session is named
after the SDK's `session` or `conversation_id`, unless `SessionLists` names one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextvars import ContextVar, copy_context
from dataclasses import replace
from inspect import isawaitable
from typing import Any, Final

from punchlist.adapters.run_state import AdapterRun
from punchlist.adapters.session_lists import SessionLists
from punchlist.agent.continuation import Reason, Stop
from punchlist.errors import InvalidInput, MissingExtra

try:
    from agents import (
        Agent,
        FunctionTool,
        RunConfig,
        Runner,
        RunResult,
        RunResultStreaming,
        StreamEvent,
        TResponseInputItem,
    )
    from agents.result import RunResultBase
    from agents.run_config import CallModelData, CallModelInputFilter, ModelInputData
    from agents.run_state import RunState
    from agents.tool_context import ToolContext
except ImportError as error:
    raise ImportError(str(MissingExtra("OpenAI Agents SDK support", "openai-agents"))) from error

from punchlist.kernel.tool import ListToolSpec

__all__ = ["PunchlistTools", "SessionLists", "StreamedRun"]

Input = str | list[TResponseInputItem] | RunState[Any]


class _RunInProgress:
    def __init__(self, lists: SessionLists, run: AdapterRun, on_server: bool) -> None:
        self.lists = lists
        self.run = run
        self.on_server = on_server
        """The provider stores the conversation, so each input becomes part of it."""

    async def filter(self, data: CallModelData[Any], inner: CallModelInputFilter | None) -> ModelInputData:
        """Stable text comes first and the lists last, for caching; neither becomes part of the conversation."""
        model_data = data.model_data
        if inner is not None:
            filtered = inner(data)
            model_data = await filtered if isawaitable(filtered) else filtered
        run, state = await self.lists.bridge(self.lists.before, self.run)
        self.run = run.count_reply()
        instructions = [model_data.instructions or "", self.lists.guidance]
        items = model_data.input
        if self.on_server:
            instructions.append(state)
        elif state:
            items = [*items, {"role": "user", "content": state}]
        return ModelInputData(items, "\n\n".join(part for part in instructions if part))

    async def stopped(self, result: RunResultBase, limit: int | None) -> str | None:
        """The model has stopped: the continuation prompt, or None."""
        self.run = self.run.count_reply(result.context_wrapper.usage.total_tokens, replies=0)
        waits = [f"{item.name} ({item.call_id})" for item in getattr(result, "interruptions", ())]
        used = limit is not None and self.run.iterations >= limit
        full = Stop(Reason.CAPPED, f"limit of {limit} turns reached") if used else None
        self.run, prompt = await self.lists.bridge(self.lists.after, self.run, waits_for=waits, otherwise=full)
        return prompt


_RUNS: Final[ContextVar[Mapping[SessionLists, _RunInProgress]]] = ContextVar("runs_in_progress")


class PunchlistTools:
    """The lists as tools, and runs that continue until the lists are clear."""

    def __init__(self, lists: SessionLists | None = None) -> None:
        self.lists = lists or SessionLists()
        self.tools: Sequence[FunctionTool] = [self._tool(tool) for tool in self.lists.tools]
        self._outside: _RunInProgress | None = None

    async def run(self, agent: Agent[Any], input: Input, **options: Any) -> RunResult:
        """Like `Runner.run`, with the same options."""
        running = await self._begin(options)
        context = copy_context()
        context.run(_enter, running)
        try:
            while True:
                segment = Runner.run(agent, input, **_with_filter(running, options))
                result = await asyncio.create_task(segment, context=context)
                prompt = await running.stopped(result, options.get("max_turns"))
                if prompt is None:
                    return result
                agent, input, options = _next_call(result, prompt, options)
        except BaseException as error:
            self.lists.fail(running.run, error)
            raise

    def run_sync(self, agent: Agent[Any], input: Input, **options: Any) -> RunResult:
        """Like `run`, for programs without an event loop."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.run(agent, input, **options))
        raise InvalidInput("run_sync cannot be called inside an event loop. Use `await punchlist.run(…)` there.")

    def run_streamed(self, agent: Agent[Any], input: Input, **options: Any) -> StreamedRun:
        """Like `Runner.run_streamed`, with the same options."""
        return StreamedRun(self, agent, input, options)

    async def _begin(self, options: Mapping[str, Any]) -> _RunInProgress:
        session = options.get("session")
        conversation = session.session_id if session is not None else options.get("conversation_id")
        return _RunInProgress(self.lists, await self.lists.bridge(self.lists.begin, conversation), _on_server(options))

    def _tool(self, tool: ListToolSpec[Any]) -> FunctionTool:
        async def invoke(context: ToolContext[Any], raw: str) -> str:  # noqa: ARG001
            running = await self._current_run()
            try:
                arguments = json.loads(raw) if raw.strip() else {}
            except ValueError as error:
                return f"arguments: must be a JSON object ({error})"
            return (await self.lists.bridge(self.lists.call, running.run, tool.name, arguments)).text

        return FunctionTool(tool.name, tool.description, tool.input_schema, invoke, strict_json_schema=False)

    async def _current_run(self) -> _RunInProgress:
        """The run of the current call; all calls outside of `run` share one."""
        running = _RUNS.get({}).get(self.lists) or self._outside
        if running is None:
            running = self._outside = await self._begin({})
        return running


class StreamedRun:
    """A streamed run. Afterwards `result` is that of the last call of the runner."""

    def __init__(self, tools: PunchlistTools, agent: Agent[Any], input: Input, options: dict[str, Any]) -> None:
        self._tools = tools
        self._start = (agent, input, options)
        self.result: RunResultStreaming | None = None

    @property
    def final_output(self) -> Any:
        return None if self.result is None else self.result.final_output

    async def stream_events(self) -> AsyncIterator[StreamEvent]:
        agent, input, options = self._start
        running = await self._tools._begin(options)
        context = copy_context()
        context.run(_enter, running)
        try:
            while True:
                kept = _with_filter(running, options)
                self.result = context.run(lambda: Runner.run_streamed(agent, input, **kept))  # noqa: B023
                async for event in self.result.stream_events():
                    yield event
                prompt = await running.stopped(self.result, options.get("max_turns"))
                if prompt is None:
                    return
                agent, input, options = _next_call(self.result, prompt, options)
        except BaseException as error:
            if self.result is not None and not self.result.is_complete:
                self.result.cancel()
            self._tools.lists.fail(running.run, error)
            raise


def _enter(running: _RunInProgress) -> None:
    _RUNS.set({**_RUNS.get({}), running.lists: running})


def _on_server(options: Mapping[str, Any]) -> bool:
    named = options.get("conversation_id") or options.get("previous_response_id")
    return bool(named or options.get("auto_previous_response_id"))


def _with_filter(running: _RunInProgress, options: Mapping[str, Any]) -> dict[str, Any]:
    config = options.get("run_config") or RunConfig()
    if not isinstance(config, RunConfig):
        config = RunConfig(**config)
    inner = config.call_model_input_filter
    config = replace(config, call_model_input_filter=lambda data: running.filter(data, inner))
    kept = {**options, "run_config": config}
    if (limit := options.get("max_turns")) is not None:
        kept["max_turns"] = limit - running.run.iterations
    return kept


def _next_call(result: RunResultBase, prompt: str, options: dict[str, Any]) -> tuple[Agent[Any], Input, dict[str, Any]]:
    """The agent, input and options of the next call of the runner."""
    if options.get("session") is not None or options.get("conversation_id"):
        return result.last_agent, prompt, options
    if _on_server(options):
        return result.last_agent, prompt, {**options, "previous_response_id": result.last_response_id}
    return result.last_agent, [*result.to_input_list(), {"role": "user", "content": prompt}], options
