"""`punchlist mission escalations`, `answer` and `acknowledge`: questions of missions to a person."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated

import typer

from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.text import visible, visible_block
from punchlist.surfaces.cli.context import CliContext, format_time
from punchlist.surfaces.cli.options import OptionalMissionArgument, OptionalReasonOption, mission_scope

IdArgument = Annotated[
    str, typer.Argument(metavar="ID", help="The escalation's id, or the end of it.", show_default=False)
]


class EscalationChoice(StrEnum):
    EXTEND = "extend"
    CANCEL = "cancel"
    KEEP = "keep"


def escalations(
    cli: CliContext,
    slug: OptionalMissionArgument = None,
    include_answered: Annotated[bool, typer.Option("--all", help="Include answered questions.")] = False,
) -> None:
    """List the questions of missions about their todos."""
    found = cli.services().escalations.list(slug, open_only=not include_answered)
    lines = []
    for escalation in found:
        count = escalation.reminders
        reminded = f", reminded {count} times" if count > 1 else ", reminded" if count else ""
        lines.append(f"{escalation.id[-8:]}  {escalation.status}  since {format_time(escalation.asked_at)}{reminded}")
        lines += [f"  │ {line}" for line in _wrap(escalation.question)]
        if escalation.answer is not None:
            lines.append(f"  {visible(escalation.answered_by)}: {visible(escalation.answer)}")
    empty = "There are no questions." if include_answered else "There are no open questions."
    cli.show([camel_json(escalation) for escalation in found], lines, empty=empty)


def _wrap(text: str) -> Iterator[str]:
    from punchlist.surfaces.cli.layout import line_width

    for line in visible_block(text).splitlines():
        yield from textwrap.wrap(line, line_width() - 4, break_on_hyphens=False) or [""]


def answer(
    cli: CliContext,
    id: IdArgument,
    choice: Annotated[EscalationChoice, typer.Argument(metavar="extend|cancel|keep", show_default=False)],
    date: Annotated[
        str | None,
        typer.Argument(metavar="[DATE]", help="With extend: the new deadline, such as 2026-02-21.", show_default=False),
    ] = None,
    why: OptionalReasonOption = "",
) -> None:
    """Answer a question about a todo: extend its deadline, cancel it, or keep it."""
    services = cli.services()
    scope = mission_scope(cli, services)
    answered = services.escalations.answer(scope, id, choice.value, deadline=date, reason=why)
    cli.show(camel_json(answered), f"Answered: {visible(answered.answer)}.")


def acknowledge(cli: CliContext, id: IdArgument) -> None:
    """Stop the reminders of a question. It stays open."""
    services = cli.services()
    seen = services.escalations.acknowledge(mission_scope(cli, services), id)
    cli.show(
        camel_json(seen),
        f"Reminders of {seen.id[-8:]} stopped. To answer it: punchlist mission answer {seen.id[-8:]} …",
    )
