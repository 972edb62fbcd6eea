"""`punchlist mission escalations`, `answer` and `acknowledge`: questions of missions to a person."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from punchlist.kernel.text import visible, visible_block
from punchlist.surfaces.cli.context import JsonOption, cli_context, echo, echo_json, format_time
from punchlist.surfaces.cli.mission_options import OptionalMissionArgument, OptionalReasonOption, mission_scope

if TYPE_CHECKING:
    from punchlist.missions.model import Escalation

IdArgument = Annotated[
    str, typer.Argument(metavar="ID", help="The escalation's id, or the end of it.", show_default=False)
]


class EscalationChoice(StrEnum):
    EXTEND = "extend"
    CANCEL = "cancel"
    KEEP = "keep"


def escalations(
    context: typer.Context,
    slug: OptionalMissionArgument = None,
    include_answered: Annotated[bool, typer.Option("--all", help="Include answered questions.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List the questions of missions about their todos."""
    services = cli_context(context).services(as_json=as_json)
    found = services.escalations.list(slug, open_only=not include_answered)
    if as_json:
        echo_json([_json(escalation) for escalation in found])
        return
    if not found:
        echo("There are no questions." if include_answered else "There are no open questions.")
    for escalation in found:
        count = escalation.reminders
        reminded = f", reminded {count} times" if count > 1 else ", reminded" if count else ""
        echo(f"{escalation.id[-8:]}  {escalation.status}  since {format_time(escalation.asked_at)}{reminded}")
        echo("\n".join(f"  │ {line}" for line in _wrap(escalation.question)))
        if escalation.answer is not None:
            echo(f"  {visible(escalation.answered_by)}: {visible(escalation.answer)}")


def _wrap(text: str) -> Iterator[str]:
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
    why: OptionalReasonOption = "",
    as_json: JsonOption = False,
) -> None:
    """Answer a question about a todo: extend its deadline, cancel it, or keep it."""
    cli = cli_context(context)
    services = cli.services(as_json=as_json)
    scope = mission_scope(cli, services)
    answered = services.escalations.answer(scope, id, choice.value, deadline=date, reason=why)
    if as_json:
        echo_json(_json(answered))
    else:
        echo(f"Answered: {visible(answered.answer)}.")


def acknowledge(context: typer.Context, id: IdArgument, as_json: JsonOption = False) -> None:
    """Stop the reminders of a question. It stays open."""
    cli = cli_context(context)
    services = cli.services(as_json=as_json)
    seen = services.escalations.acknowledge(mission_scope(cli, services), id)
    if as_json:
        echo_json(_json(seen))
    else:
        echo(f"Reminders of {seen.id[-8:]} stopped. To answer it: punchlist mission answer {seen.id[-8:]} …")


def _json(escalation: Escalation) -> dict[str, Any]:
    return {
        "id": escalation.id,
        "missionId": escalation.mission_id,
        "todoId": escalation.todo_id,
        "kind": escalation.kind,
        "question": escalation.question,
        "status": escalation.status,
        "askedAt": escalation.asked_at,
        "remindedAt": escalation.reminded_at,
        "reminders": escalation.reminders,
        "answer": escalation.answer,
        "answeredBy": escalation.answered_by,
        "answeredAt": escalation.answered_at,
    }
