"""The offer in the words of the MCP SDK.

Service calls are synchronous and short; each is moved off the event loop. What a model can put
right comes back as a tool result that is marked as an error, in the service's own words.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import anyio
import mcp_types as types
from anyio.abc import TaskGroup
from anyio.to_thread import run_sync
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError

from punchlist import __version__
from punchlist.errors import PunchlistError
from punchlist.kernel.text import visible_block
from punchlist.kernel.tooling import Tool, ToolResult
from punchlist.surfaces.mcp.offer import INSTRUCTIONS, Offer

logger = logging.getLogger(__name__)

INTERVAL: Final = 0.05
"""Seconds between two looks for changes, while somebody has subscribed."""

Context = ServerRequestContext[Any, Any]


class ListServer:
    """One client's server. Its handlers are what the SDK calls."""

    def __init__(self, offer: Offer) -> None:
        self._offer = offer
        self._opening = anyio.Lock()
        self._open = False
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus)
        self._subscribers: dict[str, list[ServerSession]] = {}
        self._tasks: TaskGroup | None = None
        self._announcing = False
        self.server: Server[Any] = Server(
            "punchlist",
            version=__version__,
            title="Punchlist",
            instructions=INSTRUCTIONS,
            lifespan=self._living,
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_list_resources=self.list_resources,
            on_read_resource=self.read_resource,
            on_subscribe_resource=self.subscribe,
            on_unsubscribe_resource=self.unsubscribe,
            on_subscriptions_listen=self.listen,
        )

    async def list_tools(self, ctx: Context, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(tool) for tool in self._offer.tools()])

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            await self._opened()
            result = await run_sync(partial(self._offer.call, params.name, params.arguments))
        except PunchlistError as error:
            return _refused(visible_block(str(error)))
        except Exception:
            logger.exception("tool call failed")
            return _refused("Punchlist failed at this call; its log has the details. Nothing was changed.")
        return _answered(result)

    async def list_resources(self, ctx: Context, params: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult(
            resources=[
                types.Resource(uri=r.uri, name=r.name, description=r.description, mime_type="application/json")
                for r in self._offer.resources()
            ]
        )

    async def read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        try:
            await self._opened()
            text = await run_sync(partial(self._offer.read, uri))
        except PunchlistError as error:
            raise MCPError(types.INVALID_PARAMS, visible_block(str(error))) from error
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=uri, mime_type="application/json", text=text)]
        )

    async def subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        sessions = self._subscribers.setdefault(str(params.uri), [])
        if ctx.session not in sessions:
            sessions.append(ctx.session)
        self._announce_from_now_on()
        return types.EmptyResult()

    async def unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        sessions = self._subscribers.get(str(params.uri), [])
        if ctx.session in sessions:
            sessions.remove(ctx.session)
        return types.EmptyResult()

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        self._announce_from_now_on()
        return await self._listen(ctx, params)

    async def _opened(self) -> None:
        """Open the database once, off the event loop: the handshake does not wait for it."""
        async with self._opening:
            if not self._open:
                await run_sync(self._offer.warm_up)
                self._open = True

    @asynccontextmanager
    async def _living(self, _server: Server[Any]) -> AsyncIterator[None]:
        async with anyio.create_task_group() as self._tasks:
            yield None
            self._tasks.cancel_scope.cancel()

    def _announce_from_now_on(self) -> None:
        if not self._announcing and self._tasks is not None:
            self._announcing = True
            self._tasks.start_soon(self._announce_changes)

    async def _announce_changes(self) -> None:
        """Tell subscribers when a list changed, whichever process changed it."""
        await self._opened()
        seen: dict[str, str] = {}
        with await run_sync(self._offer.watch) as watch:
            while True:
                for resource in self._offer.resources():
                    text = await run_sync(partial(self._offer.read, resource.uri))
                    if seen.get(resource.uri, text) != text:
                        await self._announce(resource.uri)
                    seen[resource.uri] = text
                while not await run_sync(watch.changed):
                    await anyio.sleep(INTERVAL)

    async def _announce(self, uri: str) -> None:
        await self._bus.publish(ResourceUpdated(uri=uri))
        for session in self._subscribers.get(uri, []):
            await session.send_resource_updated(uri)


def _described(tool: Tool[Any]) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=types.ToolAnnotations(read_only_hint=tool.read_only, destructive_hint=False, open_world_hint=False),
    )


def _answered(result: ToolResult) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(text=result.text)], structured_content=result.data, is_error=False
    )


def _refused(message: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=message)], is_error=True)
