"""`punchlist mission costs`: what a mission has used, pillar by pillar and todo by todo."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from punchlist.kernel.text import visible
from punchlist.surfaces.cli.context import JsonOption, front, say, say_json

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

    desk = front(context).desk(as_json=as_json)
    mission = desk.missions.get(slug)
    account = MissionUsageService(desk.store).mission(mission.id)
    listed = desk.mission_todos.list(slug, archived=True, limit=1)
    if as_json:
        say_json(_json(desk, mission, account, listed))
        return
    for line in _lines(desk, mission, account, listed):
        say(line)


def _json(desk: Services, mission: Mission, account: MissionUsage, listed: TodoPage) -> dict[str, Any]:
    return {
        "missionSlug": mission.slug,
        **account.account.as_json(),
        "pillars": [{"id": id, "slug": listed.pillars.get(id), **one.as_json()} for id, one in account.pillars.items()],
        "todos": [
            {"id": id, "title": desk.mission_todos.get(id).title, **one.as_json()} for id, one in account.todos.items()
        ],
    }


def _lines(desk: Services, mission: Mission, account: MissionUsage, listed: TodoPage) -> Iterator[str]:
    from punchlist.surfaces.cli.layout import fit, terminal, used

    yield fit(visible(mission.name), terminal())
    yield f"  {used(account.account)}"
    for id, one in sorted(account.pillars.items(), key=lambda pair: listed.pillars.get(pair[0], "")):
        yield f"\n{visible(listed.pillars.get(id, id))}"
        yield f"  {used(one)}"
    if account.todos:
        yield "\nTodos, those that used most first"
    for id, one in sorted(account.todos.items(), key=lambda pair: pair[1][1:], reverse=True):
        todo = desk.mission_todos.get(id)
        yield fit(f"  {id[-8:]}  {visible(todo.title)}", terminal())
        yield f"    {used(one)}"
