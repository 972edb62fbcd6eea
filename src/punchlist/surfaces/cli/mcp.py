"""`punchlist mcp`: serve the lists to an MCP client."""

from __future__ import annotations

import os
import re
from enum import StrEnum
from typing import Annotated

import typer

from punchlist.app import Services
from punchlist.errors import NotFound
from punchlist.kernel.events import Actor, Role
from punchlist.surfaces.cli.agent_guard import refuse_for_agents, refuse_in_tool_calls
from punchlist.surfaces.cli.context import CliContext, SessionOption
from punchlist.surfaces.cli.offered_lists import OfferedLists


class ClientRole(StrEnum):
    SUPERVISOR = "supervisor"
    LEAD = "lead"
    OWNER = "owner"
    WORKER = "worker"
    VIEWER = "viewer"


def mcp(
    cli: CliContext,
    role: Annotated[
        ClientRole, typer.Option(help="The role that decides which tools are offered.")
    ] = ClientRole.SUPERVISOR,
    mission: Annotated[
        str | None, typer.Option(metavar="SLUG", help="For a lead or an owner: only this mission.")
    ] = None,
    pillar: Annotated[
        str | None, typer.Option(metavar="SLUG", help="For an owner: only this pillar of the mission.")
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(
            "--for", metavar="AGENT", help="The agent that starts it. Each running agent gets its own session."
        ),
    ] = None,
    lists: Annotated[OfferedLists, typer.Option(help="The lists whose tools are offered.")] = OfferedLists.BOTH,
    session: SessionOption = None,
    http: Annotated[bool, typer.Option("--http", help="Serve over HTTP with a token.")] = False,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="With --http: the address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(min=0, max=65535, metavar="PORT", help="With --http: the port to listen on; 0 picks a free one."),
    ] = 8421,
) -> None:
    """Serve the lists over MCP: on standard input and output, or over HTTP."""
    from punchlist.host_sessions import AGENT_NAME
    from punchlist.missions.model import MissionScope
    from punchlist.surfaces.mcp.host_scope import HostScope, HostSession, lazy_services
    from punchlist.surfaces.mcp.stdio import serve

    if pillar is not None and mission is None:
        raise typer.BadParameter("needs --mission, whose pillar it is", param_hint="--pillar")
    if mission is not None and role not in (ClientRole.LEAD, ClientRole.OWNER, ClientRole.VIEWER):
        raise typer.BadParameter("is for --role lead, --role owner and --role viewer", param_hint="--mission")
    if http and agent is not None:
        raise typer.BadParameter("is for a server that the agent starts for itself, without --http", param_hint="--for")
    if http and lists is not OfferedLists.BOTH:
        raise typer.BadParameter("is for a server on standard input and output, without --http", param_hint="--lists")
    if agent is not None and not re.fullmatch(AGENT_NAME, agent):
        raise typer.BadParameter("is no name of an agent: small letters, digits and dashes", param_hint="--for")
    _refuse_in_tool_calls(http, role)
    actor = Actor(Role(role.value), agent or "mcp")
    if agent is None:
        services = _bound(cli.services(session), mission, pillar)
        scope = MissionScope(services.settings.session, actor, mission, pillar)
    else:
        services = lazy_services(lambda: _bound(_checked(cli.services(session)), mission, pillar))
        if session:
            scope = MissionScope(session, actor, mission, pillar)
        else:
            scope = HostScope(HostSession(services, os.environ, agent), actor, mission, pillar)
    if http:
        from punchlist.surfaces.mcp.http_server import serve as serve_http

        serve_http(services, scope, host, port, os.environ)
    else:
        serve(services, scope, lists.value)


def _refuse_in_tool_calls(http: bool, role: ClientRole) -> None:
    if http:
        refuse_for_agents("mcp --http")
    elif role not in (ClientRole.SUPERVISOR, ClientRole.WORKER, ClientRole.VIEWER):
        # An agent starts the servers that the user gave it like its commands, and some set the same variables for both.
        refuse_in_tool_calls(f"mcp --role {role.value}")


def _checked(services: Services) -> Services:
    """Fails now and not at the first use, so that the settings are read again for the next call."""
    services.settings.check_database_is_trusted()
    return services


def _bound(services: Services, mission: str | None, pillar: str | None) -> Services:
    """The services, after checking that the mission and the pillar exist."""
    if mission is not None:
        known = [one.pillar.slug for one in services.missions.pillars(services.missions.get(mission))]
        if pillar is not None and pillar not in known:
            raise NotFound(f"Mission {mission!r} has no pillar {pillar!r}. There are: {', '.join(known)}.")
    return services
