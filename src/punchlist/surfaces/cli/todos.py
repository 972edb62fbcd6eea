"""`punchlist todos`: the plan and the checklist of a session as one numbered list."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from punchlist.claims.lifecycle import DEFAULT_LEASE_SECONDS
from punchlist.errors import NotFound
from punchlist.kernel.text import visible
from punchlist.surfaces.cli.context import (
    CliContext,
    ReasonOption,
    SessionOption,
    WatchOption,
    format_time,
    terminal_width,
)
from punchlist.surfaces.cli.options import TERMINAL, AsOption, SecondsOption, claim_place

if TYPE_CHECKING:
    from punchlist.app import Services
    from punchlist.conversations.model import Scope, TurnScope
    from punchlist.plan.usage import PlanTodoUsage
    from punchlist.views.todos import SessionTodos, TodoList

app = typer.Typer(help="Show and change the open todos: plan and checklist as one list.", invoke_without_command=True)

NumberArgument = Annotated[str, typer.Argument(metavar="N", help="The todo's number, or its id.")]
DoingOption = Annotated[
    str | None, typer.Option("--doing", metavar="TEXT", help='The title while it runs ("Running the tests").')
]
FenceOption = Annotated[
    int | None,
    typer.Option("--fence", min=1, metavar="F", help="The fence of your claim. Refused if it was claimed since."),
]
Change = Callable[["SessionTodos", "Scope"], object]


@app.callback()
def show(
    cli: CliContext,
    session: SessionOption = None,
    watch: WatchOption = False,
    turn: Annotated[str | None, typer.Option("--turn", metavar="ID", help="Show the plan of this turn.")] = None,
    costs: Annotated[bool, typer.Option("--costs", help="Show time, tokens and calls of each plan todo.")] = False,
) -> None:
    """Show and change the open todos: plan and checklist as one list.

    Numbers belong to their items: a number is not given to another item of the session.
    """
    if cli.invoked_subcommand:
        if session:
            cli.state.session = session
        return
    if watch:
        _watch(cli, session)
        return
    services = cli.in_session(session)
    todos = services.todos.list(cli.user_scope(services), turn)
    usage = _usage(services, turn or (todos.turn.id if todos.turn else None), todos) if costs else {}
    _print(cli, todos, usage)


@app.command("list")
def list_items(cli: CliContext, session: SessionOption = None) -> None:
    """Show the items, as `todos` does without a subcommand."""
    services = cli.in_session(session)
    _print(cli, services.todos.list(cli.user_scope(services)))


def _watch(cli: CliContext, session: str | None) -> None:
    from punchlist.surfaces.cli.todos_view import TodosView
    from punchlist.surfaces.cli.watch import watch

    services = cli.services(session)

    def load() -> TodoList:
        # A run that starts meanwhile has a session of its own, which is the current one from then on.
        services.use_session(services.current_session())
        return services.todos.list(cli.user_scope(services))

    watch(services.store, TodosView(load), as_json=cli.json)


def _usage(services: Services, turn_id: str | None, todos: TodoList) -> Mapping[str, PlanTodoUsage]:
    from punchlist.plan.lifecycle import PlanStatus
    from punchlist.plan.usage import PlanUsageService

    if turn_id is None or not any(item.list == "plan" for item in todos.items):
        return {}
    from punchlist.conversations.model import TurnScope
    from punchlist.kernel.events import Actor, Role

    scope = TurnScope(todos.session, Actor(Role.PERSON, ""), turn_id)
    return PlanUsageService(services.store).usage_by_todo(
        turn_id, services.plans.list(scope, frozenset(PlanStatus)).items
    )


def _print(cli: CliContext, todos: TodoList, usage: Mapping[str, PlanTodoUsage] | None = None) -> None:
    from punchlist.surfaces.cli.todos_view import todos_box, todos_json, usage_lines

    cli.show(todos_json(todos, usage), [*todos_box(todos, terminal_width()), *usage_lines(todos, usage or {})])


def change_todos(cli: CliContext, session: str | None, change: Change, *, check: str = "") -> None:
    """Make one change and show the list after it. The options may precede the subcommand, too.

    `check` is the command of a check that the change adds: it runs without approval, because a person wrote it.
    """
    services, scope = _open(cli, session)
    change(services.todos, scope)
    if check:
        from punchlist.verification.person_checks import record_person_check

        record_person_check(services.trust, services.workspace, check)
    _print(cli, services.todos.list(scope))


@app.command()
def add(
    cli: CliContext,
    titles: Annotated[list[str], typer.Argument(metavar="TEXT...", help="What to do; each TEXT is one item.")],
    doing: DoingOption = None,
    check: Annotated[
        str | None,
        typer.Option("--check", metavar="COMMAND", help="A command that exits with 0 when the work is done."),
    ] = None,
    session: SessionOption = None,
    why: ReasonOption = None,
) -> None:
    """Add items to the list that the session's agent uses: its plan, else the checklist."""
    if doing is not None and len(titles) > 1:
        raise typer.BadParameter("needs exactly one TEXT", param_hint="--doing")
    command = (check or "").strip()
    if check is not None:
        _refuse_for_agents("todos add --check")
    reason = why or "todos add"
    change_todos(
        cli,
        session,
        lambda todos, scope: todos.add(scope, titles, active_form=doing, check=command or None, reason=reason),
        check=command,
    )


