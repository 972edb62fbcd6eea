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
from punchlist.surfaces.cli.context import CliContext, SessionOption, echo, echo_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from punchlist.app import Services
    from punchlist.import_export.formats import ExchangeFormat
    from punchlist.import_export.item import ExchangeItem, Loss, ParsedFile
    from punchlist.import_export.targets import ImportedItem, ImportPlan, ImportTarget

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
    decided = plan_import(found, format, target)
    made, remarks = ([], []) if dry_run else decided.execute(target)
    remarks = [*decided.remarks, *remarks]
    if cli.json:
        echo_json(_import_json(services, format, target, decided, made, remarks, dry_run=dry_run))
    else:
        _print_import(format, target, decided, made, remarks, dry_run=dry_run)


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
    from punchlist.kernel.clock import timestamp
    from punchlist.missions.model import MissionScope

    scope = cli.user_scope(services)
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
            return MissionTarget(
                services.mission_todos,
                services.missions,
                MissionScope(scope.conversation_id, scope.actor),
                mission or "",
                pillar,
                timestamp(services.store.clock()),
                owners=owners,
            )


def _import_json(
    services: Services,
    format: ExchangeFormat,
    target: ImportTarget,
    decided: ImportPlan,
    made: Sequence[ImportedItem],
    remarks: Sequence[str],
    *,
    dry_run: bool,
) -> dict[str, Any]:
    told: list[dict[str, Any]] = [{"id": one.id, "title": one.title, "status": one.status} for one in made]
    if dry_run:
        told = [{"title": one.title, "status": one.status.value} for one in decided.new]
    return {
        "session": services.settings.session,
        "format": format.name,
        "into": target.name,
        "dryRun": dry_run,
        "made": told,
        "skipped": [{"id": one.id or None, "title": one.title} for one in decided.skipped],
        "lost": [one.as_json() for one in decided.lost],
        "remarks": list(remarks),
    }


def _print_import(
    format: ExchangeFormat,
    target: ImportTarget,
    decided: ImportPlan,
    made: Sequence[ImportedItem],
    remarks: Sequence[str],
    *,
    dry_run: bool,
) -> None:
    new = len(decided.new)
    does = "Would add" if dry_run else "Added"
    echo(f"{does} {_items(new)} to {visible(target.limits.name)} (from {format.name}).")
    lines = [(one.title, one.status.value) for one in decided.new] if dry_run else [(m.title, m.status) for m in made]
    for title, status in lines[:MAX_SHOWN]:
        echo(f"  {visible(title)} ({status})")
    if new > MAX_SHOWN:
        echo(f"  … and {new - MAX_SHOWN} more")
    if decided.skipped:
        titles = ", ".join(f"“{visible(one.title)}”" for one in decided.skipped[:5])
        more = f" and {len(decided.skipped) - 5} more" if len(decided.skipped) > 5 else ""
        echo(f"Skipped {_items(len(decided.skipped))} already there: {titles}{more}.")
    _print_losses(target.limits.name, decided.lost, remarks)


def _items(count: int) -> str:
    return f"{count} item{'' if count == 1 else 's'}"


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
    which = chosen or (ListChoice.MISSION if mission else _default_list(cli, services))
    entries = _entries(cli, services, which, mission, pillar, turn)
    fitted = fit_items(format.limits, entries, timestamp(services.store.clock()))
    told: dict[str, Any] = {"session": services.settings.session, "list": which.value, "format": format.name}
    told |= {"items": len(fitted.items), "lost": [one.as_json() for one in fitted.lost]}
    if target == STDIO:
        written = _as_text(format, fitted.items)
        if cli.json:
            echo_json({**told, "text": written})
        elif sys.stdout.isatty():
            echo(visible_block(written).rstrip("\n"))
        else:
            # A pipe gets the same bytes as a file, whatever the encoding of the terminal.
            with open(sys.stdout.fileno(), "wb", closefd=False) as pipe:
                pipe.write(written.encode())
    else:
        path = Path(target).expanduser()
        count = _write(format, fitted.items, path, force=force)
        if cli.json:
            echo_json({**told, "file": str(path)})
        else:
            files = f" in {count} files" if count is not None else ""
            echo(f"Wrote {_items(len(fitted.items))} to {visible(path)}{files} ({format.name}).", error=True)
    if not cli.json:
        _print_losses(format.name, fitted.lost, [])


def _default_list(cli: CliContext, services: Services) -> ListChoice:
    """The checklist, or the plan if only the plan has items."""
    if (
        not services.checklists.get(services.settings.session).items
        and _turn(cli, services)
        and _plan(cli, services, None)
    ):
        return ListChoice.PLAN
    return ListChoice.CHECKLIST


def _entries(
    cli: CliContext, services: Services, which: ListChoice, mission: str | None, pillar: str | None, turn: str | None
) -> list[ExchangeItem]:
    from punchlist.import_export import sources

    match which:
        case ListChoice.CHECKLIST:
            return sources.checklist_items(services.checklists.get(services.settings.session))
        case ListChoice.MISSION:
            return sources.mission_items(services.mission_todos, mission or "", pillar)
        case ListChoice.PLAN:
            return _plan(cli, services, turn)


def _plan(cli: CliContext, services: Services, turn: str | None) -> list[ExchangeItem]:
    """The plan of a turn. Default: the open turn, else the last one."""
    from punchlist.conversations.model import TurnScope
    from punchlist.import_export import sources

    scope = cli.user_scope(services)
    if turn is None and (turn := _turn(cli, services)) is None:
        raise NotFound(f"Session {services.settings.session!r} has no turn yet, so there is no plan to export.")
    return sources.turn_items(services.plans, services.store, TurnScope(scope.conversation_id, scope.actor, turn))


def _turn(cli: CliContext, services: Services) -> str | None:
    session = cli.user_scope(services).conversation_id
    last = (one for one in services.conversations.turns(session) if one.parent_turn_id is None)
    found = services.conversations.current_turn(session) or next(last, None)
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
        typer.confirm(f"{there} Replace what has the same name?", abort=True, err=True)
    if written is None:
        files.write_file(path, _as_text(format, entries))
        return None
    files.write_folder(path, written)
    return len(written)
