"""`punchlist mission todo`: edit todos, link them, comment on them and attach files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from punchlist.errors import InvalidInput
from punchlist.kernel.text import visible
from punchlist.missions.todos.lifecycle import TodoPriority
from punchlist.surfaces.cli.agent_guard import refuse_for_agents
from punchlist.surfaces.cli.context import CliContext
from punchlist.surfaces.cli.options import (
    OptionalReasonOption,
    RequiredReasonOption,
    TodoIdArgument,
    mission_scope,
)
from punchlist.surfaces.cli.todo_check import (
    AtLeastOption,
    AtMostOption,
    CheckCommandOption,
    CheckContainsOption,
    CheckFileOption,
    CheckMetricOption,
    CheckNameOption,
    parse_check_options,
)

if TYPE_CHECKING:
    from punchlist.app import Services
    from punchlist.missions.model import TodoChange

app = typer.Typer()
DescriptionOption = Annotated[str | None, typer.Option("--description", "-d", metavar="TEXT", help="What to do.")]
JustificationOption = Annotated[str | None, typer.Option("--justification", metavar="TEXT", help="Why now.")]
CriteriaOption = Annotated[str | None, typer.Option("--criteria", metavar="TEXT", help="When it is done.")]
DeadlineOption = Annotated[
    str | None, typer.Option("--deadline", metavar="DATE", help="2026-02-21, or a time with its zone.")
]
PriorityOption = Annotated[TodoPriority | None, typer.Option("--priority", "-p", help="How urgent it is.")]
AlsoAffectsOption = Annotated[
    list[str] | None, typer.Option("--also-affects", metavar="SLUG", help="Another pillar; may be repeated.")
]
OtherArgument = Annotated[
    str, typer.Argument(metavar="OTHER", help="The other todo's id, or the end of it.", show_default=False)
]
KindArgument = Annotated[
    str,
    typer.Argument(
        metavar="KIND",
        help="blocks, blocked-by, duplicates, duplicated-by, follows-from or followed-by.",
        show_default=False,
    ),
]


@app.command()
def edit(
    cli: CliContext,
    todo: TodoIdArgument,
    why: RequiredReasonOption,
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT", help="One line, verb first.")] = None,
    description: DescriptionOption = None,
    justification: JustificationOption = None,
    criteria: CriteriaOption = None,
    deadline: DeadlineOption = None,
    priority: PriorityOption = None,
    also_affects: AlsoAffectsOption = None,
    parent: Annotated[str | None, typer.Option("--parent", metavar="ID", help="Make it a sub-item.")] = None,
    check_name: CheckNameOption = None,
    check_metric: CheckMetricOption = None,
    at_most: AtMostOption = None,
    at_least: AtLeastOption = None,
    check_command: CheckCommandOption = None,
    check_file: CheckFileOption = None,
    contains: CheckContainsOption = None,
    clear: Annotated[
        list[str] | None,
        typer.Option(
            "--clear",
            metavar="FIELD",
            help="Empty a field: description, justification, completionCriteria, deadline, alsoAffects, check, labels "
            "or parentId; may be repeated.",
        ),
    ] = None,
    version: Annotated[
        str | None,
        typer.Option("--if-version", metavar="VERSION", help="Only if it still has this version, which `show` prints."),
    ] = None,
) -> None:
    """Change the fields of an open todo. The old and the new values are kept in its history."""
    from punchlist.missions.config.trust import check_name as trust_name

    services = cli.services()
    values = {
        "title": title,
        "description": description,
        "justification": justification,
        "completionCriteria": criteria,
        "deadline": deadline,
        "priority": priority and priority.value,
        "alsoAffects": also_affects,
        "parentId": services.mission_todos.find(None, parent).id if parent else None,
        "check": parse_check_options(check_name, check_metric, at_most, at_least, check_command, check_file, contains),
        "clear": clear,
        "version": version,
    }
    changed = update_todo(cli, services, todo, action="edit", reason=why, **values)
    if check_command is not None and changed.todo.completion_check is not None:
        # A command typed by the person needs no separate confirmation.
        services.trust.trust_text(trust_name(changed.todo), changed.todo.completion_check)
    echo_change(cli, changed, f"Edited “{visible(changed.todo.title)}”, version {changed.todo.version}.")


@app.command()
def swap(cli: CliContext, todo: TodoIdArgument, other: OtherArgument, why: RequiredReasonOption) -> None:
    """Exchange a pending todo with one of the backlog, also when both lists are full."""
    services = cli.services()
    other_id = services.mission_todos.find(None, other).id
    changed = update_todo(cli, services, todo, action="swap", reason=why, otherId=other_id)
    assert changed.other is not None
    moved = [f"“{visible(each.title)}” is {each.status}" for each in (changed.todo, changed.other)]
    echo_change(cli, changed, f"{moved[0]}, {moved[1]}.")


@app.command()
def link(
    cli: CliContext, todo: TodoIdArgument, kind: KindArgument, other: OtherArgument, why: OptionalReasonOption = ""
) -> None:
    """Link a todo to another one. A todo cannot start while another one that blocks it is open."""
    _link(cli, "link", todo, kind, other, why)


@app.command()
def unlink(
    cli: CliContext, todo: TodoIdArgument, kind: KindArgument, other: OtherArgument, why: OptionalReasonOption = ""
) -> None:
    """Remove a link."""
    _link(cli, "unlink", todo, kind, other, why)


def _link(cli: CliContext, action: str, todo: str, kind: str, other: str, why: str) -> None:
    services = cli.services()
    found = services.mission_todos.find(None, other)
    values = {"link": kind, "otherId": found.id, "reason": why or f"todo {action}"}
    changed = update_todo(cli, services, todo, action=action, **values)
    gone = "no longer " if action == "unlink" else ""
    echo_change(cli, changed, f"“{visible(changed.todo.title)}” {gone}{visible(kind)} “{visible(found.title)}”.")


@app.command()
def label(
    cli: CliContext,
    todo: TodoIdArgument,
    labels: Annotated[
        list[str] | None, typer.Argument(metavar="LABEL...", help="Labels to add.", show_default=False)
    ] = None,
    remove: Annotated[
        list[str] | None, typer.Option("--remove", metavar="LABEL", help="A label to remove; may be repeated.")
    ] = None,
    why: OptionalReasonOption = "",
) -> None:
    """Add and remove labels."""
    names = [*(labels or ()), *(f"-{name}" for name in remove or ())]
    changed = update_todo(cli, cli.services(), todo, action="label", labels=names, reason=why or "todo label")
    shown = ", ".join(map(visible, changed.todo.label_names)) or "none"
    echo_change(cli, changed, f"Labels of “{visible(changed.todo.title)}”: {shown}.")


@app.command()
def comment(
    cli: CliContext,
    todo: TodoIdArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The comment; - reads it from stdin.")],
) -> None:
    """Comment on a todo. The next worker on it reads the comment."""
    content = sys.stdin.read() if text == "-" else text
    changed = update_todo(cli, cli.services(), todo, action="comment", text=content)
    echo_change(cli, changed, f"Commented on “{visible(changed.todo.title)}”.")


@app.command()
def attach(
    cli: CliContext,
    todo: TodoIdArgument,
    path: Annotated[
        Path | None,
        typer.Argument(metavar="[PATH]", help="A file of the project, for the next worker.", show_default=False),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--text", metavar="NAME", help="Store a text under this name, read from stdin.")
    ] = None,
    remove: Annotated[str | None, typer.Option("--remove", metavar="NAME", help="Detach a file.")] = None,
    why: OptionalReasonOption = "",
) -> None:
    """Attach a file of the project or a text to a todo. The next worker on it reads it."""
    services = cli.services()
    if sum(given is not None for given in (path, name, remove)) != 1:
        raise InvalidInput("Give a path, --text NAME or --remove NAME.")
    if remove is not None:
        changed = update_todo(cli, services, todo, action="detach", name=remove, reason=why or None)
        echo_change(cli, changed, f"Detached {visible(remove)} from “{visible(changed.todo.title)}”.")
        return
    if path is not None:
        values: dict[str, Any] = {"path": _in_workspace(services, path)}
    else:
        values = {"name": name, "text": sys.stdin.read()}
    changed = update_todo(cli, services, todo, action="attach", reason=why or None, **values)
    echo_change(cli, changed, f"Attached {visible(values.get('path') or name)} to “{visible(changed.todo.title)}”.")


def _in_workspace(services: Services, path: Path) -> str:
    """The path relative to the project's root."""
    root, file = services.workspace.resolve(), path.resolve()
    if not file.is_relative_to(root):
        raise InvalidInput(f"{path}: is outside of the project {root}. Store it with --text NAME < {path}.")
    if not file.is_file():
        raise InvalidInput(f"{path}: there is no such file.")
    return file.relative_to(root).as_posix()


