"""The connection to one MCP server: opened on demand, reopened after it broke, with exponential backoff.

The SDK requires that its client is entered and left in one task, so each connection has an owner task that
does nothing else. Calls use the client from their own tasks; cancelling one does not affect the others. A
connection is a `_Link`, used once:

    starting ──> up ──> over ──> closed      (events: `settled` at "up" or on failure, `over`, `explained`)

The transport, a call or `close` sets `over` when it notices the end. The owner then records the reason
(`explained`), so that the calls in flight fail at once, and only then cleans up. The next call opens a new
link after a pause that grows with each failure.

A call that was interrupted by a lost connection is not repeated here: it may have taken effect.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import cache, partial
from math import ceil
from typing import TYPE_CHECKING, Final

from punchlist.errors import ConfigError
from punchlist.kernel.text import excerpt, visible_block
from punchlist.toolcalls.tool import Arguments, ConnectionLost, ToolFailure
from punchlist.tools.mcp.settings import McpServer, ReconnectPolicy, ServerSecrets, expand_variables
from punchlist.tools.mcp.transport import ProcessServer, ServerTransport, UrlServer, innermost, load_sdk

if TYPE_CHECKING:
    from mcp import Client, MCPError, types
    from pydantic import TypeAdapter

_EXPLAIN_TIMEOUT: Final = 2.0
_CLOSE_TIMEOUT: Final = 3.0
MAX_TOOLS: Final = 1_000
_MAX_PAGES: Final = 200
_UNKNOWN_EFFECT: Final = " The call may have taken effect."


class _Link:
    def __init__(self) -> None:
        self.settled = asyncio.Event()
        self.over = asyncio.Event()
        self.explained = asyncio.Event()
        self.client: Client | None = None
        self.transport: ServerTransport
        self.why = ""
        self.evidence = ""
        self.up_since: float | None = None
        self.owner: asyncio.Task[None]

    def explain(self, why: str, evidence: str = "") -> None:
        """Record the reason of the end. The first reason is the cause; later ones are its consequences."""
        self.why = self.why or why
        self.evidence = self.evidence or evidence

    def end(self, why: str) -> None:
        self.explain(why)
        self.over.set()


@dataclass(frozen=True)
class ToolListing:
    tools: list[types.Tool]
    complete: bool


class ServerConnection:
    def __init__(self, server: McpServer, reconnect: ReconnectPolicy) -> None:
        self.server = server
        self._reconnect = reconnect
        self._secrets = ServerSecrets(server)
        self._link: _Link | None = None
        self._failures = 0
        self._not_before = 0.0
        self._last = _Link()
        self._closed = False

    @property
    def max_call_seconds(self) -> float:
        reconnect, server = self._reconnect, self.server
        waits = reconnect.patience + server.start_timeout + server.call_timeout
        return waits + reconnect.answer_within + _EXPLAIN_TIMEOUT

    def redact(self, text: str) -> str:
        return visible_block(self._secrets.hide(text))

    # --- requests ----------------------------------------------------------------------------------

    async def call(self, tool: str, arguments: Arguments) -> types.CallToolResult:
        link, client = await self._up()
        from mcp import MCPError

        try:
            async with asyncio.timeout(self.server.call_timeout):
                return await _request_tool_call(client, tool, arguments)
        except (MCPError, ValueError) as error:
            raise await self._refused(link, error, _UNKNOWN_EFFECT) from None
        except TimeoutError:
            limit = f"{self.server.call_timeout:g} s"
        answers = await _is_responsive(client, self._reconnect.answer_within)
        if link.over.is_set() or not answers:
            link.end(f"did not answer a call within {limit} and no longer responds")
            raise await self._broken(link, _UNKNOWN_EFFECT)
        raise self._failure(
            f"did not finish the call within {limit}; it was asked to stop.{_UNKNOWN_EFFECT} Check, then request less."
        )

    async def list_tools(self) -> ToolListing:
        """List the tools of all pages."""
        link, client = await self._up()
        from mcp import MCPError

        tools: list[types.Tool] = []
        try:
            async with asyncio.timeout(self.server.start_timeout):
                return ToolListing(tools, complete=await _list_all_pages(client, tools))
        except (MCPError, ValueError) as error:
            raise await self._refused(link, error) from None
        except TimeoutError:
            if tools:
                return ToolListing(tools, complete=False)
            link.end(f"did not list its tools within {self.server.start_timeout:g} s")
            raise await self._broken(link) from None

    async def close(self) -> None:
        self._closed = True
        link = self._link
        if link is None:
            return
        link.end("is closed because the program is shutting down")
        if link.client is None:
            link.owner.cancel()
        done, _ = await asyncio.wait([link.owner], timeout=_CLOSE_TIMEOUT)
        if not done:
            # The server does not respond to the end of the session.
            link.owner.cancel()
            await asyncio.wait([link.owner])

    # --- failures ----------------------------------------------------------------------------------

    def _failure(self, what: str, evidence: str = "") -> ToolFailure:
        return ToolFailure(f"MCP server '{self.server.name}' {what}{evidence}")

    async def _refused(self, link: _Link, error: MCPError | ValueError, effect: str = "") -> ToolFailure:
        from mcp import MCPError

        if not isinstance(error, MCPError):
            return self._failure(
                f"sent an answer that is not valid MCP ({_first_fault(error)}). This is a bug of the server."
            )
        if link.over.is_set() or link.transport.ended_by(error):
            link.over.set()
            return await self._broken(link, effect)
        return self._failure(f"refused the request: {self._shown(error)}", link.transport.evidence(self._secrets))

    async def _broken(self, link: _Link, effect: str = "") -> ToolFailure:
        """The failure of a call in flight. Waits for the owner, which knows the reason."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_EXPLAIN_TIMEOUT):
                await link.explained.wait()
        what = f"{link.why or 'has disconnected'}.{effect}{self._retry_hint()}"
        return ConnectionLost(f"MCP server '{self.server.name}' {what}{link.evidence}")

    def _retry_hint(self) -> str:
        if self._closed:
            return ""
        pause = self._not_before - self._reconnect.clock()
        done = "started" if self.server.command else "connected to"
        if pause > self._reconnect.patience:
            return f" It can be {done} again in {ceil(pause)} s. Try again then, or continue without it."
        return f" It is {done} again at the next call. Try again."

    def _shown(self, error: BaseException) -> str:
        text = getattr(error, "message", "") or str(error) or type(error).__name__
        return excerpt(self._secrets.hide(text).removesuffix("."), 500)

    # --- the life of a link ------------------------------------------------------------------------

    async def _up(self) -> tuple[_Link, Client]:
        while True:
            if self._closed:
                raise self._failure("is closed: the program is shutting down.")
            link = self._link
            if link is None:
                pause = self._not_before - self._reconnect.clock()
                if pause > self._reconnect.patience:
                    raise self._failure(f"{self._last.why}.{self._retry_hint()}", self._last.evidence)
                if pause > 0:
                    await self._reconnect.sleep(pause)
                    continue
                settings = self._expanded_settings()
                link = self._link = _Link()
                link.owner = asyncio.create_task(self._own(link, settings), name=f"mcp server {self.server.name}")
                link.owner.add_done_callback(partial(self._on_closed, link))
            elif link.settled.is_set() and link.over.is_set():
                await asyncio.wait([link.owner])
                continue
            await link.settled.wait()
            if link.client is None:
                raise self._failure(f"{link.why}.{self._retry_hint()}", link.evidence)
            return link, link.client

    async def _own(self, link: _Link, settings: McpServer) -> None:
        try:
            await self._hold(link, settings)
        except asyncio.CancelledError:
            # Cancelled by `close` or with the whole program: in both cases the task ends.
            link.explain("was stopped")
        except ImportError as error:
            link.explain(f"cannot be used: {error}. Install the Python package `mcp`")
        except (Exception, BaseExceptionGroup) as error:
            link.explain(f"lost the connection: {self._shown(innermost(error))}")

    def _on_closed(self, link: _Link, _owner: asyncio.Task[None]) -> None:
        """A done callback, since a `finally` does not run in a task that is cancelled before its first step."""
        link.over.set()
        self._record_end(link)
        link.settled.set()
        self._link = None

    async def _hold(self, link: _Link, settings: McpServer) -> None:
        await asyncio.to_thread(load_sdk)
        transport = link.transport = ProcessServer(settings) if settings.command else UrlServer(settings)
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(self.server.start_timeout) as limit:
                    link.client = await transport.open(stack)
            except Exception as error:
                timeout = f"did not answer within {self.server.start_timeout:g} s of its start"
                why = timeout if limit.expired() else await transport.start_failure(innermost(error), self._shown)
                link.explain(why, transport.evidence(self._secrets))
                return
            link.over = transport.over
            link.up_since = self._reconnect.clock()
            link.settled.set()
            try:
                await link.over.wait()
            finally:
                # Also when the SDK cancels this task, before it wakes the calls.
                link.over.set()
            link.explain(link.why or await transport.end_reason(), transport.evidence(self._secrets))
            self._record_end(link)

    def _expanded_settings(self) -> McpServer:
        try:
            settings = expand_variables(self.server)
        except ConfigError as error:
            raise ToolFailure(str(error)) from None
        self._secrets = ServerSecrets(settings)
        return settings

    def _record_end(self, link: _Link) -> None:
        """Wake the calls that wait for the reason, and set the time of the next start."""
        if link.explained.is_set():
            return
        link.explained.set()
        now = self._reconnect.clock()
        healthy = link.up_since is not None and now - link.up_since >= self._reconnect.healthy_after
        self._failures = 1 if healthy else self._failures + 1
        self._not_before = now + self._reconnect.pause(self._failures)
        self._last = link


