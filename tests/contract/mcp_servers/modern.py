"""An MCP server made with the SDK: both protocols, on standard input and output or over HTTP.

    modern.py [http PORT [older]]

Over HTTP, the address is the first line on standard output; "older" hides that it knows the newer protocol.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from typing import Annotated, Any

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel, Field
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

server = MCPServer("modern", log_level="CRITICAL")


class Sum(BaseModel):
    total: int


@server.tool()
def add(a: int, b: int) -> Sum:
    """Add two numbers."""
    return Sum(total=a + b)


@server.tool()
async def hang() -> str:
    """Never come back."""
    await asyncio.Event().wait()
    return ""


@server.tool()
def die() -> str:
    """Be gone."""
    os._exit(3)


@server.tool(structured_output=False)
def place(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
    """An argument that must be sent as a header too, which only the list of tools tells."""
    return region


@server.tool(structured_output=False)
def header(name: str, context: Context[Any, Any]) -> str:
    """A header of the request."""
    headers = context.headers or {}
    return str(headers.get(name))


def late() -> str:
    """A tool that was not there before."""
    return "late"


@server.tool()
async def grow(context: Context[Any, Any]) -> str:
    """Get one more tool."""
    server.add_tool(late)
    await context.session.send_tool_list_changed()
    return "grown"


class Older:
    """Answers what only the newer protocol asks as a server of the older one would."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        request = await receive()
        message = json.loads(request["body"])
        if message["method"] == "server/discover":
            error = {"code": -32601, "message": "Method not found"}
            response = JSONResponse({"jsonrpc": "2.0", "id": message["id"], "error": error}, 404)
            await response(scope, receive, send)
            return
        unread = [request]
        await self._app(scope, lambda: given(unread.pop()) if unread else receive(), send)


async def given(message: Message) -> Message:
    return message


async def over_http(port: int, *, older: bool) -> None:
    listening = socket.create_server(("127.0.0.1", port))
    print(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", flush=True)
    app = server.streamable_http_app()
    config = uvicorn.Config(Older(app) if older else app, log_level="critical")
    await uvicorn.Server(config).serve(sockets=[listening])


if sys.argv[1:2] == ["http"]:
    asyncio.run(over_http(int(sys.argv[2]), older="older" in sys.argv))
else:
    server.run()
