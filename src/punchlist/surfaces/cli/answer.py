"""`punchlist answer` and `punchlist wake`: what todos wait for, and saying that it has come."""

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

GOES_ON = "`punchlist run --resume` goes on with it."


def answer(
    context: typer.Context,
    wanted: Annotated[
        str | None, typer.Argument(metavar="ID", help="The question's id, or its end.", show_default=False)
    ] = None,
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="The answer; - reads it from stdin.", show_default=False)
    ] = None,
    session: SessionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Answer what a todo waits for a person to say; without arguments, list what is asked."""
    entry = cli_context(context)
    if wanted is None:
        _list_questions(entry, session, as_json)
        return
    if text is None:
        raise typer.BadParameter("is missing: what is the answer?", param_hint="TEXT")
    services = entry.in_session(session, as_json=as_json)
    scope = entry.scope(services)
    said = sys.stdin.read() if text == "-" else text
    held = services.plans.resolve(scope.conversation_id, wanted, said, scope.actor)
    if as_json:
        echo_json(_json(held))
    else:
        echo(f"Answered, for “{visible(held.todo.title)}”. {GOES_ON}")


def wake(
    context: typer.Context,
    event: Annotated[
        str | None, typer.Argument(metavar="EVENT", help="The event that has happened.", show_default=False)
    ] = None,
    note: Annotated[
        str, typer.Option("--note", "-n", metavar="TEXT", help="What is known of it; the model is told.")
    ] = "",
    session: SessionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say that an event has happened; without arguments, list the events and times that todos wait for."""
    entry = cli_context(context)
    if event is None:
        if note:
            raise typer.BadParameter("is missing: which event has happened?", param_hint="EVENT")
        _list_events(entry, session, as_json)
        return
    services = entry.in_session(session, as_json=as_json)
    scope = entry.scope(services)
    woken = services.plans.report_event(scope.conversation_id, event, scope.actor, note=note)
    if as_json:
        echo_json([_json(held) for held in woken])
        return
    for held in woken:
        echo(f"“{visible(held.todo.title)}” no longer waits for {visible(held.condition.subject)}.")
    echo(GOES_ON)


def _list_questions(entry: CliContext, session: str | None, as_json: bool) -> None:
    services = entry.in_session(session, as_json=as_json)
    asked = [held for held in _open(services) if held.condition.kind == "person"]
    if as_json:
        echo_json([_json(held) for held in asked])
        return
    if not asked:
        echo("Nothing waits for an answer.")
        return
    for held in asked:
        condition = held.condition
        echo(f"{condition.id[-8:]}  {visible(held.todo.title)}  since {format_time(condition.created_at)}")
        echo(f"  │ {visible(condition.subject)}\n")
    echo("Answer with: punchlist answer ID TEXT")


def _list_events(entry: CliContext, session: str | None, as_json: bool) -> None:
    services = entry.in_session(session, as_json=as_json)
    waiting = [held for held in _open(services) if held.condition.kind != "person"]
    if as_json:
        echo_json([_json(held) for held in waiting])
        return
    if not waiting:
        echo("Nothing waits for an event or a time.")
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
