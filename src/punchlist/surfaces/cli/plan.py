"""`punchlist plan`: the plan of a turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from punchlist.claims.lifecycle import DEFAULT_LEASE_SECONDS, MAX_LEASE_SECONDS, MIN_LEASE_SECONDS
from punchlist.errors import InvalidInput, NotFound
from punchlist.kernel.text import line_problem, visible
from punchlist.plan.lifecycle import PlanStatus
from punchlist.surfaces.cli.context import (
    JsonOption,
    ReasonOption,
    SessionOption,
    cli_context,
    echo,
    echo_json,
    format_time,
)

if TYPE_CHECKING:
    from punchlist.conversations.model import TurnScope
    from punchlist.plan.model import Plan, TurnTodo
    from punchlist.plan.usage import PlanTodoUsage
    from punchlist.surfaces.services import Services

app = typer.Typer(help="Show the plan of the present turn, and take todos of it.", no_args_is_help=True)

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The todo's id.", show_default=False)]
SecondsOption = Annotated[
    int,
    typer.Option(
        "--seconds", min=MIN_LEASE_SECONDS, max=MAX_LEASE_SECONDS, metavar="N", help="For how long it is to be yours."
    ),
]
AsOption = Annotated[
    str, typer.Option("--as", metavar="NAME", help="Tells you from others who claim in your name, such as scripts.")
]

TERMINAL = "terminal"
LONGEST_PLACE = 100
ICONS = {PlanStatus.PENDING: "○", PlanStatus.IN_PROGRESS: "▶", PlanStatus.COMPLETED: "✓", PlanStatus.CANCELLED: "✗"}


@app.callback()
def group() -> None:
    """Show the plan of the present turn, and take todos of it."""


@app.command()
def show(
    context: typer.Context,
    turn: Annotated[str | None, typer.Option("--turn", metavar="ID", help="Another turn than the open one.")] = None,
    remaining: Annotated[bool, typer.Option("--remaining", help="Only what is not ended yet.")] = False,
    costs: Annotated[bool, typer.Option("--costs", help="What each has taken, and the calls made meanwhile.")] = False,
    session: SessionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the todos of a turn in their order."""
    from punchlist.conversations.model import TurnScope
    from punchlist.plan.tools import plan_json

    entry = cli_context(context)
    services = entry.services(session, as_json=as_json)
    scope = entry.scope(services)
    if turn is None:
        newest = [one for one in services.conversations.turns(scope.conversation_id) if one.parent_turn_id is None]
        current = services.conversations.current_turn(scope.conversation_id) or next(iter(newest), None)
        if current is None:
            if as_json:
                echo_json({"session": scope.conversation_id, "turnId": None, **plan_json(_nothing())})
            else:
                echo("There is no turn yet. One opens when an agent first plans.")
            return
        turn = current.id
        if not current.open and not as_json:
            echo(f"The last turn, which has ended ({visible(current.end_reason)}):\n")
    states = None if remaining else frozenset(PlanStatus)
    plan = services.plans.list(TurnScope(scope.conversation_id, scope.actor, turn), states)
    taken = _taken(services, turn, plan) if costs else {}
    if as_json:
        told = plan_json(plan)
        for item in told["items"]:
            if item["id"] in taken:
                item["costs"] = taken[item["id"]].as_json()
        echo_json({"session": scope.conversation_id, "turnId": turn, **told})
    else:
        _print(plan, taken)


def _taken(services: Services, turn_id: str, plan: Plan) -> Mapping[str, PlanTodoUsage]:
    from punchlist.plan.usage import PlanUsageService

    return PlanUsageService(services.store).usage_by_todo(turn_id, plan.items)


@app.command()
def claim(
    context: typer.Context,
    todo_id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="Default: the next that is free.", show_default=False)
    ] = None,
    seconds: SecondsOption = DEFAULT_LEASE_SECONDS,
    name: AsOption = TERMINAL,
    session: SessionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take a todo, so that nobody else works on it until the time is over."""
    from punchlist.claims.model import ClaimGranted, NothingToClaim
    from punchlist.claims.tools import claim_json
    from punchlist.plan.tools import todo_json

    services, scope = _present(context, session, as_json)
    claimed = (
        services.plans.claim(scope, place(name), todo_id, seconds, reason="plan claim")
        if scope
        else NothingToClaim(0, 0)
    )
    if not isinstance(claimed, ClaimGranted):
        if as_json:
            echo_json({"todo": None, "next": str(claimed)})
        else:
            echo(str(claimed))
        return
    if as_json:
        echo_json({"todo": todo_json(claimed.todo), **claim_json(claimed.claim)})
        return
    echo(f"“{visible(claimed.todo.title)}” is yours until {format_time(claimed.claim.lease_until)}.")
    echo(f"id {claimed.todo.id}, fence {claimed.claim.fence}")


@app.command()
def renew(
    context: typer.Context,
    todo_id: IdArgument,
    fence: Annotated[int, typer.Option("--fence", min=1, metavar="N", help="As `plan claim` said.")],
    seconds: SecondsOption = DEFAULT_LEASE_SECONDS,
    name: AsOption = TERMINAL,
    session: SessionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Keep a claimed todo for longer."""
    from punchlist.claims.tools import claim_json

    services, scope = _open(context, session, as_json)
    kept = services.plans.renew_claim(scope, place(name), todo_id, fence, seconds)
    if as_json:
        echo_json({"id": kept.todo_id, **claim_json(kept)})
    else:
        echo(f"It is yours until {format_time(kept.lease_until)}.")


