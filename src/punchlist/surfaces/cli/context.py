"""What every command shares: options, the services of the chosen session, and safe output."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from punchlist.config import Settings, current_user, load
from punchlist.kernel.actors import Actor, Role
from punchlist.kernel.text import visible, visible_block
from punchlist.surfaces.services import Services

if TYPE_CHECKING:
    from punchlist.conversations.model import Scope

OpenServices = Callable[[Settings], Services]

SessionOption = Annotated[
    str | None,
    typer.Option("--session", "-s", metavar="ID", help="The session to use. Default: the one last used here."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
ReasonOption = Annotated[str | None, typer.Option("--why", metavar="TEXT", help="A reason for the event log.")]
WatchOption = Annotated[bool, typer.Option("--watch", "-w", help="Show every change until Ctrl-C.")]


class CliContext:
    """State of one run of the program."""

    def __init__(self, open_services: OpenServices) -> None:
        self.open_services = open_services
        self.json = False
        self._opened: list[Services] = []

    def services(self, session: str | None = None, *, as_json: bool = False) -> Services:
        self.json = self.json or as_json
        services = self.open_services(load({"session": session}))
        self._opened.append(services)
        return services

    def close(self) -> None:
        """Close the databases: the last connection to a SQLite file moves the log into it."""
        for services in self._opened:
            services.close()

    def in_session(self, session: str | None, *, as_json: bool = False) -> Services:
        """The services for the named session, else for the session of this project that was used last."""
        services = self.services(session, as_json=as_json)
        services.use_session(services.current_session())
        return services

    def scope(self, services: Services) -> Scope:
        """The person at the terminal, in the chosen session."""
        from punchlist.conversations.model import Scope

        return Scope(services.settings.session, Actor(Role.PERSON, current_user()))


def cli_context(context: typer.Context) -> CliContext:
    found = context.find_root().obj
    assert isinstance(found, CliContext)
    return found


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


def supports_color() -> bool:
    return supports_ansi(sys.stdout) and not os.environ.get("NO_COLOR")


def warn_untrusted(services: Services, *more: str) -> None:
    """Name the untrusted settings that this command leaves out."""
    untrusted = (*services.tool_settings.untrusted_requests, *more)
    if untrusted:
        others = f" and {len(untrusted) - 1} more" if len(untrusted) > 1 else ""
        file = services.settings.project.path.name if services.settings.project else "a file"
        echo_error(
            f"{file} contains settings that you have not trusted ({visible_block(untrusted[0])}{others}). They are "
            "ignored. `punchlist trust` shows them and asks."
        )
