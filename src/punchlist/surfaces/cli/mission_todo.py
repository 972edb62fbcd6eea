"""`punchlist mission todo`: the todos of missions."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from punchlist.claims.lifecycle import DEFAULT_LEASE_SECONDS
from punchlist.kernel.text import visible, visible_block
from punchlist.missions.todos.lifecycle import TodoPriority
from punchlist.surfaces.cli.agent_guard import refuse_for_agents
from punchlist.surfaces.cli.context import CliContext, echo, format_time
from punchlist.surfaces.cli.mission_todo_edit import (
    AlsoAffectsOption,
    CriteriaOption,
    DeadlineOption,
    DescriptionOption,
    JustificationOption,
    PriorityOption,
    echo_change,
    identify,
    update_todo,
)
from punchlist.surfaces.cli.mission_todo_edit import app as edit_app
from punchlist.surfaces.cli.options import (
    TERMINAL,
    AsOption,
    CursorOption,
    LimitOption,
    MissionArgument,
    OptionalReasonOption,
    RequiredReasonOption,
    SecondsOption,
    TodoIdArgument,
    claim_place,
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
    from punchlist.missions.model import MissionTodo
    from punchlist.missions.todos.claims import MissionClaims

app = typer.Typer(help="List, create, change and claim the todos of missions.", no_args_is_help=True)


# --- list and show ----------------------------------------------------------------------------------------


@app.command("list")
def list_todos(
    cli: CliContext,
    mission: MissionArgument,
    pillar: Annotated[
        str | None, typer.Option("--pillar", metavar="SLUG", help="Only todos that affect this pillar.")
    ] = None,
    status: Annotated[
        str | None,
        typer.Option("--status", metavar="STATE", help="A status, active, open or all. Default: open and just ended."),
    ] = None,
    label: Annotated[str | None, typer.Option("--label", metavar="LABEL", help="Only todos with this label.")] = None,
    include_archived: Annotated[bool, typer.Option("--all", help="Include todos that ended long ago.")] = False,
    limit: LimitOption = 100,
    cursor: CursorOption = None,
) -> None:
    """List a mission's todos and its capacity."""
    from punchlist.missions.todos import tool_arguments
    from punchlist.missions.todos.tools import list_json
    from punchlist.surfaces.cli import mission_view

    services = cli.services()
    values = {"missionSlug": mission, "pillarSlug": pillar, "status": status, "limit": limit, "cursor": cursor}
    query = tool_arguments.parse_query({**values, "archived": include_archived, "label": label})
    page = services.mission_todos.list(**query)
    found = services.missions.get(query["mission_slug"])
    cli.show(list_json(page), mission_view.list_lines(found, page, services.store.clock()))


class TodoPart(StrEnum):
    HISTORY = "history"
    EVIDENCE = "evidence"
    TRANSCRIPT = "transcript"


@app.command()
def show(
    cli: CliContext,
    todo: TodoIdArgument,
    part: Annotated[
        TodoPart | None,
        typer.Option(
            "--part", help="Only a page of its changes, its tool calls (newest first), or all messages of its work."
        ),
    ] = None,
    limit: LimitOption = 50,
    cursor: Annotated[
        str | None, typer.Option("--cursor", metavar="TEXT", help="With --part: continue after a page.")
    ] = None,
) -> None:
    """Show a todo with its changes, its runs and their tool calls, and the messages about it."""
    from punchlist.surfaces.cli import mission_todo_view
    from punchlist.views.todo_detail import detail_json, read_detail

    services = cli.services()
    found = services.mission_todos.find(None, todo)
    if part is not None:
        cli.show(*_part(services, found, part, limit, cursor))
        return
    if cursor is not None:
        raise typer.BadParameter("continues a page of --part", param_hint="--cursor")
    detail = read_detail(services.store, found.id)
    cli.show(detail_json(detail), mission_todo_view.detail_lines(detail, services.store.clock()))


def _part(
    services: Services, todo: MissionTodo, part: TodoPart, limit: int, cursor: str | None
) -> tuple[dict[str, Any], Iterable[str]]:
    """A page of a part, as JSON and as lines."""
    from punchlist.surfaces.cli import mission_todo_view
    from punchlist.views.todo_evidence import read_todo_evidence
    from punchlist.views.todo_history import read_history_page
    from punchlist.views.todo_transcript import read_todo_transcript

    match part:
        case TodoPart.HISTORY:
            history = read_history_page(services.store, todo, cursor=cursor, limit=limit)
            return history.as_json(), mission_todo_view.history_page_lines(history)
        case TodoPart.EVIDENCE:
            evidence = read_todo_evidence(services.store, todo.id, cursor=cursor, limit=limit)
            return evidence.as_json(), mission_todo_view.evidence_page_lines(evidence)
        case TodoPart.TRANSCRIPT:
            transcript = read_todo_transcript(services.store, todo.id, cursor=cursor, limit=limit)
            return transcript.as_json(), mission_todo_view.transcript_page_lines(transcript)


