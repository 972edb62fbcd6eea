"""Opens the terminal application: for `punchlist chat`, and for bare `punchlist`, which does not import its options."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from punchlist.errors import MissingExtra
from punchlist.surfaces.cli.agent_guard import refuse_for_agents, refuse_looser_mode_for_agents
from punchlist.surfaces.cli.context import MODEL_VARIABLE, CliContext, echo, warn_untrusted

if TYPE_CHECKING:
    from punchlist.surfaces.cli.tools import ModeChoice
    from punchlist.surfaces.tui.line_modes.main import LineMode


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
    given = AgentOptions(model, str(mode or ""), agent)
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
        open_application(cli, model=os.environ.get(MODEL_VARIABLE) or None, home=True)
    except MissingExtra as error:
        return error
    return None
