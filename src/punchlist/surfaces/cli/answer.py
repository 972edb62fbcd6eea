"""`punchlist answer` and `punchlist wake`: resolve the conditions that todos wait for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from punchlist.kernel.text import visible
from punchlist.surfaces.cli.context import (
    CliContext,
    JsonOption,
    SessionOption,
    cli_context,
    echo,
    echo_json,
    format_time,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from punchlist.plan.model import BlockedTodo
    from punchlist.surfaces.services import Services

NEXT_STEP = "`punchlist run --resume` continues the work."


def answer(
    context: typer.Context,
    wanted: Annotated[
        str | None, typer.Argument(metavar="ID", help="The question's id, or the end of it.", show_default=False)
    ] = None,
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="The answer; - reads it from stdin.", show_default=False)
    ] = None,
    session: SessionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Answer an agent's question; without arguments, list the open questions."""
    cli = cli_context(context)
    if wanted is None:
        _list_questions(cli, session, as_json)
        return
    if text is None:
        raise typer.BadParameter("is missing", param_hint="TEXT")
    services = cli.in_session(session, as_json=as_json)
    scope = cli.scope(services)
    said = sys.stdin.read() if text == "-" else text
    held = services.plans.resolve(scope.conversation_id, wanted, said, scope.actor)
    if as_json:
        echo_json(_json(held))
    else:
        echo(f"Answered, for “{visible(held.todo.title)}”. {NEXT_STEP}")


def wake(
    context: typer.Context,
    event: Annotated[
        str | None, typer.Argument(metavar="EVENT", help="The event that happened.", show_default=False)
    ] = None,
    note: Annotated[str, typer.Option("--note", "-n", metavar="TEXT", help="Details; the model sees them.")] = "",
    session: SessionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Report that an event happened; without arguments, list the events and times that todos wait for."""
    cli = cli_context(context)
    if event is None:
        if note:
            raise typer.BadParameter("is missing", param_hint="EVENT")
        _list_events(cli, session, as_json)
        return
    services = cli.in_session(session, as_json=as_json)
    scope = cli.scope(services)
    woken = services.plans.report_event(scope.conversation_id, event, scope.actor, note=note)
    if as_json:
        echo_json([_json(held) for held in woken])
        return
    for held in woken:
        echo(f"“{visible(held.todo.title)}” no longer waits for {visible(held.condition.subject)}.")
    echo(NEXT_STEP)


def _list_questions(cli: CliContext, session: str | None, as_json: bool) -> None:
    services = cli.in_session(session, as_json=as_json)
    asked = [held for held in _open(services) if held.condition.kind == "person"]
    if as_json:
        echo_json([_json(held) for held in asked])
        return
    if not asked:
        echo("No question is open.")
        return
    for held in asked:
        condition = held.condition
        echo(f"{condition.id[-8:]}  {visible(held.todo.title)}  since {format_time(condition.created_at)}")
        echo(f"  │ {visible(condition.subject)}\n")
    echo("Answer with: punchlist answer ID TEXT")


def _list_events(cli: CliContext, session: str | None, as_json: bool) -> None:
    services = cli.in_session(session, as_json=as_json)
    waiting = [held for held in _open(services) if held.condition.kind != "person"]
    if as_json:
        echo_json([_json(held) for held in waiting])
        return
    if not waiting:
        echo("No todo waits for an event or a time.")
    for held in waiting:
        what = "until" if held.condition.kind == "time" else "for event"
        echo(f"{visible(held.todo.title)}  {what} {visible(held.condition.subject)}")


def _open(services: Services) -> Sequence[BlockedTodo]:
    return services.plans.open_conditions(services.settings.session)


def _json(held: BlockedTodo) -> dict[str, Any]:
    condition = held.condition
    return {
        "id": condition.id,
        "session": condition.conversation_id,
        "turnId": condition.turn_id,
        "todo": {"id": held.todo.id, "title": held.todo.title},
        "kind": condition.kind,
        "subject": condition.subject,
        "status": condition.status,
        "answer": condition.answer,
        "resolvedBy": condition.resolved_by,
        "resolvedAt": condition.resolved_at,
        "createdAt": condition.created_at,
    }
