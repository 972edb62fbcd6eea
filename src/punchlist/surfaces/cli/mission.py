"""`punchlist mission`: what a mission is, from its file, and how it stands."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from punchlist.errors import Conflict, InvalidInput, NotAllowed
from punchlist.kernel.text import visible
from punchlist.surfaces.cli import (
    mission_chat,
    mission_costs,
    mission_cycle,
    mission_escalations,
    mission_metric,
    mission_runs,
    mission_todo,
)
from punchlist.surfaces.cli.context import JsonOption, cli_context, echo, echo_json, to_json_text

if TYPE_CHECKING:
    from punchlist.missions.config.model import MissionConfig
    from punchlist.missions.model import Capacity, Mission
    from punchlist.missions.service import ApplyPreview, ApplyResult
    from punchlist.surfaces.services import Services

app = typer.Typer(help="Make, change and look at missions: goals that take months.", no_args_is_help=True)

SlugArgument = Annotated[str, typer.Argument(metavar="SLUG", help="The mission's slug.", show_default=False)]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

STARTER = """\
{
  "name": "Developer Experience",
  "slug": "developer-experience",
  "description": "Changes reach users within a day, and nobody waits for a machine.",
  "todo": { "activeTodoLimit": 10, "backlogTodoLimit": 50 },
  "cadence": { "cron": "0 9 * * 1", "timezone": "UTC" },
  "pillars": [
    {
      "name": "Build Performance",
      "slug": "build-performance",
      "description": "Builds take less than a minute.",
      "metrics": [
        {
          "name": "Local build time",
          "slug": "local-build-time",
          "unit": "s",
          "target": 60,
          "warning": 90,
          "direction": "down",
          "collector": { "type": "manual" }
        }
      ],
      "strategies": [{ "description": "Find the slowest step and replace it", "status": "active" }]
    }
  ]
}
"""


@app.callback()
def group() -> None:
    """Make, change and look at missions: goals that take months."""


# --- the file ---------------------------------------------------------------------------------------------


@app.command()
def init(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(metavar="[FILE]", help="Where to write it.")] = Path("mission.json"),
    as_json: JsonOption = False,
) -> None:
    """Write a mission file to begin with. A file that is there is left alone."""
    cli_context(context).services(as_json=as_json)
    try:
        with path.open("x", encoding="utf-8") as made:
            made.write(STARTER)
    except FileExistsError:
        raise Conflict(f"{path}: is there already, and was left as it is.") from None
    except (OSError, ValueError) as error:
        told = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InvalidInput(f"{path}: cannot be written ({told}).") from error
    if as_json:
        echo_json({"file": str(path)})
    else:
        echo(
            f"Wrote {visible(path)}. Change it to what you want to reach, then: punchlist mission apply {visible(path)}"
        )


@app.command()
def schema(context: typer.Context, as_json: JsonOption = False) -> None:
    """Print the JSON Schema of a mission file, for editors."""
    from punchlist.missions.config.model import mission_schema

    # It is JSON with and without the flag.
    cli_context(context).json = as_json
    echo_json(mission_schema())


@app.command()
def apply(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="The mission file; - reads stdin.", show_default=False)],
    yes: YesOption = False,
    trust: Annotated[bool, typer.Option("--trust", help="Also trust what the file would run.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Make a mission from its file, or change it to what the file says now."""
    from punchlist.missions.config import file
    from punchlist.missions.config.trust import actions_needing_trust

    entry = cli_context(context)
    services = entry.services(as_json=as_json)
    source = file.read(path)
    config = file.parse_mission(source, "stdin" if str(path) == "-" else str(path))
    preview = services.missions.preview(config, source)
    if not as_json or not (yes or dry_run):
        _show_changes(config, preview, error=as_json)
    if dry_run:
        if as_json:
            echo_json(_applied_json(services, config, source, preview))
        return
    wants = actions_needing_trust(config)
    if trust and wants and not yes:
        echo("\n".join(["The file asks for:", *(f"  - {visible(want)}" for want in wants)]), error=True)
    if preview.lines or (trust and wants):
        _agree(yes, "Apply it, and trust it?" if trust and wants else "Apply it?", _how_to_apply(path))
    applied = services.missions.apply(entry.scope(services), config, source)
    if trust:
        services.trust.trust_text(_trust_name(services, config.slug), applied.mission.source)
    if as_json:
        echo_json(_applied_json(services, config, source, applied))
    else:
        _say_applied(services, applied, wants)


