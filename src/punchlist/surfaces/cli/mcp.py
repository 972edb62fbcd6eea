"""`punchlist mcp`: the lists for an MCP client."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from punchlist.errors import NotFound
from punchlist.kernel.actors import Actor, Role
from punchlist.surfaces.cli.front import SessionOption, front


class ClientRole(StrEnum):
    SUPERVISOR = "supervisor"
    LEAD = "lead"
    OWNER = "owner"
    WORKER = "worker"


def mcp(
    context: typer.Context,
    role: Annotated[ClientRole, typer.Option(help="Whose tools to offer.")] = ClientRole.SUPERVISOR,
    mission: Annotated[
        str | None, typer.Option(metavar="SLUG", help="For a lead or an owner: only this mission.")
    ] = None,
    pillar: Annotated[
        str | None, typer.Option(metavar="SLUG", help="For an owner: only this pillar of the mission.")
    ] = None,
    session: SessionOption = None,
) -> None:
    """Serve the lists over MCP on standard input and output."""
    from punchlist.missions.model import MissionScope
    from punchlist.surfaces.mcp.stdio import serve

    if pillar is not None and mission is None:
        raise typer.BadParameter("needs --mission, whose pillar it is", param_hint="--pillar")
    if mission is not None and role not in (ClientRole.LEAD, ClientRole.OWNER):
        raise typer.BadParameter("is for --role lead and --role owner", param_hint="--mission")
    desk = front(context).desk(session)
    if mission is not None:
        known = [one.pillar.slug for one in desk.missions.standing(desk.missions.get(mission))]
        if pillar is not None and pillar not in known:
            raise NotFound(f"Mission {mission!r} has no pillar {pillar!r}. There are: {', '.join(known)}.")
    serve(desk, MissionScope(desk.settings.session, Actor(Role(role.value), "mcp"), mission, pillar))
