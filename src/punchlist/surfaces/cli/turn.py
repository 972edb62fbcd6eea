"""`punchlist turn`: the turns of a session."""

from __future__ import annotations

from typing import Annotated

import typer

from punchlist.kernel.text import visible
from punchlist.surfaces.cli.context import JsonOption, SessionOption, front, moment, say, say_json

app = typer.Typer(help="List the session's turns, or end the open one.", no_args_is_help=True)


@app.command("list")
def list_turns(context: typer.Context, session: SessionOption = None, as_json: JsonOption = False) -> None:
    """List the session's turns, newest first."""
    desk = front(context).desk(session, as_json=as_json)
    turns = desk.conversations.turns(desk.settings.session)
    if as_json:
        say_json([turn._asdict() for turn in turns])
        return
    if not turns:
        say("No turns yet.")
    for turn in turns:
        state = "open" if turn.open else f"ended: {visible(turn.end_reason or '')}"
        say(f"{visible(turn.id)}  {moment(turn.started_at)}  {state}")


@app.command()
def end(
    context: typer.Context,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why it ends.")] = "ended by a person",
    session: SessionOption = None,
    as_json: JsonOption = False,
) -> None:
    """End the open turn: its plan stays as it is, and the next use opens a new one."""
    entry = front(context)
    desk = entry.desk(session, as_json=as_json)
    turn = desk.conversations.end_turn(entry.scope(desk), reason=reason)
    if as_json:
        say_json(turn._asdict() if turn else None)
    else:
        say(f"Ended turn {visible(turn.id)}." if turn else "No turn was open.")
