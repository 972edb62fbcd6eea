"""What every command shares: options, the services of the chosen session, and safe output."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, TextIO

import typer
import typer.core

from punchlist.app import Services
from punchlist.config import Settings, current_user, load
from punchlist.kernel.events import Actor, Role
from punchlist.kernel.text import visible, visible_block

if TYPE_CHECKING:
    from punchlist.conversations.model import Scope
    from punchlist.storage.trusted_files import UntrustedDatabase

OpenServices = Callable[[Settings], Services]

SessionOption = Annotated[
    str | None,
    typer.Option("--session", "-s", metavar="ID", help="The session to use. Default: the one last used here."),
]
ReasonOption = Annotated[str | None, typer.Option("--why", metavar="TEXT", help="A reason for the event log.")]
MODEL_VARIABLE: Final = "PUNCHLIST_MODEL"
NARROW: Final = 60
"""Below this width the first column of a help table gets a third of the line."""
WatchOption = Annotated[bool, typer.Option("--watch", "-w", help="Show every change until Ctrl-C.")]


_Formatter: Any = typer.Context.formatter_class


class ProgramState:
    """State of one run of the program."""

    def __init__(self, open_services: OpenServices) -> None:
        self.open_services = open_services
        self.json = False
        self.json_lines = False
        """The output is one JSON object per line."""
        self.session: str | None = None
        """The session that an option before a subcommand named."""
        self.opened: list[Services] = []

    def close(self) -> None:
        """Close the databases: the last connection to a SQLite file moves the log into it."""
        for services in self.opened:
            if reason := services.read_only_reason():
                echo_error(reason)
            services.close()


class HelpFormatter(_Formatter):  # type: ignore[misc]
    def write_dl(self, rows: Any, col_max: int = 30, col_spacing: int = 2) -> None:
        super().write_dl(rows, min(col_max, self.width // 3) if self.width < NARROW else col_max, col_spacing)


class CliContext(typer.Context):
    """The context of a command: its services, its output, and help as wide as the terminal.

    Typer's own limits for help are 50 to 80 columns.
    """

    def make_formatter(self) -> HelpFormatter:
        return HelpFormatter(width=self.terminal_width or max(terminal_width() - 2, 20))

    @property
    def state(self) -> ProgramState:
        state = self.obj
        assert isinstance(state, ProgramState)
        return state

    @property
    def json(self) -> bool:
        """Whether the output is JSON (`--json`)."""
        return self.state.json

    def services(self, session: str | None = None) -> Services:
        services = self.state.open_services(load({"session": session}))
        if sys.stdin.isatty() and sys.stderr.isatty():
            services.on_untrusted_database = partial(_ask_about_database, services)
        self.state.opened.append(services)
        return services

    def in_session(self, session: str | None = None) -> Services:
        """The services for the named session, else for the session of this project that was used last."""
        services = self.services(session or self.state.session)
        services.use_session(services.current_session())
        return services

    def user_scope(self, services: Services) -> Scope:
        """The person at the terminal, in the chosen session."""
        from punchlist.conversations.model import Scope

        return Scope(services.settings.session, Actor(Role.PERSON, current_user()))

    def list_scope(self, services: Services) -> Scope:
        """As `user_scope`, to change a list. An agent that runs the command in its shell changes it as an agent:
        it completes an item, but does not accept it."""
        from punchlist.surfaces.cli.agent_guard import agent_evidence

        scope = self.user_scope(services)
        return scope if agent_evidence() is None else replace(scope, actor=Actor(Role.SUPERVISOR, scope.actor.name))

    def show(self, value: Any, lines: str | Iterable[str], *, empty: str = "") -> None:
        """Print the value as JSON with `--json`, else the text or its lines; `empty` if there are none."""
        if self.json:
            echo_json(value)
        elif text := lines if isinstance(lines, str) else "\n".join(lines) or empty:
            echo(text)


def _ask_about_database(services: Services, problem: UntrustedDatabase) -> bool:
    from punchlist.surfaces.cli.trust import ask_about_database

    return ask_about_database(services, problem)


class ListByDefault(typer.core.TyperGroup):
    """A group whose subcommand `list` runs when none is named."""

    default_command = "list"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = args and (not args[0].startswith("-") or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if named or ctx.resilient_parsing else [self.default_command, *args])


class ShowByDefault(ListByDefault):
    default_command = "show"


def echo(text: str = "", *, error: bool = False) -> None:
    """Print text that contains no control characters any more."""
    print(text, file=sys.stderr if error else sys.stdout, flush=True)


def echo_json(value: Any) -> None:
    # Escaped to ASCII: stored text cannot act on a terminal.
    print(to_json_text(value, indent=2), flush=True)


def to_json_text(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, indent=indent, default=repr)


def echo_error(message: str) -> None:
    echo(f"punchlist: {visible_block(message)}", error=True)


def confirm(question: str, *, default: bool = False) -> None:
    """Ask on the terminal; a no aborts the command."""
    discard_typed_keys()
    if not typer.confirm(question, default=default, err=True):
        echo("Nothing was changed.", error=True)
        raise typer.Abort


def discard_typed_keys() -> None:
    """Keys that were typed before a question appeared do not answer it."""
    try:
        import termios
    except ImportError:
        return
    with suppress(OSError, ValueError, termios.error):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def format_time(at: str) -> str:
    """A stored time to the second."""
    return visible(at)[:19] + "Z"


def plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def terminal_width() -> int:
    return shutil.get_terminal_size((80, 24)).columns


def terminal_height() -> int:
    return shutil.get_terminal_size((80, 24)).lines


def supports_ansi(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def supports_color(stream: TextIO | None = None) -> bool:
    """Whether a stream shows colours; stdout by default."""
    return supports_ansi(stream or sys.stdout) and not os.environ.get("NO_COLOR")


def warn_untrusted(services: Services, *more: str) -> None:
    """Name the untrusted settings that this command leaves out."""
    settings = services.settings
    has_files = settings.project is not None or settings.user is not None
    requests = services.tool_settings.untrusted_requests if has_files else ()
    untrusted = (*settings.untrusted, *requests, *more)
    if untrusted:
        others = f" and {len(untrusted) - 1} more" if len(untrusted) > 1 else ""
        file = settings.project.path.name if settings.project else "a file"
        echo_error(
            f"{file} contains settings that you have not trusted ({visible_block(untrusted[0])}{others}). They are "
            "ignored. `punchlist trust` shows them and asks."
        )


def warn_untrusted_instructions(services: Services) -> None:
    """Say how to trust the project's instructions for agents, if they are not trusted."""
    from punchlist.agent.prompts import find_instructions

    found = find_instructions(services.workspace)
    if found is not None and not services.trust.trusts(found.path, found.content):
        echo_error(
            f"You have not trusted the {found.path.name} of this project, so agents do not read it. `punchlist trust` "
            "shows it and asks."
        )
