"""`punchlist sessions`: which there are."""

from __future__ import annotations

from dataclasses import asdict

import typer

from punchlist.kernel.text import visible
from punchlist.surfaces.cli.context import JsonOption, front, moment, say, say_json


def sessions(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the sessions of this database, newest first."""
    desk = front(context).desk(as_json=as_json)
    found = desk.conversations.newest()
    if as_json:
        say_json([asdict(conversation) for conversation in found])
        return
    if not found:
        say("No sessions yet.")
    for conversation in found:
        mark = "*" if conversation.id == desk.settings.session else " "
        progress = desk.checklists.get(conversation.id).progress
        say(
            f"{mark} {visible(conversation.id)}  {moment(conversation.created_at)}  "
            f"{progress['completed']}/{progress['total']} done"
        )
