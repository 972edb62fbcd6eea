"""`punchlist chat`: the terminal application, in a conversation."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from punchlist.errors import MissingExtra, NotAllowed
from punchlist.surfaces.cli import run_options as options
from punchlist.surfaces.cli.agent_guard import refuse_for_agents, refuse_looser_mode_for_agents
from punchlist.surfaces.cli.context import CliContext, SessionOption, echo, warn_untrusted
from punchlist.surfaces.cli.tools import ModeOption

if TYPE_CHECKING:
    from punchlist.surfaces.cli.tools import ModeChoice
    from punchlist.surfaces.tui.line_modes.main import LineMode

InlineOption = Annotated[
    bool, typer.Option("--inline", help="Print into the terminal's own scrollback instead of taking the whole screen.")
]
PlainOption = Annotated[
    bool, typer.Option("--plain", help="Lines of words only, for screen readers: no colour, no cursor movement.")
]
GoalArgument = Annotated[str | None, typer.Argument(help="What to do first.", show_default=False)]


def chat(
    cli: CliContext,
    goal: GoalArgument = None,
    model: options.ModelOption = None,
    agent: options.AgentOption = None,
    mode: ModeOption = None,
    continue_session: options.ContinueOption = False,
    session: SessionOption = None,
    inline: InlineOption = False,
    plain: PlainOption = False,
) -> None:
    """Open the terminal application in a conversation. A goal starts an agent at once.

    The agent works in a process of its own and goes on when the application is closed.
    """
    if inline and plain:
        raise typer.BadParameter("give one of --inline and --plain", param_hint="--plain")
    if not plain and not has_terminal():
        raise NotAllowed("`punchlist chat` needs a terminal. `punchlist run GOAL` works without one.")
    open_application(
        cli,
        goal=goal,
        model=model,
        agent=agent,
        mode=mode,
        session=session,
        keep=continue_session,
        lines="plain" if plain else "inline" if inline else None,
    )


def open_application(
    cli: CliContext,
    *,
    goal: str | None = None,
    model: str | None = None,
    agent: str | None = None,
    mode: ModeChoice | None = None,
    session: str | None = None,
    keep: bool = False,
    home: bool = False,
    lines: LineMode | None = None,
) -> None:
    """Run the application until the person quits. `home` opens Home instead of a conversation; `lines` is a mode
    without the full screen."""
    refuse_for_agents("chat")
    refuse_looser_mode_for_agents(mode)
    services = cli.services(session)
    warn_untrusted(services)
    # Questions about a database of another author are asked here, before the screen is taken over.
    services.check_database()
    try:
        from punchlist.surfaces.tui.agent_options import AgentOptions
        from punchlist.surfaces.tui.main import run
    except ModuleNotFoundError as error:
        from punchlist.extras import missing_extra

        raise missing_extra(error) or error from error
    given = AgentOptions(model, str(mode or "default"), agent)
    current = services.current_session if keep else services.new_session
    first = None if home else session or current()
    if lines is not None:
        from punchlist.surfaces.tui.line_modes.main import run_lines

        run_lines(services, given, str(first), goal, lines)
        return
    if farewell := run(services, given, session=first, goal=goal):
        echo(farewell)


def has_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def open_home(cli: CliContext) -> MissingExtra | None:
    """Open the application on Home. Returns the error if it is not installed."""
    try:
        # Bare `punchlist` has no options, so nothing else reads the variable.
        open_application(cli, model=os.environ.get(options.MODEL_VARIABLE) or None, home=True)
    except MissingExtra as error:
        return error
    return None