@app.command()
def start(
    cli: CliContext,
    number: NumberArgument,
    fence: FenceOption = None,
    session: SessionOption = None,
    why: ReasonOption = None,
) -> None:
    """Mark an item as in progress."""
    reason = why or "todos start"
    change_todos(cli, session, lambda todos, scope: todos.start(scope, number, reason=reason, fence=fence))


@app.command()
def done(
    cli: CliContext,
    number: NumberArgument,
    outcome: Annotated[
        str | None, typer.Argument(metavar="[OUTCOME]", help="What was done.", show_default=False)
    ] = None,
    fence: FenceOption = None,
    session: SessionOption = None,
    why: ReasonOption = None,
) -> None:
    """Mark an item as completed. You accept it with that."""
    reason = why or "todos done"
    change_todos(
        cli,
        session,
        lambda todos, scope: todos.complete(scope, number, outcome, reason=reason, fence=fence),
    )


@app.command()
def accept(cli: CliContext, number: NumberArgument, session: SessionOption = None, why: ReasonOption = None) -> None:
    """Accept a completed item: you have seen that it is done."""
    _refuse_for_agents("todos accept")
    reason = why or "todos accept"
    change_todos(cli, session, lambda todos, scope: todos.accept(scope, number, reason=reason))


@app.command()
def check(
    cli: CliContext,
    number: NumberArgument,
    command: Annotated[str, typer.Argument(metavar="COMMAND", help="Exits with 0 when the work is done; '' removes.")],
    session: SessionOption = None,
    why: ReasonOption = None,
) -> None:
    """Set the check of an item. It runs, without asking, when an agent says that the item is done."""
    _refuse_for_agents("todos check")
    reason = why or "todos check"
    change_todos(
        cli,
        session,
        lambda todos, scope: todos.set_check(scope, number, command, reason=reason),
        check=command.strip(),
    )


@app.command()
def reopen(cli: CliContext, number: NumberArgument, session: SessionOption = None, why: ReasonOption = None) -> None:
    """Set a checklist item back to pending."""
    reason = why or "todos reopen"
    change_todos(cli, session, lambda todos, scope: todos.reopen(scope, number, reason=reason))


@app.command()
def edit(
    cli: CliContext,
    number: NumberArgument,
    title: Annotated[str, typer.Argument(metavar="TEXT", help="The new title.")],
    doing: DoingOption = None,
    session: SessionOption = None,
    why: ReasonOption = None,
) -> None:
    """Change the title of an item; its number, id and status stay."""
    _refuse_for_agents("todos edit")
    reason = why or "todos edit"
    change_todos(
        cli,
        session,
        lambda todos, scope: todos.edit(scope, number, title, active_form=doing, reason=reason),
    )


@app.command()
def move(
    cli: CliContext,
    number: NumberArgument,
    position: Annotated[int, typer.Argument(min=1, metavar="POSITION", help="Its new place in its list, from 1.")],
    session: SessionOption = None,
    why: ReasonOption = None,
) -> None:
    """Move an item within its list; its number stays."""
    reason = why or "todos move"
    change_todos(cli, session, lambda todos, scope: todos.move(scope, number, position, reason=reason))


@app.command()
def cancel(
    cli: CliContext,
    number: NumberArgument,
    reason: Annotated[
        str | None, typer.Option("--reason", "--why", metavar="TEXT", help="Why it will not be done.")
    ] = None,
    session: SessionOption = None,
) -> None:
    """Cancel an item: it stays in the list, with the reason."""
    change_todos(cli, session, lambda todos, scope: todos.cancel(scope, number, reason=reason))


@app.command()
def remove(cli: CliContext, number: NumberArgument, session: SessionOption = None, why: ReasonOption = None) -> None:
    """Take an item off the checklist; `undo` restores it."""
    _refuse_for_agents("todos remove")
    reason = why or "todos remove"
    change_todos(cli, session, lambda todos, scope: todos.remove(scope, number, reason=reason))


@app.command()
def clear(cli: CliContext, session: SessionOption = None, why: ReasonOption = None) -> None:
    """Empty the checklist; `undo` restores it."""
    _refuse_for_agents("todos clear")
    change_todos(cli, session, lambda todos, scope: todos.clear(scope, reason=why or "todos clear"))


