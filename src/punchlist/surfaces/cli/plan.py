"""`punchlist plan`: the plan of a turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from punchlist.kernel.text import visible
from punchlist.plan.lifecycle import Status
from punchlist.surfaces.cli.front import JsonOption, SessionOption, front, say, say_json

if TYPE_CHECKING:
    from punchlist.plan.model import Plan, TurnTodo

app = typer.Typer(help="Show the plan of the present turn.", no_args_is_help=True)

ICONS = {Status.PENDING: "○", Status.IN_PROGRESS: "▶", Status.COMPLETED: "✓", Status.CANCELLED: "✗"}


@app.callback()
def group() -> None:
    """Show the plan of the present turn."""


@app.command()
def show(
    context: typer.Context,
    turn: Annotated[str | None, typer.Option("--turn", metavar="ID", help="Another turn than the open one.")] = None,
    remaining: Annotated[bool, typer.Option("--remaining", help="Only what is not ended yet.")] = False,
    session: SessionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the todos of a turn in their order."""
    from punchlist.conversations.model import TurnScope
    from punchlist.plan.tools import plan_json

    entry = front(context)
    desk = entry.desk(session, as_json=as_json)
    scope = entry.scope(desk)
    if turn is None:
        newest = [one for one in desk.conversations.turns(scope.conversation_id) if one.parent_turn_id is None]
        current = desk.conversations.current_turn(scope.conversation_id) or next(iter(newest), None)
        if current is None:
            if as_json:
                say_json({"session": scope.conversation_id, "turnId": None, **plan_json(_nothing())})
            else:
                say("There is no turn yet. One opens when an agent first plans.")
            return
        turn = current.id
        if not current.open and not as_json:
            say(f"The last turn, which has ended ({visible(current.end_reason)}):\n")
    states = None if remaining else frozenset(Status)
    plan = desk.plans.list(TurnScope(scope.conversation_id, scope.actor, turn), states)
    if as_json:
        say_json({"session": scope.conversation_id, "turnId": turn, **plan_json(plan)})
    else:
        _print(plan)


def _nothing() -> Plan:
    from punchlist.plan.model import Plan

    return Plan([], dict.fromkeys(Status, 0))


def _print(plan: Plan) -> None:
    summary = plan.summary
    if not summary["total"]:
        say("The plan is empty.")
        return
    for todo in plan.items:
        for line in (*_lines(todo), *(f"      waits for {visible(wait)}" for wait in plan.waits.get(todo.id, ()))):
            say(line)
    ended = summary["completed"] + summary["cancelled"]
    cancelled = f", {summary['cancelled']} cancelled" if summary["cancelled"] else ""
    say()
    say(f"{ended}/{summary['total']} ended ({summary['completed']} completed{cancelled}), {plan.remaining} remaining")


def _lines(todo: TurnTodo) -> list[str]:
    agent = f"  → {visible(todo.agent_type)}" if todo.agent_type else ""
    lines = [f"{todo.priority + 1:>3} {ICONS[todo.status]} {visible(todo.title)}{agent}"]
    if todo.outcome:
        lines.append(f"      {visible(todo.outcome)}")
    return lines
