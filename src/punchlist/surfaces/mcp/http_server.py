"""`punchlist mcp --http`: runs the endpoint on a local address."""

from __future__ import annotations

import logging
import secrets
import socket
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from punchlist.app import Services
from punchlist.conversations.model import Scope
from punchlist.errors import ConfigError
from punchlist.extras import require
from punchlist.kernel.actors import Actor
from punchlist.surfaces.mcp.auth import is_wildcard, token_problem
from punchlist.surfaces.mcp.capabilities import Capabilities
from punchlist.surfaces.mcp.http_limits import IDLE_CONNECTION_SECONDS, connection_limits

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from punchlist.surfaces.mcp.http import McpEndpoint

TOKEN_VARIABLE: Final = "PUNCHLIST_MCP_TOKEN"
PATH: Final = "/mcp"


def serve(services: Services, scope: Scope, host: str, port: int, environment: Mapping[str, str]) -> None:
    """Serve until the process is ended. One line on stderr gives the URL and the token.

    A token is generated only if there is no other that a client could use.
    """
    for module in ("starlette", "uvicorn"):
        require(module, extra="missions", feature="MCP over HTTP")
    import uvicorn

    from punchlist.surfaces.mcp.http import McpEndpoint
    from punchlist.surfaces.mcp.http_connection import BoundedConnection, LogRateLimit
    from punchlist.surfaces.mcp.principals import NamedTokens
    from punchlist.tokens.model import TokenValidity

    if is_wildcard(host):
        raise ConfigError("--host: must be one address of this machine that clients can name, not a wildcard")
    configured = environment.get(TOKEN_VARIABLE)
    if configured is not None and (problem := token_problem(configured)):
        raise ConfigError(f"{TOKEN_VARIABLE}: {problem}")
    limits = connection_limits(_max_open_files())
    listener = _listen(host, port)
    capabilities = Capabilities(services, scope)
    # Report an unusable database now instead of in the first call.
    capabilities.warm_up()
    shown_host = f"[{host}]" if ":" in host else host
    valid = sum(listed.validity is TokenValidity.VALID for listed in services.tokens.list())
    start_token = configured or (None if valid else secrets.token_urlsafe(32))
    shown_token = f"from {TOKEN_VARIABLE}" if configured else start_token or f"one of {valid} (punchlist token list)"
    named = NamedTokens(
        services.tokens,
        lambda token: Capabilities(services, replace(scope, actor=Actor(token.role, token.name))),
    )
    endpoint = McpEndpoint({start_token: capabilities} if start_token else {}, [host], named=named)
    line = f"punchlist: http://{shown_host}:{listener.getsockname()[1]}{PATH} token: {shown_token}"

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            """Print the line only when clients can connect."""
            await super().startup(sockets)
            print(line, file=sys.stderr, flush=True)

    config = uvicorn.Config(
        application(endpoint),
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=1,
        http=partial(BoundedConnection, limit=limits.connections),  # type: ignore[arg-type]
        backlog=limits.accepted_at_once,
        timeout_keep_alive=IDLE_CONNECTION_SECONDS,
    )
    for logger in ("uvicorn.error", "asyncio"):
        logging.getLogger(logger).addFilter(LogRateLimit())
    Server(config).run(sockets=[listener])


def application(endpoint: McpEndpoint) -> Starlette:
    from starlette.applications import Starlette
    from starlette.routing import Route

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


def _max_open_files() -> int:
    try:
        import resource
    except ImportError:  # Windows
        return 512
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit
