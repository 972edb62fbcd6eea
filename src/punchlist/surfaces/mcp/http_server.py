"""`punchlist mcp --http`: runs the endpoint on a local address."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from punchlist.app import Services
from punchlist.conversations.model import Scope
from punchlist.errors import ConfigError
from punchlist.extras import require
from punchlist.kernel.events import Actor
from punchlist.surfaces.http.auth import is_wildcard, token_problem
from punchlist.surfaces.http.server import listen, make_server
from punchlist.surfaces.mcp.capabilities import Capabilities

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
    from punchlist.surfaces.mcp.http import McpEndpoint
    from punchlist.surfaces.mcp.principals import NamedTokens
    from punchlist.tokens.model import TokenValidity

    if is_wildcard(host):
        raise ConfigError("--host: must be one address of this machine that clients can name, not a wildcard")
    configured = environment.get(TOKEN_VARIABLE)
    if configured is not None and (problem := token_problem(configured)):
        raise ConfigError(f"{TOKEN_VARIABLE}: {problem}")
    listener = listen(host, port)
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

    def say_started() -> None:
        print(line, file=sys.stderr, flush=True)

    make_server(application(endpoint), say_started).run(sockets=[listener])


def application(endpoint: McpEndpoint) -> Starlette:
    from starlette.applications import Starlette
    from starlette.routing import Route

    app = Starlette(routes=[Route(PATH, endpoint)])
    app.router.redirect_slashes = False
    return app
