"""`punchlist demo`: an agent works through its list, with a rehearsed model."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from punchlist.kernel.text import visible
from punchlist.surfaces.cli.context import CliContext, echo, echo_json
from punchlist.surfaces.cli.run import finish

GOAL: Final = "Get release 1.2 ready."


class DemoStep(StrEnum):
    RUN = "run"
    MISSION = "mission"


def demo(
    cli: CliContext,
    what: Annotated[
        DemoStep,
        typer.Argument(help="An agent with a goal, or a mission with its Lead and owners.", show_default=False),
    ] = DemoStep.RUN,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the folder.")] = False,
) -> None:
    """Watch an agent finish its list, in a temporary folder and without an API key.

    The model's replies are rehearsed. The plan, the tools, the workers and the database are real.
    """
    from punchlist import demo as stage

    source = Path(stage.__file__).parent / ("mission" if what is DemoStep.MISSION else "")
    folder = Path(tempfile.mkdtemp(prefix="punchlist-demo-"))
    shutil.copytree(source / "project", folder, dirs_exist_ok=True)
    (folder / ".punchlist").mkdir()
    for name in [name for name in os.environ if name.startswith("PUNCHLIST_") and name != "PUNCHLIST_DEBUG"]:
        # The demo uses neither the user's database nor the user's limits.
        del os.environ[name]
    before = Path.cwd()
    os.chdir(folder)
    try:
        code = _mission(cli, source) if what is DemoStep.MISSION else _run(cli, source)
        if not cli.json and keep:
            look = "mission show developer-experience" if what is DemoStep.MISSION else "sessions show"
            echo(f"\nLook around: cd {visible(folder)} && punchlist {look}", error=True)
    finally:
        os.chdir(before)
        if not keep:
            with suppress(OSError):
                shutil.rmtree(folder)
    raise typer.Exit(code)


def _run(cli: CliContext, source: Path) -> int:
    from punchlist.surfaces.cli.run_session import RunSession
    from punchlist.surfaces.cli.tools import ModeChoice

    services = cli.services()
    model = f"rehearsal:{source / 'rehearsal.yaml'}"
    runner = RunSession(services, cli.user_scope(services), model, ModeChoice.YOLO, quiet=cli.json, waits=False)
    if not cli.json:
        echo(f'$ punchlist run "{GOAL}"', error=True)
    return finish(cli, services, runner.runtime, runner.run(services.agents.get("supervisor"), GOAL))


def _mission(cli: CliContext, source: Path) -> int:
    from punchlist.surfaces.cli.demo_mission import play

    if not cli.json:
        echo(
            "$ punchlist mission apply mission.json && punchlist mission cycle developer-experience --work", error=True
        )
    came = play(cli.services(), source, quiet=cli.json)
    if cli.json:
        echo_json(came)
    return 0 if [todo for todo in came["todos"] if todo["status"] == "completed"] else 1
