"""`punchlist import` and `punchlist export`: exchange lists with other tools."""

from __future__ import annotations

import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from punchlist.errors import InvalidInput, NotFound
from punchlist.import_export.files import STDIO
from punchlist.kernel.text import visible, visible_block
from punchlist.surfaces.cli.agent_guard import refuse_for_agents
from punchlist.surfaces.cli.context import CliContext, SessionOption, confirm, echo, echo_json, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from punchlist.app import Services
    from punchlist.import_export.formats import ExchangeFormat
    from punchlist.import_export.item import ExchangeItem, Loss, ParsedFile
    from punchlist.import_export.targets import ImportTarget

MAX_SHOWN = 50


class FormatChoice(StrEnum):
    JSON = "json"
    MARKDOWN = "markdown"
    CLAUDE = "claude"
    BEADS = "beads"
    TASKMASTER = "taskmaster"
    BACKLOG = "backlog"


class ListChoice(StrEnum):
    CHECKLIST = "checklist"
    PLAN = "plan"
    MISSION = "mission"


MissionOption = Annotated[str | None, typer.Option("--mission", metavar="SLUG", help="The mission.")]


# --- import -----------------------------------------------------------------------------------------------


def import_(
    cli: CliContext,
    source: Annotated[
        str, typer.Argument(metavar="FILE", help="A file or a folder of tasks; - for stdin.", show_default=False)
    ],
    of: Annotated[
        FormatChoice | None, typer.Option("--from", help="Its format. Default: guessed from name and content.")
    ] = None,
    into: Annotated[
        ListChoice | None, typer.Option("--into", help="Default: the checklist if it fits, else the plan.")
    ] = None,
    mission: MissionOption = None,
    pillar: Annotated[str | None, typer.Option("--pillar", metavar="SLUG", help="The pillar of the mission.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the items and the losses.")] = False,
    session: SessionOption = None,
) -> None:
    """Add the items of another tool's list. Items that exist are skipped."""
    from punchlist.import_export.targets import fits_checklist, plan_import

    _check_mission(into, mission, pillar)
    services = cli.in_session(session)
    format, found = _read(source, of)
    if into is None:
        flat = ListChoice.CHECKLIST if fits_checklist(found.items) else ListChoice.PLAN
        into = flat if mission is None else ListChoice.MISSION
    target = _target(cli, services, into, format, mission, pillar)
    plan = plan_import(found, format, target)
    made, remarks = plan.execute(target, dry_run=dry_run)
    if dry_run:
        shown = [{"title": item.title, "status": item.status.value} for item in plan.new]
    else:
        shown = [{"id": item.id, "title": item.title, "status": item.status} for item in made]
    report: dict[str, Any] = {
        "session": services.settings.session,
        "format": format.name,
        "into": target.name,
        "dryRun": dry_run,
        "made": shown,
        "skipped": [{"id": item.id or None, "title": item.title} for item in plan.skipped],
        "lost": [loss.as_json() for loss in plan.lost],
        "remarks": [*plan.remarks, *remarks],
    }
    cli.show(report, _import_lines(report, target.limits.name))
    if not cli.json:
        _print_losses(target.limits.name, plan.lost, report["remarks"])


def _check_mission(chosen: ListChoice | None, mission: str | None, pillar: str | None) -> None:
    if chosen is ListChoice.MISSION and mission is None:
        raise typer.BadParameter("is missing: which mission?", param_hint="--mission")
    if chosen not in (None, ListChoice.MISSION) and mission is not None:
        raise typer.BadParameter(f"is not for the {chosen}", param_hint="--mission")
    if pillar is not None and mission is None:
        raise typer.BadParameter("needs --mission, whose pillar it is", param_hint="--pillar")


