"""`punchlist mcp --http`: the endpoint on an address of this machine."""

from __future__ import annotations

import secrets
import socket
import sys
from collections.abc import Mapping
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Route

from punchlist.conversations.model import Scope
from punchlist.errors import ConfigError
from punchlist.surfaces.mcp.auth import is_wildcard, token_problem
from punchlist.surfaces.mcp.capabilities import Capabilities
from punchlist.surfaces.mcp.http import McpEndpoint
from punchlist.surfaces.services import Services

TOKEN_VARIABLE: Final = "PUNCHLIST_MCP_TOKEN"
PATH: Final = "/mcp"


def serve(desk: Services, scope: Scope, host: str, port: int, environment: Mapping[str, str]) -> None:
    """Answer until somebody ends the program. Where and with which token is said in one line on stderr; a token that
    was given by the environment is not repeated."""
    if is_wildcard(host):
        raise ConfigError("--host: must be one address of this machine, as clients name it; not all of them at once")
    given = environment.get(TOKEN_VARIABLE)
    if given is not None and (problem := token_problem(given)):
        raise ConfigError(f"{TOKEN_VARIABLE}: {problem}")
    token = given or secrets.token_urlsafe(32)
    listening = _listen(host, port)
    offer = Capabilities(desk, scope)
    # Before anybody is let in: what cannot be opened is said at once.
    offer.warm_up()
    shown = f"[{host}]" if ":" in host else host
    told = f"that of {TOKEN_VARIABLE}" if given else token
    line = f"punchlist: http://{shown}:{listening.getsockname()[1]}{PATH} token: {told}"
    config = uvicorn.Config(
        application(McpEndpoint({token: offer}, [host])),
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=1,
    )
    _HttpServer(config, line).run(sockets=[listening])


class _HttpServer(uvicorn.Server):
    """Says its line when it is there: whoever reads it can connect, and end it."""

    def __init__(self, config: uvicorn.Config, line: str) -> None:
        super().__init__(config)
        self._line = line

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        print(self._line, file=sys.stderr, flush=True)


def application(endpoint: McpEndpoint) -> Starlette:
    """The endpoint, and nothing anywhere else."""
    app = Starlette(routes=[Route(PATH, endpoint)])
    app.router.redirect_slashes = False
    return app


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise ConfigError(
            f"Cannot listen on {host}:{port} ({error.strerror or error}). Choose another --port."
        ) from None
