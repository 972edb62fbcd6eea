"""`punchlist run`: give an agent a goal, or have it finish what is open."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

import typer

from punchlist.kernel.text import visible
from punchlist.surfaces.cli import run_options as options
from punchlist.surfaces.cli.agent_guard import refuse_looser_mode_for_agents
from punchlist.surfaces.cli.context import (
    CliContext,
    SessionOption,
    echo_error,
    plural,
    warn_untrusted,
    warn_untrusted_instructions,
)
from punchlist.surfaces.cli.tools import ModeOption

if TYPE_CHECKING:
    from punchlist.agent.definitions import AgentDefinition
    from punchlist.app import Services
    from punchlist.surfaces.cli.run_output import RunOutput

MAX_TITLES: Final = 5
"""Open items that are named before a run."""


def run(
    cli: CliContext,
    goal: options.GoalArgument = None,
    file: options.FileOption = None,
    continue_session: options.ContinueOption = False,
    resume: options.ResumeOption = False,
    queued: options.QueuedOption = False,
    model: options.ModelOption = None,
    agent: options.AgentOption = None,
    mode: ModeOption = None,
    until: options.UntilOption = None,
    lists: options.ListsOption = None,
    drive: options.DriveOption = None,
    continues: options.AutoOption = None,
    continuations: options.ContinuationsOption = None,
    stall_after: options.StallOption = None,
    context_window: options.WindowOption = None,
    iterations: options.IterationsOption = None,
    tokens: options.TokensOption = None,
    seconds: options.TimeOption = None,
    cost: options.CostOption = None,
    wait: options.WaitOption = False,
    strict: options.StrictOption = False,
    session: SessionOption = None,
    json_stream: options.StreamOption = False,
) -> None:
    """Give an agent a goal. It plans, works with its tools, and ends when its list is clear or a limit stops it.

    A goal begins a new session, unless --continue or --session names one. Without a goal, the agent finishes what is
    open in the session last used here.

    Exit code: 0 completed, 1 error, 2 usage, 3 ended with open items, 4 waiting, 130 cancelled.
    """
    from punchlist.agent.definitions import with_overrides
    from punchlist.models.providers import default_model, no_model
    from punchlist.surfaces.cli.run_output import finish
    from punchlist.surfaces.cli.run_session import RunSession

    output = _output(cli, json_stream)
    refuse_looser_mode_for_agents(mode)
    text = options.read_goal(goal, file, resume=resume, queued=queued)
    condition = options.read_until(until, text)
    services = cli.services(session)
    agents = services.agents
    warn_untrusted(services, *agents.distrusted)
    chosen = agents.get(agent or "supervisor")
    if chosen.project_instructions:
        warn_untrusted_instructions(services)
    model_name = model or chosen.model or agents.default_model or default_model(os.environ)
    if model_name is None:
        raise no_model(os.environ)
    overrides: dict[str, Any] = {
        "model": model,
        "continues": continues,
        "continuations": continuations,
        "iterations": iterations,
        "tokens": tokens,
        "seconds": seconds,
        "cost": cost,
        "stall_after": stall_after,
        "context_window": context_window,
        "lists": lists,
        "strategy": None if drive is None else "drive" if drive else "loop",
    }
    new = text is not None and not continue_session
    services.use_session(services.new_session() if new else services.current_session())
    runner = RunSession(
        services, cli.user_scope(services), model_name, mode, output, waits=wait, strategy=overrides["strategy"]
    )

    def choose(name: str) -> AgentDefinition:
        return with_overrides(agents.get(agent or name), **overrides)

    if not (cli.json or json_stream):
        _print_open_items(cli, services)
    if resume:
        outcome = runner.resume(choose)
    elif queued:
        outcome = runner.deliver(choose)
    elif text is None:
        outcome = runner.finish_open(choose, chosen.name)
    else:
        outcome = runner.run(choose(chosen.name), text, condition)
    raise typer.Exit(finish(cli, services, outcome, output, strict=strict))


def _output(cli: CliContext, json_stream: bool) -> RunOutput:
    from punchlist.surfaces.cli.run_display import RunDisplay
    from punchlist.surfaces.cli.run_output import RunOutput
    from punchlist.surfaces.cli.run_stream import JsonStream

    if json_stream:
        if cli.json:
            raise typer.BadParameter(
                "prints the result of --json as its last line; give one of them", param_hint="--json-stream"
            )
        cli.state.json_lines = True
        return JsonStream.on_stdout()
    return RunOutput() if cli.json else RunDisplay.on_stderr()


def _print_open_items(cli: CliContext, services: Services) -> None:
    """Name the open items of the session, which count in this run."""
    items = services.todos.list(cli.user_scope(services)).open_items
    if not items:
        return
    titles = [f"- {visible(item.title)}" for item in items[:MAX_TITLES]]
    if len(items) > MAX_TITLES:
        titles.append(f"and {len(items) - MAX_TITLES} more")
    count = f"{plural(len(items), 'open item')} that count{'s' if len(items) == 1 else ''} in this run"
    echo_error("\n".join([f"session {services.settings.session} has {count}:", *titles]))
