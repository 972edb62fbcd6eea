"""Runs an ASGI application with uvicorn, behind connections with limits."""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from punchlist.errors import ConfigError
from punchlist.surfaces.http.limits import IDLE_CONNECTION_SECONDS, MAX_CONNECTIONS, connection_limits

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp


@dataclass(frozen=True, slots=True)
class TlsFiles:
    certificate: Path
    key: Path


def listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise ConfigError(
            f"Cannot listen on {host}:{port} ({error.strerror or error}). Choose another --port."
        ) from None


def make_server(
    app: ASGIApp,
    on_started: Callable[[], None],
    *,
    max_connections: int = MAX_CONNECTIONS,
    lifespan: bool = False,
    tls: TlsFiles | None = None,
    handle_signals: bool = True,
    on_stopping: Callable[[], None] = lambda: None,
) -> uvicorn.Server:
    """A server that calls `on_started` when clients can connect, and `on_stopping` to end responses that would not end.

    Without `handle_signals` the caller sets `should_exit`.
    """
    import uvicorn

    from punchlist.surfaces.http.connection import BoundedConnection, LogRateLimit

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if not self.should_exit:
                on_started()

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            on_stopping()
            await super().shutdown(sockets)

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            if handle_signals:
                with super().capture_signals():
                    yield
            else:
                yield

    limits = connection_limits(_max_open_files(), max_connections)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=True,
        lifespan="on" if lifespan else "off",
        ws="none",
        timeout_graceful_shutdown=1,
        http=partial(BoundedConnection, limit=limits.connections),  # type: ignore[arg-type]
        backlog=limits.accepted_at_once,
        timeout_keep_alive=IDLE_CONNECTION_SECONDS,
        # No forwarded headers: a client could send them as well as a proxy.
        proxy_headers=False,
        ssl_certfile=tls.certificate if tls else None,
        ssl_keyfile=tls.key if tls else None,
    )
    for logger in ("uvicorn.error", "asyncio"):
        logging.getLogger(logger).addFilter(LogRateLimit())
    return Server(config)


def raise_open_files(wanted: int) -> None:
    """Raise the limit of open files of this process, as far as the system lets it."""
    try:
        import resource
    except ImportError:  # Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        highest = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest, hard))


def _max_open_files() -> int:
    try:
        import resource
    except ImportError:  # Windows
        return 512
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit
