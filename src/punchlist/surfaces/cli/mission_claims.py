"""`punchlist mission todo claim`, `renew` and `release`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from punchlist.claims.lifecycle import DEFAULT_LEASE_SECONDS
from punchlist.kernel.text import visible
from punchlist.surfaces.cli.context import CliContext, format_time
from punchlist.surfaces.cli.options import (
    TERMINAL,
    AsOption,
    MissionArgument,
    OptionalReasonOption,
    SecondsOption,
    TodoIdArgument,
    claim_place,
    mission_scope,
)

if TYPE_CHECKING:
    from punchlist.app import Services
    from punchlist.missions.todos.claims import MissionClaims

FenceOption = Annotated[int, typer.Option("--fence", min=1, metavar="N", help="The number that `claim` printed.")]


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