def _first_fault(error: ValueError) -> str:
    """The first validation error. The full message of pydantic would repeat the whole answer."""
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return excerpt(str(error))
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return excerpt(f"{'.'.join(map(str, first['loc']))}: {first['msg']}", 200)


# --- requests: they raise `MCPError`, or `ValueError` for a malformed answer ----------------------------


async def _request_tool_call(client: Client, tool: str, arguments: Arguments) -> types.CallToolResult:
    from mcp import MCPError, types
    from mcp.types import HEADER_MISMATCH

    # Not `client.call_tool`: that validates the result with a schema of the server, whose regular expressions
    # can block this process forever.
    request = types.CallToolRequest(params=types.CallToolRequestParams(name=tool, arguments=dict(arguments)))
    try:
        result = await client.session.send_request(request, _answer())
    except MCPError as error:
        if error.code != HEADER_MISMATCH:
            raise
        # The session needs the schema of the tool to send the headers that the protocol requires.
        await _list_all_pages(client, [])
        result = await client.session.send_request(request, _answer())
    if isinstance(result, types.InputRequiredResult):
        raise ToolFailure("The tool asks for input from a person, which this client does not support.")
    return result


@cache
def _answer() -> TypeAdapter[types.CallToolResult | types.InputRequiredResult]:
    from mcp import types
    from pydantic import TypeAdapter

    return TypeAdapter(types.CallToolResult | types.InputRequiredResult)


async def _list_all_pages(client: Client, tools: list[types.Tool]) -> bool:
    """Add all tools to `tools`, page by page, so that a cancelled call has a partial list. False when it is cut off."""
    from mcp import types

    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        page = await client.session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
        room = MAX_TOOLS - len(tools)
        tools.extend(page.tools[:room])
        cursor = page.next_cursor
        if cursor is None:
            return len(page.tools) <= room
        if len(tools) == MAX_TOOLS:
            return False
    return False


async def _is_responsive(client: Client, within: float) -> bool:
    """Whether the server answers a list request, which every server supports in both protocols."""
    try:
        async with asyncio.timeout(within):
            await client.session.list_tools()
    except TimeoutError:
        return False
    except Exception:  # an error is an answer, too
        return True
    return True
