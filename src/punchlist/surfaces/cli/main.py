"""The command line: the table of commands, `--help`, and how errors become exit codes."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from importlib import import_module
from inspect import getdoc
from typing import Annotated, Any, Final, NoReturn, Protocol, runtime_checkable

import typer
import typer.core

from punchlist import __version__
from punchlist.errors import PunchlistError
from punchlist.kernel.text import visible_block
from punchlist.surfaces.cli.context import (
    CliContext,
    OpenServices,
    ProgramState,
    echo,
    echo_error,
    echo_json,
    to_json_text,
)

EXIT_ERROR = 1
EXIT_INTERRUPTED = 130

GROUPS: Final = {
    "Lists": {
        "todos": "todos:app",
        "inbox": "inbox:app",
        "notify": "notify:app",
        "import": "import_export:import_",
        "export": "import_export:export",
    },
    "Agent": {
        "run": "run:run",
        "chat": "chat:chat",
        "demo": "demo:demo",
        "sessions": "sessions:app",
        "search": "search:search",
        "queue": "queue:app",
        "agents": "agents:app",
        "tools": "tools:app",
        "policy": "policy:app",
        "approvals": "approvals:app",
        "answer": "answer:answer",
        "wake": "answer:wake",
        "trust": "trust:app",
    },
    "Missions": {
        "mission": "mission:app",
        "worker": "worker:worker",
        "serve": "serve:serve",
    },
    "Integrations": {
        "install": "install:install",
        "uninstall": "install:uninstall",
        "goal": "goal:app",
        "status": "install:status",
        "mcp": "mcp:mcp",
        "token": "token:app",
        "hook": "hook:hook",
    },
    "Maintenance": {
        "log": "log:log",
        "db": "db:app",
    },
}
"""The groups of `--help`, and where each command is: an `app` is a group of subcommands, anything else a function."""
COMMANDS: Final = {name: place for commands in GROUPS.values() for name, place in commands.items()}
ELSEWHERE: Final[dict[str, str]] = {
    "todo": "'todos', or 'mission todo' for the todos of a mission",
    "list": "'todos'",
    "add": "'todos add'",
    "plan": "'todos'",
    "metric": "'mission metric'",
    "runs": "'mission runs'",
    "conversations": "'sessions'",
    "turn": "'sessions'",
}
"""Words that people try as commands, and the commands that they look for."""
WITHOUT_JSON: Final = ("chat", "worker", "serve", "mcp", "hook")
"""Commands that run until they are stopped, or print the JSON of a protocol."""


class LazyCommands(typer.core.TyperGroup):
    """Imports the module of a command only when the command is used or described."""

    context_class = CliContext

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # type: ignore[override]
        del ctx
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            self.commands[cmd_name] = _build(cmd_name)
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:  # type: ignore[override]
        if args and args[0] in ELSEWHERE:
            ctx.fail(f"No such command '{args[0]}'. Use {ELSEWHERE[args[0]]}.")
        if args and args[0] not in COMMANDS:
            # Typer suggests similar names from the commands that exist.
            self.commands = {name: self.get_command(ctx, name) for name in COMMANDS}
        return super().resolve_command(ctx, args)

    def get_params(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        parameters = super().get_params(ctx)
        for parameter in parameters:
            if parameter.name == "install_completion":
                # Typer's own one writes without a question.
                parameter.callback = _install_completion
        return parameters

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        del ctx
        longest = max(map(len, COMMANDS))
        for group, commands in GROUPS.items():
            with formatter.section(group):
                # Padded, so that the groups share one column.
                formatter.write_dl([(f"{name:<{longest}}", _summary(name)) for name in commands])


def _load(name: str) -> Any:
    module, _, attribute = COMMANDS[name].partition(":")
    return getattr(import_module(f"punchlist.surfaces.cli.{module}"), attribute)


def _build(name: str) -> Any:
    from typer.main import get_command_from_info, get_group_from_info
    from typer.models import CommandInfo, TyperInfo

    found = _load(name)
    if isinstance(found, typer.Typer):
        info = TyperInfo(found, name=name)
        command: Any = get_group_from_info(
            info, pretty_exceptions_short=True, suggest_commands=True, rich_markup_mode=None
        )
    else:
        command = get_command_from_info(
            CommandInfo(name=name, callback=found), pretty_exceptions_short=True, rich_markup_mode=None
        )
    _complete(command)
    return command


def _complete(command: Any) -> None:
    """Give a command and its subcommands the shared context class and, if they print a result, `--json`."""
    command.context_class = CliContext
    subcommands = getattr(command, "commands", {}).values()
    for subcommand in subcommands:
        # A short help is printed in full; one that Typer derives from the help is cut to the width.
        subcommand.short_help = subcommand.get_short_help_str(limit=1_000)
        _complete(subcommand)
    if command.name not in WITHOUT_JSON and (not subcommands or command.invoke_without_command):
        command.params.append(
            typer.core.TyperOption(
                param_decls=["--json"],
                is_flag=True,
                expose_value=False,
                callback=_print_json,
                help="Print JSON on stdout.",
            )
        )


def _print_json(context: CliContext, _: Any, requested: bool) -> None:
    if requested:
        context.state.json = True


def _summary(name: str) -> str:
    """The first sentence of a command's help."""
    from typer.main import solve_typer_info_help
    from typer.models import TyperInfo

    found = _load(name)
    text = solve_typer_info_help(TyperInfo(found)) if isinstance(found, typer.Typer) else getdoc(found)
    return typer.core.TyperCommand(name, help=text).get_short_help_str(limit=1_000)


