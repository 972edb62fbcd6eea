"""All that it takes to run tools in one place: the tools, the scheduler, the records."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from punchlist.conversations.model import Scope
from punchlist.kernel import child_processes
from punchlist.kernel.secrets import Redactor
from punchlist.storage.store import Store
from punchlist.toolcalls.approvals import ApprovalExpiry
from punchlist.toolcalls.batch_writer import BatchWriter
from punchlist.toolcalls.execution import ExecutionEnvironment
from punchlist.toolcalls.listeners import AskPerson, Listeners
from punchlist.toolcalls.policy import Mode, Policy
from punchlist.toolcalls.repeat_detection import RepeatDetector
from punchlist.toolcalls.scheduler import CoreToolScheduler
from punchlist.toolcalls.service import ToolCallService
from punchlist.toolcalls.tool import AgentTool
from punchlist.toolcalls.validation import CallValidator
from punchlist.tools.command import command_tool
from punchlist.tools.files import file_tools
from punchlist.tools.function_tool import FunctionTool
from punchlist.tools.mcp.servers import McpServers
from punchlist.tools.mcp.settings import SEPARATOR
from punchlist.tools.search import search_tools
from punchlist.tools.settings import ToolSettings
from punchlist.tools.workspace import Workspace


@dataclass(frozen=True, slots=True)
class ToolSite:
    """Where work is done, for whom, and what is known of it."""

    store: Store
    scope: Scope
    root: Path
    settings: ToolSettings
    outputs: Path
    environment: Mapping[str, str] = field(repr=False)
    seal: Callable[[str], str] | None = None
    turn_id: str | None = None
    abandoned: bool = False

    @property
    def redactor(self) -> Redactor:
        return Redactor(self.environment)

    def for_tool(self, name: str) -> ToolSite:
        """The same, with no more servers than one tool needs: starting them takes time."""
        ours = {tool.name for tool in native_tools(self.workspace)}
        needed = [one for one in self.settings.servers if name.startswith(f"{one.name}{SEPARATOR}")]
        if name not in ours and not needed:
            # Nobody knows it: all are asked, for the nearest name.
            return self
        return replace(self, settings=replace(self.settings, servers=tuple(needed)))

    def call_service(self) -> ToolCallService:
        return ToolCallService(
            self.store,
            self.scope,
            str(self.root),
            self.turn_id,
            abandoned=self.abandoned,
            redactor=self.redactor,
            seal=self.seal,
        )

    @property
    def workspace(self) -> Workspace:
        return Workspace(self.root, self.settings.extra_folders)


@dataclass(frozen=True, slots=True)
class ToolSession:
    scheduler: CoreToolScheduler
    tools: Mapping[str, AgentTool]
    policy: Policy
    calls: ToolCallService
    writer: BatchWriter
    notes: Sequence[str]
    """What could not be had, such as a server that does not answer."""


@asynccontextmanager
async def available_tools(site: ToolSite) -> AsyncIterator[tuple[Mapping[str, AgentTool], Sequence[str]]]:
    """The tools that can be called here, ours and those of the servers, and notes on those that are missing."""
    ours: list[AgentTool] = list(native_tools(site.workspace, site.redactor.text))
    async with McpServers(site.settings.servers) as servers:
        theirs, notes = await servers.tools() if site.settings.servers else ([], [])
        yield {tool.name: tool for tool in (*theirs, *ours)}, notes


@asynccontextmanager
async def open_tool_session(
    site: ToolSite,
    *,
    mode: Mode | None = None,
    ask: AskPerson | None = None,
    listeners: Listeners | None = None,
    extra: Sequence[AgentTool] = (),
    allowed: Callable[[str], bool] | None = None,
) -> AsyncIterator[ToolSession]:
    """`extra` tools join those of the site; of all of them only those whose names are `allowed` are there."""
    redactor, ledger = site.redactor, site.call_service()
    for left in ledger.recover():
        await child_processes.terminate(left.id, None)
    async with available_tools(site) as (found, notes):
        every = {**found, **{tool.name: tool for tool in extra}}
        tools = every if allowed is None else {name: tool for name, tool in every.items() if allowed(name)}
        policy = session_policy(site.settings, mode, ledger)
        served = [tool.name for tool in tools.values() if tool.server is not None]
        admission = CallValidator(
            tools,
            policy,
            expiry=site.settings.policy.expiry or ApprovalExpiry(),
            repeats=RepeatDetector(ledger.history()),
            known=ledger.fingerprints(served),
        )
        recorder = BatchWriter(ledger, site.store)
        scheduler = CoreToolScheduler(
            admission=admission,
            journal=recorder,
            ask=ask,
            listeners=listeners,
            around=ExecutionEnvironment(site.outputs, redactor.text),
            actor=site.scope.actor,
            clock=site.store.clock,
        )
        try:
            yield ToolSession(scheduler, tools, policy, ledger, recorder, notes)
        finally:
            await scheduler.close()
            recorder.close()


def session_policy(settings: ToolSettings, mode: Mode | None, ledger: ToolCallService) -> Policy:
    chosen = mode or settings.policy.mode or Mode.DEFAULT
    return Policy(chosen, settings.policy.rules, ledger.session_rules())


def native_tools(workspace: Workspace, redact: Callable[[str], str] = str) -> list[FunctionTool]:
    return [*file_tools(workspace), *search_tools(workspace, redact), command_tool(workspace, redact)]
