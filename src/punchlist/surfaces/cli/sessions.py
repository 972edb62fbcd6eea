"""`punchlist sessions`: which there are."""

from __future__ import annotations

from dataclasses import asdict

import typer

from punchlist.kernel.text import visible
from punchlist.surfaces.cli.context import JsonOption, cli_context, echo, echo_json, format_time


def sessions(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the sessions of this database, newest first."""
    services = cli_context(context).services(as_json=as_json)
    found = services.conversations.newest()
    if as_json:
        echo_json([asdict(conversation) for conversation in found])
        return
    if not found:
        echo("No sessions yet.")
    for conversation in found:
        mark = "*" if conversation.id == services.settings.session else " "
        progress = services.checklists.get(conversation.id).progress
        echo(
            f"{mark} {visible(conversation.id)}  {format_time(conversation.created_at)}  "
            f"{progress['completed']}/{progress['total']} done"
        )
