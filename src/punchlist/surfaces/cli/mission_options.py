"""Options and functions that the mission commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

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

NO_MISSIONS: Final = "No missions yet. `punchlist mission init` writes a starter file."


def mission_scope(cli: CliContext, services: Services, conversation_id: str | None = None) -> MissionScope:
    """The person at the terminal, not bound to one mission."""
    from punchlist.missions.model import MissionScope

    scope = cli.user_scope(services)
    return MissionScope(conversation_id or scope.conversation_id, scope.actor)
