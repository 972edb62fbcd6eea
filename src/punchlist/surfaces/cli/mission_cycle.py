"""`punchlist mission cycle`, `prompt`, `pause` and `resume`: planning on request, and when there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from punchlist.config import current_user
from punchlist.errors import Conflict, IllegalTransition, NotFound
from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.events import Actor, Role
from punchlist.surfaces.cli.agent_guard import refuse_for_agents
from punchlist.surfaces.cli.context import CliContext, echo_error
from punchlist.surfaces.cli.options import NO_MISSIONS, MissionArgument, OptionalReasonOption
from punchlist.surfaces.cli.tools import ModeOption
from punchlist.surfaces.cli.worker import ModelOption, resolve_models, run_worker

if TYPE_CHECKING:
    from punchlist.app import Services
    from punchlist.missions.model import Mission

ALL: Final = "now"
WorkOption = Annotated[bool, typer.Option("--work", help="Run a worker here until nothing is left to do.")]


def cycle(
    cli: CliContext,
    slug: Annotated[
        str | None,
        typer.Argument(
            metavar="[MISSION]", help="The mission's slug. Default, or `now`: all active missions.", show_default=False
        ),
    ] = None,
    work: WorkOption = False,
    model: ModelOption = None,
    mode: ModeOption = None,
) -> None:
    """Start a planning cycle: sweep deadlines, collect metrics, plan each pillar, review."""
    from punchlist.engine.periodic import enqueue_cycle
    from punchlist.missions.model import MissionScope
    from punchlist.runs.model import Run

    services = cli.services()
    if work:
        # Fails before anything is queued if there is no model.
        resolve_models(services, model)
    started, refused = list[Run](), list[Conflict | IllegalTransition]()
    for mission in _select(services, slug):
        scope = MissionScope(mission.conversation_id, Actor(Role.PERSON, current_user()))
        try:
            started.append(enqueue_cycle(services.store, scope, mission))
        except (Conflict, IllegalTransition) as error:
            refused.append(error)
    if refused and not started:
        raise refused[0]
    for conflict in refused:
        echo_error(str(conflict))
    if work:
        run_worker(services, model, mode, until_idle=True, quiet=cli.json)
        started = [services.runs.get(run.id) for run in started]
    lines = [
        f"Cycle {run.id} of {run.parameters['mission']}: {run.status}. {run.result or ''}".rstrip() for run in started
    ]
    if started and not work:
        lines.append("Start a worker to execute it: `punchlist worker`, or use --work.")
    cli.show([run.as_json() for run in started], lines)


def prompt(
    cli: CliContext,
    slug: MissionArgument,
    pillar: Annotated[str, typer.Argument(metavar="PILLAR", help="The pillar's slug.", show_default=False)],
) -> None:
    """Show the planning prompt that a pillar's owner would get now."""
    services = cli.services()
    mission = services.missions.get(slug)
    pillars = {standing.pillar.slug: standing.pillar for standing in services.missions.pillars(mission)}
    if pillar not in pillars:
        raise NotFound(f"Mission {slug!r} has no pillar {pillar!r}. Its pillars: {', '.join(pillars) or 'none'}.")
    text = services.briefing.for_owner(mission, pillars[pillar], services.store.clock())
    cli.show({"missionSlug": slug, "pillarSlug": pillar, "prompt": text}, text.rstrip())


def _select(services: Services, slug: str | None) -> list[Mission]:
    missions = services.missions.list()
    if slug is not None and (slug.lower() != ALL or slug in [mission.slug for mission in missions]):
        return [services.missions.get(slug)]
    if not missions:
        raise NotFound(NO_MISSIONS)
    return missions


def pause(cli: CliContext, slug: MissionArgument, why: OptionalReasonOption = "") -> None:
    """Pause a mission: no cycle and no run starts, and runs that work are paused after their current step.

    Its chats, board and inbox stay open. `mission resume` continues it.
    """
    refuse_for_agents("mission pause")
    services = cli.services()
    mission = services.missions.pause(cli.user_scope(services), slug, why)
    cli.show(
        camel_json(mission, "id", "slug", "paused_at", "paused_by", "pause_reason"),
        f"Paused mission {mission.slug}. `punchlist mission resume {mission.slug}` continues it.",
    )


def resume(cli: CliContext, slug: MissionArgument, why: OptionalReasonOption = "") -> None:
    """Continue a paused mission and the runs that were paused with it. One cycle makes up for those it missed."""
    refuse_for_agents("mission resume")
    services = cli.services()
    mission = services.missions.resume(cli.user_scope(services), slug, why)
    cli.show(camel_json(mission, "id", "slug", "paused_at"), f"Mission {mission.slug} continues.")
