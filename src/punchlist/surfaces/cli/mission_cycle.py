"""`punchlist mission cycle` and `mission prompt`: planning, now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from punchlist.config import current_user
from punchlist.errors import Conflict, NotFound
from punchlist.kernel.actors import Actor, Role
from punchlist.surfaces.cli.context import JsonOption, cli_context, echo, echo_error, echo_json
from punchlist.surfaces.cli.tools import ModeOption
from punchlist.surfaces.cli.worker import ModelOption, casting, work

if TYPE_CHECKING:
    from punchlist.missions.model import Mission
    from punchlist.surfaces.services import Services

QUEUED: Final = "A worker goes on with it: `punchlist worker`, or --work to do it here."
WorkOption = Annotated[bool, typer.Option("--work", help="Work on it here, until nothing is left to do.")]

NOW: Final = "now"


def cycle(
    context: typer.Context,
    slug: Annotated[
        str | None,
        typer.Argument(
            metavar="[MISSION]",
            help="The mission's slug; without, or `now`: every active mission's.",
            show_default=False,
        ),
    ] = None,
    works: WorkOption = False,
    model: ModelOption = None,
    mode: ModeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Begin a planning cycle now: deadlines, metrics, each pillar's planning, the Lead's review."""
    from punchlist.engine.periodic import enqueue_cycle
    from punchlist.missions.model import MissionScope
    from punchlist.runs.model import Run

    services = cli_context(context).services(as_json=as_json)
    if works:
        # Before anything is queued that nobody here could work on.
        casting(services, model)
    begun, refused = list[Run](), list[Conflict]()
    for mission in _chosen(services, slug):
        scope = MissionScope(mission.conversation_id, Actor(Role.PERSON, current_user()))
        try:
            begun.append(enqueue_cycle(services.store, scope, mission))
        except Conflict as error:
            # The others have nothing to do with it.
            refused.append(error)
    if refused and not begun:
        raise refused[0]
    for each in refused:
        echo_error(str(each))
    if works:
        work(services, model, mode, until_idle=True, quiet=as_json)
        begun = [services.runs.get(run.id) for run in begun]
    if as_json:
        echo_json([run.as_json() for run in begun])
        return
    for run in begun:
        echo(f"Cycle {run.id} of {run.parameters['mission']}: {run.status}. {run.result or ''}".rstrip())
    if begun and not works:
        echo(QUEUED)


def prompt(
    context: typer.Context,
    slug: Annotated[str, typer.Argument(metavar="MISSION", help="The mission's slug.", show_default=False)],
    pillar: Annotated[str, typer.Argument(metavar="PILLAR", help="The pillar's slug.", show_default=False)],
    as_json: JsonOption = False,
) -> None:
    """Show the planning prompt that a pillar's owner would be given now."""
    services = cli_context(context).services(as_json=as_json)
    mission = services.missions.get(slug)
    pillars = {standing.pillar.slug: standing.pillar for standing in services.missions.pillars(mission)}
    if pillar not in pillars:
        raise NotFound(f"Mission {slug!r} has no pillar {pillar!r}. There are: {', '.join(pillars) or 'none'}.")
    text = services.briefing.for_owner(mission, pillars[pillar], services.store.clock())
    if as_json:
        echo_json({"missionSlug": slug, "pillarSlug": pillar, "prompt": text})
    else:
        echo(text.rstrip())


def _chosen(services: Services, slug: str | None) -> list[Mission]:
    missions = services.missions.list()
    if slug is not None and (slug.lower() != NOW or slug in [one.slug for one in missions]):
        return [services.missions.get(slug)]
    if not missions:
        raise NotFound("There is no mission yet. `punchlist mission apply FILE` makes one.")
    return missions
