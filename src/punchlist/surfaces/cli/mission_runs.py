"""`punchlist mission runs`: list, show and control background runs; `mission costs`: what they have used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from punchlist.kernel.text import visible, visible_block
from punchlist.runs.lifecycle import RunStatus
from punchlist.runs.model import RunKind
from punchlist.surfaces.cli.agent_guard import refuse_for_agents
from punchlist.surfaces.cli.context import CliContext, ListByDefault, format_time
from punchlist.surfaces.cli.options import CursorOption, LimitOption, MissionArgument, OptionalReasonOption

if TYPE_CHECKING:
    from collections.abc import Mapping

    from punchlist.app import Services
    from punchlist.missions.model import Mission
    from punchlist.missions.usage import MissionUsage


if TYPE_CHECKING:
    from punchlist.app import Services
    from punchlist.conversations.model import Scope
    from punchlist.runs.model import Run
    from punchlist.runs.service import Runs
    from punchlist.toolcalls.stored_call import StoredApproval

app = typer.Typer(help="List, pause, resume, redirect and stop background runs.", cls=ListByDefault)

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The run's id, or the end of it.", show_default=False)]
MissionOption = Annotated[str | None, typer.Option("--mission", metavar="SLUG", help="Only runs of this mission.")]
AllOption = Annotated[bool, typer.Option("--all", help="Include runs that have ended.")]


@app.command("list")
def list_runs(
    cli: CliContext,
    mission: MissionOption = None,
    todo: Annotated[
        str | None, typer.Option("--todo", metavar="ID", help="Only runs of this todo, ended ones included.")
    ] = None,
    status: Annotated[RunStatus | None, typer.Option("--status", help="Only runs with this status.")] = None,
    kind: Annotated[RunKind | None, typer.Option("--kind", help="Only runs of this kind.")] = None,
    include_ended: AllOption = False,
    limit: LimitOption = 50,
    cursor: CursorOption = None,
) -> None:
    """List the open runs, newest first."""
    from punchlist.surfaces.cli.layout import fit_line, line_width
    from punchlist.views.runs import read_runs

    services = cli.services()
    todo_id = services.mission_todos.find(mission, todo).id if todo is not None else None
    open_only = not include_ended and todo_id is None and status is None
    page = read_runs(
        services.store,
        mission=mission,
        todo_id=todo_id,
        status=status,
        kind=kind,
        open_only=open_only,
        limit=limit,
        cursor=cursor,
    )
    lines = []
    for run in page.runs:
        lines.append(f"{run.id[-8:]}  {_state(run):<10}  {run.kind}  {_subject(run)}")
        if run.why:
            lines.append(f"          {visible(run.why)}")
    shown = [fit_line(line, line_width()) for line in lines]
    more = [f"More runs: --cursor {page.cursor}"] if page.cursor else []
    filtered = any((mission, todo, status, kind))
    empty = "No open runs." if open_only else "No such runs." if filtered else "No runs yet."
    cli.show(page.as_json(), [*shown, *more], empty=empty)


def _state(run: Run) -> str:
    """The status, with a control request that is not carried out yet."""
    requested = {"pause": "paused", "stop": "stopped"}.get(run.wish or "")
    return f"{run.status}, to be {requested}" if requested and requested != run.status else run.status.value


def _subject(run: Run) -> str:
    values = run.parameters
    subject = values.get("title") or values.get("mission") or ", ".join(map(str, values.get("metrics", ())))
    return visible(" ".join(str(subject or run.conversation_id).split()))


@app.command()
def show(cli: CliContext, run: IdArgument) -> None:
    """Show a run: its status, worker, usage, result and pending approvals."""
    services = cli.services()
    found = services.runs.find(run)
    approvals = services.approvals.waiting(found.conversation_id) if found.ended_at is None else []
    pending = [{"callId": approval.call_id, "question": approval.question} for approval in approvals]
    cli.show({**found.as_json(), "approvals": pending}, _lines(services, found, approvals))


def _lines(services: Services, run: Run, approvals: list[StoredApproval]) -> Iterator[str]:
    from punchlist.missions.usage import RunUsage
    from punchlist.surfaces.cli.layout import format_usage

    yield f"Run {visible(run.id)}: {_state(run)}"
    if run.why:
        yield f"  why       {visible(run.why)}"
    yield f"  kind      {run.kind}, agent {visible(run.agent)}"
    yield f"  about     {_subject(run)}"
    if run.todo_id is not None:
        yield f"  todo      {visible(run.todo_id)}"
    yield f"  chat      {visible(run.conversation_id)}"
    yield f"  queued    {format_time(run.created_at)} by {visible(run.created_by)}"
    if run.started_at is not None:
        attempts = f", {run.attempts} attempts" if run.attempts > 1 else ""
        retries = f", retried {run.leg} times" if run.leg > 1 else ", retried" if run.leg else ""
        yield f"  started   {format_time(run.started_at)}{attempts}{retries}"
    if run.executor is not None and run.ended_at is None:
        yield f"  worker    {visible(run.executor)}{_liveness(run.executor)}"
    if run.turn_id is not None:
        yield f"  turn      {visible(run.turn_id)}"
    if run.ended_at is not None:
        yield f"  ended     {format_time(run.ended_at)}"
    usage = RunUsage(1, run.input_tokens, run.output_tokens, run.cost, run.seconds, run.calls)
    yield f"  used      {format_usage(usage)}"
    if run.message is not None:
        yield f"\nMessage for its agent, not delivered{' yet' if run.ended_at is None else ''}"
        yield from (f"  {line}" for line in visible_block(run.message).splitlines())
    if run.result:
        yield "\nResult"
        yield from (f"  {line}" for line in visible_block(run.result).splitlines())
    for approval in approvals:
        call = services.approvals.call(approval.call_id)
        command = f"punchlist approvals approve {approval.call_id[-8:]}"
        yield f"\nWaits for your approval: {visible(call.tool)}  {command}"
        yield from (f"  │ {line}" for line in visible_block(approval.question).splitlines()[:20])


def _liveness(executor: str) -> str:
    from punchlist.kernel.processes import is_running

    return " (dead; another worker will continue the run)" if is_running(executor) is False else ""


# --- control ----------------------------------------------------------------------------------------------


@app.command()
def pause(cli: CliContext, run: IdArgument, why: OptionalReasonOption = "") -> None:
    """Pause a run without losing any work. Continue it with `mission runs resume`."""
    _control(cli, run, lambda runs, scope, run_id: runs.pause(scope, run_id, why))


@app.command()
def resume(cli: CliContext, run: IdArgument, why: OptionalReasonOption = "") -> None:
    """Continue a paused run, or retry a failed or stopped one."""
    _control(cli, run, lambda runs, scope, run_id: runs.resume(scope, run_id, why))


@app.command()
def stop(cli: CliContext, run: IdArgument, why: OptionalReasonOption = "") -> None:
    """Stop a run. Its completed work is kept; `mission runs resume` starts it again."""
    _control(cli, run, lambda runs, scope, run_id: runs.stop(scope, run_id, why))


@app.command()
def redirect(
    cli: CliContext,
    run: IdArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The message; - reads it from stdin.")],
) -> None:
    """Interrupt the agent of a run with a message; it continues with that message."""
    message = sys.stdin.read() if text == "-" else text
    _control(cli, run, lambda runs, scope, run_id: runs.redirect(scope, run_id, message))


def _control(cli: CliContext, run: str, action: Callable[[Runs, Scope, str], Run]) -> None:
    refuse_for_agents("mission runs")
    services = cli.services()
    after = action(services.runs, cli.user_scope(services), services.runs.find(run).id)
    cli.show(after.as_json(), f"Run {after.id[-8:]} is {_state(after)}{_message_note(after)}.")


def _message_note(run: Run) -> str:
    if run.message is None:
        return ""
    if run.ended_at is not None or run.wish == "stop":
        return "; its agent has not received your message"
    return "; its agent will receive the message"


# --- costs ------------------------------------------------------------------------------------------------


def costs(cli: CliContext, slug: MissionArgument) -> None:
    """Show the tokens, cost, time and tool calls of a mission."""
    from punchlist.missions.usage import MissionUsageService

    services = cli.services()
    mission = services.missions.get(slug)
    usage = MissionUsageService(services.store).mission(mission.id)
    pillars = services.mission_todos.list(slug, archived=True, limit=1).pillars
    cli.show(_costs_json(services, mission, usage, pillars), _cost_lines(services, mission, usage, pillars))


def _costs_json(
    services: Services, mission: Mission, usage: MissionUsage, pillars: Mapping[str, str]
) -> dict[str, Any]:
    get_todo = services.mission_todos.get
    return {
        "missionSlug": mission.slug,
        **usage.usage.as_json(),
        "pillars": [{"id": id, "slug": pillars.get(id), **used.as_json()} for id, used in usage.pillars.items()],
        "todos": [{"id": id, "title": get_todo(id).title, **used.as_json()} for id, used in usage.todos.items()],
    }


def _cost_lines(services: Services, mission: Mission, usage: MissionUsage, pillars: Mapping[str, str]) -> Iterator[str]:
    from punchlist.surfaces.cli.layout import fit_line, format_run_usage, line_width

    yield fit_line(visible(mission.name), line_width())
    yield f"  {format_run_usage(usage.usage)}"
    for id, used in sorted(usage.pillars.items(), key=lambda pair: pillars.get(pair[0], "")):
        yield f"\n{visible(pillars.get(id, id))}"
        yield f"  {format_run_usage(used)}"
    if usage.todos:
        yield "\nTodos by usage"
    for id, used in sorted(usage.todos.items(), key=lambda pair: pair[1][1:], reverse=True):
        todo = services.mission_todos.get(id)
        yield fit_line(f"  {id[-8:]}  {visible(todo.title)}", line_width())
        yield f"    {format_run_usage(used)}"
