"""`punchlist answer` and `punchlist wake`: resolve the conditions that todos wait for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.text import visible
from punchlist.surfaces.cli.agent_guard import refuse_for_agents
from punchlist.surfaces.cli.context import (
    CliContext,
    SessionOption,
    format_time,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from punchlist.plan.model import BlockedTodo

NEXT_STEP = "`punchlist run --resume` continues the work."


def answer(
    cli: CliContext,
    wanted: Annotated[
        str | None, typer.Argument(metavar="ID", help="The question's id, or the end of it.", show_default=False)
    ] = None,
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="The answer; - reads it from stdin.", show_default=False)
    ] = None,
    session: SessionOption = None,
) -> None:
    """Answer an agent's question; without arguments, list the open questions."""
    if wanted is None:
        _list_questions(cli, session)
        return
    if text is None:
        raise typer.BadParameter("is missing", param_hint="TEXT")
    refuse_for_agents("answer")
    services = cli.in_session(session)
    scope = cli.user_scope(services)
    said = sys.stdin.read() if text == "-" else text
    held = services.plans.resolve(scope.conversation_id, wanted, said, scope.actor)
    cli.show(_json(held), f"Answered, for “{visible(held.todo.title)}”. {NEXT_STEP}")


def wake(
    cli: CliContext,
    event: Annotated[
        str | None, typer.Argument(metavar="EVENT", help="The event that happened.", show_default=False)
    ] = None,
    note: Annotated[str, typer.Option("--note", "-n", metavar="TEXT", help="Details; the model sees them.")] = "",
    session: SessionOption = None,
) -> None:
    """Report that an event happened; without arguments, list the events and times that todos wait for."""
    if event is None:
        if note:
            raise typer.BadParameter("is missing", param_hint="EVENT")
        _list_events(cli, session)
        return
    # As the service says: a person or another program ends a wait, never the agent that waits.
    refuse_for_agents("wake")
    services = cli.in_session(session)
    scope = cli.user_scope(services)
    woken = services.plans.report_event(scope.conversation_id, event, scope.actor, note=note)
    lines = (f"“{visible(one.todo.title)}” no longer waits for {visible(one.condition.subject)}." for one in woken)
    cli.show([_json(blocked) for blocked in woken], [*lines, NEXT_STEP])


def _list_questions(cli: CliContext, session: str | None) -> None:
    questions = [blocked for blocked in _open(cli, session) if blocked.condition.kind == "person"]
    lines = [
        f"{asked.condition.id[-8:]}  {visible(asked.todo.title)}  since {format_time(asked.condition.created_at)}\n"
        f"  │ {visible(asked.condition.subject)}\n"
        for asked in questions
    ]
    if lines:
        lines.append("Answer with: punchlist answer ID TEXT")
    cli.show([_json(blocked) for blocked in questions], lines, empty="No question is open.")


def _list_events(cli: CliContext, session: str | None) -> None:
    waiting = [blocked for blocked in _open(cli, session) if blocked.condition.kind != "person"]
    lines = [
        f"{visible(blocked.todo.title)}  {'until' if blocked.condition.kind == 'time' else 'for event'} "
        f"{visible(blocked.condition.subject)}"
        for blocked in waiting
    ]
    cli.show([_json(blocked) for blocked in waiting], lines, empty="No todo waits for an event or a time.")


def _open(cli: CliContext, session: str | None) -> Sequence[BlockedTodo]:
    services = cli.in_session(session)
    return services.plans.open_conditions(services.settings.session)


def _json(blocked: BlockedTodo) -> dict[str, Any]:
    names = ("id", "turn_id", "kind", "subject", "status", "answer", "resolved_by", "resolved_at", "created_at")
    return {
        **camel_json(blocked.condition, *names),
        "session": blocked.condition.conversation_id,
        "todo": {"id": blocked.todo.id, "title": blocked.todo.title},
    }
