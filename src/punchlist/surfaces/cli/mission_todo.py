"""`punchlist mission todo`: the todos of missions."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from punchlist.errors import InvalidInput
from punchlist.kernel.text import visible, visible_block
from punchlist.missions.todos.lifecycle import TodoPriority
from punchlist.surfaces.cli import mission_claims
from punchlist.surfaces.cli.context import JsonOption, cli_context, echo, echo_json
from punchlist.surfaces.cli.mission_options import (
    MissionArgument,
    RequiredReasonOption,
    TodoIdArgument,
    mission_scope,
)

if TYPE_CHECKING:
    from punchlist.missions.model import Mission, MissionTodo, TodoChange
    from punchlist.surfaces.services import Services

app = typer.Typer(help="List, create, change and claim the todos of missions.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """List, create, change and claim the todos of missions."""


# --- list and show ----------------------------------------------------------------------------------------


@app.command("list")
def list_todos(
    context: typer.Context,
    mission: MissionArgument,
    pillar: Annotated[
        str | None, typer.Option("--pillar", metavar="SLUG", help="Only todos that affect this pillar.")
    ] = None,
    status: Annotated[
        str | None,
        typer.Option("--status", metavar="STATE", help="A status, active, open or all. Default: open and just ended."),
    ] = None,
    include_archived: Annotated[bool, typer.Option("--all", help="Include todos that ended long ago.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=500, metavar="N", help="The page size.")] = 100,
    cursor: Annotated[str | None, typer.Option("--cursor", metavar="TEXT", help="Continue after a page.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List a mission's todos and its capacity."""
    from punchlist.missions.todos import tool_arguments
    from punchlist.missions.todos.tools import list_json
    from punchlist.surfaces.cli import mission_todo_view

    services = cli_context(context).services(as_json=as_json)
    values = {"missionSlug": mission, "pillarSlug": pillar, "status": status, "limit": limit, "cursor": cursor}
    query = tool_arguments.parse_query({**values, "archived": include_archived})
    page = services.mission_todos.list(**query)
    if as_json:
        echo_json(list_json(page))
        return
    found = services.missions.get(query["mission_slug"])
    for line in mission_todo_view.list_lines(found, page, services.store.clock()):
        echo(line)


@app.command()
def show(context: typer.Context, todo: TodoIdArgument, as_json: JsonOption = False) -> None:
    """Show a todo with its runs, their usage and tool calls, and the messages about it."""
    from punchlist.surfaces.cli import mission_todo_view
    from punchlist.views.todo_detail import read_detail

    services = cli_context(context).services(as_json=as_json)
    found = services.mission_todos.find(None, todo)
    detail = read_detail(services.store, _mission_of(services, found), found)
    if as_json:
        echo_json(mission_todo_view.detail_json(detail))
    else:
        for line in mission_todo_view.detail_lines(detail, services.store.clock()):
            echo(line)


# --- create and change ------------------------------------------------------------------------------------


