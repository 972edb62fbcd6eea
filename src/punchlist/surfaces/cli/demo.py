"""`punchlist demo`: an agent at work from its plan to a clear list, with a model that has learnt its part."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final

import typer

from punchlist.kernel.text import visible
from punchlist.surfaces.cli.front import JsonOption, front, say
from punchlist.surfaces.cli.run import finish

GOAL: Final = "Get release 1.2 ready."


def demo(
    context: typer.Context,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the folder, to look around in.")] = False,
    as_json: JsonOption = False,
) -> None:
    """See an agent finish its list, in a folder of its own; no key is needed.

    The model's replies are rehearsed. The plan, the tools, the workers and the database are real.
    """
    from punchlist import demo as stage
    from punchlist.surfaces.cli.running import Runner
    from punchlist.surfaces.cli.tools import ModeChoice

    source = Path(stage.__file__).parent
    folder = Path(tempfile.mkdtemp(prefix="punchlist-demo-"))
    shutil.copytree(source / "project", folder, dirs_exist_ok=True)
    (folder / ".punchlist").mkdir()
    for name in [name for name in os.environ if name.startswith("PUNCHLIST_") and name != "PUNCHLIST_DEBUG"]:
        # Nothing of the person's own: neither their database nor their limits.
        del os.environ[name]
    before = Path.cwd()
    os.chdir(folder)
    try:
        entry = front(context)
        desk = entry.desk(as_json=as_json)
        runner = Runner(
            desk,
            entry.scope(desk),
            f"rehearsal:{source / 'rehearsal.yaml'}",
            ModeChoice.YOLO,
            quiet=as_json,
            waits=False,
        )
        if not as_json:
            say(f'$ punchlist run "{GOAL}"', error=True)
        code = finish(desk, runner.studio, runner.run(desk.agents.named("supervisor"), GOAL), as_json)
        if not as_json and keep:
            say(f"\nLook around: cd {visible(folder)} && punchlist conversations show", error=True)
    finally:
        os.chdir(before)
        if not keep:
            with suppress(OSError):
                shutil.rmtree(folder)
    raise typer.Exit(code)
