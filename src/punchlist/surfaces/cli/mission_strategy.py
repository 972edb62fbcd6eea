"""`punchlist mission strategy`: add and retire the strategies of a pillar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.text import visible
from punchlist.surfaces.cli.context import CliContext
from punchlist.surfaces.cli.options import MissionArgument, OptionalReasonOption, RequiredReasonOption, mission_scope

if TYPE_CHECKING:
    from punchlist.missions.model import Strategy

app = typer.Typer(help="Add and retire the strategies of a pillar.", no_args_is_help=True)
PillarArgument = Annotated[str, typer.Argument(metavar="PILLAR", help="The pillar's slug.", show_default=False)]


@app.command()
def add(
    cli: CliContext,
    mission: MissionArgument,
    pillar: PillarArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What is done to reach the goal.", show_default=False)],
    why: OptionalReasonOption = "",
) -> None:
    """Add a strategy. It stays when the mission file is applied again."""
    services = cli.services()
    added = services.strategies.add(mission_scope(cli, services), mission, pillar, text, why or "strategy add")
    cli.show(_json(added), f"Added strategy {added.id[-8:]} to {pillar}.")


@app.command()
def retire(
    cli: CliContext,
    mission: MissionArgument,
    pillar: PillarArgument,
    strategy: Annotated[
        str, typer.Argument(metavar="TEXT", help="Its text, a part of it, or the end of its id.", show_default=False)
    ],
    why: RequiredReasonOption,
) -> None:
    """Retire a strategy: it is no longer pursued."""
    services = cli.services()
    retired = services.strategies.retire(mission_scope(cli, services), mission, pillar, strategy, why)
    cli.show(_json(retired), f"Retired “{visible(retired.description)}”.")


def _json(strategy: Strategy) -> dict[str, str]:
    return camel_json(strategy, "id", "pillar_id", "description", "status")
