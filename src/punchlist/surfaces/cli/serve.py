"""`punchlist serve`: mission control in the browser, the HTTP API and MCP, with a worker in the same process."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import quote, urlsplit

import typer

from punchlist.errors import ConfigError
from punchlist.extras import require
from punchlist.surfaces.cli.agent_guard import refuse_for_agents, refuse_looser_mode_for_agents
from punchlist.surfaces.cli.context import CliContext, echo, echo_error, format_time, warn_untrusted
from punchlist.surfaces.cli.tools import ModeChoice, ModeOption
from punchlist.surfaces.cli.worker import DEFAULT_SLOTS, ModelOption, resolve_models

if TYPE_CHECKING:
    from socket import socket

    from starlette.types import ASGIApp

    from punchlist.app import Services
    from punchlist.engine.worker import Worker
    from punchlist.surfaces.http.server import TlsFiles
    from punchlist.surfaces.web.server import WebServer

DEFAULT_PORT: Final = 8420
FileOption = Path | None


def serve(
    cli: CliContext,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="PORT", help="The port to listen on; 0 picks a free one.")
    ] = DEFAULT_PORT,
    model: ModelOption = None,
    mode: ModeOption = None,
    slots: Annotated[
        int, typer.Option("--slots", min=1, max=1_000, metavar="N", help="Agents that work at the same time.")
    ] = DEFAULT_SLOTS,
    worker: Annotated[bool, typer.Option("--worker/--no-worker", help="Execute runs in this process.")] = True,
    login: Annotated[
        bool, typer.Option("--login", help="Print a new login link for the server at this address, and exit.")
    ] = False,
    remote: Annotated[
        bool, typer.Option("--remote", help="Allow other machines to connect; needs --tls-cert or --proxy.")
    ] = False,
    tls_cert: Annotated[FileOption, typer.Option(metavar="FILE", help="A TLS certificate (PEM).")] = None,
    tls_key: Annotated[FileOption, typer.Option(metavar="FILE", help="The key of the certificate (PEM).")] = None,
    proxy: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The https address of a proxy that ends TLS in front of this server."),
    ] = None,
) -> None:
    """Serve mission control on this machine: pages, the HTTP API and MCP. Prints one link that logs in.

    Ctrl-C or SIGTERM shuts it down cleanly. The next worker continues its runs.
    """
    refuse_for_agents("serve")
    refuse_looser_mode_for_agents(mode)
    for module in ("starlette", "uvicorn"):
        require(module, extra="missions", feature="The web server")
    from punchlist.surfaces.http.server import listen

    tls = _check_exposure(host, remote=remote, certificate=tls_cert, key=tls_key, proxy=proxy)
    services = cli.services()
    _ = services.store
    if login:
        echo(_login_link(services, _base_url(host, port, tls, proxy)))
        return
    listener = listen(host, port)
    base = _base_url(host, listener.getsockname()[1], tls, proxy)

    def say_started() -> None:
        link = _login_link(services, base)
        echo(f"Punchlist is at {base}. This link logs in, once, within an hour:\n{link}")
        if remote:
            _print_qr_code(link)

    address = ServerAddress(host, base, tls, [urlsplit(proxy).hostname or ""] if proxy else [])
    run_server(services, listener, address, say_started, model, mode, slots if worker else None)


@dataclass(frozen=True, slots=True)
class ServerAddress:
    host: str
    """The address that the server listens on."""
    base: str
    """The URL that clients use."""
    tls: TlsFiles | None = None
    other_names: Sequence[str] = ()
    """Names that clients use besides `host`."""


def serve_demo(services: Services, port: int, model: str, say_started: Callable[[str], None]) -> None:
    """Serve on loopback with a worker, until a signal. `say_started` receives the login link."""
    from punchlist.surfaces.http.server import listen

    listener = listen("127.0.0.1", port)
    address = ServerAddress("127.0.0.1", _base_url("127.0.0.1", listener.getsockname()[1], None, None))
    say = partial(_say_link, services, address.base, say_started)
    run_server(services, listener, address, say, model, ModeChoice.DEFAULT, DEFAULT_SLOTS)


def _say_link(services: Services, base: str, say: Callable[[str], None]) -> None:
    say(_login_link(services, base))


def run_server(
    services: Services,
    listener: socket,
    address: ServerAddress,
    say_started: Callable[[], None],
    model: str | None,
    mode: ModeChoice | None,
    slots: int | None,
) -> None:
    """Serve until a signal, with a worker in this process unless `slots` is None."""
    from punchlist.surfaces.http.limits import MAX_WEB_CONNECTIONS
    from punchlist.surfaces.http.server import raise_open_files
    from punchlist.surfaces.web.server import WebServer

    raise_open_files(4 * MAX_WEB_CONNECTIONS)
    web = WebServer(
        services,
        host_names=[address.host, *address.other_names],
        cookie_name=f"punchlist-{listener.getsockname()[1]}",
        secure=address.base.startswith("https:"),
        behind_proxy=bool(address.other_names),
        model=model,
        mode=mode,
        hosts_worker=slots is not None,
    )
    start_worker = _worker_factory(services, model, mode, slots) if slots is not None else None
    _run(web, listener, address.tls, say_started, start_worker, address.host)


def _check_exposure(
    host: str, *, remote: bool, certificate: Path | None, key: Path | None, proxy: str | None
) -> TlsFiles | None:
    """Other machines may connect only if the user said so, and only with encryption."""
    from punchlist.surfaces.http.auth import is_loopback, is_wildcard
    from punchlist.surfaces.http.server import TlsFiles

    if is_wildcard(host):
        raise ConfigError("--host: must be one address of this machine that clients can name, not a wildcard")
    if (certificate is None) != (key is None):
        raise ConfigError("--tls-cert, --tls-key: both or none must be given")
    for option, file in (("--tls-cert", certificate), ("--tls-key", key)):
        if file is not None and not file.is_file():
            raise ConfigError(f"{option}: there is no file {str(file)!r}")
    if proxy is not None and (urlsplit(proxy).scheme != "https" or not urlsplit(proxy).hostname):
        raise ConfigError("--proxy: must be the https address that clients use, such as https://punchlist.example.com")
    if not is_loopback(host) and not remote:
        raise ConfigError(
            f"--host {host}: other machines could connect. Add --remote, and --tls-cert and --tls-key, or --proxy for "
            "a proxy that ends TLS."
        )
    if not is_loopback(host) and certificate is None and proxy is None:
        raise ConfigError(
            "--remote: tokens must not cross a network unencrypted. Add --tls-cert and --tls-key, or "
            "--proxy for a proxy that ends TLS."
        )
    return TlsFiles(certificate, key) if certificate is not None and key is not None else None


def _base_url(host: str, port: int, tls: TlsFiles | None, proxy: str | None) -> str:
    if proxy is not None:
        return proxy.rstrip("/")
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if tls else 'http'}://{shown}:{port}"


def _login_link(services: Services, base: str) -> str:
    from punchlist.surfaces.web.logins import Logins

    return f"{base}/login?code={quote(Logins(services).new_code())}"


def _print_qr_code(link: str) -> None:
    import io

    segno = require("segno", extra="missions", feature="The QR code")
    drawn = io.StringIO()
    segno.make(link, error="l").terminal(drawn, compact=True)
    echo(drawn.getvalue())


def _worker_factory(
    services: Services, model: str | None, mode: ModeChoice | None, slots: int
) -> Callable[[], Worker] | None:
    """Builds the worker on the event loop; None without a model."""
    from punchlist.kernel.clock import timestamp
    from punchlist.models.providers import default_model, no_model
    from punchlist.toolcalls.policy import Mode

    for module in ("sqlalchemy", "dbos"):
        require(module, extra="missions", feature="The mission worker")
    if not (model or services.agents.default_model or default_model(os.environ)):
        echo_error(f"No worker runs in this server. {no_model(os.environ)}")
        return None
    warn_untrusted(services, *services.agents.distrusted)

    def report(line: str) -> None:
        echo_error(f"{format_time(timestamp(services.store.clock()))} {line}")

    def build() -> Worker:
        models = resolve_models(services, model, report)
        return services.worker(models, Mode(mode) if mode else None, slots=slots, report=report)

    return build


def _run(
    web: WebServer,
    listener: socket,
    tls: TlsFiles | None,
    say_started: Callable[[], None],
    start_worker: Callable[[], Worker] | None,
    host: str,
) -> None:
    import asyncio
    import signal
    from contextlib import suppress

    from punchlist.surfaces.http.limits import MAX_WEB_CONNECTIONS
    from punchlist.surfaces.http.server import make_server
    from punchlist.surfaces.web.server import build_app

    server = make_server(
        build_app(web, _mcp_endpoint(web.services, [host, *web.host_names])),
        say_started,
        max_connections=MAX_WEB_CONNECTIONS,
        lifespan=True,
        tls=tls,
        handle_signals=False,
        on_stopping=web.services.live.end_subscriptions,
    )

    async def run() -> None:
        worker = start_worker() if start_worker is not None else None

        def stop() -> None:
            server.should_exit = True
            if worker is not None:
                worker.stop()

        async def work() -> None:
            assert worker is not None
            web.worker_state = "running"
            try:
                await worker.run()
            except Exception as error:
                # The pages stay, and say that no worker runs.
                web.worker_state = "failed"
                echo_error(
                    f"The worker failed ({type(error).__name__}: {error}). Runs need another `punchlist worker`."
                )

        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError):
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, stop)
        async with asyncio.TaskGroup() as group:
            if worker is not None:
                group.create_task(work())
            await server.serve(sockets=[listener])
            stop()

    asyncio.run(run())


def _mcp_endpoint(services: Services, host_names: list[str]) -> ASGIApp:
    from dataclasses import replace

    from punchlist.kernel.events import Actor, Role
    from punchlist.missions.model import MissionScope
    from punchlist.surfaces.mcp.capabilities import Capabilities
    from punchlist.surfaces.mcp.http import McpEndpoint
    from punchlist.surfaces.mcp.principals import NamedTokens

    scope = MissionScope(services.settings.session, Actor(Role.VIEWER, "mcp"))
    named = NamedTokens(
        services.tokens,
        lambda token: Capabilities(services, replace(scope, actor=Actor(token.role, token.name))),
    )
    return McpEndpoint({}, host_names, named=named)
