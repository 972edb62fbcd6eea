"""`punchlist hook`: the hooks of third-party agents. `app.main` handles all calls except `--help`."""

from __future__ import annotations

from typing import Annotated

import typer

from punchlist.surfaces.cli.context import CliContext


def hook(
    cli: CliContext,
    event: Annotated[str, typer.Argument(metavar="EVENT", help="stop, prompt, session-start or tool.")],
    agent: Annotated[str | None, typer.Option("--for", metavar="AGENT", help="The agent that calls the hook.")] = None,
) -> None:
    """Answer a hook of a third-party agent: reads JSON on stdin, writes JSON on stdout, always exits with 0.

    `punchlist install` registers it in the agent's settings.
    """
    from punchlist.surfaces.hooks.main import run

    run(cli.state.open_services, [event, *(("--for", agent) if agent else ())])
