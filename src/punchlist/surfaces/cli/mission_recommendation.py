"""`punchlist mission recommendation`: what the owners of a mission recommend, and the decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from punchlist.kernel.text import visible, visible_block
from punchlist.surfaces.cli.agent_guard import refuse_for_agents
from punchlist.surfaces.cli.context import CliContext
from punchlist.surfaces.cli.options import MissionArgument, RequiredReasonOption, mission_scope

if TYPE_CHECKING:
    from punchlist.missions.recommendations.service import Decided, RecommendationView

app = typer.Typer(help="What the owners of a mission recommend to its Lead.", no_args_is_help=True)
NumberArgument = Annotated[int, typer.Argument(metavar="N", help="The recommendation's number.", show_default=False)]


@app.command("list")
def list_recommendations(
    cli: CliContext,
    mission: MissionArgument,
    decided: Annotated[bool, typer.Option("--all", help="Include those that are decided.")] = False,
) -> None:
    """List the recommendations that wait for a decision."""
    from punchlist.missions.recommendations.tools import view_json

    found = cli.services().recommendations.list(mission, decided=decided)
    lines = [line for view in found for line in _lines(view)]
    cli.show([view_json(view) for view in found], lines, empty="No recommendation waits for a decision.")


@app.command()
def accept(cli: CliContext, mission: MissionArgument, number: NumberArgument, why: RequiredReasonOption) -> None:
    """Accept a recommendation, which performs its action if it names one."""
    refuse_for_agents("mission recommendation accept")
    services = cli.services()
    _show(cli, services.recommendations.accept(mission_scope(cli, services), mission, number, why))


@app.command()
def decline(cli: CliContext, mission: MissionArgument, number: NumberArgument, why: RequiredReasonOption) -> None:
    """Decline a recommendation."""
    refuse_for_agents("mission recommendation decline")
    services = cli.services()
    _show(cli, services.recommendations.decline(mission_scope(cli, services), mission, number, why))


def _show(cli: CliContext, decided: Decided) -> None:
    from punchlist.missions.recommendations.tools import decided_json

    recommendation, change = decided
    done = f"{recommendation.status.capitalize()} recommendation {recommendation.number}."
    if change is not None:
        done += f" “{visible(change.todo.title)}” is {change.todo.status}, priority {change.todo.priority}."
    cli.show(decided_json(decided), done)


def _lines(view: RecommendationView) -> list[str]:
    one = view.recommendation
    pillar = f" · {visible(view.pillar_slug)}" if view.pillar_slug else ""
    status = f" · {one.status} by {visible(one.decided_by)}" if one.decided_by else ""
    lines = [f"{one.number}. {view.action or 'note'}{pillar}{status}"]
    lines += [f"   {line}" for line in visible_block(one.content).splitlines()]
    return [*lines, f"   → {visible(one.decision)}"] if one.decision else lines
