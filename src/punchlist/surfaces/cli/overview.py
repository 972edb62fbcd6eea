"""Bare `punchlist`: the terminal application; without a terminal, the state of this project in a few lines.

The overview never fails and never creates a database.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from punchlist.errors import PunchlistError
from punchlist.kernel.text import visible
from punchlist.surfaces.cli.context import CliContext, echo, echo_error, format_time, plural, terminal_width

if TYPE_CHECKING:
    from punchlist.app import Services

NEXT = """\
punchlist run GOAL    give an agent a goal
punchlist todos       show and change the open todos
punchlist inbox       answer what needs you
punchlist install     use the lists in an agent that you already run
punchlist --help      list all commands"""


def open_or_print_overview(cli: CliContext) -> None:
    from punchlist.surfaces.cli.agent_guard import agent_evidence
    from punchlist.surfaces.cli.open_application import has_terminal, open_home

    missing = open_home(cli) if has_terminal() and agent_evidence() is None else None
    if not has_terminal() or missing is not None or agent_evidence() is not None:
        print_overview(cli)
    if missing is not None:
        echo(f"\n{missing}")


def print_overview(cli: CliContext) -> None:
    try:
        services = cli.services()
        if _has_database(services):
            echo("\n".join(_overview(cli, services)))
        else:
            echo("No lists here yet.\n")
    except PunchlistError as error:
        echo_error(str(error))
        echo()
    echo(NEXT)


def _has_database(services: Services) -> bool:
    from punchlist.storage.open import parse_database_url

    file = parse_database_url(services.settings.database).file
    return file is None or file.exists()


def _overview(cli: CliContext, services: Services) -> Iterator[str]:
    from punchlist.surfaces.cli.todos_view import todos_box
    from punchlist.views.sessions import running_turns

    services.use_session(services.current_session())
    todos = services.todos.list(cli.user_scope(services))
    yield f"Session {visible(todos.session)}: {plural(len(todos.open_items), 'open todo')}."
    if todos.open_items:
        yield from todos_box(todos, terminal_width())
    for turn in running_turns(services.store):
        session = visible(turn.conversation_id)
        yield f"Running: {visible(turn.agent_id)} in session {session} since {format_time(turn.started_at)}."
    waiting = sum(services.inbox.counts().values())
    yield f"Inbox: {plural(waiting, 'request')}." if waiting else "The inbox is empty."
    yield ""
