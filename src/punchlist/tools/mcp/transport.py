"""The two transports to an MCP server: stdio and HTTP.

A transport serves one connection. It reports what the SDK does not: how a process ended and what it printed,
or the HTTP status of a failed request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final, Protocol

from punchlist.kernel.text import excerpt
from punchlist.tools.mcp.process import MAX_MESSAGE_BYTES, ProcessTransport
from punchlist.tools.mcp.settings import McpServer, ServerSecrets

if TYPE_CHECKING:
    import httpx2
    from mcp import Client, MCPError

_DELETE_TIMEOUT: Final = 1.0


class ServerTransport(Protocol):
    over: asyncio.Event
    """Set when the server has ended the connection, or to end it."""

    async def open(self, stack: AsyncExitStack) -> Client: ...

    async def start_failure(self, error: BaseException, shown: Callable[[BaseException], str]) -> str:
        """Why the server did not start."""

    async def end_reason(self) -> str:
        """How the server ended the connection, after `over`."""

    def ended_by(self, error: MCPError) -> bool:
        """Whether an error means that the connection is no longer usable."""

    def evidence(self, secrets: ServerSecrets) -> str:
        """Output that can explain a failure, on separate lines."""


class ProcessServer:
    def __init__(self, server: McpServer) -> None:
        from mcp.client.stdio import get_default_environment

        self._server = server
        self._env = {**get_default_environment(), **server.env}
        self._new_transport()

    def _new_transport(self) -> None:
        self.over = asyncio.Event()
        self._transport = ProcessTransport(self._server.command, self._env, self._server.cwd, self.over)

    async def open(self, stack: AsyncExitStack) -> Client:
        from mcp import Client

        try:
            return await stack.enter_async_context(Client(self._transport, cache=None))
        except Exception:
            if not self._transport.left or self._transport.fault:
                raise
        # Some servers of the older protocol exit when the first message is not `initialize`.
        self._new_transport()
        return await stack.enter_async_context(Client(self._transport, mode="legacy", cache=None))

    async def start_failure(self, error: BaseException, shown: Callable[[BaseException], str]) -> str:
        if isinstance(error, OSError):
            return f"could not be started: {shown(error)}"
        if self._transport.left:
            return f"did not start: it {await self.end_reason()}"
        return f"did not start: {shown(error)}"

    async def end_reason(self) -> str:
        return await self._transport.end()

    def ended_by(self, error: MCPError) -> bool:  # noqa: ARG002
        # The process transport detects the end itself.
        return False

    def evidence(self, secrets: ServerSecrets) -> str:
        return self._transport.evidence(secrets)


class UrlServer:
    def __init__(self, server: McpServer) -> None:
        self._server = server
        self._client: Client | None = None
        self._status = 0
        self._reason = ""
        self.over = asyncio.Event()

    async def open(self, stack: AsyncExitStack) -> Client:
        import httpx2
        from mcp import Client
        from mcp.client.streamable_http import streamable_http_client

        # No read timeout: calls have their own time limit.
        timeout = self._server.start_timeout
        http = httpx2.AsyncClient(
            headers=dict(self._server.headers),
            timeout=httpx2.Timeout(connect=timeout, write=timeout, read=None, pool=None),
            event_hooks={"request": [_limit_delete], "response": [self._note_status]},
        )
        await stack.enter_async_context(http)
        transport = streamable_http_client(
            self._server.url or "", http_client=http, max_sse_event_size=MAX_MESSAGE_BYTES
        )
        self._client = await stack.enter_async_context(Client(transport, cache=None))
        return self._client

    async def _note_status(self, response: httpx2.Response) -> None:
        # A GET requests the event stream, which many servers do not offer.
        if response.request.method == "POST":
            self._status, self._reason = response.status_code, response.reason_phrase

    async def start_failure(self, error: BaseException, shown: Callable[[BaseException], str]) -> str:
        import httpx2

        if isinstance(error, httpx2.TransportError):
            return f"could not be reached: {shown(error)}"
        return f"did not start a session: {shown(error)}"

    async def end_reason(self) -> str:
        return "ended the connection"

    def ended_by(self, error: MCPError) -> bool:
        from mcp.types import CONNECTION_CLOSED

        # Compared with the SDK's messages: servers use the same code for other errors.
        if error.code == CONNECTION_CLOSED and error.message.startswith(("Connection closed", "SSE stream")):
            return True
        # In the older protocol a 404 means that the session has expired.
        return self._status == 404 and self._client is not None and self._client.session.initialize_result is not None

    def evidence(self, secrets: ServerSecrets) -> str:
        if self._status < 400:
            return ""
        return f"\nIts last answer was HTTP {self._status} {excerpt(secrets.hide(self._reason))}".rstrip()


async def _limit_delete(request: httpx2.Request) -> None:
    """A DELETE ends the session; a server that hangs must not block it."""
    if request.method == "DELETE":
        request.extensions["timeout"] = dict.fromkeys(("connect", "read", "write", "pool"), _DELETE_TIMEOUT)


def load_sdk() -> None:
    """Import the SDK, which takes half a second: call it in a thread."""
    import httpx2  # noqa: F401
    import mcp  # noqa: F401

    # Without a handler, Python prints the warnings of the SDK on standard error.
    logger = logging.getLogger("mcp")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())


def innermost(error: BaseException) -> BaseException:
    """The original error: the task groups of the SDK wrap it, often twice."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
