"""`punchlist mission todo`: the todos of missions."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from punchlist.claims.lifecycle import DEFAULT_LEASE_SECONDS
from punchlist.errors import InvalidInput
from punchlist.kernel.text import line_problem, visible, visible_block
from punchlist.missions.todos.lifecycle import TodoPriority
from punchlist.surfaces.cli.context import JsonOption, cli_context, echo, echo_json, format_time
from punchlist.surfaces.cli.plan import LONGEST_PLACE, TERMINAL, AsOption, SecondsOption

if TYPE_CHECKING:
    from punchlist.missions.model import Mission, MissionScope, MissionTodo, TodoChange
    from punchlist.missions.todos.claims import MissionClaims
    from punchlist.surfaces.cli.context import CliContext
    from punchlist.surfaces.services import Services

app = typer.Typer(help="Look at the todos of missions, and decide on them.", no_args_is_help=True)

MissionArgument = Annotated[str, typer.Argument(metavar="MISSION", help="The mission's slug.", show_default=False)]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The todo's id, or its end.", show_default=False)]
WhyOption = Annotated[str, typer.Option("--why", metavar="TEXT", help="Why; kept in the trail.", show_default=False)]
FenceOption = Annotated[int, typer.Option("--fence", min=1, metavar="N", help="As `todo claim` said.")]


@app.callback()
def group() -> None:
    """Look at the todos of missions, and decide on them."""


# --- looking ----------------------------------------------------------------------------------------------


@app.command("list")
def list_todos(
    context: typer.Context,
    mission: MissionArgument,
    pillar: Annotated[str | None, typer.Option("--pillar", metavar="SLUG", help="Only what matters to one.")] = None,
    status: Annotated[
        str | None,
        typer.Option("--status", metavar="STATE", help="Or active, open, all. Default: open, and ended lately."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Those that ended long ago, too.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=500, metavar="N", help="How many at most.")] = 100,
    cursor: Annotated[str | None, typer.Option("--cursor", metavar="TEXT", help="Go on after a page.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List a mission's todos, and how full it is."""
    from punchlist.missions.todos import validation as todo_validation
    from punchlist.missions.todos.tools import list_json
    from punchlist.surfaces.cli import mission_todo_view

    services = cli_context(context).services(as_json=as_json)
    said = {"missionSlug": mission, "pillarSlug": pillar, "status": status, "limit": limit, "cursor": cursor}
    asked = todo_validation.parse_query({**said, "archived": every})
    listed = services.mission_todos.list(
        asked.mission_slug,
        pillar=asked.pillar,
        status=asked.status,
        archived=asked.archived,
        limit=asked.limit,
        cursor=asked.cursor,
    )
    if as_json:
        echo_json(list_json(listed))
    else:
        for line in mission_todo_view.listing(
            services.missions.get(asked.mission_slug), listed, services.store.clock()
        ):
            echo(line)


@app.command()
def show(context: typer.Context, todo: IdArgument, as_json: JsonOption = False) -> None:
    """Show all of a todo: what it is, its runs, what they used and did, and what was said about it."""
    from punchlist.surfaces.cli import mission_todo_view

    services = cli_context(context).services(as_json=as_json)
    found = services.mission_todos.find(None, todo)
    page = mission_todo_view.look(services, _mission(services, found), found)
    if as_json:
        echo_json(page.as_json())
    else:
        for line in mission_todo_view.lines(page, services.store.clock()):
            echo(line)


# --- deciding ---------------------------------------------------------------------------------------------