def _read(source: str, of: FormatChoice | None) -> tuple[ExchangeFormat, ParsedFile]:
    from punchlist.import_export import files
    from punchlist.import_export.formats import FORMATS, guess_folder_format, guess_import_format

    written = files.read_source(source)
    name = "stdin" if source == STDIO else source
    try:
        if isinstance(written, dict):
            format = FORMATS[of] if of else guess_folder_format(written)
            if format.read_files is None:
                raise InvalidInput(f"It is a folder, and {format.name} is one file.")
            found = format.read_files(written)
            return format, replace(found, remarks=[*found.remarks, *files.skipped_folders(source)])
        format = FORMATS[of] if of else guess_import_format(source, written)
        return format, format.read(written)
    except InvalidInput as error:
        raise InvalidInput([f"{visible(name)}: {problem}" for problem in error.problems]) from None


def _target(
    cli: CliContext,
    services: Services,
    into: ListChoice,
    format: ExchangeFormat,
    mission: str | None,
    pillar: str | None,
) -> ImportTarget:
    from punchlist.import_export.mission_target import MissionTarget
    from punchlist.import_export.plan_target import PlanTarget
    from punchlist.import_export.targets import ChecklistTarget
    from punchlist.missions.model import MissionScope

    if into is ListChoice.MISSION:
        refuse_for_agents("import --into mission")
    scope = cli.list_scope(services)
    # Only files of Punchlist name its agents; in other formats an assignee is a person or another agent.
    owners = format.name == FormatChoice.JSON
    match into:
        case ListChoice.CHECKLIST:
            return ChecklistTarget(services.checklists, scope)
        case ListChoice.PLAN:
            return PlanTarget(services.store, scope, owners=owners)
        case ListChoice.MISSION:
            if pillar is None:
                raise typer.BadParameter("is missing: a mission's todo belongs to a pillar", param_hint="--pillar")
            mission_scope = MissionScope(scope.conversation_id, scope.actor)
            return MissionTarget(services.store, mission_scope, mission or "", pillar, owners=owners)


def _import_lines(report: Mapping[str, Any], target: str) -> Iterator[str]:
    made, skipped = report["made"], report["skipped"]
    does = "Would add" if report["dryRun"] else "Added"
    yield f"{does} {plural(len(made), 'item')} to {visible(target)} (from {report['format']})."
    for item in made[:MAX_SHOWN]:
        yield f"  {visible(item['title'])} ({item['status']})"
    if len(made) > MAX_SHOWN:
        yield f"  … and {len(made) - MAX_SHOWN} more"
    if skipped:
        titles = ", ".join(f"“{visible(item['title'])}”" for item in skipped[:5])
        more = f" and {len(skipped) - 5} more" if len(skipped) > 5 else ""
        yield f"Skipped {plural(len(skipped), 'item')} already there: {titles}{more}."


def _print_losses(name: str, lost: Sequence[Loss], remarks: Sequence[str]) -> None:
    from punchlist.import_export.item import describe_losses

    if lost:
        echo(f"! {visible(name)} cannot hold: {visible(describe_losses(lost))}.", error=True)
    for remark in remarks:
        echo(f"! {visible(remark)}", error=True)


# --- export -----------------------------------------------------------------------------------------------


