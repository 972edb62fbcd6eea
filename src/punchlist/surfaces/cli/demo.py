"""`punchlist demo`: an agent works through its list, with a rehearsed model."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import textwrap
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from punchlist.config import current_user
from punchlist.kernel.events import Actor, Role
from punchlist.kernel.text import excerpt, visible, visible_block
from punchlist.surfaces.cli.context import CliContext, echo, echo_json
from punchlist.surfaces.cli.demo_serve import serve_demo_mission
from punchlist.surfaces.cli.tools import ModeChoice
from punchlist.surfaces.cli.worker import run_worker

if TYPE_CHECKING:
    from punchlist.app import Services
    from punchlist.missions.model import Mission
    from punchlist.surfaces.conversation_export import CallStep, TurnView


GOAL: Final = "Get release 1.2 ready."
PROOF_GOAL: Final = "Fix slugify and describe it in README.md."
PROOF_UNTIL: Final = "README.md explains slugify with an example."
_MISSION: Final = "developer-experience"
_READINGS: Final = (
    *(("local-build-time", 55), ("local-build-time", 63)),
    *(("cache-hit-rate", 82), ("cache-hit-rate", 81), ("cache-hit-rate", 82)),
)
_TITLES: Final = (
    "1. Creation: the pillar's owner plans, in the pillar chat",
    "2. Activation: the Mission Lead starts it, in the mission chat",
    "3. Execution: the owner works on it, in the TODO chat",
    "4. Completion and 5. follow-up: the Mission Lead reviews, in the TODO chat",
)
_HIDDEN_ARGUMENTS: Final = ("missionSlug", "pillarSlug", "requestId")


class DemoStep(StrEnum):
    RUN = "run"
    MISSION = "mission"
    PROOF = "proof"
    SERVE = "serve"


def demo(
    cli: CliContext,
    what: Annotated[
        DemoStep,
        typer.Argument(
            metavar="[WHAT]",
            help="run: an agent with a goal. mission: a Lead and owners. proof: false claims that are stopped. "
            "serve: a mission in the browser, which asks you.",
            show_default=False,
        ),
    ] = DemoStep.RUN,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the folder.")] = False,
    port: Annotated[
        int,
        typer.Option(min=0, max=65535, metavar="PORT", help="For serve: the port to listen on; 0 picks a free one."),
    ] = 0,
) -> None:
    """Watch an agent finish its list, in a temporary folder and without an API key.

    The model's replies are rehearsed. The plan, the tools, the workers and the database are real.
    """
    from punchlist import demo as stage

    source = Path(stage.__file__).parent / ("" if what is DemoStep.RUN else what.value)
    folder = Path(tempfile.mkdtemp(prefix="punchlist-demo-"))
    shutil.copytree(source / "project", folder, dirs_exist_ok=True)
    (folder / ".punchlist").mkdir()
    for name in [name for name in os.environ if name.startswith("PUNCHLIST_") and name != "PUNCHLIST_DEBUG"]:
        # The demo uses neither the user's database nor the user's limits.
        del os.environ[name]
    before = Path.cwd()
    os.chdir(folder)
    try:
        match what:
            case DemoStep.MISSION:
                code = _mission(cli, source)
            case DemoStep.SERVE:
                code = serve_demo_mission(cli.services(), source, port)
            case _:
                code = _run(cli, source, what)
        if not cli.json and keep:
            look = (
                "mission show developer-experience" if what in (DemoStep.MISSION, DemoStep.SERVE) else "sessions show"
            )
            echo(f"\nLook around: cd {visible(folder)} && punchlist {look}", error=True)
    finally:
        os.chdir(before)
        if not keep:
            _remove(folder)
    raise typer.Exit(code)


def _remove(folder: Path) -> None:
    """Remove the folder, and the entries of its databases in the user's folder."""
    from punchlist.storage import trusted_files
    from punchlist.trust import Trust

    with suppress(OSError):
        for file in (folder / ".punchlist").glob("*.db"):
            trusted_files.forget(file, Trust.of_user(os.environ))
        shutil.rmtree(folder)


def _run(cli: CliContext, source: Path, what: DemoStep) -> int:
    from punchlist.surfaces.cli.run_display import RunDisplay
    from punchlist.surfaces.cli.run_output import RunOutput, finish
    from punchlist.surfaces.cli.run_session import RunSession
    from punchlist.verification.goal import Goal

    services = cli.services()
    model = f"rehearsal:{source / 'rehearsal.yaml'}"
    output = RunOutput() if cli.json else RunDisplay.on_stderr()
    runner = RunSession(services, cli.user_scope(services), model, ModeChoice.YOLO, output, waits=False)
    proof = what is DemoStep.PROOF
    goal, until = (PROOF_GOAL, Goal(PROOF_UNTIL)) if proof else (GOAL, None)
    if not cli.json:
        condition = f' --until "{PROOF_UNTIL}"' if proof else ""
        echo(f'$ punchlist run "{goal}"{condition}', error=True)
    return finish(cli, services, runner.run(services.agents.get("supervisor"), goal, until), output)


