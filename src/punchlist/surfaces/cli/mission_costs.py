"""`punchlist mission costs`: the usage of a mission, by pillar and todo."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from punchlist.kernel.text import visible
from punchlist.surfaces.cli.context import CliContext
from punchlist.surfaces.cli.options import MissionArgument

if TYPE_CHECKING:
    from collections.abc import Mapping

    from punchlist.app import Services
    from punchlist.missions.model import Mission
    from punchlist.missions.usage import MissionUsage


def costs(cli: CliContext, slug: MissionArgument) -> None:
    """Show the tokens, cost, time and tool calls of a mission."""
    from punchlist.missions.usage import MissionUsageService

    services = cli.services()
    mission = services.missions.get(slug)
    usage = MissionUsageService(services.store).mission(mission.id)
    pillars = services.mission_todos.list(slug, archived=True, limit=1).pillars
    cli.show(_json(services, mission, usage, pillars), _lines(services, mission, usage, pillars))


def _json(services: Services, mission: Mission, usage: MissionUsage, pillars: Mapping[str, str]) -> dict[str, Any]:
    get_todo = services.mission_todos.get
    return {
        "missionSlug": mission.slug,
        **usage.usage.as_json(),
        "pillars": [{"id": id, "slug": pillars.get(id), **used.as_json()} for id, used in usage.pillars.items()],
        "todos": [{"id": id, "title": get_todo(id).title, **used.as_json()} for id, used in usage.todos.items()],
    }


def _lines(services: Services, mission: Mission, usage: MissionUsage, pillars: Mapping[str, str]) -> Iterator[str]:
    from punchlist.surfaces.cli.layout import fit_line, format_run_usage, line_width

    yield fit_line(visible(mission.name), line_width())
    yield f"  {format_run_usage(usage.usage)}"
    for id, used in sorted(usage.pillars.items(), key=lambda pair: pillars.get(pair[0], "")):
        yield f"\n{visible(pillars.get(id, id))}"
        yield f"  {format_run_usage(used)}"
    if usage.todos:
        yield "\nTodos by usage"
    for id, used in sorted(usage.todos.items(), key=lambda pair: pair[1][1:], reverse=True):
        todo = services.mission_todos.get(id)
        yield fit_line(f"  {id[-8:]}  {visible(todo.title)}", line_width())
        yield f"    {format_run_usage(used)}"
