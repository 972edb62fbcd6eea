"""The OpenAI Agents SDK: a set of tools, and `run` around `Runner.run`.

    lists = Lists()
    punchlist = PunchlistTools(lists)
    agent = Agent("helper", model=model, tools=[*punchlist.tools])
    result = await punchlist.run(agent, "Oslo or Rome?")          # or run_sync, or run_streamed
    lists.reason

The SDK ends a run as soon as the model stops, and knows no way back; so the runner is called again, with all that
was said, as long as the governor wants it. With plain `Runner.run` the tools work too, but nobody is sent back.
A run's session is named after the SDK's `session` or `conversation_id`, unless `Lists` names one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextvars import ContextVar, copy_context
from dataclasses import replace
from inspect import isawaitable
from typing import Any, Final

from punchlist.adapters.missing_package import missing_package_error
from punchlist.adapters.run_state import AdapterRun
from punchlist.adapters.session_lists import SessionLists
from punchlist.agent.continuation import Reason, Stop

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
    raise missing_package_error("openai-agents", "openai-agents") from error

from punchlist.errors import InvalidInput
from punchlist.kernel.tool import ListToolSpec

__all__ = ["PunchlistTools", "SessionLists", "StreamedRun"]

Input = str | list[TResponseInputItem] | RunState[Any]


class _RunInProgress:
    """A run that goes on: where it is now."""

    def __init__(self, lists: SessionLists, run: AdapterRun, on_server: bool) -> None:
        self.lists = lists
        self.run = run
        self.on_server = on_server
        """The provider keeps the conversation: what it is sent becomes part of it."""

    async def filter(self, data: CallModelData[Any], theirs: CallModelInputFilter | None) -> ModelInputData:
        """What does not change comes first, and the lists last; neither becomes part of the conversation."""
        model_data = data.model_data
        if theirs is not None:
            came = theirs(data)
            model_data = await came if isawaitable(came) else came
        run, state = await self.lists.bridge(self.lists.before, self.run)
        self.run = run.count_reply()
        instructions = [model_data.instructions or "", self.lists.guidance]
        items = model_data.input
        if self.on_server:
            instructions.append(state)
        elif state:
            items = [*items, {"role": "user", "content": state}]
        return ModelInputData(items, "\n\n".join(part for part in instructions if part))

    async def stopped(self, result: RunResultBase, most: int | None) -> str | None:
        """What sends the model back, if anything does."""
        self.run = self.run.count_reply(result.context_wrapper.usage.total_tokens, replies=0)
        waits = [f"{item.name} ({item.call_id})" for item in getattr(result, "interruptions", ())]
        used = most is not None and self.run.iterations >= most
        full = Stop(Reason.CAPPED, f"{most} turns, the limit of the run") if used else None
        self.run, prompt = await self.lists.bridge(self.lists.after, self.run, waits_for=waits, otherwise=full)
        return prompt


_GOING: Final[ContextVar[Mapping[SessionLists, _RunInProgress]]] = ContextVar("runs that go on")


class PunchlistTools:
    """The lists as tools, and runs that are sent back to them until they are clear."""

    def __init__(self, lists: SessionLists | None = None) -> None:
        self.lists = lists or SessionLists()
        self.tools: Sequence[FunctionTool] = [self._tool(tool) for tool in self.lists.tools]
        self._outside: _RunInProgress | None = None

    async def run(self, agent: Agent[Any], input: Input, **options: Any) -> RunResult:
        """As `Runner.run`, with its options."""
        going = await self._begin(options)
        inside = copy_context()
        inside.run(_enter, going)
        try:
            while True:
                segment = Runner.run(agent, input, **_with_filter(going, options))
                result = await asyncio.create_task(segment, context=inside)
                prompt = await going.stopped(result, options.get("max_turns"))
                if prompt is None:
                    return result
                agent, input, options = _again(result, prompt, options)
        except BaseException as error:
            self.lists.fail(going.run, error)
            raise

    def run_sync(self, agent: Agent[Any], input: Input, **options: Any) -> RunResult:
        """As `run`, for programs without an event loop."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.run(agent, input, **options))
        raise InvalidInput("run_sync was called inside of an event loop. There, `await punchlist.run(…)`.")

    def run_streamed(self, agent: Agent[Any], input: Input, **options: Any) -> StreamedRun:
        """As `Runner.run_streamed`, with its options."""
        return StreamedRun(self, agent, input, options)

    async def _begin(self, options: Mapping[str, Any]) -> _RunInProgress:
        session = options.get("session")
        conversation = session.session_id if session is not None else options.get("conversation_id")
        return _RunInProgress(self.lists, await self.lists.bridge(self.lists.begin, conversation), _on_server(options))

    def _tool(self, tool: ListToolSpec[Any]) -> FunctionTool:
        async def invoke(context: ToolContext[Any], raw: str) -> str:  # noqa: ARG001
            going = await self._present()
            try:
                arguments = json.loads(raw) if raw.strip() else {}
            except ValueError as error:
                return f"arguments: must be a JSON object ({error})"
            return (await self.lists.bridge(self.lists.call, going.run, tool.name, arguments)).text

        return FunctionTool(tool.name, tool.description, tool.input_schema, invoke, strict_json_schema=False)

    async def _present(self) -> _RunInProgress:
        """The run that a call belongs to; outside of `run` all calls belong to one."""
        going = _GOING.get({}).get(self.lists) or self._outside
        if going is None:
            going = self._outside = await self._begin({})
        return going