def _show_changes(config: MissionConfig, preview: ApplyPreview, *, error: bool) -> None:
    if not preview.lines:
        echo(f"Nothing changes: mission {config.slug} is as the file says.", error=error)
    for line in (*preview.lines, *(f"! {warning}" for warning in preview.warnings)):
        echo(visible(line), error=error)


def _say_applied(services: Services, applied: ApplyResult, wants: list[str]) -> None:
    mission = applied.mission
    if applied.created:
        echo(f"Made mission {mission.slug}. Its chat is {visible(mission.conversation_id)}.")
    elif applied.changes:
        count = len(applied.changes)
        echo(f"Changed mission {mission.slug} ({count} {'change' if count == 1 else 'changes'}).")
    if wants and not services.trusts_mission(mission):
        echo(
            f"What its file would run, {len(wants)} in all, does not run yet. To see it and to trust it: "
            f"punchlist mission trust {mission.slug}"
        )


def _applied_json(
    services: Services, config: MissionConfig, source: str, outcome: ApplyResult | ApplyPreview
) -> dict[str, Any]:
    from punchlist.missions.config.trust import actions_needing_trust
    from punchlist.missions.service import ApplyResult

    done = isinstance(outcome, ApplyResult)
    mission = outcome.mission if isinstance(outcome, ApplyResult) else None
    return {
        "slug": config.slug,
        "missionId": mission.id if mission else None,
        "conversationId": mission.conversation_id if mission else None,
        "dryRun": not done,
        "created": outcome.created,
        "changes": outcome.changes if isinstance(outcome, ApplyResult) else outcome.lines,
        "warnings": outcome.warnings,
        "asksFor": actions_needing_trust(config),
        "trusted": services.trust.trusts_text(
            _trust_name(services, config.slug), mission.source if mission else source
        ),
    }


@app.command()
def export(context: typer.Context, slug: SlugArgument, as_json: JsonOption = False) -> None:
    """Print a mission's file, complete: also what it left open when it was applied."""
    from punchlist.missions.config import file

    services = cli_context(context).services(as_json=as_json)
    # It is JSON with and without the flag.
    echo(to_json_text(file.parse_value(services.missions.get(slug).config).as_json(), indent=2))


# --- trust ------------------------------------------------------------------------------------------------