app = typer.Typer(
    name="punchlist",
    cls=LazyCommands,
    help="The todo list that AI agents finish.",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(requested: bool) -> None:
    if requested:
        echo(f"punchlist {__version__}")
        raise typer.Exit


def _install_completion(context: Any, parameter: Any, requested: Any) -> Any:
    if not requested or context.resilient_parsing:
        return requested
    from punchlist.surfaces.cli.completion import install_completion

    return install_completion(context, parameter, yes=bool(context.params.get("yes")))


@app.callback()
def options(
    cli: CliContext,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", is_eager=True, help="With --install-completion: do not ask for confirmation.")
    ] = False,
) -> None:
    """The todo list that AI agents finish.

    Without a command, the terminal application; where there is no terminal, an overview of this project.
    """
    del version
    if yes:
        raise typer.BadParameter("is for --install-completion", param_hint="--yes")
    if cli.invoked_subcommand is None:
        from punchlist.surfaces.cli.overview import open_or_print_overview

        open_or_print_overview(cli)


@runtime_checkable
class UsageError(Protocol):
    """The error that Typer raises for a wrong command line. Typer does not export its class."""

    ctx: typer.Context | None
    exit_code: int

    def format_message(self) -> str: ...


def start(open_services: OpenServices) -> None:
    """Run one command. Errors end as one sentence on stderr; only unexpected ones show a traceback, on request."""
    _repair_streams()
    _end_commands_on_signals()
    state = ProgramState(open_services)
    try:
        code = _run(state)
        sys.stdout.flush()
    except PunchlistError as error:
        echo_error(str(error))
        code = error.exit_code
        if state.json or state.json_lines:
            # Without a reader, the sentence on stderr remains.
            with suppress(OSError):
                _print_json_error(state, error)
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    except typer.Abort as abort:
        # Raised for Ctrl-C and for a question answered with no.
        code = EXIT_INTERRUPTED if isinstance(abort.__context__, KeyboardInterrupt) else EXIT_ERROR
    except BrokenPipeError:
        code = EXIT_ERROR
    except OSError as error:
        echo_error(f"failed ({error.strerror or error})." if _has_folder() else "The current folder was removed.")
        code = EXIT_ERROR
    except Exception as error:
        if isinstance(error, UsageError):
            _print_usage_error(error)
            code = error.exit_code
        elif os.environ.get("PUNCHLIST_DEBUG"):
            raise
        else:
            echo_error(
                f"failed unexpectedly ({type(error).__name__}: {error}). Set PUNCHLIST_DEBUG=1 to see the traceback."
            )
            code = EXIT_ERROR
    finally:
        state.close()
    _exit(code if isinstance(code, int) else 0)


def _has_folder() -> bool:
    try:
        return bool(os.getcwd())
    except OSError:
        return False


def _print_json_error(state: ProgramState, error: PunchlistError) -> None:
    fields = {"error": {"code": error.code, "message": str(error)}}
    if state.json_lines:
        echo(to_json_text({"event": "error", **fields}))
    else:
        echo_json(fields)


def _run(state: ProgramState) -> Any:
    try:
        return app(obj=state, prog_name="punchlist", standalone_mode=False)
    except ModuleNotFoundError as error:
        from punchlist.extras import missing_extra

        raise missing_extra(error) or error from error


def _end_commands_on_signals() -> None:
    """SIGTERM and SIGHUP end this process as before, but not before the commands that it runs.

    Commands have sessions of their own, so that a signal to our group does not reach them. `run`, `worker` and the
    servers have their own handlers while they work.
    """
    import signal

    def end(number: int, _: Any) -> None:
        if runner := sys.modules.get("punchlist.kernel.process_runner"):
            runner.end_all()
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)

    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        # Ignored with nohup.
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, end)


def _repair_streams() -> None:
    """Replace streams that the shell closed, and escape characters that the encoding of a stream lacks."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _print_usage_error(error: UsageError) -> None:
    # Typer puts the choices of an argument on lines of their own.
    message = visible_block(error.format_message().replace("\n\t", " "))
    if message.startswith("Usage:"):
        # A group without a subcommand: the message is its help.
        echo(message, error=True)
        return
    if error.ctx is not None:
        echo(f"{error.ctx.get_usage()}\nTry '{error.ctx.command_path} --help' for help.\n", error=True)
    echo(f"Error: {message}", error=True)


def _exit(code: int) -> NoReturn:
    """Exit without interpreter shutdown, which takes a fifth of a short command. All writes are committed by now."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = code or EXIT_ERROR
    os._exit(code)