@app.command()
def create(
    context: typer.Context,
    mission: MissionArgument,
    pillar: Annotated[str, typer.Argument(metavar="PILLAR", help="The pillar's slug.", show_default=False)],
    title: Annotated[
        str | None,
        typer.Argument(metavar="TITLE", help="In a line, verb first; a template may have one.", show_default=False),
    ] = None,
    description: Annotated[str | None, typer.Option("--description", "-d", metavar="TEXT", help="What to do.")] = None,
    justification: Annotated[str | None, typer.Option("--justification", metavar="TEXT", help="Why now.")] = None,
    criteria: Annotated[str | None, typer.Option("--criteria", metavar="TEXT", help="When it is done.")] = None,
    deadline: Annotated[
        str | None, typer.Option("--deadline", metavar="DATE", help="2026-02-21, or a time with its zone.")
    ] = None,
    priority: Annotated[TodoPriority | None, typer.Option("--priority", "-p", help="How urgent it is.")] = None,
    backlog: Annotated[bool, typer.Option("--backlog", help="For later: not on the active list.")] = False,
    also_affects: Annotated[
        list[str] | None, typer.Option("--also-affects", metavar="SLUG", help="Another pillar; may be repeated.")
    ] = None,
    template: Annotated[
        str | None, typer.Option("--template", metavar="SLUG", help="Of the mission's file; fills what is left out.")
    ] = None,
    check_name: Annotated[
        str | None, typer.Option("--check-name", metavar="NAME", help="A check of the mission's file must pass.")
    ] = None,
    check_metric: Annotated[
        str | None, typer.Option("--check-metric", metavar="SLUG", help="A metric must be at a level.")
    ] = None,
    at_most: Annotated[float | None, typer.Option("--at-most", metavar="X", help="The level.")] = None,
    at_least: Annotated[float | None, typer.Option("--at-least", metavar="X", help="The level.")] = None,
    check_command: Annotated[
        str | None, typer.Option("--check-command", metavar="COMMAND", help="A program must end with 0.")
    ] = None,
    request_id: Annotated[
        str | None, typer.Option("--request-id", metavar="ID", help="The same again makes no second todo.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Add a todo: to the active list if there is room, else to the backlog."""
    from punchlist.missions.config.trust import check_name as name_of_check
    from punchlist.missions.todos import validation as todo_validation

    entry = cli_context(context)
    services = entry.services(as_json=as_json)
    slug, new = todo_validation.parse_create(
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
    done = services.mission_todos.create(_scope(entry, services), slug, new, reason="todo create")
    if check_command is not None and done.todo.completion_check is not None:
        # Whoever typed it means it to run.
        services.trust.trust_text(name_of_check(done.todo), done.todo.completion_check)
    _answer(done, as_json, f"Made {done.todo.id[-8:]}: {visible(done.todo.title)} ({done.todo.status}).")


def _check(
    name: str | None, metric: str | None, at_most: float | None, at_least: float | None, command: str | None
) -> dict[str, Any] | None:
    levels = {key: value for key, value in (("atMost", at_most), ("atLeast", at_least)) if value is not None}
    if sum(given is not None for given in (name, metric, command)) > 1:
        raise InvalidInput("A todo has one check: --check-name, --check-metric or --check-command.")
    if (metric is not None) != (len(levels) == 1):
        raise InvalidInput("--check-metric goes with either --at-most or --at-least.")
    if name is not None:
        return {"name": name}
    if metric is not None:
        return {"metric": metric, **levels}
    if command is None:
        return None
    try:
        return {"command": shlex.split(command)}
    except ValueError as error:
        raise InvalidInput(f"--check-command: cannot be read ({error}). Close its quotes.") from None


@app.command()
def promote(context: typer.Context, todo: IdArgument, why: WhyOption, as_json: JsonOption = False) -> None:
    """Move a todo from the backlog to the active list."""
    _update(context, todo, as_json, action="promote", reason=why)


@app.command()
def demote(context: typer.Context, todo: IdArgument, why: WhyOption, as_json: JsonOption = False) -> None:
    """Move a todo back to the backlog."""
    _update(context, todo, as_json, action="demote", reason=why)


@app.command()
def start(context: typer.Context, todo: IdArgument, why: WhyOption, as_json: JsonOption = False) -> None:
    """Let its pillar's owner work on a todo. A worker does that: `punchlist worker`."""
    _update(context, todo, as_json, action="start", reason=why)


@app.command()
def cancel(context: typer.Context, todo: IdArgument, why: WhyOption, as_json: JsonOption = False) -> None:
    """End a todo that will not be done. Work on it is stopped."""
    _update(context, todo, as_json, action="cancel", reason=why)


@app.command()
def extend(
    context: typer.Context,
    todo: IdArgument,
    deadline: Annotated[
        str, typer.Argument(metavar="DATE", help="2026-02-21, or a time with its zone.", show_default=False)
    ],
    why: WhyOption,
    as_json: JsonOption = False,
) -> None:
    """Give a todo another deadline."""
    _update(context, todo, as_json, action="extend", reason=why, deadline=deadline)


@app.command()
def reprioritize(
    context: typer.Context,
    todo: IdArgument,
    priority: Annotated[TodoPriority, typer.Argument(metavar="PRIORITY", help="critical, high, medium or low.")],
    why: WhyOption,
    as_json: JsonOption = False,
) -> None:
    """Say how urgent a todo is."""
    _update(context, todo, as_json, action="reprioritize", reason=why, priority=priority.value)


def _update(context: typer.Context, wanted: str, as_json: bool, **said: Any) -> None:
    from punchlist.missions.todos import validation as todo_validation

    entry = cli_context(context)
    services = entry.services(as_json=as_json)
    found = services.mission_todos.find(None, wanted)
    asked = todo_validation.parse_update({"missionSlug": _mission(services, found).slug, "todoId": found.id, **said})
    done = services.mission_todos.update(
        _scope(entry, services),
        asked.mission_slug,
        asked.todo_id,
        asked.action,
        asked.reason,
        deadline=asked.deadline,
        priority=asked.priority,
    )
    due = f", due {visible(done.todo.deadline)}" if asked.deadline else ""
    told = f"“{visible(done.todo.title)}” is {done.todo.status}, {done.todo.priority}{due}."
    if done.run_id is not None:
        told += f" Run {done.run_id[-8:]} waits for a worker: punchlist worker"
    _answer(done, as_json, told)


@app.command()
def complete(
    context: typer.Context,
    todo: IdArgument,
    outcome: Annotated[str, typer.Option("--outcome", metavar="TEXT", help="What was done.", show_default=False)],
    metrics: Annotated[
        list[str] | None, typer.Option("--metric", metavar="SLUG", help="A metric to collect again; may be repeated.")
    ] = None,
    override: Annotated[
        str | None, typer.Option("--override", metavar="REASON", help="Why it is done though its check did not pass.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Call a todo done that is in progress. Its check, if it has one, is run first and must pass."""
    from punchlist.missions.todos import validation as todo_validation

    entry = cli_context(context)
    services = entry.services(as_json=as_json)
    found = services.mission_todos.find(None, todo)
    said = {"outcome": outcome, "metricsImpacted": metrics, "overrideReason": override}
    asked = todo_validation.parse_completion(
        {"missionSlug": _mission(services, found).slug, "todoId": found.id, **said}
    )
    scope = _scope(entry, services)
    if asked.override_reason is None and (
        due := services.mission_todos.todo_needing_check(scope, asked.mission_slug, asked.todo_id)
    ):
        result = services.checks.run(scope, due)
        told = "Its check passed" if result.passed else "Its check did not pass"
        echo(f"{told}: {visible_block(result.detail)}", error=True)
    done = services.mission_todos.complete(
        scope,
        asked.mission_slug,
        asked.todo_id,
        asked.outcome,
        metrics_impacted=asked.metrics_impacted,
        override_reason=asked.override_reason,
    )
    collected = f" Run {done.run_id[-8:]} collects {', '.join(map(visible, metrics or ()))}." if done.run_id else ""
    _answer(done, as_json, f"“{visible(done.todo.title)}” is completed.{collected}")


# --- claims -----------------------------------------------------------------------------------------------


@app.command()
def claim(
    context: typer.Context,
    mission: MissionArgument,
    todo: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="The todo's id, or its end. Default: the most urgent.", show_default=False),
    ] = None,
    pillar: Annotated[str | None, typer.Option("--pillar", metavar="SLUG", help="Only of one pillar.")] = None,
    seconds: SecondsOption = DEFAULT_LEASE_SECONDS,
    name: AsOption = TERMINAL,
    as_json: JsonOption = False,
) -> None:
    """Take a todo that is in progress, so that nobody else works on it until the time is over."""
    from punchlist.claims.model import ClaimGranted
    from punchlist.claims.tools import claim_json
    from punchlist.missions.todos.tools import todo_json

    entry = cli_context(context)
    services = entry.services(as_json=as_json)
    wanted = services.mission_todos.find(mission, todo).id if todo is not None else None
    claimed = _claims(services).claim(
        _scope(entry, services), _place(name), mission, wanted, seconds, pillar=pillar, reason="todo claim"
    )
    if not isinstance(claimed, ClaimGranted):
        if as_json:
            echo_json({"todo": None, "next": str(claimed)})
        else:
            echo(str(claimed))
    elif as_json:
        echo_json({"todo": todo_json(claimed.todo), **claim_json(claimed.claim)})
    else:
        echo(f"“{visible(claimed.todo.title)}” is yours until {format_time(claimed.claim.lease_until)}.")
        echo(f"id {claimed.todo.id}, fence {claimed.claim.fence}")


@app.command()
def renew(
    context: typer.Context,
    todo: IdArgument,
    fence: FenceOption,
    seconds: SecondsOption = DEFAULT_LEASE_SECONDS,
    name: AsOption = TERMINAL,
    as_json: JsonOption = False,
) -> None:
    """Keep a claimed todo for longer."""
    from punchlist.claims.tools import claim_json

    entry = cli_context(context)
    services = entry.services(as_json=as_json)
    id = services.mission_todos.find(None, todo).id
    kept = _claims(services).renew_claim(_scope(entry, services), _place(name), id, fence, seconds)
    if as_json:
        echo_json({"id": kept.todo_id, **claim_json(kept)})
    else:
        echo(f"It is yours until {format_time(kept.lease_until)}.")


@app.command()
def release(
    context: typer.Context,
    todo: IdArgument,
    fence: Annotated[
        int | None, typer.Option("--fence", min=1, metavar="N", help="Only if it is still the claim with this fence.")
    ] = None,
    name: AsOption = TERMINAL,
    why: Annotated[str | None, typer.Option("--why", metavar="TEXT", help="A reason for the event trail.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Give a claimed todo back, whoever holds it."""
    entry = cli_context(context)
    services = entry.services(as_json=as_json)
    id = services.mission_todos.find(None, todo).id
    freed = _claims(services).release_claim(
        _scope(entry, services), _place(name), id, fence, reason=why or "todo release"
    )
    if as_json:
        echo_json({"id": freed.todo_id, "released": True, "holder": freed.holder})
    else:
        echo(f"It is free. {visible(freed.holder)} had it.")


def _claims(services: Services) -> MissionClaims:
    from punchlist.missions.todos.claims import MissionClaims

    return MissionClaims(services.store)


def _place(name: str) -> str:
    if problem := line_problem(name, max_length=LONGEST_PLACE):
        raise InvalidInput(f"--as: {problem}")
    return name.strip()


# --- common to all ----------------------------------------------------------------------------------------


def _scope(entry: CliContext, services: Services) -> MissionScope:
    """The person at the terminal, who is bound to no mission."""
    from punchlist.missions.model import MissionScope

    scope = entry.scope(services)
    return MissionScope(scope.conversation_id, scope.actor)


def _mission(services: Services, todo: MissionTodo) -> Mission:
    return next(one for one in services.missions.list(archived=True) if one.id == todo.mission_id)


def _answer(done: TodoChange, as_json: bool, told: str) -> None:
    from punchlist.missions.todos.tools import change_json

    if as_json:
        echo_json(change_json(done))
        return
    echo(told)
    if done.warning:
        echo(f"! {visible(done.warning)}")