@app.command()
def trust(
    context: typer.Context,
    slug: SlugArgument,
    yes: YesOption = False,
    forget: Annotated[bool, typer.Option("--forget", help="Trust it no longer.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Trust a mission's file as it was applied: its commands, addresses and functions.

    Until then none of them runs. When the mission is changed, it has to be trusted again.
    """
    from punchlist.missions.config import file
    from punchlist.missions.config.trust import actions_needing_trust

    services = cli_context(context).services(as_json=as_json)
    mission = services.missions.get(slug)
    # From the text that is trusted, not from what was made of it.
    wanted = [visible(want) for want in actions_needing_trust(file.parse_mission(mission.source))]
    name = _trust_name(services, slug)
    if forget:
        services.trust.forget_text(name)
    elif wanted and not services.trusts_mission(mission):
        if not as_json or not yes:
            echo(f"The file of mission {mission.slug} asks for:", error=True)
            echo("\n".join(f"  - {want}" for want in wanted), error=True)
        _agree(yes, "Trust it?", f"punchlist mission trust {mission.slug} --yes")
        services.trust.trust_text(name, mission.source)
    trusted = services.trusts_mission(mission)
    if as_json:
        echo_json({"slug": mission.slug, "asksFor": wanted, "trusted": trusted})
    elif not wanted:
        echo(f"The file of mission {mission.slug} asks for nothing that needs trust.")
    else:
        echo(f"The file of mission {mission.slug} is {'trusted' if trusted else 'not trusted'}.")


def _trust_name(services: Services, slug: str) -> str:
    from punchlist.missions.config.trust import trust_name

    return trust_name(slug, services.settings.root or Path.cwd())


def _agree(yes: bool, question: str, otherwise: str) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise NotAllowed(f"Nobody is there to ask, and nothing was changed. If it is what you want: {otherwise}")
    typer.confirm(question, abort=True, err=True)


def _how_to_apply(path: Path) -> str:
    return f"punchlist mission apply {path} --yes"


# --- looking ----------------------------------------------------------------------------------------------


@app.command("list")
def list_missions(
    context: typer.Context,
    archived: Annotated[bool, typer.Option("--archived", help="Those that are archived, too.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List the missions, and how full they are."""
    services = cli_context(context).services(as_json=as_json)
    found = [(one, services.mission_todos.capacity(one.slug)) for one in services.missions.list(archived=archived)]
    if as_json:
        echo_json([mission_json(mission, capacity) for mission, capacity in found])
        return
    if not found:
        others = not archived and services.missions.list(archived=True)
        echo(
            "No mission is active. `punchlist mission list --archived` lists those that ended."
            if others
            else "No missions yet. `punchlist mission init` writes a file to begin with."
        )
    widest = max((len(mission.slug) for mission, _ in found), default=0)
    for mission, capacity in found:
        ended = "  archived" if mission.status != "active" else ""
        echo(
            f"{mission.slug:<{widest}}  active {capacity.active}/{capacity.active_limit}, "
            f"backlog {capacity.backlog}/{capacity.backlog_limit}  {visible(mission.name)}{ended}"
        )


def mission_json(mission: Mission, capacity: Capacity) -> dict[str, Any]:
    return {
        "id": mission.id,
        "slug": mission.slug,
        "name": mission.name,
        "description": mission.description,
        "status": mission.status,
        "conversationId": mission.conversation_id,
        "lastCycle": mission.last_tick,
        "createdAt": mission.created_at,
        "updatedAt": mission.updated_at,
        "capacity": capacity.as_json(),
    }


@app.command()
def show(
    context: typer.Context,
    slug: SlugArgument,
    archived: Annotated[bool, typer.Option("--archived", help="Todos that ended long ago, too.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show a mission as a board: its slots, and each pillar with its metrics and todos."""
    from punchlist.surfaces.cli import mission_board

    services = cli_context(context).services(as_json=as_json)
    shown = mission_board.look(services, slug, archived=archived)
    if as_json:
        echo_json({**mission_json(shown.mission, shown.listed.capacity), **mission_board.board_json(shown)})
    else:
        for line in mission_board.lines(shown):
            echo(line)


# --- the end of one ---------------------------------------------------------------------------------------


@app.command()
def archive(
    context: typer.Context,
    slug: SlugArgument,
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="Why; kept in the trail.", show_default=False)],
    as_json: JsonOption = False,
) -> None:
    """End a mission. All of it can still be read; nothing in it changes any more."""
    entry = cli_context(context)
    services = entry.services(as_json=as_json)
    mission = services.missions.archive(entry.scope(services), slug, why)
    if as_json:
        echo_json(mission_json(mission, services.mission_todos.capacity(mission.slug)))
    else:
        echo(f"Archived mission {mission.slug}.")


# --- subcommands in other files ---------------------------------------------------------------------------

app.command("cycle")(mission_cycle.cycle)
app.command("prompt")(mission_cycle.prompt)
app.command("costs")(mission_costs.costs)
app.command("escalations")(mission_escalations.escalations)
app.command("answer")(mission_escalations.answer)
app.command("acknowledge")(mission_escalations.acknowledge)
app.add_typer(mission_todo.app, name="todo")
app.add_typer(mission_chat.app, name="chat")
app.add_typer(mission_metric.app, name="metric")
app.add_typer(mission_runs.app, name="runs")
