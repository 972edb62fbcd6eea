"""`punchlist turn`: the turns of a session."""

from __future__ import annotations

from typing import Annotated

import typer

from punchlist.kernel.text import visible
from punchlist.surfaces.cli.context import JsonOption, SessionOption, cli_context, echo, echo_json, format_time

app = typer.Typer(help="List the session's turns, or end the open one.", no_args_is_help=True)


@app.command("list")
def list_turns(context: typer.Context, session: SessionOption = None, as_json: JsonOption = False) -> None:
    """List the session's turns, newest first."""
    services = cli_context(context).services(session, as_json=as_json)
    turns = services.conversations.turns(services.settings.session)
    if as_json:
        echo_json([turn._asdict() for turn in turns])
        return
    if not turns:
        echo("No turns yet.")
    for turn in turns:
        state = "open" if turn.open else f"ended: {visible(turn.end_reason or '')}"
        echo(f"{visible(turn.id)}  {format_time(turn.started_at)}  {state}")


@app.command()
def end(
    context: typer.Context,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why it ends.")] = "ended by a person",
    session: SessionOption = None,
    as_json: JsonOption = False,
) -> None:
    """End the open turn: its plan stays as it is, and the next use opens a new one."""
    entry = cli_context(context)
    services = entry.services(session, as_json=as_json)
    turn = services.conversations.end_turn(entry.scope(services), reason=reason)
    if as_json:
        echo_json(turn._asdict() if turn else None)
    else:
        echo(f"Ended turn {visible(turn.id)}." if turn else "No turn was open.")
