"""`punchlist mission costs`: what a mission has used, pillar by pillar and todo by todo."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from punchlist.kernel.text import visible
from punchlist.surfaces.cli.context import JsonOption, cli_context, echo, echo_json

if TYPE_CHECKING:
    from punchlist.missions.model import Mission
    from punchlist.missions.todos.pagination import TodoPage
    from punchlist.missions.usage import MissionUsage
    from punchlist.surfaces.services import Services


def costs(
    context: typer.Context,
    slug: Annotated[str, typer.Argument(metavar="SLUG", help="The mission's slug.", show_default=False)],
    as_json: JsonOption = False,
) -> None:
    """Show what a mission has used: tokens, money, time and tool calls."""
    from punchlist.missions.usage import MissionUsageService

    services = cli_context(context).services(as_json=as_json)
    mission = services.missions.get(slug)
    account = MissionUsageService(services.store).mission(mission.id)
    listed = services.mission_todos.list(slug, archived=True, limit=1)
    if as_json:
        echo_json(_json(services, mission, account, listed))
        return
    for line in _lines(services, mission, account, listed):
        echo(line)


def _json(services: Services, mission: Mission, account: MissionUsage, listed: TodoPage) -> dict[str, Any]:
    return {
        "missionSlug": mission.slug,
        **account.usage.as_json(),
        "pillars": [{"id": id, "slug": listed.pillars.get(id), **one.as_json()} for id, one in account.pillars.items()],
        "todos": [
            {"id": id, "title": services.mission_todos.get(id).title, **one.as_json()}
            for id, one in account.todos.items()
        ],
    }


def _lines(services: Services, mission: Mission, account: MissionUsage, listed: TodoPage) -> Iterator[str]:
    from punchlist.surfaces.cli.layout import fit_line, format_run_usage, line_width

    yield fit_line(visible(mission.name), line_width())
    yield f"  {format_run_usage(account.usage)}"
    for id, one in sorted(account.pillars.items(), key=lambda pair: listed.pillars.get(pair[0], "")):
        yield f"\n{visible(listed.pillars.get(id, id))}"
        yield f"  {format_run_usage(one)}"
    if account.todos:
        yield "\nTodos, those that used most first"
    for id, one in sorted(account.todos.items(), key=lambda pair: pair[1][1:], reverse=True):
        todo = services.mission_todos.get(id)
        yield fit_line(f"  {id[-8:]}  {visible(todo.title)}", line_width())
        yield f"    {format_run_usage(one)}"
