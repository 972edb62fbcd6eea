"""Arguments, options and functions that several commands share: missions and claims."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from punchlist.claims.lifecycle import MAX_LEASE_SECONDS, MIN_LEASE_SECONDS
from punchlist.errors import InvalidInput
from punchlist.kernel.text import line_problem

if TYPE_CHECKING:
    from punchlist.app import Services
    from punchlist.missions.model import MissionScope
    from punchlist.surfaces.cli.context import CliContext

MissionArgument = Annotated[str, typer.Argument(metavar="MISSION", help="The mission's slug.", show_default=False)]
OptionalMissionArgument = Annotated[
    str | None, typer.Argument(metavar="[MISSION]", help="The mission's slug. Default: all.", show_default=False)
]
TodoIdArgument = Annotated[
    str, typer.Argument(metavar="ID", help="The todo's id, or the end of it.", show_default=False)
]
RequiredReasonOption = Annotated[
    str, typer.Option("--why", metavar="TEXT", help="The reason, kept in the event log.", show_default=False)
]
OptionalReasonOption = Annotated[str, typer.Option("--why", metavar="TEXT", help="A reason, kept in the event log.")]

LimitOption = Annotated[int, typer.Option("--limit", "-n", min=1, max=500, metavar="N", help="The page size.")]
CursorOption = Annotated[str | None, typer.Option("--cursor", metavar="TEXT", help="Continue after a page.")]

NO_MISSIONS: Final = "No missions yet. `punchlist mission init` writes a starter file."


def mission_scope(cli: CliContext, services: Services, conversation_id: str | None = None) -> MissionScope:
    """The person at the terminal, not bound to one mission."""
    from punchlist.missions.model import MissionScope

    scope = cli.user_scope(services)
    return MissionScope(conversation_id or scope.conversation_id, scope.actor)


SecondsOption = Annotated[
    int,
    typer.Option(
        "--seconds", min=MIN_LEASE_SECONDS, max=MAX_LEASE_SECONDS, metavar="N", help="How long the claim lasts."
    ),
]
AsOption = Annotated[
    str, typer.Option("--as", metavar="NAME", help="Tells claims of the same user apart, such as those of scripts.")
]

TERMINAL: Final = "terminal"
MAX_NAME_LENGTH: Final = 100


def claim_place(name: str) -> str:
    """The name that --as gives, or an error."""
    if problem := line_problem(name, max_length=MAX_NAME_LENGTH):
        raise InvalidInput(f"--as: {problem}")
    return name.strip()
