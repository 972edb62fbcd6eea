"""The commands together, and how the program ends."""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated, NoReturn, Protocol, runtime_checkable

import typer
import typer.core

from punchlist import __version__
from punchlist.errors import PunchlistError
from punchlist.kernel.text import visible_block
from punchlist.surfaces.cli import (
    agents,
    answer,
    approvals,
    chat,
    conversations,
    costs,
    cycle,
    db,
    demo,
    log,
    mcp,
    metric,
    mission,
    plan,
    policy,
    queue,
    run,
    runs,
    sessions,
    todo,
    todos,
    tools,
    trust,
    turn,
    worker,
)
from punchlist.surfaces.cli.front import Front, OpenDesk, complain, say, say_json

EXIT_ERROR = 1
EXIT_INTERRUPTED = 130


class InOurOrder(typer.core.TyperGroup):
    """Lists the commands as a newcomer needs them, not commands before groups."""

    ORDER = (
        *("run", "demo", "queue", "answer", "wake", "agents"),
        *("mission", "todo", "chat", "metric", "runs", "worker"),
        *("todos", "plan", "tools", "approvals", "policy", "trust"),
        *("conversations", "turn", "sessions", "log", "mcp", "db"),
    )

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
app.command("run")(run.run)
app.command("demo")(demo.demo)
app.add_typer(queue.app, name="queue")
app.command("answer")(answer.answer)
app.command("wake")(answer.wake)
app.add_typer(agents.app, name="agents")
mission.app.command("cycle")(cycle.cycle)
mission.app.command("prompt")(cycle.prompt)
mission.app.command("costs")(costs.costs)
app.add_typer(mission.app, name="mission")
app.add_typer(todo.app, name="todo")
app.add_typer(chat.app, name="chat")
app.add_typer(metric.app, name="metric")
app.add_typer(runs.app, name="runs")
app.command("worker")(worker.worker)
app.add_typer(todos.app, name="todos")
app.add_typer(plan.app, name="plan")
app.add_typer(tools.app, name="tools")
app.add_typer(approvals.app, name="approvals")
app.add_typer(policy.app, name="policy")
app.command("trust")(trust.trust)
app.add_typer(conversations.app, name="conversations")
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


@runtime_checkable
class UsageError(Protocol):
    """What Typer raises for a wrong command line; it does not show the class itself."""

    ctx: typer.Context | None
    exit_code: int

    def format_message(self) -> str: ...


def start(open_desk: OpenDesk) -> None:
    """Run one command. Every error we know ends in a sentence on stderr, never in a traceback."""
    _mend_streams()
    front = Front(open_desk)
    try:
        code = app(obj=front, prog_name="punchlist", standalone_mode=False)
        sys.stdout.flush()
    except PunchlistError as error:
        if front.json:
            say_json({"error": {"code": error.code, "message": str(error)}})
        complain(str(error))
        code = EXIT_ERROR
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    except typer.Abort as abort:
        # Either Ctrl-C, or somebody said no to a question.
        code = EXIT_INTERRUPTED if isinstance(abort.__cause__, KeyboardInterrupt) else EXIT_ERROR
    except BrokenPipeError:
        # Whoever read our output has had enough.
        code = EXIT_ERROR
    except OSError as error:
        complain(f"cannot go on ({error.strerror or error}).")
        code = EXIT_ERROR
    except Exception as error:
        if isinstance(error, UsageError):
            _explain_usage(error)
            _leave(error.exit_code)
        if os.environ.get("PUNCHLIST_DEBUG"):
            raise
        complain(f"failed unexpectedly ({type(error).__name__}: {error}). PUNCHLIST_DEBUG=1 shows where.")
        code = EXIT_ERROR
    _leave(code if isinstance(code, int) else 0)


def _mend_streams() -> None:
    """A shell may have closed any of them; and no text may stop us from saying the rest."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _explain_usage(error: UsageError) -> None:
    message = visible_block(error.format_message())
    if message.startswith("Usage:"):
        # Nothing was asked for, so the message is the help.
        say(message, error=True)
        return
    if error.ctx is not None:
        say(f"{error.ctx.get_usage()}\nTry '{error.ctx.command_path} --help' for help.\n", error=True)
    say(f"Error: {message}", error=True)


def _leave(code: int) -> NoReturn:
    """End at once: taking the interpreter apart would cost a fifth of a short command's time.

    What was written is committed, and SQLite needs no goodbye.
    """
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = code or EXIT_ERROR
    os._exit(code)
