"""`make pictures`: the terminal application in a real rehearsal, as an SVG image."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from time import monotonic

from punchlist.app import Services
from punchlist.config import load
from punchlist.surfaces.tui.agent_options import AgentOptions
from punchlist.surfaces.tui.app import PunchlistApp
from punchlist.surfaces.tui.backend import Backend

OUTPUT = Path(__file__).parent / "pictures" / "terminal.svg"
SIZE = (110, 32)
SECONDS = 60.0


async def take(folder: Path) -> str:
    """The screen at the moment when the agent asks before it changes the version."""
    services = Services(load(cwd=folder))
    model = f"rehearsal:{files('punchlist.demo') / 'rehearsal.yaml'}"
    backend = Backend(services, AgentOptions(model))
    app = PunchlistApp(lambda: backend, session="release-1.2", goal="Get release 1.2 ready.")
    async with app.run_test(size=SIZE) as pilot:

        async def until(condition: Callable[[], object]) -> None:
            end = monotonic() + SECONDS
            while not condition():
                if monotonic() > end:
                    raise TimeoutError("The rehearsal did not come to its question.")
                await pilot.pause(0.05)

        def asks() -> bool:
            screen = app.conversation
            return bool(screen is not None and screen.state is not None and screen.state.approvals)

        await until(asks)
        await pilot.press("ctrl+y")
        await pilot.pause(0.5)
        picture = app.export_screenshot(title="punchlist")
        backend.interrupt("release-1.2")
    services.close()
    return picture


def main() -> None:
    os.environ["COLORTERM"] = "truecolor"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "release"
        shutil.copytree(str(files("punchlist.demo") / "project"), folder)
        (folder / ".git").mkdir()
        os.environ["XDG_DATA_HOME"] = str(Path(name) / "data")
        os.environ["XDG_CONFIG_HOME"] = str(Path(name) / "config")
        os.chdir(folder)
        OUTPUT.write_text(asyncio.run(take(folder)) + "\n")


if __name__ == "__main__":
    main()