class StreamedRun:
    """A run whose events come as they happen; afterwards, `result` is that of the last time the runner was called."""

    def __init__(self, of: PunchlistTools, agent: Agent[Any], input: Input, options: dict[str, Any]) -> None:
        self._of = of
        self._begins = (agent, input, options)
        self.result: RunResultStreaming | None = None

    @property
    def final_output(self) -> Any:
        return None if self.result is None else self.result.final_output

    async def stream_events(self) -> AsyncIterator[StreamEvent]:
        agent, input, options = self._begins
        going = await self._of._begin(options)
        inside = copy_context()
        inside.run(_enter, going)
        try:
            while True:
                kept = _with_filter(going, options)
                self.result = inside.run(lambda: Runner.run_streamed(agent, input, **kept))  # noqa: B023
                async for event in self.result.stream_events():
                    yield event
                prompt = await going.stopped(self.result, options.get("max_turns"))
                if prompt is None:
                    return
                agent, input, options = _again(self.result, prompt, options)
        except BaseException as error:
            if self.result is not None and not self.result.is_complete:
                self.result.cancel()
            self._of.lists.fail(going.run, error)
            raise


def _enter(going: _RunInProgress) -> None:
    _GOING.set({**_GOING.get({}), going.lists: going})


def _on_server(options: Mapping[str, Any]) -> bool:
    named = options.get("conversation_id") or options.get("previous_response_id")
    return bool(named or options.get("auto_previous_response_id"))


def _with_filter(going: _RunInProgress, options: Mapping[str, Any]) -> dict[str, Any]:
    config = options.get("run_config") or RunConfig()
    if not isinstance(config, RunConfig):
        config = RunConfig(**config)
    theirs = config.call_model_input_filter
    config = replace(config, call_model_input_filter=lambda data: going.filter(data, theirs))
    kept = {**options, "run_config": config}
    if (most := options.get("max_turns")) is not None:
        kept["max_turns"] = most - going.run.iterations
    return kept


def _again(result: RunResultBase, prompt: str, options: dict[str, Any]) -> tuple[Agent[Any], Input, dict[str, Any]]:
    """Whom to ask next, what, and how: the conversation goes on, whoever keeps it."""
    if options.get("session") is not None or options.get("conversation_id"):
        return result.last_agent, prompt, options
    if _on_server(options):
        return result.last_agent, prompt, {**options, "previous_response_id": result.last_response_id}
    return result.last_agent, [*result.to_input_list(), {"role": "user", "content": prompt}], options