def export(
    cli: CliContext,
    target: Annotated[
        str,
        typer.Argument(
            metavar="[FILE]", help="A file, or a folder for claude and backlog. Default: stdout.", show_default=False
        ),
    ] = STDIO,
    to: Annotated[
        FormatChoice | None, typer.Option("--to", help="Default: guessed from the file's name, else json.")
    ] = None,
    chosen: Annotated[
        ListChoice | None,
        typer.Option("--list", help="Which list. Default: the checklist, or the plan if that is empty."),
    ] = None,
    mission: MissionOption = None,
    pillar: Annotated[str | None, typer.Option("--pillar", metavar="SLUG", help="Only this pillar.")] = None,
    turn: Annotated[
        str | None, typer.Option("--turn", metavar="ID", help="The plan of this turn. Default: the last one.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
    session: SessionOption = None,
) -> None:
    """Write a list in another tool's format. Fields that the format lacks are reported on stderr."""
    from punchlist.import_export.format_limits import fit_items
    from punchlist.import_export.formats import FORMATS, guess_export_format
    from punchlist.kernel.clock import timestamp

    _check_mission(chosen, mission, pillar)
    if turn is not None and chosen is not ListChoice.PLAN:
        raise typer.BadParameter("goes with --list plan", param_hint="--turn")
    format = FORMATS[to] if to else guess_export_format(target)
    services = cli.in_session(session)
    which, items = _read_list(cli, services, chosen, mission, pillar, turn)
    fitted = fit_items(format.limits, items, timestamp(services.store.clock()))
    report: dict[str, Any] = {"session": services.settings.session, "list": which.value, "format": format.name}
    report |= {"items": len(fitted.items), "lost": [loss.as_json() for loss in fitted.lost]}
    if target == STDIO:
        text = _as_text(format, fitted.items)
        report["text"] = text
        if not cli.json:
            _print_text(text)
    else:
        path = Path(target).expanduser()
        count = _write(format, fitted.items, path, force=force)
        report["file"] = str(path)
        if not cli.json:
            files = f" in {count} files" if count is not None else ""
            echo(f"Wrote {plural(len(fitted.items), 'item')} to {visible(path)}{files} ({format.name}).", error=True)
    if cli.json:
        echo_json(report)
    else:
        _print_losses(format.name, fitted.lost, [])


def _print_text(text: str) -> None:
    if sys.stdout.isatty():
        echo(visible_block(text).rstrip("\n"))
    else:
        # A pipe gets the same bytes as a file, whatever the encoding of the terminal.
        with open(sys.stdout.fileno(), "wb", closefd=False) as pipe:
            pipe.write(text.encode())


def _read_list(
    cli: CliContext,
    services: Services,
    chosen: ListChoice | None,
    mission: str | None,
    pillar: str | None,
    turn: str | None,
) -> tuple[ListChoice, list[ExchangeItem]]:
    """The chosen list; by default the checklist, or the plan if only that has items."""
    from punchlist.conversations.model import TurnScope
    from punchlist.import_export import sources

    if mission is not None:
        return ListChoice.MISSION, sources.mission_items(services.mission_todos, mission, pillar)
    scope = cli.user_scope(services)
    checklist = sources.checklist_items(services.checklists.get(scope.conversation_id))
    if chosen is ListChoice.CHECKLIST or (chosen is None and checklist):
        return ListChoice.CHECKLIST, checklist
    turn = turn or _last_turn(services, scope.conversation_id)
    if turn is None and chosen is ListChoice.PLAN:
        raise NotFound(f"Session {scope.conversation_id!r} has no turn yet, so there is no plan to export.")
    plan = (
        sources.turn_items(services.plans, services.store, TurnScope(scope.conversation_id, scope.actor, turn))
        if turn
        else []
    )
    return (ListChoice.PLAN, plan) if plan or chosen is ListChoice.PLAN else (ListChoice.CHECKLIST, [])


def _last_turn(services: Services, session: str) -> str | None:
    """The open turn, else the last one."""
    found = services.conversations.current_turn(session) or services.conversations.last_turn(session)
    return found.id if found else None


def _as_text(format: ExchangeFormat, entries: list[ExchangeItem]) -> str:
    if format.write is None:
        raise InvalidInput(
            f"{format.name} is a folder with a file for each task. Name one: export --to {format.name} DIR"
        )
    return format.write(entries)


def _write(format: ExchangeFormat, entries: list[ExchangeItem], path: Path, *, force: bool) -> int | None:
    """Write a file, or a folder of files; returns the number of files in a folder."""
    from punchlist.import_export import files

    folder = format.write_files is not None and (format.write is None or path.suffix != format.suffix)
    written = format.write_files(entries) if folder and format.write_files else None
    if (there := files.overwrite_warning(path, written)) and not force:
        if not sys.stdin.isatty() or path.is_dir() != folder:
            raise InvalidInput(f"{there} Choose another name, or use --force to replace it.")
        confirm(f"{there} Replace what has the same name?")
    if written is None:
        files.write_file(path, _as_text(format, entries))
        return None
    files.write_folder(path, written)
    return len(written)
