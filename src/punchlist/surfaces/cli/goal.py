"""`punchlist goal`: acceptance criteria for a third-party agent in a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from punchlist.errors import InvalidInput
from punchlist.kernel.text import visible, visible_block
from punchlist.surfaces.cli.agent_guard import refuse_for_agents
from punchlist.surfaces.cli.context import CliContext, SessionOption

if TYPE_CHECKING:
    from punchlist.app import Services
    from punchlist.integrations.session_goals import SessionGoals
    from punchlist.verification.goal import Goal

app = typer.Typer(
    help="What the work of an agent you already run is accepted by: its stop hook sends it back until that is true.",
    no_args_is_help=True,
)


@app.command("set")
def set_goal(
    cli: CliContext,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What must be true when the work is done.")],
    check: Annotated[
        list[str] | None,
        typer.Option("--check", metavar="CMD", help="A command that exits with 0 when it is. Repeatable."),
    ] = None,
    session: SessionOption = None,
) -> None:
    """Set the goal of a session, in place of the one before."""
    from punchlist.verification.goal import Goal
    from punchlist.verification.person_checks import record_person_check
    from punchlist.verification.validation import parse_check

    refuse_for_agents("goal set")
    problems: list[str] = []
    checks = [parse_check(command, "--check", problems, by_person=True) for command in check or ()]
    if problems:
        raise InvalidInput(problems)
    services = cli.in_session(session)
    goal = Goal(text.strip(), tuple(each for each in checks if each is not None))
    _goals(services).set(cli.user_scope(services), goal)
    for each in goal.checks:
        record_person_check(services.trust, services.workspace, each.command or "")
    _show(cli, services, goal)


@app.command()
def show(cli: CliContext, session: SessionOption = None) -> None:
    """Show the goal of a session."""
    services = cli.in_session(session)
    _show(cli, services, _goals(services).get(services.settings.session))


@app.command()
def clear(cli: CliContext, session: SessionOption = None) -> None:
    """Remove the goal of a session."""
    refuse_for_agents("goal clear")
    services = cli.in_session(session)
    cleared = _goals(services).clear(cli.user_scope(services))
    name = visible(services.settings.session)
    done = f"Session {name} has no goal any more." if cleared else f"Session {name} has no goal."
    cli.show({"session": services.settings.session, "goal": None, "cleared": cleared}, done)


def _show(cli: CliContext, services: Services, goal: Goal | None) -> None:
    from punchlist.verification.model import check_json

    session = services.settings.session
    if goal is None:
        cli.show({"session": session, "goal": None}, f"Session {visible(session)} has no goal.")
        return
    value = {"criteria": goal.criteria, "checks": [check_json(check) for check in goal.checks]}
    lines = [f"Goal of session {visible(session)}:", visible_block(goal.criteria)]
    lines += [f"Check: {visible(check.description)}" for check in goal.checks]
    cli.show({"session": session, "goal": value}, lines)


def _goals(services: Services) -> SessionGoals:
    from punchlist.integrations.session_goals import SessionGoals

    return SessionGoals(services.store, services.conversations)
