"""`punchlist worker`: execute queued runs and continue the runs of dead workers."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Final

import typer

from punchlist.extras import require
from punchlist.surfaces.cli.agent_guard import refuse_looser_mode_for_agents
from punchlist.surfaces.cli.context import CliContext, echo_error, format_time, warn_untrusted
from punchlist.surfaces.cli.tools import ModeChoice, ModeOption

if TYPE_CHECKING:
    from punchlist.agent.model_resolver import ModelResolver
    from punchlist.app import Services

DEFAULT_SLOTS: Final = 8
MAX_REPORTED: Final = 20
ModelOption = Annotated[
    str | None, typer.Option("--model", "-m", envvar="PUNCHLIST_MODEL", metavar="NAME", help="The model to use.")
]


def worker(
    cli: CliContext,
    model: ModelOption = None,
    mode: ModeOption = None,
    slots: Annotated[
        int, typer.Option("--slots", min=1, max=1_000, metavar="N", help="Agents that work at the same time.")
    ] = DEFAULT_SLOTS,
    until_idle: Annotated[bool, typer.Option("--until-idle", help="Exit when no run can continue now.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")] = False,
) -> None:
    """Execute the runs of missions: todos, planning cycles, chats, delegations. Any number of workers share them.

    Ctrl-C or SIGTERM shuts it down cleanly. The next worker continues its runs, even after kill -9.
    """
    refuse_looser_mode_for_agents(mode)
    services = cli.services()
    run_worker(services, model, mode, slots=slots, until_idle=until_idle, quiet=quiet)


def run_worker(
    services: Services,
    model: str | None,
    mode: ModeChoice | None,
    *,
    slots: int = DEFAULT_SLOTS,
    until_idle: bool = False,
    quiet: bool = False,
) -> None:
    """Run a worker in this process until it is idle or receives a signal."""
    import asyncio
    import signal
    from contextlib import suppress

    from punchlist.kernel.clock import timestamp
    from punchlist.toolcalls.policy import Mode

    for module in ("sqlalchemy", "dbos"):
        require(module, extra="missions", feature="The mission worker")
    warn_untrusted(services, *services.agents.distrusted)

    def report(line: str) -> None:
        if not quiet:
            echo_error(f"{format_time(timestamp(services.store.clock()))} {line}")

    async def run() -> None:
        models = resolve_models(services, model, report)
        worker = services.worker(models, Mode(mode) if mode else None, slots=slots, report=report)
        with suppress(NotImplementedError):
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGINT, worker.stop)
            loop.add_signal_handler(signal.SIGTERM, worker.stop)
        await worker.run(until_idle=until_idle)

    asyncio.run(run())
    if until_idle:
        _report_resting(services, report)


def _report_resting(services: Services, report: Callable[[str], None]) -> None:
    """Report the runs that only a person can continue."""
    from punchlist.runs.lifecycle import RunStatus

    open_runs = services.runs.list(limit=1_000)
    for status, verb in ((RunStatus.WAITING, "waits"), (RunStatus.PAUSED, "is paused")):
        for run in [run for run in open_runs if run.status is status][:MAX_REPORTED]:
            report(f"{run.kind} {run.id[-8:]} {verb}{f': {run.why}' if run.why else ''}")


def resolve_models(services: Services, model: str | None, report: Callable[[str], None] | None = None) -> ModelResolver:
    """The models of all agents; `report` receives retries and fallbacks."""
    from punchlist.agent.model_resolver import ModelResolver
    from punchlist.models.providers import default_model, no_model

    name = model or services.agents.default_model or default_model(os.environ)
    if name is None:
        raise no_model(os.environ)
    return ModelResolver(name, os.environ, report)
