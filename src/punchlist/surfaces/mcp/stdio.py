"""`punchlist mcp`: one client on standard input and output."""

from __future__ import annotations

import logging
import sys

import anyio
from mcp.server.stdio import stdio_server

from punchlist.conversations.model import Scope
from punchlist.surfaces.desk import Desk
from punchlist.surfaces.mcp.offer import Offer
from punchlist.surfaces.mcp.server import ListServer


def serve(desk: Desk, scope: Scope) -> None:
    """Answer until the client closes its end. Standard output carries nothing but the protocol."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="punchlist: %(message)s")
    # Its complaints about malformed messages quote them; the client gets the error, a log must not.
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    anyio.run(_serve, Offer(desk, scope))


async def _serve(offer: Offer) -> None:
    server = ListServer(offer).server
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
