"""`punchlist run`: an agent that works until its list is clear."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from punchlist.errors import ConfigError
from punchlist.kernel.text import visible, visible_block
from punchlist.surfaces.cli.front import JsonOption, SessionOption, complain, front, say, say_json
from punchlist.surfaces.cli.tools import ModeOption, warn_of_distrust

if TYPE_CHECKING:
    from punchlist.agent.continuation import Limits
    from punchlist.agent.definitions import AgentDefinition
    from punchlist.agent.studio import Outcome, Studio
    from punchlist.kernel.signals import CancelSignal
    from punchlist.surfaces.desk import Desk
    from punchlist.toolcalls.states import Transition

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
No model is chosen: say --model NAME, or set PUNCHLIST_MODEL; such as anthropic:NAME, openai:NAME, ollama:NAME.
Keys come from the usual variables (ANTHROPIC_API_KEY, OPENAI_API_KEY); rehearsal:FILE needs none."""


def run(
    context: typer.Context,
    goal: Annotated[str, typer.Argument(help="What is to be done; - reads it from stdin.", show_default=False)],
    model: Annotated[
        str | None, typer.Option("--model", "-m", envvar="PUNCHLIST_MODEL", metavar="NAME", help="The model to use.")
    ] = None,
    agent: Annotated[str, typer.Option("--agent", metavar="NAME", help="The agent to run.")] = "supervisor",
    mode: ModeOption = None,
    continues: Annotated[
        bool | None,
        typer.Option(
            "--auto-complete-todos/--no-auto-complete-todos",
            envvar="PUNCHLIST_AUTO_COMPLETE_TODOS",
            help="Send the agent back to its list while items are open.",
        ),
    ] = None,
    continuations: Annotated[
        int | None,
        typer.Option(
            "--max-todo-continuations",
            envvar="PUNCHLIST_MAX_TODO_CONTINUATIONS",
            min=0,
            metavar="N",
            help="How often at most.",
        ),
    ] = None,
    iterations: Annotated[
        int | None, typer.Option("--max-iterations", min=1, metavar="N", help="Model calls at most.")
    ] = None,
    tokens: Annotated[int | None, typer.Option("--max-tokens", min=1, metavar="N", help="Tokens at most.")] = None,
    seconds: Annotated[float | None, typer.Option("--max-seconds", min=0.01, metavar="S", help="Time at most.")] = None,
    cost: Annotated[float | None, typer.Option("--max-cost", min=0.0, metavar="USD", help="Dollars at most.")] = None,
    session: SessionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give an agent a goal. It plans, works with its tools, and ends when its list is clear or something stops it.

    Exit code: 0 completed, 1 error, 2 usage, 3 ended with open items, 4 waiting for a person, 130 cancelled.
    """
    import asyncio

    from punchlist.agent.definitions import BUILT_IN

    entry = front(context)
    wanted = (sys.stdin.read() if goal == "-" else goal).strip()
    if not wanted:
        raise typer.BadParameter("is empty", param_hint="GOAL")
    if agent not in BUILT_IN:
        raise typer.BadParameter(f"must be one of {', '.join(BUILT_IN)}", param_hint="--agent")
    if model is None:
        raise ConfigError(NO_MODEL)
    desk = entry.desk(session, as_json=as_json)
    warn_of_distrust(desk)
    budget = {"continuations": continuations, "tokens": tokens, "seconds": seconds, "cost": cost}
    chosen = BUILT_IN[agent]
    chosen = replace(
        chosen,
        todo_driven=chosen.todo_driven if continues is None else continues,
        limits=_limits(chosen.limits, iterations, {name: value for name, value in budget.items() if value is not None}),
    )
    studio = _studio(desk, entry.scope(desk), model, mode, quiet=as_json)
    outcome = asyncio.run(_work(studio, chosen, wanted))
    _report(desk, studio, outcome, as_json)
    raise typer.Exit(EXIT_CODES[outcome.ended.reason])


def _limits(limits: Limits, iterations: int | None, budget: dict[str, Any]) -> Limits:
    if iterations is not None:
        base = min(limits.base_iterations, iterations)
        limits = replace(limits, base_iterations=base, most_iterations=iterations)
    return replace(limits, **budget)


def _studio(desk: Desk, scope: Any, model: str, mode: Any, *, quiet: bool) -> Studio:
    from punchlist.agent.studio import Audience, Studio
    from punchlist.models.direct import model_named
    from punchlist.models.rehearsal import for_agent
    from punchlist.models.retry import Persistent
    from punchlist.surfaces.cli.asking import Terminal
    from punchlist.toolcalls.listeners import Listeners
    from punchlist.toolcalls.policy import Mode

    made = model_named(model, os.environ)
    terminal = Terminal.at_hand()
    told = None if quiet else lambda text: say(f"· {visible(text)}", error=True)
    audience = Audience(
        ask=terminal.ask if terminal else None,
        listeners=None if quiet else Listeners(on_transition=_show),
        told=told,
    )
    return Studio(
        desk.site(scope, Path.cwd()),
        desk.conversations,
        desk.plans,
        desk.checklists,
        lambda agent: Persistent(for_agent(made, agent.name), told=told),
        Mode(mode) if mode else None,
        audience,
    )


async def _work(studio: Studio, agent: AgentDefinition, goal: str) -> Outcome:
    from punchlist.kernel.signals import CancelSignal

    cancel = CancelSignal()
    _stop_on_interrupt(cancel)
    return await studio.work(agent, goal, cancel)


def _stop_on_interrupt(cancel: CancelSignal) -> None:
    """Ctrl-C once ends in good order, twice at once."""
    import asyncio

    def pressed() -> None:
        if cancel.is_set:
            os._exit(EXIT_CODES["cancelled"])
        cancel.set("a person pressed Ctrl-C")

    with suppress(NotImplementedError):
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, pressed)


def _show(transition: Transition) -> None:
    """One line for each call that begins to wait or ends."""
    from punchlist.toolcalls.states import CancelledToolCall, ErroredToolCall, SuccessfulToolCall, WaitingToolCall

    call = transition.call
    match call:
        case SuccessfulToolCall(result=result):
            first = next(iter(result.text.splitlines()), "")
            say(f"✓ {visible(call.request.tool)}  {visible(first)[:100]}", error=True)
        case ErroredToolCall(error=error):
            say(f"✗ {visible(call.request.tool)}  {visible(error.message)[:200]}", error=True)
        case CancelledToolCall(reason=reason):
            say(f"✗ {visible(call.request.tool)}  {visible(reason)[:200]}", error=True)
        case WaitingToolCall(question=question):
            say(f"? {visible(call.request.tool)} waits for approval: {visible(question.why)}", error=True)


def _report(desk: Desk, studio: Studio, outcome: Outcome, as_json: bool) -> None:
    ended = outcome.ended
    if as_json:
        say_json(
            {
                "conversationId": desk.settings.session,
                "turnId": outcome.turn_id,
                "reason": ended.reason.value,
                "text": ended.text,
                "iterations": ended.iterations,
                "continuations": ended.continuations,
                "todos": _todos(desk, studio, outcome.turn_id),
                "usage": {"inputTokens": ended.usage.input_tokens, "outputTokens": ended.usage.output_tokens},
            }
        )
    elif ended.text:
        say(visible_block(ended.text))
    if ended.reason.value != "completed":
        left = "".join(f"\n  - {visible(item.title)}" for item in ended.open)
        complain(f"ended as {ended.reason}: {ended.why}.{f' Left open:{left}' if left else ''}")


def _todos(desk: Desk, studio: Studio, turn_id: str) -> list[dict[str, Any]]:
    from punchlist.checklist.model import to_json
    from punchlist.conversations.model import TurnScope
    from punchlist.plan.lifecycle import Status
    from punchlist.plan.tools import todo_json

    scope = studio.site.place.scope
    plan = desk.plans.list(TurnScope(scope.conversation_id, scope.actor, turn_id), frozenset(Status))
    if plan.items:
        return [todo_json(todo) for todo in plan.items]
    return [dict(to_json(item)) for item in desk.checklists.get(scope.conversation_id).items]
