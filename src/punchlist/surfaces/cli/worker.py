"""`punchlist worker`: works on what is queued, and goes on with what others have left."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Final

import typer

from punchlist.errors import ConfigError
from punchlist.surfaces.cli.context import cli_context, echo_error, format_time
from punchlist.surfaces.cli.run import NO_MODEL
from punchlist.surfaces.cli.tools import ModeChoice, ModeOption, warn_untrusted

if TYPE_CHECKING:
    from punchlist.agent.model_resolver import ModelResolver
    from punchlist.surfaces.services import Services

SLOTS: Final = 8
MOST_TOLD: Final = 20
ModelOption = Annotated[
    str | None, typer.Option("--model", "-m", envvar="PUNCHLIST_MODEL", metavar="NAME", help="The model to use.")
]


def worker(
    context: typer.Context,
    model: ModelOption = None,
    mode: ModeOption = None,
    slots: Annotated[
        int, typer.Option("--slots", min=1, max=1_000, metavar="N", help="Agents that work at the same time.")
    ] = SLOTS,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="End when nothing is left that can be worked on now.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")] = False,
) -> None:
    """Work on runs: todos of missions, planning cycles, chats, delegated work. Any number of workers share them.

    Ctrl-C or SIGTERM ends it in good order; even after kill -9, what it had in hand goes on with the next worker.
    """
    services = cli_context(context).services()
    work(services, model, mode, slots=slots, until_idle=until_idle, quiet=quiet)


def work(
    services: Services,
    model: str | None,
    mode: ModeChoice | None,
    *,
    slots: int = SLOTS,
    until_idle: bool = False,
    quiet: bool = False,
) -> None:
    """Host a worker in this process until it has nothing to do, or is told to end."""
    import asyncio
    import signal
    from contextlib import suppress

    from punchlist.kernel.clock import timestamp
    from punchlist.toolcalls.policy import Mode

    warn_untrusted(services, *services.agents.distrusted)

    def tell(line: str) -> None:
        if not quiet:
            echo_error(f"{format_time(timestamp(services.store.clock()))} {line}")

    async def until_told() -> None:
        ours = services.worker(casting(services, model, tell), Mode(mode) if mode else None, slots=slots, report=tell)
        with suppress(NotImplementedError):
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGINT, ours.stop)
            loop.add_signal_handler(signal.SIGTERM, ours.stop)
        await ours.run(until_idle=until_idle)

    asyncio.run(until_told())
    if until_idle:
        _tell_what_waits(services, tell)


def _tell_what_waits(services: Services, tell: Callable[[str], None]) -> None:
    """Why it is idle although there is work: what only a person can let go on."""
    from punchlist.runs.lifecycle import RunStatus

    left = services.runs.list(limit=1_000)
    for status, what in ((RunStatus.WAITING, "waits"), (RunStatus.PAUSED, "is paused")):
        for run in [run for run in left if run.status is status][:MOST_TOLD]:
            tell(f"{run.kind} {run.id[-8:]} {what}{f': {run.why}' if run.why else ''}")


def casting(services: Services, model: str | None, told: Callable[[str], None] | None = None) -> ModelResolver:
    """Which model speaks for which agent; `told` hears when one is busy or gives way to another."""
    from punchlist.agent.model_resolver import ModelResolver
    from punchlist.models.providers import default_model

    named = model or services.agents.default_model or default_model(os.environ)
    if named is None:
        raise ConfigError(NO_MODEL)
    return ModelResolver(named, os.environ, told)
