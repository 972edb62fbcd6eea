"""`punchlist demo serve`: mission control with a rehearsed mission that a person can watch, answer and steer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from punchlist.config import current_user
from punchlist.kernel.events import Actor, Role
from punchlist.surfaces.cli.context import echo

if TYPE_CHECKING:
    from punchlist.app import Services

GUIDE: Final = """\
Three agents plan and begin to work within a minute. What to try:
  1. Watch them: “At work now”, or the board of the mission.
  2. Answer what they ask on the Attention page: an overdue todo, a command, a file to write.
  3. Edit the criterion “It is faster” of “Evaluate esbuild-loader”, and start that todo.
  4. Accept the work on “Find out why the calendar tests fail by chance”, or send it back with feedback.
The agents' replies are scripted; everything else is real. Ctrl-C ends the demo and deletes its folder."""


def serve_demo_mission(services: Services, source: Path, port: int) -> int:
    import yaml

    from punchlist.engine.periodic import enqueue_cycle
    from punchlist.extras import require
    from punchlist.missions.model import MissionScope
    from punchlist.surfaces.cli.demo_history import write_history
    from punchlist.surfaces.cli.serve import serve_demo

    for module in ("starlette", "uvicorn", "dbos"):
        require(module, extra="missions", feature="The web server")
    person = Actor(Role.PERSON, current_user())
    lines = yaml.safe_load((source / "history.yaml").read_text(encoding="utf-8"))
    mission = write_history(services.settings.database, services.trust, person, Path("mission.json"), lines)
    enqueue_cycle(services.store, MissionScope(mission.conversation_id, person), mission)

    def say_started(link: str) -> None:
        echo(f"This link logs in, once, within an hour:\n{link}\n\n{GUIDE}")

    serve_demo(services, port, f"rehearsal:{source / 'rehearsal.yaml'}", say_started)
    return 0