@app.command()
def unarchive(cli: CliContext, todo: TodoIdArgument, why: RequiredReasonOption) -> None:
    """Show an ended todo in the lists again that has left them because it ended long ago."""
    changed = update_todo(cli, cli.services(), todo, action="unarchive", reason=why)
    echo_change(cli, changed, f"“{visible(changed.todo.title)}” is shown again.")


def update_todo(cli: CliContext, services: Services, id_or_suffix: str, **values: Any) -> TodoChange:
    from punchlist.missions.todos.tool_updates import apply_update, parse_update

    refuse_for_agents(f"mission todo {values.get('action', 'edit')}")
    request = parse_update({**identify(services, id_or_suffix), **values})
    return apply_update(services.mission_todos, mission_scope(cli, services), request)


def identify(services: Services, id_or_suffix: str) -> dict[str, str]:
    todo = services.mission_todos.find(None, id_or_suffix)
    missions = services.missions.list(archived=True)
    slug = next(mission.slug for mission in missions if mission.id == todo.mission_id)
    return {"missionSlug": slug, "todoId": todo.id}


def echo_change(cli: CliContext, change: TodoChange, text: str) -> None:
    from punchlist.missions.todos.tools import change_json

    cli.show(change_json(change), [text, *([f"! {visible(change.warning)}"] if change.warning else [])])