@app.command()
def create(
    context: typer.Context,
    mission: MissionArgument,
    pillar: Annotated[str, typer.Argument(metavar="PILLAR", help="The pillar's slug.", show_default=False)],
    title: Annotated[
        str | None,
        typer.Argument(metavar="TITLE", help="One line, verb first. Optional with --template.", show_default=False),
    ] = None,
    description: Annotated[str | None, typer.Option("--description", "-d", metavar="TEXT", help="What to do.")] = None,
    justification: Annotated[str | None, typer.Option("--justification", metavar="TEXT", help="Why now.")] = None,
    criteria: Annotated[str | None, typer.Option("--criteria", metavar="TEXT", help="When it is done.")] = None,
    deadline: Annotated[
        str | None, typer.Option("--deadline", metavar="DATE", help="2026-02-21, or a time with its zone.")
    ] = None,
    priority: Annotated[TodoPriority | None, typer.Option("--priority", "-p", help="How urgent it is.")] = None,
    backlog: Annotated[bool, typer.Option("--backlog", help="Add it to the backlog.")] = False,
    also_affects: Annotated[
        list[str] | None, typer.Option("--also-affects", metavar="SLUG", help="Another pillar; may be repeated.")
    ] = None,
    template: Annotated[
        str | None, typer.Option("--template", metavar="SLUG", help="A template of the mission, for omitted fields.")
    ] = None,
    check_name: Annotated[
        str | None, typer.Option("--check-name", metavar="NAME", help="Require a check of the mission to pass.")
    ] = None,
    check_metric: Annotated[
        str | None, typer.Option("--check-metric", metavar="SLUG", help="Require a metric to reach a level.")
    ] = None,
    at_most: Annotated[float | None, typer.Option("--at-most", metavar="X", help="The metric's upper bound.")] = None,
    at_least: Annotated[float | None, typer.Option("--at-least", metavar="X", help="The metric's lower bound.")] = None,
    check_command: Annotated[
        str | None, typer.Option("--check-command", metavar="COMMAND", help="Require a command to exit with 0.")
    ] = None,
    request_id: Annotated[
        str | None, typer.Option("--request-id", metavar="ID", help="Repeating the id creates no second todo.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Create a todo on the active list if there is room, else in the backlog."""
    from punchlist.missions.config.trust import check_name as trust_name
    from punchlist.missions.todos import tool_arguments

    cli = cli_context(context)
    services = cli.services(as_json=as_json)
    slug, new = tool_arguments.parse_create(
        {
            "missionSlug": mission,
            "pillarSlug": pillar,
            "title": title,
            "description": description,
            "justification": justification,
            "completionCriteria": criteria,
            "deadline": deadline,
            "priority": priority and priority.value,
            "targetStatus": "backlog" if backlog else None,
            "alsoAffects": also_affects,
            "template": template,
            "check": _check(check_name, check_metric, at_most, at_least, check_command),
            "requestId": request_id,
        }
    )
    created = services.mission_todos.create(mission_scope(cli, services), slug, new, reason="todo create")
    todo = created.todo
    if check_command is not None and todo.completion_check is not None:
        # A command typed by the person needs no separate confirmation.
        services.trust.trust_text(trust_name(todo), todo.completion_check)
    _echo_change(created, as_json, f"Created {todo.id[-8:]}: {visible(todo.title)} ({todo.status}).")


def _check(
    name: str | None, metric: str | None, at_most: float | None, at_least: float | None, command: str | None
) -> dict[str, Any] | None:
    levels = {key: value for key, value in (("atMost", at_most), ("atLeast", at_least)) if value is not None}
    if sum(given is not None for given in (name, metric, command)) > 1:
        raise InvalidInput("A todo has one check. Use --check-name, --check-metric or --check-command.")
    if (metric is not None) != (len(levels) == 1):
        raise InvalidInput("--check-metric needs either --at-most or --at-least.")
    if name is not None:
        return {"name": name}
    if metric is not None:
        return {"metric": metric, **levels}
    if command is None:
        return None
    try:
        return {"command": shlex.split(command)}
    except ValueError as error:
        raise InvalidInput(f"--check-command: cannot be parsed ({error}). Close its quotes.") from None


@app.command()
def promote(
    context: typer.Context, todo: TodoIdArgument, why: RequiredReasonOption, as_json: JsonOption = False
) -> None:
    """Move a todo from the backlog to the active list."""
    _update(context, todo, as_json, action="promote", reason=why)


@app.command()
def demote(
    context: typer.Context, todo: TodoIdArgument, why: RequiredReasonOption, as_json: JsonOption = False
) -> None:
    """Move a todo back to the backlog."""
    _update(context, todo, as_json, action="demote", reason=why)


@app.command()
def start(context: typer.Context, todo: TodoIdArgument, why: RequiredReasonOption, as_json: JsonOption = False) -> None:
    """Start a todo. A worker executes it: `punchlist worker`."""
    _update(context, todo, as_json, action="start", reason=why)


@app.command()
def cancel(
    context: typer.Context, todo: TodoIdArgument, why: RequiredReasonOption, as_json: JsonOption = False
) -> None:
    """Cancel a todo and stop its runs."""
    _update(context, todo, as_json, action="cancel", reason=why)


@app.command()
def extend(
    context: typer.Context,
    todo: TodoIdArgument,
    deadline: Annotated[
        str, typer.Argument(metavar="DATE", help="2026-02-21, or a time with its zone.", show_default=False)
    ],
    why: RequiredReasonOption,
    as_json: JsonOption = False,
) -> None:
    """Change the deadline of a todo."""
    _update(context, todo, as_json, action="extend", reason=why, deadline=deadline)


@app.command()
def reprioritize(
    context: typer.Context,
    todo: TodoIdArgument,
    priority: Annotated[TodoPriority, typer.Argument(metavar="PRIORITY", help="critical, high, medium or low.")],
    why: RequiredReasonOption,
    as_json: JsonOption = False,
) -> None:
    """Change the priority of a todo."""
    _update(context, todo, as_json, action="reprioritize", reason=why, priority=priority.value)


def _update(context: typer.Context, id_or_suffix: str, as_json: bool, **values: Any) -> None:
    from punchlist.missions.todos import tool_arguments

    cli = cli_context(context)
    services = cli.services(as_json=as_json)
    request = tool_arguments.parse_update({**_identify(services, id_or_suffix), **values})
    changed = services.mission_todos.update(mission_scope(cli, services), **request)
    todo = changed.todo
    due = f", due {visible(todo.deadline)}" if request["deadline"] else ""
    text = f"“{visible(todo.title)}” is {todo.status}, {todo.priority}{due}."
    if changed.run_id is not None:
        text += f" Run {changed.run_id[-8:]} waits for a worker: punchlist worker"
    _echo_change(changed, as_json, text)


@app.command()
def complete(
    context: typer.Context,
    todo: TodoIdArgument,
    outcome: Annotated[str, typer.Option("--outcome", metavar="TEXT", help="What was done.", show_default=False)],
    metrics: Annotated[
        list[str] | None, typer.Option("--metric", metavar="SLUG", help="A metric to collect again; may be repeated.")
    ] = None,
    override: Annotated[
        str | None, typer.Option("--override", metavar="REASON", help="Complete it although its check fails.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Complete a todo that is in progress. Its check, if it has one, runs first and must pass."""
    from punchlist.missions.todos import tool_arguments

    cli = cli_context(context)
    services = cli.services(as_json=as_json)
    values = {"outcome": outcome, "metricsImpacted": metrics, "overrideReason": override}
    request = tool_arguments.parse_completion({**_identify(services, todo), **values})
    scope = mission_scope(cli, services)
    find_due = services.mission_todos.todo_needing_check
    if request["override_reason"] is None and (due := find_due(scope, request["mission_slug"], request["todo_id"])):
        result = services.checks.run(scope, due)
        verdict = "Its check passed" if result.passed else "Its check did not pass"
        echo(f"{verdict}: {visible_block(result.detail)}", error=True)
    completed = services.mission_todos.complete(scope, **request)
    collecting = ""
    if completed.run_id:
        collecting = f" Run {completed.run_id[-8:]} collects {', '.join(map(visible, metrics or ()))}."
    _echo_change(completed, as_json, f"“{visible(completed.todo.title)}” is completed.{collecting}")


app.command()(mission_claims.claim)
app.command()(mission_claims.renew)
app.command()(mission_claims.release)


def _mission_of(services: Services, todo: MissionTodo) -> Mission:
    return next(mission for mission in services.missions.list(archived=True) if mission.id == todo.mission_id)


def _identify(services: Services, id_or_suffix: str) -> dict[str, str]:
    todo = services.mission_todos.find(None, id_or_suffix)
    return {"missionSlug": _mission_of(services, todo).slug, "todoId": todo.id}


def _echo_change(change: TodoChange, as_json: bool, text: str) -> None:
    from punchlist.missions.todos.tools import change_json

    if as_json:
        echo_json(change_json(change))
        return
    echo(text)
    if change.warning:
        echo(f"! {visible(change.warning)}")