@app.command()
def undo(cli: CliContext, session: SessionOption = None, why: ReasonOption = None) -> None:
    """Undo the last change of the checklist, also an agent's, or your last change of the plan if that is later.

    Repeat it to go further back. In a plan, an item that you added is cancelled, and one that you started or ended is
    pending again. What the agent has changed since then stays.
    """
    _refuse_for_agents("todos undo")
    change_todos(cli, session, lambda todos, scope: todos.undo(scope, reason=why or "todos undo"))


# --- claims ------------------------------------------------------------------------------------------------


@app.command()
def claim(
    cli: CliContext,
    number: Annotated[
        str | None,
        typer.Argument(metavar="[N]", help="The todo's number or id. Default: the next free one.", show_default=False),
    ] = None,
    seconds: SecondsOption = DEFAULT_LEASE_SECONDS,
    name: AsOption = TERMINAL,
    session: SessionOption = None,
) -> None:
    """Reserve a plan todo for yourself until the claim expires."""
    from punchlist.claims.model import ClaimGranted, NothingToClaim
    from punchlist.claims.tools import claim_json
    from punchlist.plan.tools import todo_json

    services, scope = _open(cli, session)
    place = claim_place(name)
    todo_id = None
    turn: TurnScope | None
    if number is not None:
        item, turn = services.todos.plan_scope(scope, number)
        todo_id = item.id
    else:
        turn = _turn_scope(services, scope)
    claimed = (
        services.plans.claim(turn, place, todo_id, seconds, reason="todos claim") if turn else NothingToClaim(0, 0)
    )
    if not isinstance(claimed, ClaimGranted):
        cli.show({"todo": None, "next": str(claimed)}, str(claimed))
        return
    found = services.todos.list(scope).find(claimed.todo.id)
    cli.show(
        {"todo": {"number": found.number, **todo_json(claimed.todo)}, **claim_json(claimed.claim)},
        f"You hold todo {found.number} “{visible(found.title)}” until {format_time(claimed.claim.lease_until)}.\n"
        f"id {claimed.todo.id}, fence {claimed.claim.fence}",
    )


@app.command()
def renew(
    cli: CliContext,
    number: NumberArgument,
    fence: Annotated[int, typer.Option("--fence", min=1, metavar="F", help="The fence that `todos claim` printed.")],
    seconds: SecondsOption = DEFAULT_LEASE_SECONDS,
    name: AsOption = TERMINAL,
    session: SessionOption = None,
) -> None:
    """Extend a claim."""
    from punchlist.claims.tools import claim_json

    services, scope = _open(cli, session)
    _check_turn(services, scope)
    item, turn = services.todos.plan_scope(scope, number)
    renewed = services.plans.renew_claim(turn, claim_place(name), item.id, fence, seconds)
    cli.show(
        {"number": item.number, "id": item.id, **claim_json(renewed)},
        f"You hold todo {item.number} until {format_time(renewed.lease_until)}.",
    )


@app.command()
def release(
    cli: CliContext,
    number: NumberArgument,
    fence: Annotated[
        int | None, typer.Option("--fence", min=1, metavar="F", help="Release only the claim with this fence.")
    ] = None,
    name: AsOption = TERMINAL,
    session: SessionOption = None,
    why: ReasonOption = None,
) -> None:
    """End a claim, your own or another holder's. The todo becomes free."""
    services, scope = _open(cli, session)
    _check_turn(services, scope)
    item, turn = services.todos.plan_scope(scope, number)
    released = services.plans.release_claim(turn, claim_place(name), item.id, fence, reason=why or "todos release")
    cli.show(
        {"number": item.number, "id": item.id, "released": True, "holder": released.holder},
        f"Todo {item.number} is free. {visible(released.holder)} held it.",
    )


def _refuse_for_agents(action: str) -> None:
    # Imported on use: showing the list is the fast path.
    from punchlist.surfaces.cli.agent_guard import refuse_for_agents

    refuse_for_agents(action)


def _open(cli: CliContext, session: str | None) -> tuple[Services, Scope]:
    services = cli.in_session(session)
    return services, cli.list_scope(services)


def _turn_scope(services: Services, scope: Scope) -> TurnScope | None:
    from punchlist.conversations.model import TurnScope

    turn = services.conversations.current_turn(scope.conversation_id)
    return TurnScope(scope.conversation_id, scope.actor, turn.id) if turn else None


def _check_turn(services: Services, scope: Scope) -> None:
    if services.conversations.current_turn(scope.conversation_id) is None:
        raise NotFound(f"Session {scope.conversation_id!r} has no open turn, so it has no claims.")
