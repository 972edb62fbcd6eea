"""`punchlist goal`: acceptance criteria for a third-party agent in a session."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from punchlist.errors import InvalidInput, NotFound, PunchlistError
from punchlist.kernel.text import visible, visible_block
from punchlist.surfaces.cli.agent_guard import refuse_for_agents
from punchlist.surfaces.cli.context import CliContext, SessionOption, ShowByDefault

if TYPE_CHECKING:
    from punchlist.agent.goals import GoalVerdict
    from punchlist.app import Services
    from punchlist.integrations.session_goals import SessionGoals
    from punchlist.verification.goal import Goal

NOT_MET: Final = 3
app = typer.Typer(
    help="Say what an agent you already run must achieve: its stop hook sends it back until that is true.",
    cls=ShowByDefault,
)


@app.command("set")
def set_goal(
    cli: CliContext,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What must be true when the work is done.")],
    check: Annotated[
        list[str] | None,
        typer.Option("--check", metavar="CMD", help="A command that exits with 0 when it is. Repeatable."),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL", help="A model that judges the criteria. Without it, the agent confirms them itself."
        ),
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
    if judge is not None:
        from punchlist.agent.model_resolver import model_named

        # A wrong name or a missing extra fails now and not in a hook.
        model_named(judge, os.environ)
    goal = Goal(text.strip(), tuple(each for each in checks if each is not None), judge)
    _goals(services).set(cli.user_scope(services), goal)
    for each in goal.checks:
        record_person_check(services.trust, services.workspace, each.command or "")
    _show(cli, services, goal)


@app.command()
def show(cli: CliContext, session: SessionOption = None) -> None:
    """Show the goal of a session."""
    services = cli.in_session(session)
    _show(cli, services, _goals(services).get(services.settings.session))


@app.command("judge")
def judge_now(cli: CliContext, session: SessionOption = None) -> None:
    """Let the judge of a session's goal decide now. Exits with 0 if the goal is met, else with 3."""
    from punchlist.agent.goals import GoalVerdict, VerdictKind
    from punchlist.integrations.goal_judge import GoalVerdicts
    from punchlist.kernel.processes import current_process

    services = cli.in_session(session)
    name, scope = services.settings.session, cli.user_scope(services)
    goal = _goals(services).get(name)
    if goal is None or goal.judge_model is None:
        raise NotFound(f"Session {name!r} has no goal with a judge. `punchlist goal set TEXT --judge MODEL` sets one.")
    verdicts = GoalVerdicts(services.store, services.conversations)
    verdicts.add_start(scope, current_process())
    verdict = GoalVerdict(VerdictKind.NONE, "the judge was interrupted")
    try:
        verdict = _judge(services, goal)
    except PunchlistError as error:
        verdict = GoalVerdict(VerdictKind.NONE, str(error))
        raise
    finally:
        verdicts.add_verdict(scope, verdict)
    shown = f"{verdict.kind.value.replace('_', ' ')}{': ' if verdict.text else ''}{verdict.text}"
    cli.show({"session": name, "verdict": verdict.kind.value, "text": verdict.text}, visible_block(shown))
    if verdict.kind is not VerdictKind.MET:
        raise typer.Exit(NOT_MET)


def _judge(services: Services, goal: Goal) -> GoalVerdict:
    import asyncio

    from punchlist.agent.list_state import TurnLists
    from punchlist.agent.model_resolver import ModelResolver
    from punchlist.agent.runtime import AgentRuntime
    from punchlist.conversations.model import Scope, TurnScope
    from punchlist.integrations.goal_judge import SESSION_SUFFIX, judge_goal
    from punchlist.kernel.events import Actor, Role

    session, actor = services.settings.session, Actor(Role.SUPERVISOR, "judge")
    turn = services.conversations.current_turn(session)
    of_session = TurnScope(session, actor, turn.id if turn else "")
    lists = TurnLists(services.store, of_session, plan=turn is not None, checklist=True).read()
    messages = services.conversations.turn_messages(turn.id) if turn else ()
    request = next((m.content for m in reversed(messages) if (m.role, m.kind) == ("user", "text")), "")
    runtime = AgentRuntime(
        services.site(Scope(f"{session}{SESSION_SUFFIX}", actor), services.workspace),
        services.conversations,
        services.plans,
        services.checklists,
        ModelResolver(goal.judge_model or "", os.environ),
        shared_conversation=True,
    )
    supervisor = services.agents.get("supervisor")
    return asyncio.run(judge_goal(runtime, supervisor, goal, request, lists.text))


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
    value: dict[str, Any] = {"criteria": goal.criteria, "checks": [check_json(check) for check in goal.checks]}
    lines = [f"Goal of session {visible(session)}:", visible_block(goal.criteria)]
    lines += [f"Check: {visible(check.description)}" for check in goal.checks]
    if goal.judge_model is not None:
        from punchlist.integrations.goal_judge import GoalVerdicts

        state = GoalVerdicts(services.store, services.conversations).state(session, 0)
        last = state.verdicts[-1] if state.verdicts else None
        value["judge"] = {
            "model": goal.judge_model,
            "isRunning": state.is_running,
            "verdict": last.kind.value if last else None,
            "text": last.text if last else "",
        }
        lines.append(f"Judge: {visible(goal.judge_model)}" + (", at work" if state.is_running else ""))
        if last is not None:
            text = f": {last.text}" if last.text else ""
            lines.append(f"Last verdict: {visible_block(last.kind.value.replace('_', ' ') + text)}")
    cli.show({"session": session, "goal": value}, lines)


def _goals(services: Services) -> SessionGoals:
    from punchlist.integrations.session_goals import SessionGoals

    return SessionGoals(services.store, services.conversations)
