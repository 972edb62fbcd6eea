"""The commands together, and how the program ends."""

from __future__ import annotations

import io
import os
import sys
from importlib import import_module
from inspect import getdoc
from typing import Annotated, Any, Final, NoReturn, Protocol, runtime_checkable

import typer
import typer.core

from punchlist import __version__
from punchlist.errors import PunchlistError
from punchlist.kernel.text import visible_block
from punchlist.surfaces.cli.context import CliContext, OpenServices, complain, say, say_json

EXIT_ERROR = 1
EXIT_INTERRUPTED = 130


COMMANDS: Final = {
    name: f"punchlist.surfaces.cli.{where}"
    for name, where in {
        "run": "run:run",
        "demo": "demo:demo",
        "install": "install:install",
        "uninstall": "install:uninstall",
        "status": "install:status",
        "queue": "queue:app",
        "answer": "answer:answer",
        "wake": "answer:wake",
        "agents": "agents:app",
        "mission": "mission:app",
        "todo": "todo:app",
        "chat": "chat:app",
        "metric": "metric:app",
        "runs": "runs:app",
        "worker": "worker:worker",
        "todos": "todos:app",
        "plan": "plan:app",
        "import": "exchanging:import_",
        "export": "exchanging:export",
        "tools": "tools:app",
        "approvals": "approvals:app",
        "policy": "policy:app",
        "trust": "trust:trust",
        "conversations": "conversations:app",
        "turn": "turn:app",
        "sessions": "sessions:sessions",
        "log": "log:log",
        "mcp": "mcp:mcp",
        "hook": "hook:hook",
        "db": "db:app",
    }.items()
}
"""As a newcomer needs them: a group of commands is an `app`, any other is a function."""


class LazyCommands(typer.core.TyperGroup):
    """Each command is loaded and made when it is asked for: whoever runs one does not pay for the others."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # type: ignore[override]
        del ctx
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            self.commands[cmd_name] = _made(cmd_name)
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:  # type: ignore[override]
        if args and args[0] not in COMMANDS:
            # Somebody is to be told what they may have meant.
            self.commands = {name: self.get_command(ctx, name) for name in COMMANDS}
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        del ctx
        limit = formatter.width - 6 - max(map(len, COMMANDS))
        with formatter.section("Commands"):
            formatter.write_dl([(name, _in_short(name, limit)) for name in COMMANDS])


def _loaded(name: str) -> Any:
    module, _, attribute = COMMANDS[name].partition(":")
    return getattr(import_module(module), attribute)


def _made(name: str) -> Any:
    from typer.main import get_command_from_info, get_group_from_info
    from typer.models import CommandInfo, TyperInfo

    found = _loaded(name)
    if isinstance(found, typer.Typer):
        group = TyperInfo(found, name=name)
        return get_group_from_info(group, pretty_exceptions_short=True, suggest_commands=True, rich_markup_mode=None)
    command = CommandInfo(name=name, callback=found)
    return get_command_from_info(command, pretty_exceptions_short=True, rich_markup_mode=None)


def _in_short(name: str, limit: int) -> str:
    from typer.main import solve_typer_info_help
    from typer.models import TyperInfo

    found = _loaded(name)
    said = solve_typer_info_help(TyperInfo(found)) if isinstance(found, typer.Typer) else getdoc(found)
    return typer.core.TyperCommand(name, help=said).get_short_help_str(limit)


app = typer.Typer(
    name="punchlist",
    cls=LazyCommands,
    help="The todo list that AI agents finish.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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


def start(open_desk: OpenServices) -> None:
    """Run one command. Every error we know ends in a sentence on stderr, never in a traceback."""
    _mend_streams()
    front = CliContext(open_desk)
    try:
        code = app(obj=front, prog_name="punchlist", standalone_mode=False)
        sys.stdout.flush()
    except PunchlistError as error:
        if front.json:
            say_json({"error": {"code": error.code, "message": str(error)}})
        complain(str(error))
        code = error.exit_code
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