# --- create and change ------------------------------------------------------------------------------------


@app.command()
def create(
    cli: CliContext,
    mission: MissionArgument,
    pillar: Annotated[str, typer.Argument(metavar="PILLAR", help="The pillar's slug.", show_default=False)],
    title: Annotated[
        str | None,
        typer.Argument(metavar="TITLE", help="One line, verb first. Optional with --template.", show_default=False),
    ] = None,
    description: DescriptionOption = None,
    justification: JustificationOption = None,
    criteria: CriteriaOption = None,
    deadline: DeadlineOption = None,
    priority: PriorityOption = None,
    backlog: Annotated[bool, typer.Option("--backlog", help="Add it to the backlog.")] = False,
    also_affects: AlsoAffectsOption = None,
    template: Annotated[
        str | None, typer.Option("--template", metavar="SLUG", help="A template of the mission, for omitted fields.")
    ] = None,
    parent: Annotated[
        str | None, typer.Option("--parent", metavar="ID", help="The todo that this one is a part of.")
    ] = None,
    labels: Annotated[list[str] | None, typer.Option("--label", metavar="LABEL", help="May be repeated.")] = None,
    blocked_by: Annotated[
        list[str] | None, typer.Option("--blocked-by", metavar="ID", help="A todo to end first; may be repeated.")
    ] = None,
    check_name: CheckNameOption = None,
    check_metric: CheckMetricOption = None,
    at_most: AtMostOption = None,
    at_least: AtLeastOption = None,
    check_command: CheckCommandOption = None,
    check_file: CheckFileOption = None,
    contains: CheckContainsOption = None,
    request_id: Annotated[
        str | None, typer.Option("--request-id", metavar="ID", help="Repeating the id creates no second todo.")
    ] = None,
) -> None:
    """Create a todo on the active list if there is room, else in the backlog."""
    from punchlist.missions.config.trust import check_name as trust_name
    from punchlist.missions.todos import tool_arguments

    if check_command is not None:
        refuse_for_agents("mission todo create --check-command")
    services = cli.services()
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
            "check": parse_check_options(
                check_name, check_metric, at_most, at_least, check_command, check_file, contains
            ),
            "parentId": services.mission_todos.find(mission, parent).id if parent else None,
            "labels": labels,
            "links": [{"blockedBy": services.mission_todos.find(mission, other).id} for other in blocked_by or ()],
            "requestId": request_id,
        }
    )
    created = services.mission_todos.create(mission_scope(cli, services), slug, new, reason="todo create")
    todo = created.todo
    if check_command is not None and todo.completion_check is not None:
        # A command typed by the person needs no separate confirmation.
        services.trust.trust_text(trust_name(todo), todo.completion_check)
    echo_change(cli, created, f"Created {todo.id[-8:]}: {visible(todo.title)} ({todo.status}).")


def _add_step(action: str, help: str) -> None:
    @app.command(action, help=help)
    def step(cli: CliContext, todo: TodoIdArgument, why: RequiredReasonOption) -> None:
        _update(cli, todo, action=action, reason=why)


_add_step("promote", "Move a todo from the backlog to the active list.")
_add_step("demote", "Move a todo back to the backlog.")
_add_step("start", "Start a todo. A worker executes it: `punchlist worker`.")
_add_step("cancel", "Cancel a todo and stop its runs.")


@app.command()
def resume(
    cli: CliContext,
    todo: TodoIdArgument,
    why: Annotated[
        str, typer.Option("--why", metavar="TEXT", help="What to do: feedback for the owner.", show_default=False)
    ],
) -> None:
    """Send a todo in progress back to its owner, which goes on."""
    _update(cli, todo, action="resume", reason=why)


@app.command()
def extend(
    cli: CliContext,
    todo: TodoIdArgument,
    deadline: Annotated[
        str, typer.Argument(metavar="DATE", help="2026-02-21, or a time with its zone.", show_default=False)
    ],
    why: RequiredReasonOption,
) -> None:
    """Change the deadline of a todo."""
    _update(cli, todo, action="extend", reason=why, deadline=deadline)


@app.command()
def reprioritize(
    cli: CliContext,
    todo: TodoIdArgument,
    priority: Annotated[TodoPriority, typer.Argument(metavar="PRIORITY", help="critical, high, medium or low.")],
    why: RequiredReasonOption,
) -> None:
    """Change the priority of a todo."""
    _update(cli, todo, action="reprioritize", reason=why, priority=priority.value)


