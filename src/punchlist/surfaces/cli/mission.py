"""`punchlist mission`: create, change and show missions."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from punchlist.errors import Conflict, InvalidInput, NotAllowed
from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.text import visible, visible_block
from punchlist.missions.todos.lifecycle import TodoPriority
from punchlist.surfaces.cli import (
    mission_chat,
    mission_cycle,
    mission_directive,
    mission_flow,
    mission_metric,
    mission_recommendation,
    mission_runs,
    mission_strategy,
    mission_todo,
)
from punchlist.surfaces.cli.agent_guard import refuse_for_agents
from punchlist.surfaces.cli.context import CliContext, confirm, echo, echo_json, format_time, plural
from punchlist.surfaces.cli.options import (
    NO_MISSIONS,
    CursorOption,
    LimitOption,
    MissionArgument,
    OptionalMissionArgument,
    OptionalReasonOption,
    RequiredReasonOption,
    mission_scope,
)

if TYPE_CHECKING:
    from punchlist.app import Services
    from punchlist.missions.config.model import MissionConfig
    from punchlist.missions.model import Capacity, Mission
    from punchlist.missions.service import ApplyPreview, ApplyResult

app = typer.Typer(help="Manage missions: goals that take months.", no_args_is_help=True)

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]

# --- the mission file -------------------------------------------------------------------------------------


@app.command()
def init(
    cli: CliContext,
    path: Annotated[Path, typer.Argument(metavar="[FILE]", help="The file to create.")] = Path("mission.json"),
) -> None:
    """Create a starter mission file. An existing file is not overwritten."""
    from punchlist.missions.config.starter import STARTER

    cli.services()
    try:
        with path.open("x", encoding="utf-8") as created:
            created.write(STARTER)
    except FileExistsError:
        raise Conflict(f"{path}: already exists and was not changed.") from None
    except (OSError, ValueError) as error:
        cause = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InvalidInput(f"{path}: cannot be written ({cause}).") from error
    cli.show({"file": str(path)}, f"Wrote {visible(path)}. Edit it, then run: punchlist mission apply {visible(path)}")


@app.command()
def schema() -> None:
    """Print the JSON Schema of a mission file, for editors."""
    from punchlist.missions.config.model import mission_schema

    echo_json(mission_schema())


@app.command()
def apply(
    cli: CliContext,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="The mission file; - reads stdin.", show_default=False)],
    yes: YesOption = False,
    trust: Annotated[bool, typer.Option("--trust", help="Also trust the commands of the file.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
) -> None:
    """Create or change a mission from its file."""
    from punchlist.missions.config import file
    from punchlist.missions.config.trust import actions_needing_trust, executable_text

    services = cli.services()
    source = file.read(path)
    config = file.parse_mission(source, "stdin" if str(path) == "-" else str(path))
    preview = services.missions.preview(config, source)
    if not cli.json or not (yes or dry_run):
        _echo_changes(config, preview, error=cli.json)
    if dry_run:
        cli.show(_apply_json(services, config, preview), "")
        return
    refuse_for_agents("mission apply")
    commands = actions_needing_trust(config)
    if trust and commands and not yes:
        _echo_commands("The file contains:", commands)
    if preview.lines or (trust and commands):
        question = "Apply and trust it?" if trust and commands else "Apply it?"
        _confirm(yes, question, f"punchlist mission apply {path} --yes")
    applied = services.missions.apply(cli.user_scope(services), config, source)
    if trust:
        services.trust.trust_text(_trust_name(services, config.slug), executable_text(config))
    cli.show(_apply_json(services, config, applied), _applied_lines(services, applied, commands))


def _echo_changes(config: MissionConfig, preview: ApplyPreview, *, error: bool) -> None:
    if not preview.lines:
        echo(f"No changes: mission {config.slug} matches the file.", error=error)
    for line in (*preview.lines, *(f"! {warning}" for warning in preview.warnings)):
        echo(visible(line), error=error)


def _echo_commands(heading: str, commands: list[str]) -> None:
    echo("\n".join([heading, *(f"  - {visible(command)}" for command in commands)]), error=True)


def _applied_lines(services: Services, applied: ApplyResult, commands: list[str]) -> Iterator[str]:
    mission = applied.mission
    if applied.created:
        yield f"Created mission {mission.slug}. Its chat is {visible(mission.conversation_id)}."
    elif applied.changes:
        yield f"Changed mission {mission.slug} ({plural(len(applied.changes), 'change')})."
    if commands and not services.trusts_mission(mission):
        yield (
            f"{plural(len(commands), 'command')} of its file will not run until you "
            f"review and trust the file: punchlist mission trust {mission.slug}"
        )


def _apply_json(services: Services, config: MissionConfig, outcome: ApplyResult | ApplyPreview) -> dict[str, Any]:
    from punchlist.missions.config.trust import actions_needing_trust, executable_text
    from punchlist.missions.service import ApplyResult

    applied = outcome if isinstance(outcome, ApplyResult) else None
    mission = applied.mission if applied else None
    name = _trust_name(services, config.slug)
    return {
        "slug": config.slug,
        "missionId": mission.id if mission else None,
        "conversationId": mission.conversation_id if mission else None,
        "dryRun": applied is None,
        "created": outcome.created,
        "changes": outcome.changes if isinstance(outcome, ApplyResult) else outcome.lines,
        "warnings": outcome.warnings,
        "asksFor": actions_needing_trust(config),
        "trusted": services.trust.trusts_text(name, executable_text(config)),
    }


@app.command()
def export(cli: CliContext, slug: MissionArgument) -> None:
    """Print a mission as a complete mission file, with all defaults."""
    from punchlist.missions.config import file

    echo_json(file.parse_value(cli.services().missions.get(slug).config).as_json())


# --- trust ------------------------------------------------------------------------------------------------


@app.command()
def trust(
    cli: CliContext,
    slug: MissionArgument,
    yes: YesOption = False,
    forget: Annotated[bool, typer.Option("--forget", help="Withdraw the trust.")] = False,
) -> None:
    """Trust what a mission's file runs: its commands, addresses, functions and checks.

    Until then none of them runs. When one of them changes, the file has to be trusted again.
    """
    from punchlist.missions.config import file
    from punchlist.missions.config.trust import actions_needing_trust, executable_text

    services = cli.services()
    mission = services.missions.get(slug)
    # Parsed from the text that is trusted, not from the stored configuration.
    config = file.parse_mission(mission.source)
    commands = [visible(command) for command in actions_needing_trust(config)]
    name = _trust_name(services, slug)
    if forget:
        services.trust.forget_text(name)
    elif commands and not services.trusts_mission(mission):
        refuse_for_agents("mission trust")
        if not cli.json or not yes:
            _echo_commands(f"The file of mission {mission.slug} contains:", commands)
        _confirm(yes, "Trust it?", f"punchlist mission trust {mission.slug} --yes")
        services.trust.trust_text(name, executable_text(config))
    trusted = services.trusts_mission(mission)
    state = f"is {'trusted' if trusted else 'not trusted'}" if commands else "contains nothing that needs trust"
    cli.show(
        {"slug": mission.slug, "asksFor": commands, "trusted": trusted}, f"The file of mission {mission.slug} {state}."
    )


def _trust_name(services: Services, slug: str) -> str:
    from punchlist.missions.config.trust import trust_name

    return trust_name(slug, services.settings.root or Path.cwd())


def _confirm(yes: bool, question: str, command: str) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise NotAllowed(f"Nothing was changed, because there is no terminal to confirm it. To confirm: {command}")
    confirm(question)


# --- show and archive -------------------------------------------------------------------------------------


@app.command("list")
def list_missions(
    cli: CliContext, archived: Annotated[bool, typer.Option("--archived", help="Include archived missions.")] = False
) -> None:
    """List missions and their capacity."""
    services = cli.services()
    missions = services.missions.list(archived=archived)
    found = [(mission, services.mission_todos.capacity(mission.slug)) for mission in missions]
    widest = max((len(mission.slug) for mission, _ in found), default=0)
    lines = [
        f"{mission.slug:<{widest}}  active {capacity.active}/{capacity.active_limit}, "
        f"backlog {capacity.backlog}/{capacity.backlog_limit}  {visible(mission.name)}"
        f"{'  archived' if mission.status != 'active' else '  paused' if mission.paused_at else ''}"
        for mission, capacity in found
    ]
    others = not found and not archived and services.missions.list(archived=True)
    only_archived = "No mission is active. `punchlist mission list --archived` lists archived ones."
    shown = [mission_json(mission, capacity) for mission, capacity in found]
    cli.show(shown, lines, empty=only_archived if others else NO_MISSIONS)


def mission_json(mission: Mission, capacity: Capacity) -> dict[str, Any]:
    names = ("id", "slug", "name", "description", "status", "conversation_id", "created_at", "updated_at", "paused_at")
    return {**camel_json(mission, *names), "lastCycle": mission.last_tick, "capacity": capacity.as_json()}


@app.command()
def show(
    cli: CliContext,
    slug: MissionArgument,
    archived: Annotated[bool, typer.Option("--archived", help="Include todos that ended long ago.")] = False,
    pillar: Annotated[str | None, typer.Option("--pillar", metavar="SLUG", help="Only todos of this pillar.")] = None,
    label: Annotated[str | None, typer.Option("--label", metavar="LABEL", help="Only todos with this label.")] = None,
    priority: Annotated[TodoPriority | None, typer.Option("--priority", "-p", help="Only these todos.")] = None,
    search: Annotated[
        str, typer.Option("--search", metavar="TEXT", help="Only todos with this text in title or description.")
    ] = "",
    limit: LimitOption = 500,
    cursor: CursorOption = None,
) -> None:
    """Show a mission's capacity and directives, and each pillar's metrics, strategies and todos."""
    from punchlist.surfaces.cli.mission_view import board_lines
    from punchlist.views.board import BoardFilter, board_json, read_board
    from punchlist.views.health import read_health

    services = cli.services()
    filter = BoardFilter(pillar, priority, search, archived, label)
    board = read_board(services.store, slug, filter, limit=limit, cursor=cursor)
    [health] = read_health(services.store, slug).missions
    directives = services.directives.list(slug)
    shown = {
        **mission_json(board.mission, board.todos.capacity),
        **board_json(board),
        "health": health.as_json(),
        "directives": [camel_json(one) for one in directives],
    }
    cli.show(shown, board_lines(board, health, directives))


@app.command()
def archive(cli: CliContext, slug: MissionArgument, why: RequiredReasonOption) -> None:
    """Archive a mission. It stays readable but cannot be changed until it is unarchived."""
    refuse_for_agents("mission archive")
    services = cli.services()
    mission = services.missions.archive(cli.user_scope(services), slug, why)
    cli.show(mission_json(mission, services.mission_todos.capacity(mission.slug)), f"Archived mission {mission.slug}.")


@app.command()
def unarchive(cli: CliContext, slug: MissionArgument, why: RequiredReasonOption) -> None:
    """Bring an archived mission back."""
    refuse_for_agents("mission unarchive")
    services = cli.services()
    mission = services.missions.unarchive(cli.user_scope(services), slug, why)
    capacity = services.mission_todos.capacity(mission.slug)
    cli.show(mission_json(mission, capacity), f"Mission {mission.slug} is active again.")


# --- planning and costs -----------------------------------------------------------------------------------

app.command("cycle")(mission_cycle.cycle)
app.command("prompt")(mission_cycle.prompt)
app.command("pause")(mission_cycle.pause)
app.command("resume")(mission_cycle.resume)
app.command("costs")(mission_runs.costs)
app.command("flow")(mission_flow.flow)


# --- questions to a person --------------------------------------------------------------------------------

IdArgument = Annotated[
    str, typer.Argument(metavar="ID", help="The escalation's id, or the end of it.", show_default=False)
]


class EscalationChoice(StrEnum):
    EXTEND = "extend"
    CANCEL = "cancel"
    KEEP = "keep"


@app.command()
def escalations(
    cli: CliContext,
    slug: OptionalMissionArgument = None,
    include_answered: Annotated[bool, typer.Option("--all", help="Include answered questions.")] = False,
) -> None:
    """List the questions of missions about their todos."""
    found = cli.services().escalations.list(slug, open_only=not include_answered)
    lines = []
    for escalation in found:
        count = escalation.reminders
        reminded = f", reminded {count} times" if count > 1 else ", reminded" if count else ""
        lines.append(f"{escalation.id[-8:]}  {escalation.status}  since {format_time(escalation.asked_at)}{reminded}")
        lines += [f"  │ {line}" for line in _wrap(escalation.question)]
        if escalation.answer is not None:
            lines.append(f"  {visible(escalation.answered_by)}: {visible(escalation.answer)}")
    empty = "There are no questions." if include_answered else "There are no open questions."
    cli.show([camel_json(escalation) for escalation in found], lines, empty=empty)


def _wrap(text: str) -> Iterator[str]:
    from punchlist.surfaces.cli.layout import line_width

    for line in visible_block(text).splitlines():
        yield from textwrap.wrap(line, line_width() - 4, break_on_hyphens=False) or [""]


@app.command()
def answer(
    cli: CliContext,
    id: IdArgument,
    choice: Annotated[EscalationChoice, typer.Argument(metavar="extend|cancel|keep", show_default=False)],
    date: Annotated[
        str | None,
        typer.Argument(metavar="[DATE]", help="With extend: the new deadline, such as 2026-02-21.", show_default=False),
    ] = None,
    why: OptionalReasonOption = "",
) -> None:
    """Answer a question about a todo: extend its deadline, cancel it, or keep it."""
    refuse_for_agents("mission answer")
    services = cli.services()
    scope = mission_scope(cli, services)
    answered = services.escalations.answer(scope, id, choice.value, deadline=date, reason=why)
    cli.show(camel_json(answered), f"Answered: {visible(answered.answer)}.")


@app.command()
def acknowledge(cli: CliContext, id: IdArgument) -> None:
    """Stop the reminders of a question. It stays open."""
    refuse_for_agents("mission acknowledge")
    services = cli.services()
    seen = services.escalations.acknowledge(mission_scope(cli, services), id)
    cli.show(
        camel_json(seen),
        f"Reminders of {seen.id[-8:]} stopped. To answer it: punchlist mission answer {seen.id[-8:]} …",
    )


# --- commands of other modules ----------------------------------------------------------------------------

app.add_typer(mission_todo.app, name="todo")
app.add_typer(mission_chat.app, name="chat")
app.add_typer(mission_directive.app, name="directive")
app.add_typer(mission_strategy.app, name="strategy")
app.add_typer(mission_metric.app, name="metric")
app.add_typer(mission_recommendation.app, name="recommendation")
app.add_typer(mission_runs.app, name="runs")
