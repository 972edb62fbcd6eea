"""`punchlist mission escalations`, `answer` and `acknowledge`: what a mission asks the person."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from punchlist.kernel.text import visible, visible_block
from punchlist.surfaces.cli.context import JsonOption, cli_context, echo, echo_json, format_time

if TYPE_CHECKING:
    from punchlist.missions.model import Escalation, MissionScope
    from punchlist.surfaces.cli.context import CliContext
    from punchlist.surfaces.services import Services

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The escalation's id, or its end.", show_default=False)]


class EscalationChoice(StrEnum):
    EXTEND = "extend"
    CANCEL = "cancel"
    KEEP = "keep"


def escalations(
    context: typer.Context,
    slug: Annotated[
        str | None, typer.Argument(metavar="[SLUG]", help="The mission's slug. Default: all.", show_default=False)
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Those that were answered, too.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List what missions ask you about their todos."""
    services = cli_context(context).services(as_json=as_json)
    found = services.escalations.list(slug, open_only=not every)
    if as_json:
        echo_json([_json(one) for one in found])
        return
    if not found:
        echo("Nothing was ever asked." if every else "Nothing is asked.")
    for one in found:
        reminded = f", reminded {one.reminders} times" if one.reminders > 1 else ", reminded" if one.reminders else ""
        echo(f"{one.id[-8:]}  {one.status}  since {format_time(one.asked_at)}{reminded}")
        echo("\n".join(f"  │ {line}" for line in _wrapped(one.question)))
        if one.answer is not None:
            echo(f"  {visible(one.answered_by)}: {visible(one.answer)}")


def _wrapped(text: str) -> Iterator[str]:
    import textwrap

    from punchlist.surfaces.cli.layout import line_width

    for line in visible_block(text).splitlines():
        yield from textwrap.wrap(line, line_width() - 4, break_on_hyphens=False) or [""]


def answer(
    context: typer.Context,
    id: IdArgument,
    choice: Annotated[EscalationChoice, typer.Argument(metavar="extend|cancel|keep", show_default=False)],
    date: Annotated[
        str | None,
        typer.Argument(metavar="[DATE]", help="With extend: the new deadline, such as 2026-02-21.", show_default=False),
    ] = None,
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="A reason for the event trail.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Say what becomes of a todo: its deadline is extended, it is cancelled, or it stays as it is."""
    entry = cli_context(context)
    services = entry.services(as_json=as_json)
    done = services.escalations.answer(_scope(entry, services), id, choice.value, deadline=date, reason=why)
    if as_json:
        echo_json(_json(done))
    else:
        echo(f"Answered: {visible(done.answer)}.")


def acknowledge(context: typer.Context, id: IdArgument, as_json: JsonOption = False) -> None:
    """Say that you have seen a question: it stays open, but you are not reminded any more."""
    entry = cli_context(context)
    services = entry.services(as_json=as_json)
    seen = services.escalations.acknowledge(_scope(entry, services), id)
    if as_json:
        echo_json(_json(seen))
    else:
        echo(
            f"You are not reminded of {seen.id[-8:]} any more. To answer it: punchlist mission answer {seen.id[-8:]} …"
        )


def _scope(entry: CliContext, services: Services) -> MissionScope:
    """The person at the terminal, who is bound to no mission."""
    from punchlist.missions.model import MissionScope

    scope = entry.scope(services)
    return MissionScope(scope.conversation_id, scope.actor)


def _json(one: Escalation) -> dict[str, Any]:
    return {
        "id": one.id,
        "missionId": one.mission_id,
        "todoId": one.todo_id,
        "kind": one.kind,
        "question": one.question,
        "status": one.status,
        "askedAt": one.asked_at,
        "remindedAt": one.reminded_at,
        "reminders": one.reminders,
        "answer": one.answer,
        "answeredBy": one.answered_by,
        "answeredAt": one.answered_at,
    }
