"""`punchlist mission runs`: what is worked on in the background, and what you want of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from punchlist.kernel.text import visible, visible_block
from punchlist.surfaces.cli.context import JsonOption, cli_context, echo, echo_json, format_time

if TYPE_CHECKING:
    from punchlist.conversations.model import Scope
    from punchlist.runs.model import Run
    from punchlist.runs.service import Runs
    from punchlist.surfaces.services import Services
    from punchlist.toolcalls.stored_call import StoredApproval

app = typer.Typer(help="See what is worked on in the background; pause, resume, redirect or stop it.")

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The run's id, or its end.", show_default=False)]
MissionOption = Annotated[str | None, typer.Option("--mission", metavar="SLUG", help="Only those of one mission.")]
AllOption = Annotated[bool, typer.Option("--all", help="Those that have ended, too.")]
LimitOption = Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="How many of the newest.")]
ReasonOption = Annotated[str, typer.Option("--why", metavar="TEXT", help="Why; kept in the trail.")]


@app.callback(invoke_without_command=True)
def group(
    context: typer.Context,
    mission: MissionOption = None,
    every: AllOption = False,
    limit: LimitOption = 50,
    as_json: JsonOption = False,
) -> None:
    """See what is worked on in the background; pause, resume, redirect or stop it."""
    if context.invoked_subcommand is None:
        _list(context, mission, every, limit, as_json)


@app.command("list")
def list_runs(
    context: typer.Context,
    mission: MissionOption = None,
    every: AllOption = False,
    limit: LimitOption = 50,
    as_json: JsonOption = False,
) -> None:
    """List the runs that have not ended, newest first."""
    _list(context, mission, every, limit, as_json)


def _list(context: typer.Context, mission: str | None, every: bool, limit: int, as_json: bool) -> None:
    from punchlist.surfaces.cli.layout import fit_line, line_width

    services = cli_context(context).services(as_json=as_json)
    mission_id = services.missions.get(mission).id if mission is not None else None
    found = services.runs.list(mission_id=mission_id, ended=every, limit=limit)
    if as_json:
        echo_json([run.as_json() for run in found])
        return
    if not found:
        echo("No runs yet." if every else "Nothing is queued or being worked on.")
    cells = line_width()
    for run in found:
        echo(fit_line(f"{run.id[-8:]}  {_state(run):<10}  {run.kind}  {_about(run)}", cells))
        if run.why:
            echo(fit_line(f"          {visible(run.why)}", cells))


def _state(run: Run) -> str:
    """With what is wanted of it and is not so yet."""
    wanted = {"pause": "paused", "stop": "stopped"}.get(run.wish or "")
    return f"{run.status}, to be {wanted}" if wanted and wanted != run.status else run.status.value


def _about(run: Run) -> str:
    asked = run.parameters
    about = asked.get("title") or asked.get("mission") or ", ".join(map(str, asked.get("metrics", ())))
    return visible(" ".join(str(about or run.conversation_id).split()))


@app.command()
def show(context: typer.Context, run: IdArgument, as_json: JsonOption = False) -> None:
    """Show a run: how it stands, who has it in hand, what it used, what came of it, and what it asks."""
    services = cli_context(context).services(as_json=as_json)
    found = services.runs.find(run)
    waiting = services.approvals.waiting(found.conversation_id) if found.ended_at is None else []
    if as_json:
        echo_json({**found.as_json(), "approvals": [one.call_id for one in waiting]})
        return
    for line in _lines(services, found, waiting):
        echo(line)


def _lines(services: Services, run: Run, waiting: list[StoredApproval]) -> Iterator[str]:
    from punchlist.missions.usage import RunUsage
    from punchlist.surfaces.cli.layout import format_usage

    yield f"Run {visible(run.id)}: {_state(run)}"
    if run.why:
        yield f"  why       {visible(run.why)}"
    yield f"  kind      {run.kind}, agent {visible(run.agent)}"
    yield f"  about     {_about(run)}"
    if run.todo_id is not None:
        yield f"  todo      {visible(run.todo_id)}"
    yield f"  chat      {visible(run.conversation_id)}"
    yield f"  queued    {format_time(run.created_at)} by {visible(run.created_by)}"
    if run.started_at is not None:
        begun = f", begun {run.attempts} times" if run.attempts > 1 else ""
        anew = f", tried again {run.leg} times" if run.leg > 1 else ", tried again" if run.leg else ""
        yield f"  begun     {format_time(run.started_at)}{begun}{anew}"
    if run.executor is not None and run.ended_at is None:
        yield f"  worker    {visible(run.executor)}{_health(run.executor)}"
    if run.turn_id is not None:
        yield f"  turn      {visible(run.turn_id)}"
    if run.ended_at is not None:
        yield f"  ended     {format_time(run.ended_at)}"
    usage = RunUsage(1, run.input_tokens, run.output_tokens, run.cost, run.seconds, run.calls)
    yield f"  used      {format_usage(usage)}"
    if run.message is not None:
        yield "\nIts agent is yet to be told"
        yield from (f"  {line}" for line in visible_block(run.message).splitlines())
    if run.result:
        yield "\nResult"
        yield from (f"  {line}" for line in visible_block(run.result).splitlines())
    for one in waiting:
        call = services.approvals.call(one.call_id)
        yield f"\nWaits for your approval: {visible(call.tool)}  punchlist approvals approve {one.call_id[-8:]}"
        yield from (f"  │ {line}" for line in visible_block(one.question).splitlines()[:20])


def _health(executor: str) -> str:
    from punchlist.kernel.process_id import is_running

    return " (it is no more; another worker goes on with the run)" if is_running(executor) is False else ""


# --- what you want of it ----------------------------------------------------------------------------------


@app.command()
def pause(context: typer.Context, run: IdArgument, why: ReasonOption = "", as_json: JsonOption = False) -> None:
    """Let a run come to rest. Nothing of it is lost; `runs resume` lets it go on."""
    _want(context, run, as_json, lambda runs, scope, which: runs.pause(scope, which, why))


@app.command()
def resume(context: typer.Context, run: IdArgument, why: ReasonOption = "", as_json: JsonOption = False) -> None:
    """Let a paused run go on where it was, or try one again that has failed."""
    _want(context, run, as_json, lambda runs, scope, which: runs.resume(scope, which, why))


@app.command()
def stop(context: typer.Context, run: IdArgument, why: ReasonOption = "", as_json: JsonOption = False) -> None:
    """End a run. What it has done stays done; `runs resume` begins it anew."""
    _want(context, run, as_json, lambda runs, scope, which: runs.stop(scope, which, why))


@app.command()
def redirect(
    context: typer.Context,
    run: IdArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to say; - reads it from stdin.")],
    as_json: JsonOption = False,
) -> None:
    """Tell the agent of a run something now: it is interrupted, hears it, and goes on."""
    said = sys.stdin.read() if text == "-" else text
    _want(context, run, as_json, lambda runs, scope, which: runs.redirect(scope, which, said))


def _want(context: typer.Context, wanted: str, as_json: bool, ask: Callable[[Runs, Scope, str], Run]) -> None:
    entry = cli_context(context)
    services = entry.services(as_json=as_json)
    after = ask(services.runs, entry.scope(services), services.runs.find(wanted).id)
    if as_json:
        echo_json(after.as_json())
        return
    told = "; its agent will be told" if after.message is not None else ""
    echo(f"Run {after.id[-8:]} is {_state(after)}{told}.")
