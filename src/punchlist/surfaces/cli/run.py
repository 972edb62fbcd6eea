"""`punchlist run`: give an agent a goal, or have it finish what is open."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from punchlist.config import CONTINUATIONS, CONTINUES
from punchlist.kernel.text import raw_problem, visible
from punchlist.surfaces.cli.agent_guard import refuse_looser_mode_for_agents
from punchlist.surfaces.cli.context import (
    MODEL_VARIABLE,
    CliContext,
    SessionOption,
    echo_error,
    plural,
    warn_untrusted,
    warn_untrusted_instructions,
)
from punchlist.surfaces.cli.offered_lists import OfferedLists
from punchlist.surfaces.cli.tools import ModeOption

if TYPE_CHECKING:
    from punchlist.agent.definitions import AgentDefinition
    from punchlist.app import Services
    from punchlist.surfaces.cli.run_output import RunOutput

MAX_TITLES: Final = 5
"""Open items that are named before a run."""
MAX_GOAL_LENGTH: Final = 500_000
MAX_UNTIL_LENGTH: Final = 10_000


def _finite(value: float | None) -> float | None:
    # Every comparison with `nan` is false, so it would not limit anything.
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"must be a number, got {value}")
    return value


GoalArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[GOAL]", help="What to do; - reads it from stdin. Default: finish what is open.", show_default=False
    ),
]
FileOption = Annotated[Path | None, typer.Option("--file", "-f", metavar="FILE", help="Read the goal from a file.")]
ContinueOption = Annotated[bool, typer.Option("--continue", "-c", help="Add the goal to the session last used here.")]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="Continue the interrupted or waiting turn of the session.")
]
QueuedOption = Annotated[bool, typer.Option("--queued", help="Deliver the next queued message of the session.")]
ModelOption = Annotated[
    str | None, typer.Option("--model", "-m", envvar=MODEL_VARIABLE, metavar="NAME", help="The model to use.")
]
AgentOption = Annotated[str | None, typer.Option("--agent", metavar="NAME", help="The agent to run.")]
ListsOption = Annotated[
    OfferedLists | None,
    typer.Option("--lists", help="The lists that the agent uses. Default: its setting, usually one."),
]
AutoOption = Annotated[
    bool | None,
    typer.Option(
        "--auto-complete-todos/--no-auto-complete-todos",
        envvar=CONTINUES,
        help="Continue while the agent's list has open items.",
    ),
]
ContinuationsOption = Annotated[
    int | None,
    typer.Option("--max-todo-continuations", envvar=CONTINUATIONS, min=0, metavar="N", help="Limit of continuations."),
]
WindowOption = Annotated[
    int | None,
    typer.Option("--context-window", min=1_000, metavar="TOKENS", help="Context window of the model, if unknown."),
]
StallOption = Annotated[
    int | None,
    typer.Option("--stall-after", min=1, metavar="N", help="Limit of continuations in a row without progress."),
]
IterationsOption = Annotated[
    int | None, typer.Option("--max-iterations", min=1, metavar="N", help="Limit of model calls.")
]
TokensOption = Annotated[int | None, typer.Option("--max-tokens", min=1, metavar="N", help="Limit of tokens.")]
TimeOption = Annotated[
    float | None, typer.Option("--max-seconds", min=0.01, metavar="S", help="Limit of time.", callback=_finite)
]
CostOption = Annotated[
    float | None, typer.Option("--max-cost", min=0.0, metavar="USD", help="Limit of cost.", callback=_finite)
]
DriveOption = Annotated[
    bool | None,
    typer.Option(
        "--drive/--no-drive",
        help="Give the agent one item at a time, each in a fresh context. Default: the agent's setting.",
        show_default=False,
    ),
]
UntilOption = Annotated[
    str | None,
    typer.Option(
        "--until",
        metavar="TEXT",
        help="The goal is met only when this is true: checks (`commands` in backquotes) and a judge decide.",
    ),
]
WaitOption = Annotated[
    bool, typer.Option("--wait", help="While the turn waits for something, wait and then continue it.")
]
StrictOption = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Exit with 3 also if all items were cancelled, or one that you added or whose check had failed, or if one "
        "was completed without proof.",
    ),
]
StreamOption = Annotated[
    bool, typer.Option("--json-stream", help="Print each event as a line of JSON on stdout, the result last.")
]


def run(
    cli: CliContext,
    goal: GoalArgument = None,
    file: FileOption = None,
    continue_session: ContinueOption = False,
    resume: ResumeOption = False,
    queued: QueuedOption = False,
    model: ModelOption = None,
    agent: AgentOption = None,
    mode: ModeOption = None,
    until: UntilOption = None,
    lists: ListsOption = None,
    drive: DriveOption = None,
    continues: AutoOption = None,
    continuations: ContinuationsOption = None,
    stall_after: StallOption = None,
    context_window: WindowOption = None,
    iterations: IterationsOption = None,
    tokens: TokensOption = None,
    seconds: TimeOption = None,
    cost: CostOption = None,
    wait: WaitOption = False,
    strict: StrictOption = False,
    session: SessionOption = None,
    json_stream: StreamOption = False,
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
    text = read_goal(goal, file, resume=resume, queued=queued)
    condition = read_until(until, text)
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


def read_until(until: str | None, goal: str | None) -> str | None:
    """The acceptance criteria of --until."""
    if until is None:
        return None
    if goal is None:
        raise typer.BadParameter("needs a goal; a resumed turn keeps its criteria", param_hint="--until")
    if problem := raw_problem(until, max_length=MAX_UNTIL_LENGTH):
        raise typer.BadParameter(problem, param_hint="--until")
    if not until.strip():
        raise typer.BadParameter("is empty", param_hint="--until")
    return until.strip()


def read_goal(goal: str | None, file: Path | None, *, resume: bool = False, queued: bool = False) -> str | None:
    """The goal from the argument, a file or stdin; None if there is none."""
    if queued and (resume or goal is not None or file is not None):
        raise typer.BadParameter("takes neither a goal nor --resume", param_hint="--queued")
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
            cause = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise typer.BadParameter(f"{file} cannot be read ({cause})", param_hint="--file") from None
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
