"""`open_tool_session`: the tools of a workspace, the scheduler that runs them and the service that stores calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from punchlist.config import project_root
from punchlist.conversations.model import Scope
from punchlist.kernel import process_tree
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
from punchlist.toolcalls.signatures import Sign
from punchlist.toolcalls.tool import AgentTool
from punchlist.toolcalls.validation import CallValidator
from punchlist.tools import sandbox as sandbox_settings
from punchlist.tools.command import command_tool
from punchlist.tools.files import file_tools, search_tools
from punchlist.tools.function_tool import FunctionTool
from punchlist.tools.mcp.servers import McpServers
from punchlist.tools.mcp.settings import SEPARATOR
from punchlist.tools.sandbox import SandboxSettings
from punchlist.tools.settings import ToolSettings
from punchlist.tools.workspace import Workspace
from punchlist.trust import Trust


@dataclass(frozen=True, slots=True)
class ToolSite:
    """Where tools run and for whom: the input of a tool session."""

    store: Store
    scope: Scope
    root: Path
    """The folder of the workspace."""
    settings: ToolSettings
    outputs: Path
    """The folder for results that are too long for a model."""
    environment: Mapping[str, str] = field(repr=False)
    sign: Sign | None = None
    """Signs rules, questions and answers for this user."""
    turn_id: str | None = None
    abandoned: bool = False
    """The previous worker of the turn is known to have lost it, even if it is alive."""
    trust: Trust | None = None
    """What the user has trusted. Without it, no instructions of the project are read."""
    project: Path | None = None
    """The root of the project, if it is not the workspace."""

    @property
    def redactor(self) -> Redactor:
        return Redactor(self.environment)

    @property
    def workspace(self) -> Workspace:
        return Workspace(self.root, self.settings.extra_folders)

    @property
    def project_folder(self) -> Path:
        """The root of the project, else the workspace."""
        return self.project or project_root(self.root) or self.root

    def command_tool(self) -> AgentTool:
        return command_tool(self.workspace, self.redactor.text, self.settings.sandbox)

    def for_tool(self, name: str) -> ToolSite:
        """The same site with only the server of one tool: starting servers takes time."""
        native = {tool.name for tool in native_tools(self.workspace)}
        needed = [server for server in self.settings.servers if name.startswith(f"{server.name}{SEPARATOR}")]
        if name not in native and not needed:
            # An unknown name: all servers are needed to suggest a similar one.
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
            sign=self.sign,
            # "Always" answers are bound to it.
            project=str(self.project_folder),
        )


@dataclass(frozen=True, slots=True)
class ToolSession:
    scheduler: CoreToolScheduler
    tools: Mapping[str, AgentTool]
    policy: Policy
    calls: ToolCallService
    writer: BatchWriter
    notes: Sequence[str]
    """Problems, such as a server that does not answer."""


@asynccontextmanager
async def open_tool_session(
    site: ToolSite,
    *,
    mode: Mode | None = None,
    ask: AskPerson | None = None,
    listeners: Listeners | None = None,
    extra: Sequence[AgentTool] = (),
    allowed: Callable[[str], bool] | None = None,
    ordered: bool = True,
) -> AsyncIterator[ToolSession]:
    """A session with the tools of the site and the `extra` ones, limited to the names that `allowed` accepts."""
    redactor, calls = site.redactor, site.call_service()
    for orphan in calls.recover():
        await process_tree.terminate(orphan.id, None)
    async with available_tools(site) as (found, notes):
        tools = {**found, **{tool.name: tool for tool in extra}}
        if allowed is not None:
            tools = {name: tool for name, tool in tools.items() if allowed(name)}
        policy = session_policy(site, mode, calls)
        writer = BatchWriter(calls, site.store)
        scheduler = CoreToolScheduler(
            validator=CallValidator(
                tools,
                policy,
                expiry=site.settings.policy.expiry or ApprovalExpiry(),
                repeats=RepeatDetector(calls.history()),
                fingerprints=calls.fingerprints([tool.name for tool in tools.values() if tool.server is not None]),
            ),
            journal=writer,
            ask=ask,
            listeners=listeners,
            environment=ExecutionEnvironment(site.outputs, redactor.text),
            ordered=ordered,
            actor=site.scope.actor,
            clock=site.store.clock,
        )
        try:
            yield ToolSession(scheduler, tools, policy, calls, writer, notes)
        finally:
            await scheduler.close()
            writer.close()


@asynccontextmanager
async def available_tools(site: ToolSite) -> AsyncIterator[tuple[dict[str, AgentTool], Sequence[str]]]:
    """The native tools and those of the MCP servers, with notes on servers that failed."""
    native: list[AgentTool] = list(native_tools(site.workspace, site.redactor.text, site.settings.sandbox))
    if not site.settings.servers:
        yield {tool.name: tool for tool in native}, ()
        return
    async with McpServers(site.settings.servers) as servers:
        remote, notes = await servers.tools()
        yield {tool.name: tool for tool in (*remote, *native)}, notes


def session_policy(site: ToolSite, mode: Mode | None, calls: ToolCallService) -> Policy:
    settings = site.settings.policy
    return Policy(
        mode or settings.mode or Mode.DEFAULT, settings.rules, calls.session_rules(), paths=site.workspace.paths
    )


def native_tools(
    workspace: Workspace, redact: Callable[[str], str] = str, sandbox: SandboxSettings = sandbox_settings.DEFAULT
) -> list[FunctionTool]:
    return [*file_tools(workspace), *search_tools(workspace, redact), command_tool(workspace, redact, sandbox)]