def _mission(cli: CliContext, source: Path) -> int:
    if not cli.json:
        echo(
            "$ punchlist mission apply mission.json && punchlist mission cycle developer-experience --work", error=True
        )
    result = _play(cli.services(), source, quiet=cli.json)
    if cli.json:
        echo_json(result)
    return 0 if any(todo["status"] == "completed" for todo in result["todos"]) else 1


def _play(services: Services, source: Path, *, quiet: bool) -> dict[str, Any]:
    """Apply mission.json, run one cycle and its todo, and return the result as JSON."""
    from punchlist.engine.periodic import enqueue_cycle
    from punchlist.missions.config import file
    from punchlist.missions.model import MissionScope
    from punchlist.missions.todos.tools import todo_json

    text = file.read(Path("mission.json"))
    user = Actor(Role.PERSON, current_user())
    mission = services.missions.apply(MissionScope("demo", user), file.parse_mission(text), text).mission
    scope = MissionScope(mission.conversation_id, user)
    for metric, value in _READINGS:
        services.metrics.record(scope, _MISSION, metric, value)
    enqueue_cycle(services.store, scope, mission)
    run_worker(services, f"rehearsal:{source / 'rehearsal.yaml'}", ModeChoice.YOLO, until_idle=True, quiet=True)
    if not quiet:
        _echo_story(services, mission)
    page = services.mission_todos.list(_MISSION)
    return {
        "mission": _MISSION,
        "todos": [todo_json(todo) for todo in page.items],
        "summary": page.capacity.as_json(),
        "runs": [run.as_json() for run in services.runs.list(mission_id=mission.id, ended=True)],
    }


def _echo_story(services: Services, mission: Mission) -> None:
    from punchlist.surfaces.cli.mission_view import board_lines
    from punchlist.surfaces.conversation_export import TurnView, build_view
    from punchlist.views.board import read_board
    from punchlist.views.health import read_health

    (state,) = services.missions.pillars(mission)
    pillar, turns = state.pillar, list[TurnView]()
    for chat in (pillar.conversation_id, mission.conversation_id, pillar.todo_conversation_id):
        view = build_view(services.conversations.turns(chat), services.conversations.messages(chat))
        turns += [entry for entry in view if isinstance(entry, TurnView)]
    for title, turn in zip(_TITLES, turns, strict=True):
        echo(f"\n{title}\n")
        _echo_turn(turn)
    for message in services.conversations.messages(mission.conversation_id):
        if message.kind == "note":
            echo(f"  → {visible(message.content.partition(chr(10))[2])}")
    echo()
    [health] = read_health(services.store, mission.slug).missions
    for line in board_lines(read_board(services.store, mission.slug), health):
        echo(line)


def _echo_turn(turn: TurnView) -> None:
    from punchlist.surfaces.conversation_export import MessageStep, ReplyStep

    for step in turn.steps:
        match step:
            case MessageStep(text=text):
                _echo_indented(text, "  > ", limit=12)
            case ReplyStep(text=text, calls=calls):
                if text:
                    _echo_indented(text, f"  {turn.turn.agent_id}: ")
                for call in calls:
                    _echo_call(call)


def _echo_call(call: CallStep) -> None:
    echo(f"  [calls {visible(call.tool)}]")
    for name, value in json.loads(call.arguments).items():
        if name not in _HIDDEN_ARGUMENTS:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            _echo_indented(text, f"    {name}: ")
    echo(f"    → {_result_summary(call)}")


def _result_summary(call: CallStep) -> str:
    try:
        result = json.loads(call.result or "")
        if "items" in result:
            return f"{len(result['items'])} todos, {result['summary']}"
        return f"status {result['status']}, id {result['id']}"
    except (ValueError, KeyError, TypeError):
        return excerpt(" ".join((call.result or "").split()), 100)


def _echo_indented(text: str, prefix: str, limit: int = 40) -> None:
    lines = [part for line in visible_block(text).splitlines() for part in (textwrap.wrap(line, 100) or [""])]
    for number, line in enumerate(lines[:limit]):
        echo(f"{prefix if number == 0 or '>' in prefix else ' ' * len(prefix)}{line}".rstrip())
    if len(lines) > limit:
        echo(f"{' ' * len(prefix)}…")
