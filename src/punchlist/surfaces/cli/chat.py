"""`punchlist chat`: the terminal application, in a conversation."""

from __future__ import annotations

from typing import Annotated

import typer

from punchlist.errors import NotAllowed
from punchlist.surfaces.cli.context import CliContext, SessionOption
from punchlist.surfaces.cli.open_application import has_terminal, open_application
from punchlist.surfaces.cli.run import AgentOption, ContinueOption, ModelOption
from punchlist.surfaces.cli.tools import ModeOption

InlineOption = Annotated[
    bool, typer.Option("--inline", help="Print into the terminal's own scrollback instead of taking the whole screen.")
]
PlainOption = Annotated[
    bool, typer.Option("--plain", help="Lines of words only, for screen readers: no colour, no cursor movement.")
]
GoalArgument = Annotated[str | None, typer.Argument(metavar="[GOAL]", help="What to do first.", show_default=False)]


def chat(
    cli: CliContext,
    goal: GoalArgument = None,
    model: ModelOption = None,
    agent: AgentOption = None,
    mode: ModeOption = None,
    continue_session: ContinueOption = False,
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
