"""`punchlist run`: an agent that works until its list is clear."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from punchlist.agent.definitions import CONTINUATIONS, CONTINUES
from punchlist.errors import ConfigError
from punchlist.kernel.text import visible_block
from punchlist.surfaces.cli.context import JsonOption, SessionOption, cli_context, echo, echo_error, echo_json
from punchlist.surfaces.cli.tools import ModeOption, warn_untrusted

if TYPE_CHECKING:
    from punchlist.agent.definitions import AgentDefinition
    from punchlist.agent.events import TurnResult
    from punchlist.agent.runtime import AgentRuntime
    from punchlist.surfaces.services import Services

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
Without a key: ollama:NAME, rehearsal:FILE; and `punchlist demo` shows what an agent does."""
WAITS: Final = (
    "`punchlist run --resume` goes on with it; `punchlist approvals`, `answer` and `wake` list what it waits for."
)
LARGEST_GOAL: Final = 500_000


def _finite(value: float | None) -> float | None:
    # `nan` is neither below nor above anything: as a limit it would be none.
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"must be a number, got {value}")
    return value


def run(
    context: typer.Context,
    goal: Annotated[
        str | None, typer.Argument(help="What is to be done; - reads it from stdin.", show_default=False)
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", metavar="FILE", help="Read what is to be done from a file.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with what the session was at: after a crash, an answer, Ctrl-C.")
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
            help="Send the agent back to its list while items are open.",
        ),
    ] = None,
    continuations: Annotated[
        int | None,
        typer.Option(
            "--max-todo-continuations",
            envvar=CONTINUATIONS,
            min=0,
            metavar="N",
            help="How often at most.",
        ),
    ] = None,
    iterations: Annotated[
        int | None, typer.Option("--max-iterations", min=1, metavar="N", help="Model calls at most.")
    ] = None,
    tokens: Annotated[int | None, typer.Option("--max-tokens", min=1, metavar="N", help="Tokens at most.")] = None,
    seconds: Annotated[
        float | None, typer.Option("--max-seconds", min=0.01, metavar="S", help="Time at most.", callback=_finite)
    ] = None,
    cost: Annotated[
        float | None, typer.Option("--max-cost", min=0.0, metavar="USD", help="Dollars at most.", callback=_finite)
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="When it has to wait for somebody or something, stay and go on then.")
    ] = False,
    session: SessionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give an agent a goal. It plans, works with its tools, and ends when its list is clear or something stops it.

    Exit code: 0 completed, 1 error, 2 usage, 3 ended with open items, 4 waiting, 130 cancelled.
    """
    from punchlist.agent.definitions import with_overrides
    from punchlist.models.providers import default_model
    from punchlist.surfaces.cli.run_session import RunSession

    entry = cli_context(context)
    wanted = _goal(goal, file, resume)
    services = entry.services(session, as_json=as_json)
    agents = services.agents
    warn_untrusted(services, *agents.distrusted)
    chosen = agents.get(agent or "supervisor")
    named = model or chosen.model or agents.default_model or default_model(os.environ)
    if named is None:
        raise ConfigError(NO_MODEL)
    asked: dict[str, Any] = {
        "model": model,
        "continues": continues,
        "continuations": continuations,
        "iterations": iterations,
        "tokens": tokens,
        "seconds": seconds,
        "cost": cost,
    }
    runner = RunSession(services, entry.scope(services), named, mode, quiet=as_json, waits=wait)

    def choose(name: str) -> AgentDefinition:
        return with_overrides(agents.get(agent or name), **asked)

    outcome = runner.resume(choose) if wanted is None else runner.run(choose(chosen.name), wanted)
    raise typer.Exit(finish(services, runner.runtime, outcome, as_json))


def _goal(goal: str | None, file: Path | None, resume: bool) -> str | None:
    """What is to be done, from wherever it was given; None for going on with what there is."""
    if resume:
        if goal is not None or file is not None:
            raise typer.BadParameter(
                "takes no goal; the session knows what it was at. `punchlist queue add` leaves it a message",
                param_hint="--resume",
            )
        return None
    if file is not None and goal is not None:
        raise typer.BadParameter("give either GOAL or --file", param_hint="--file")
    if file is not None:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise typer.BadParameter(f"{file} cannot be read ({error})", param_hint="--file") from None
    elif goal == "-" or (goal is None and not sys.stdin.isatty()):
        text = sys.stdin.read(LARGEST_GOAL + 1)
    elif goal is None:
        raise typer.BadParameter("is missing; or go on with --resume", param_hint="GOAL")
    else:
        text = goal
    if not text.strip():
        raise typer.BadParameter("is empty", param_hint="GOAL")
    if len(text) > LARGEST_GOAL:
        raise typer.BadParameter(f"is longer than {LARGEST_GOAL:,} characters", param_hint="GOAL")
    return text.strip()


def finish(services: Services, runtime: AgentRuntime, outcome: TurnResult, as_json: bool) -> int:
    """Tell what came of it; the exit code."""
    ended, todos = outcome, _todos(services, runtime, outcome.turn_id)
    if as_json:
        echo_json(
            {
                "conversationId": services.settings.session,
                "turnId": outcome.turn_id,
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
        echo_error(f"{len(undone)} of {len(todos)} tasks were not done:{titles}")
    if ended.reason.value == "waiting":
        echo_error(WAITS)
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