@app.command()
def release(
    context: typer.Context,
    todo_id: IdArgument,
    fence: Annotated[
        int | None, typer.Option("--fence", min=1, metavar="N", help="Only if it is still the claim with this fence.")
    ] = None,
    name: AsOption = TERMINAL,
    session: SessionOption = None,
    why: ReasonOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give a claimed todo back to the plan, whoever holds it."""
    services, scope = _open(context, session, as_json)
    released = services.plans.release_claim(scope, place(name), todo_id, fence, reason=why or "plan release")
    if as_json:
        echo_json({"id": released.todo_id, "released": True, "holder": released.holder})
    else:
        echo(f"It is free. {visible(released.holder)} had it.")


@app.command()
def complete(
    context: typer.Context,
    todo_id: IdArgument,
    outcome: Annotated[str, typer.Argument(metavar="OUTCOME", help="What was done.", show_default=False)],
    fence: Annotated[
        int | None, typer.Option("--fence", min=1, metavar="N", help="Of your claim: not if it was claimed since.")
    ] = None,
    session: SessionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Complete a todo."""
    from punchlist.plan import validation as plan_validation

    services, scope = _open(context, session, as_json)
    ended = services.plans.end(scope, todo_id, plan_validation.parse_outcome(outcome), fence=fence)
    if as_json:
        echo_json({"id": ended.todo.id, "status": ended.todo.status, "remaining": ended.remaining})
    else:
        echo(f"“{visible(ended.todo.title)}” is completed; {ended.remaining} remaining.")


def _present(context: typer.Context, session: str | None, as_json: bool) -> tuple[Services, TurnScope | None]:
    """The services, and where the person stands in the open turn, if there is one."""
    from punchlist.conversations.model import TurnScope

    entry = cli_context(context)
    services = entry.services(session, as_json=as_json)
    scope = entry.scope(services)
    turn = services.conversations.current_turn(scope.conversation_id)
    return services, TurnScope(scope.conversation_id, scope.actor, turn.id) if turn else None


def _open(context: typer.Context, session: str | None, as_json: bool) -> tuple[Services, TurnScope]:
    services, scope = _present(context, session, as_json)
    if scope is None:
        raise NotFound(f"Session {services.settings.session!r} has no open turn, so there is no plan to change.")
    return services, scope


def place(name: str) -> str:
    if problem := line_problem(name, max_length=LONGEST_PLACE):
        raise InvalidInput(f"--as: {problem}")
    return name.strip()


def _nothing() -> Plan:
    from punchlist.plan.model import Plan

    return Plan([], dict.fromkeys(PlanStatus, 0))


def _print(plan: Plan, taken: Mapping[str, PlanTodoUsage]) -> None:
    summary = plan.summary
    if not summary["total"]:
        echo("The plan is empty.")
        return
    for todo in plan.items:
        for line in (*_lines(todo), *(f"      waits for {visible(wait)}" for wait in plan.waits.get(todo.id, ()))):
            echo(line)
        if held := plan.claims.get(todo.id):
            echo(f"      claimed by {visible(held.holder)} until {format_time(held.lease_until)}")
        if one := taken.get(todo.id):
            tokens = f"{one.input_tokens:,} tokens in, {one.output_tokens:,} out"
            echo(f"      {one.seconds:.1f} s, {tokens}, {len(one.evidence)} calls")
    ended = summary["completed"] + summary["cancelled"]
    cancelled = f", {summary['cancelled']} cancelled" if summary["cancelled"] else ""
    echo()
    echo(f"{ended}/{summary['total']} ended ({summary['completed']} completed{cancelled}), {plan.remaining} remaining")


def _lines(todo: TurnTodo) -> list[str]:
    agent = f"  → {visible(todo.agent_type)}" if todo.agent_type else ""
    lines = [f"{todo.priority + 1:>3} {ICONS[todo.status]} {visible(todo.title)}{agent}"]
    if todo.outcome:
        lines.append(f"      {visible(todo.outcome)}")
    return lines
