"""`punchlist mcp`: the lists for an MCP client."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from punchlist.kernel.actors import Actor, Role
from punchlist.surfaces.cli.front import SessionOption, front


class ClientRole(StrEnum):
    SUPERVISOR = "supervisor"
    WORKER = "worker"


def mcp(
    context: typer.Context,
    role: Annotated[ClientRole, typer.Option(help="Whose tools to offer.")] = ClientRole.SUPERVISOR,
    session: SessionOption = None,
) -> None:
    """Serve the lists over MCP on standard input and output."""
    from punchlist.conversations.model import Scope
    from punchlist.surfaces.mcp.stdio import serve

    desk = front(context).desk(session)
    serve(desk, Scope(desk.settings.session, Actor(Role(role.value), "mcp")))