def _update(cli: CliContext, id_or_suffix: str, **values: Any) -> None:
    changed = update_todo(cli, cli.services(), id_or_suffix, **values)
    todo = changed.todo
    due = f", due {visible(todo.deadline)}" if values.get("deadline") else ""
    text = f"“{visible(todo.title)}” is {todo.status}, {todo.priority}{due}."
    if changed.run_id is not None:
        text += f" Run {changed.run_id[-8:]} waits for a worker: punchlist worker"
    echo_change(cli, changed, text)


@app.command()
def complete(
    cli: CliContext,
    todo: TodoIdArgument,
    outcome: Annotated[str, typer.Option("--outcome", metavar="TEXT", help="What was done.", show_default=False)],
    metrics: Annotated[
        list[str] | None, typer.Option("--metric", metavar="SLUG", help="A metric to collect again; may be repeated.")
    ] = None,
    override: Annotated[
        str | None, typer.Option("--override", metavar="REASON", help="Complete it although its check fails.")
    ] = None,
) -> None:
    """Complete a todo that is in progress. Its check, if it has one, runs first and must pass."""
    from punchlist.missions.todos import tool_arguments

    refuse_for_agents("mission todo complete")
    services = cli.services()
    values = {"outcome": outcome, "metricsImpacted": metrics, "overrideReason": override}
    request = tool_arguments.parse_completion({**identify(services, todo), **values})
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
    echo_change(cli, completed, f"“{visible(completed.todo.title)}” is completed.{collecting}")


app.registered_commands += edit_app.registered_commands


# --- claims -----------------------------------------------------------------------------------------------

FenceOption = Annotated[int, typer.Option("--fence", min=1, metavar="N", help="The number that `claim` printed.")]


@app.command()
def claim(
    cli: CliContext,
    mission: MissionArgument,
    todo: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID]", help="The todo's id, or the end of it. Default: the most urgent.", show_default=False
        ),
    ] = None,
    pillar: Annotated[str | None, typer.Option("--pillar", metavar="SLUG", help="Only todos of this pillar.")] = None,
    seconds: SecondsOption = DEFAULT_LEASE_SECONDS,
    name: AsOption = TERMINAL,
) -> None:
    """Claim a todo that is in progress, so that no other agent works on it meanwhile."""
    from punchlist.claims.model import ClaimGranted
    from punchlist.claims.tools import claim_json
    from punchlist.missions.todos.tools import todo_json

    services = cli.services()
    todo_id = services.mission_todos.find(mission, todo).id if todo is not None else None
    scope = mission_scope(cli, services)
    result = _claims(services).claim(
        scope, claim_place(name), mission, todo_id, seconds, pillar=pillar, reason="todo claim"
    )
    if not isinstance(result, ClaimGranted):
        cli.show({"todo": None, "next": str(result)}, str(result))
    else:
        cli.show(
            {"todo": todo_json(result.todo), **claim_json(result.claim)},
            f"“{visible(result.todo.title)}” is yours until {format_time(result.claim.lease_until)}.\n"
            f"id {result.todo.id}, fence {result.claim.fence}",
        )


@app.command()
def renew(
    cli: CliContext,
    todo: TodoIdArgument,
    fence: FenceOption,
    seconds: SecondsOption = DEFAULT_LEASE_SECONDS,
    name: AsOption = TERMINAL,
) -> None:
    """Extend a claim."""
    from punchlist.claims.tools import claim_json

    services = cli.services()
    id = services.mission_todos.find(None, todo).id
    renewed = _claims(services).renew_claim(mission_scope(cli, services), claim_place(name), id, fence, seconds)
    cli.show({"id": renewed.todo_id, **claim_json(renewed)}, f"It is yours until {format_time(renewed.lease_until)}.")


@app.command()
def release(
    cli: CliContext,
    todo: TodoIdArgument,
    fence: Annotated[
        int | None, typer.Option("--fence", min=1, metavar="N", help="Only if the claim still has this number.")
    ] = None,
    name: AsOption = TERMINAL,
    why: OptionalReasonOption = "",
) -> None:
    """Release the claim of a todo, also the claim of another agent."""
    services = cli.services()
    id = services.mission_todos.find(None, todo).id
    reason = why or "todo release"
    released = _claims(services).release_claim(
        mission_scope(cli, services), claim_place(name), id, fence, reason=reason
    )
    cli.show(
        {"id": released.todo_id, "released": True, "holder": released.holder},
        f"Released the claim of {visible(released.holder)}.",
    )


def _claims(services: Services) -> MissionClaims:
    from punchlist.missions.todos.claims import MissionClaims

    return MissionClaims(services.store)
