"""A connection to one MCP server: opened when needed, opened again when it broke, never in a hot loop.

The SDK's client must be entered and left in one task, so each connection has an owner task that
does nothing else; calls use the client from their own tasks, and a cancelled one costs the others
nothing. A connection is a `_Link`, used once:

    starting ──> up ──> over ──> gone        (`settled` at "up" or on failure, `over`, `told`)

`over` is set by whoever notices the end: the transport, a call, `close`. The owner then says why
(`told`), so that the calls in flight fail at once, and only then ends what is left. The next call
opens a new link when the pause is over that grows with each failure.

A call that died with its connection is not repeated here: nobody knows whether it took effect.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Final

from punchlist.errors import ConfigError
from punchlist.kernel.text import excerpt, visible_block
from punchlist.toolcalls.tool import Arguments, ConnectionLost, ToolFailure
from punchlist.tools.mcp.requests import is_responsive, list_all_pages, request_tool_call
from punchlist.tools.mcp.settings import McpServer, ReconnectPolicy, ServerSecrets, expand_variables
from punchlist.tools.mcp.transport import ProcessServer, ServerTransport, UrlServer, innermost, load_sdk

if TYPE_CHECKING:
    from mcp import Client, MCPError, types

_TOLD_LIMIT: Final = 2.0
_CLOSE_LIMIT: Final = 3.0
_IN_DOUBT: Final = " Whether the call took effect is not known."


class _Link:
    def __init__(self) -> None:
        self.settled = asyncio.Event()
        self.over = asyncio.Event()
        self.told = asyncio.Event()
        self.client: Client | None = None
        self.way: ServerTransport
        self.why = ""
        self.evidence = ""
        self.up_since: float | None = None
        self.owner: asyncio.Task[None]

    def tell(self, why: str, evidence: str = "") -> None:
        """The first reason is the real one; the rest follows from it."""
        self.why = self.why or why
        self.evidence = self.evidence or evidence

    def end(self, why: str) -> None:
        self.tell(why)
        self.over.set()


@dataclass(frozen=True)
class ToolListing:
    tools: list[types.Tool]
    complete: bool


class ServerConnection:
    def __init__(self, server: McpServer, pace: ReconnectPolicy) -> None:
        self.server = server
        self._pace = pace
        self._secrets = ServerSecrets(server)
        self._link: _Link | None = None
        self._failures = 0
        self._not_before = 0.0
        self._last = _Link()
        self._closed = False

    @property
    def max_call_seconds(self) -> float:
        pace, server = self._pace, self.server
        return pace.patience + server.start_timeout + server.call_timeout + pace.answer_within + _TOLD_LIMIT

    def redact(self, text: str) -> str:
        return visible_block(self._secrets.hide(text))

    # --- what others ask of it ---------------------------------------------------------------------

    async def call(self, tool: str, arguments: Arguments) -> types.CallToolResult:
        link, client = await self._up()
        from mcp import MCPError

        try:
            async with asyncio.timeout(self.server.call_timeout):
                return await request_tool_call(client, tool, arguments)
        except (MCPError, ValueError) as error:
            raise await self._refused(link, error, _IN_DOUBT) from None
        except TimeoutError:
            limit = f"{self.server.call_timeout:g} s"
        answers = await is_responsive(client, self._pace.answer_within)
        if link.over.is_set() or not answers:
            link.end(f"did not answer a call within {limit}, nor anything else")
            raise await self._broken(link, _IN_DOUBT)
        raise self._failure(
            f"did not finish the call within {limit}; it was told to stop.{_IN_DOUBT} Check, then ask for less."
        )

    async def list_tools(self) -> ToolListing:
        """All pages, as far as they end."""
        link, client = await self._up()
        from mcp import MCPError

        tools: list[types.Tool] = []
        try:
            async with asyncio.timeout(self.server.start_timeout):
                return ToolListing(tools, complete=await list_all_pages(client, tools))
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
        link.end("is closed, as the program ends")
        if link.client is None:
            link.owner.cancel()
        done, _ = await asyncio.wait([link.owner], timeout=_CLOSE_LIMIT)
        if not done:
            # A server that does not answer to the end of its session.
            link.owner.cancel()
            await asyncio.wait([link.owner])

    # --- what failures are called ------------------------------------------------------------------

    def _failure(self, what: str, evidence: str = "") -> ToolFailure:
        return ToolFailure(f"MCP server '{self.server.name}' {what}{evidence}")

    async def _refused(self, link: _Link, error: MCPError | ValueError, doubt: str = "") -> ToolFailure:
        from mcp import MCPError

        if not isinstance(error, MCPError):
            return self._failure(
                f"gave an answer that is not valid MCP ({_first_fault(error)}). Its maker has to mend it."
            )
        if link.over.is_set() or link.way.ended_by(error):
            link.over.set()
            return await self._broken(link, doubt)
        return self._failure(f"refused: {self._shown(error)}", link.way.evidence(self._secrets))

    async def _broken(self, link: _Link, doubt: str = "") -> ToolFailure:
        """For what was under way. The owner knows more of why than the caller does."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_TOLD_LIMIT):
                await link.told.wait()
        what = f"{link.why or 'is gone'}.{doubt}{self._again()}"
        return ConnectionLost(f"MCP server '{self.server.name}' {what}{link.evidence}")

    def _again(self) -> str:
        if self._closed:
            return ""
        pause = self._not_before - self._pace.clock()
        done = "started" if self.server.command else "connected to"
        if pause > self._pace.patience:
            return f" It can be {done} again in {ceil(pause)} s; try again then, or go on without it."
        return f" It is {done} again at the next call; try again."

    def _shown(self, error: BaseException) -> str:
        text = getattr(error, "message", "") or str(error) or type(error).__name__
        return excerpt(self._secrets.hide(text).removesuffix("."), 500)

    # --- the life of a link ------------------------------------------------------------------------

    async def _up(self) -> tuple[_Link, Client]:
        while True:
            if self._closed:
                raise self._failure("is closed: the program is ending.")
            link = self._link
            if link is None:
                pause = self._not_before - self._pace.clock()
                if pause > self._pace.patience:
                    raise self._failure(f"{self._last.why}.{self._again()}", self._last.evidence)
                if pause > 0:
                    await self._pace.sleep(pause)
                    continue
                settings = self._filled_in()
                link = self._link = _Link()
                link.owner = asyncio.create_task(self._own(link, settings), name=f"mcp server {self.server.name}")
                link.owner.add_done_callback(partial(self._gone, link))
            elif link.settled.is_set() and link.over.is_set():
                await asyncio.wait([link.owner])
                continue
            await link.settled.wait()
            if link.client is None:
                raise self._failure(f"{link.why}.{self._again()}", link.evidence)
            return link, link.client

    async def _own(self, link: _Link, settings: McpServer) -> None:
        try:
            await self._hold(link, settings)
        except asyncio.CancelledError:
            # By `close`, or with the whole program; either way this is the end of the task.
            link.tell("was stopped")
        except ImportError as error:
            link.tell(f"cannot be used: {error}. Install the Python package `mcp`")
        except (Exception, BaseExceptionGroup) as error:
            link.tell(f"lost the connection: {self._shown(innermost(error))}")

    def _gone(self, link: _Link, _owner: asyncio.Task[None]) -> None:
        """Not a `finally` of the owner: that would not run if it was cancelled before its first step."""
        link.over.set()
        self._tell(link)
        link.settled.set()
        self._link = None

    async def _hold(self, link: _Link, settings: McpServer) -> None:
        await asyncio.to_thread(load_sdk)
        way = link.way = ProcessServer(settings) if settings.command else UrlServer(settings)
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(self.server.start_timeout) as limit:
                    link.client = await way.open(stack)
            except Exception as error:
                late = f"did not answer within {self.server.start_timeout:g} s of its start"
                why = late if limit.expired() else await way.start_failure(innermost(error), self._shown)
                link.tell(why, way.evidence(self._secrets))
                return
            link.over = way.over
            link.up_since = self._pace.clock()
            link.settled.set()
            try:
                await link.over.wait()
            finally:
                # Also when the SDK ends it from within, before it wakes the calls.
                link.over.set()
            link.tell(link.why or await way.end_reason(), way.evidence(self._secrets))
            self._tell(link)

    def _filled_in(self) -> McpServer:
        try:
            settings = expand_variables(self.server)
        except ConfigError as error:
            raise ToolFailure(str(error)) from None
        self._secrets = ServerSecrets(settings)
        return settings

    def _tell(self, link: _Link) -> None:
        """Wake who waits for the reason, and set the time of the next start."""
        if link.told.is_set():
            return
        link.told.set()
        now = self._pace.clock()
        healthy = link.up_since is not None and now - link.up_since >= self._pace.healthy_after
        self._failures = 1 if healthy else self._failures + 1
        self._not_before = now + self._pace.pause(self._failures)
        self._last = link


def _first_fault(error: ValueError) -> str:
    """Where the answer is wrong. All that pydantic has to say of it would repeat the whole answer."""
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return excerpt(str(error))
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return excerpt(f"{'.'.join(map(str, first['loc']))}: {first['msg']}", 200)
