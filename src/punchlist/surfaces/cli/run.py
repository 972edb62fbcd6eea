"""`punchlist run`: give an agent a goal, or have it finish what is open."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from punchlist.config import CONTINUATIONS, CONTINUES
from punchlist.errors import ConfigError
from punchlist.kernel.text import visible_block
from punchlist.surfaces.cli.agent_guard import refuse_looser_mode_for_agents
from punchlist.surfaces.cli.context import (
    CliContext,
    SessionOption,
    echo,
    echo_error,
    echo_json,
    plural,
    warn_untrusted,
)
from punchlist.surfaces.cli.tools import ModeOption

if TYPE_CHECKING:
    from punchlist.agent.definitions import AgentDefinition
    from punchlist.agent.runtime import AgentRuntime
    from punchlist.agent.turn import TurnResult
    from punchlist.app import Services

EXIT_CODES: Final = {
    "completed": 0,
    "error": 1,
    "open": 3,
    "capped": 3,
    "budget": 3,
    "stalled": 3,
    "waiting": 4,
    "cancelled": 130,
}
NO_MODEL: Final = """\
No model: set ANTHROPIC_API_KEY or OPENAI_API_KEY, or name one with --model or PUNCHLIST_MODEL.
Models without a key: ollama:NAME, rehearsal:FILE. `punchlist demo` shows an agent at work."""
WAITING: Final = "`punchlist inbox` lists what needs you; `punchlist run --resume` continues afterwards."
MAX_GOAL_LENGTH: Final = 500_000


def _finite(value: float | None) -> float | None:
    # Every comparison with `nan` is false, so it would not limit anything.
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"must be a number, got {value}")
    return value


def run(
    cli: CliContext,
    goal: Annotated[
        str | None,
        typer.Argument(help="What to do; - reads it from stdin. Default: finish what is open.", show_default=False),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", metavar="FILE", help="Read the goal from a file.")
    ] = None,
    continue_session: Annotated[
        bool, typer.Option("--continue", "-c", help="Add the goal to the session last used here.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the interrupted or waiting turn of the session.")
    ] = False,
    model: Annotated[
        str | None, typer.Option("--model", "-m", envvar="PUNCHLIST_MODEL", metavar="NAME", help="The model to use.")
    ] = None,
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="The agent to run.")] = None,
    mode: ModeOption = None,
    continues: Annotated[
        bool | None,
        typer.Option(
            "--auto-complete-todos/--no-auto-complete-todos",
            envvar=CONTINUES,
            help="Continue while the agent's list has open items.",
        ),
    ] = None,
    continuations: Annotated[
        int | None,
        typer.Option(
            "--max-todo-continuations", envvar=CONTINUATIONS, min=0, metavar="N", help="Limit of continuations."
        ),
    ] = None,
    iterations: Annotated[
        int | None, typer.Option("--max-iterations", min=1, metavar="N", help="Limit of model calls.")
    ] = None,
    tokens: Annotated[int | None, typer.Option("--max-tokens", min=1, metavar="N", help="Limit of tokens.")] = None,
    seconds: Annotated[
        float | None, typer.Option("--max-seconds", min=0.01, metavar="S", help="Limit of time.", callback=_finite)
    ] = None,
    cost: Annotated[
        float | None, typer.Option("--max-cost", min=0.0, metavar="USD", help="Limit of cost.", callback=_finite)
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="While the turn waits for something, wait and then continue it.")
    ] = False,
    session: SessionOption = None,
) -> None:
    """Give an agent a goal. It plans, works with its tools, and ends when its list is clear or a limit stops it.

    A goal begins a new session, unless --continue or --session names one. Without a goal, the agent finishes what is
    open in the session last used here.

    Exit code: 0 completed, 1 error, 2 usage, 3 ended with open items, 4 waiting, 130 cancelled.
    """
    from punchlist.agent.definitions import with_overrides
    from punchlist.models.providers import default_model
    from punchlist.surfaces.cli.run_session import RunSession

    refuse_looser_mode_for_agents(mode)
    text = _read_goal(goal, file, resume)
    services = cli.services(session)
    agents = services.agents
    warn_untrusted(services, *agents.distrusted)
    chosen = agents.get(agent or "supervisor")
    model_name = model or chosen.model or agents.default_model or default_model(os.environ)
    if model_name is None:
        raise ConfigError(NO_MODEL)
    overrides: dict[str, Any] = {
        "model": model,
        "continues": continues,
        "continuations": continuations,
        "iterations": iterations,
        "tokens": tokens,
        "seconds": seconds,
        "cost": cost,
    }
    new = text is not None and not continue_session
    services.use_session(services.new_session() if new else services.current_session())
    scope = cli.user_scope(services)
    runner = RunSession(services, scope, model_name, mode, quiet=cli.json, waits=wait)

    def choose(name: str) -> AgentDefinition:
        return with_overrides(agents.get(agent or name), **overrides)

    if resume:
        outcome = runner.resume(choose)
    elif text is None:
        outcome = runner.finish_open(choose, chosen.name)
    else:
        if not cli.json:
            _print_open_items(cli, services)
        outcome = runner.run(choose(chosen.name), text)
    raise typer.Exit(finish(cli, services, runner.runtime, outcome))


def _print_open_items(cli: CliContext, services: Services) -> None:
    open_items = services.todos.list(cli.user_scope(services)).open_items
    if open_items:
        echo_error(f"session {services.settings.session} has {plural(len(open_items), 'open item')} from before.")


def _read_goal(goal: str | None, file: Path | None, resume: bool) -> str | None:
    """The goal from the argument, a file or stdin; None if there is none."""
    if resume and (goal is not None or file is not None):
        raise typer.BadParameter(
            "takes no goal. `punchlist queue add` leaves a message for the agent", param_hint="--resume"
        )
    if file is not None and goal is not None:
        raise typer.BadParameter("give either GOAL or --file", param_hint="--file")
    if file is not None:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise typer.BadParameter(f"{file} cannot be read ({error})", param_hint="--file") from None
    elif goal == "-":
        text = sys.stdin.read(MAX_GOAL_LENGTH + 1)
    elif goal is None:
        return None
    else:
        text = goal
    if not text.strip():
        raise typer.BadParameter("is empty", param_hint="GOAL")
    if len(text) > MAX_GOAL_LENGTH:
        raise typer.BadParameter(f"is longer than {MAX_GOAL_LENGTH:,} characters", param_hint="GOAL")
    return text.strip()


def finish(cli: CliContext, services: Services, runtime: AgentRuntime, ended: TurnResult) -> int:
    """Print the result of a turn; returns the exit code."""
    todos = _todos(services, runtime, ended.turn_id)
    if cli.json:
        echo_json(
            {
                "conversationId": services.settings.session,
                "turnId": ended.turn_id,
                "reason": ended.reason.value,
                "text": ended.text,
                "iterations": ended.iterations,
                "continuations": ended.continuations,
                "todos": todos,
                "usage": {"inputTokens": ended.usage.input_tokens, "outputTokens": ended.usage.output_tokens},
            }
        )
    elif ended.last_text:
        echo(visible_block(ended.last_text))
    if ended.ending:
        echo_error(ended.ending)
    elif undone := [todo for todo in todos if todo["status"] == "cancelled"]:
        titles = "".join(f"\n- {todo['title']}: {todo['outcome']}" for todo in undone)
        echo_error(f"{len(undone)} of {len(todos)} todos were cancelled:{titles}")
    if ended.reason.value == "waiting":
        echo_error(WAITING)
    return EXIT_CODES[ended.reason]


def _todos(services: Services, runtime: AgentRuntime, turn_id: str) -> list[dict[str, Any]]:
    from punchlist.checklist.model import item_json
    from punchlist.conversations.model import TurnScope
    from punchlist.plan.lifecycle import PlanStatus
    from punchlist.plan.tools import condition_json, todo_json

    scope = runtime.site.scope
    plan = services.plans.list(TurnScope(scope.conversation_id, scope.actor, turn_id), frozenset(PlanStatus))
    if plan.items:
        return [{**todo_json(todo), **condition_json(plan, todo.id)} for todo in plan.items]
    return [dict(item_json(item)) for item in services.checklists.get(scope.conversation_id).items]
