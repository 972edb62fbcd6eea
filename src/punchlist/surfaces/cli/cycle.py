"""`punchlist mission cycle` and `mission prompt`: planning, now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from punchlist.config import person
from punchlist.errors import NotFound
from punchlist.kernel.actors import Actor, Role
from punchlist.surfaces.cli.front import JsonOption, front, say, say_json
from punchlist.surfaces.cli.tools import ModeOption
from punchlist.surfaces.cli.worker import ModelOption, work

if TYPE_CHECKING:
    from punchlist.missions.model import Mission
    from punchlist.surfaces.desk import Desk

NOW: Final = "now"
QUEUED: Final = "A worker goes on with it: `punchlist worker`, or --work to do it here."
WorkOption = Annotated[bool, typer.Option("--work", help="Work on it here, until nothing is left to do.")]


def cycle(
    context: typer.Context,
    slug: Annotated[
        str,
        typer.Argument(
            metavar="[MISSION]", help="The mission's slug; without, every active mission's.", show_default=False
        ),
    ] = NOW,
    works: WorkOption = False,
    model: ModelOption = None,
    mode: ModeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Begin a planning cycle now: deadlines, metrics, each pillar's planning, the Lead's review."""
    from punchlist.engine.clockwork import begin_cycle
    from punchlist.missions.model import MissionScope

    desk = front(context).desk(as_json=as_json)
    begun = []
    for mission in _chosen(desk, slug):
        scope = MissionScope(mission.conversation_id, Actor(Role.PERSON, person()))
        begun.append(begin_cycle(desk.store, scope, mission))
    if works:
        work(desk, model, mode, until_idle=True, quiet=as_json)
        begun = [desk.runs.get(run.id) for run in begun]
    if as_json:
        say_json([run.as_json() for run in begun])
        return
    for run in begun:
        say(f"Cycle {run.id} of {run.asked['mission']}: {run.status}. {run.result or ''}".rstrip())
    if not works:
        say(QUEUED)


def prompt(
    context: typer.Context,
    slug: Annotated[str, typer.Argument(metavar="MISSION", help="The mission's slug.", show_default=False)],
    pillar: Annotated[str, typer.Argument(metavar="PILLAR", help="The pillar's slug.", show_default=False)],
) -> None:
    """Show the planning prompt that a pillar's owner would be given now."""
    desk = front(context).desk()
    mission = desk.missions.get(slug)
    for standing in desk.missions.standing(mission):
        if standing.pillar.slug == pillar:
            say(desk.briefing.for_owner(mission, standing.pillar, desk.store.clock()))
            return
    raise NotFound(f"Mission {slug!r} has no pillar {pillar!r}.")


def _chosen(desk: Desk, slug: str) -> list[Mission]:
    if slug.lower() != NOW:
        return [desk.missions.get(slug)]
    missions = desk.missions.list()
    if not missions:
        raise NotFound("There is no mission yet. `punchlist mission apply FILE` makes one.")
    return missions
