"""`punchlist hook`: what the agents of others call. Mostly only its help is asked for here (`wiring.main`)."""

from __future__ import annotations

from typing import Annotated

import typer

from punchlist.surfaces.cli.context import cli_context


def hook(
    context: typer.Context,
    event: Annotated[str, typer.Argument(metavar="EVENT", help="stop, prompt, session-start or tool.")],
    agent: Annotated[str | None, typer.Option("--for", metavar="AGENT", help="The agent whose program asks.")] = None,
) -> None:
    """Answer an agent's program: its JSON on standard input, ours on standard output. Always exits with 0.

    `punchlist install` registers it; nobody has to type it.
    """
    from punchlist.surfaces.hooks.main import run

    run(cli_context(context).open_services, [event, *(("--for", agent) if agent else ())])
