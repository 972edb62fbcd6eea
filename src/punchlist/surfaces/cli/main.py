"""The commands together, and how the program ends."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer
import typer.core

from punchlist import __version__
from punchlist.errors import PunchlistError
from punchlist.surfaces.cli import db, log, mcp, plan, sessions, todos, turn
from punchlist.surfaces.cli.front import Front, OpenDesk, complain, say, say_json

EXIT_ERROR = 1
EXIT_INTERRUPTED = 130


class InOurOrder(typer.core.TyperGroup):
    """Lists the commands as a newcomer needs them, not commands before groups."""

    ORDER = ("todos", "plan", "turn", "sessions", "log", "mcp", "db")

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        return sorted(super().list_commands(ctx), key=self.ORDER.index)


app = typer.Typer(
    name="punchlist",
    cls=InOurOrder,
    help="The todo list that AI agents finish.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(todos.app, name="todos")
app.add_typer(plan.app, name="plan")
app.add_typer(turn.app, name="turn")
app.command("sessions")(sessions.sessions)
app.command("log")(log.log)
app.command("mcp")(mcp.mcp)
app.add_typer(db.app, name="db")


def _version(wanted: bool) -> None:
    if wanted:
        say(f"punchlist {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """The todo list that AI agents finish."""


def run(open_desk: OpenDesk) -> None:
    """Run one command. Every error we know ends in a sentence on stderr, never in a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    front = Front(open_desk)
    try:
        app(obj=front, prog_name="punchlist")
    except PunchlistError as error:
        if front.json:
            say_json({"error": {"code": error.code, "message": str(error)}})
        complain(str(error))
        sys.exit(EXIT_ERROR)
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        # Whoever read our output has had enough. Python would complain once more when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_ERROR)
    except Exception as error:
        if os.environ.get("PUNCHLIST_DEBUG"):
            raise
        complain(f"failed unexpectedly ({type(error).__name__}: {error}). PUNCHLIST_DEBUG=1 shows where.")
        sys.exit(EXIT_ERROR)
