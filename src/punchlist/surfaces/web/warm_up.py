"""What the first requests to a server would have to wait for is done while it starts: templates are compiled and boards
are read once. The search index is brought up to date, and stays so from then on."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from punchlist.errors import PunchlistError, StoreError
from punchlist.kernel.events import Actor, Role
from punchlist.surfaces.web.pages import attention, board
from punchlist.surfaces.web.pages.page import PageRequest
from punchlist.surfaces.web.pages.render import environment
from punchlist.views.search_index import catch_up

if TYPE_CHECKING:
    from punchlist.app import Services

INDEX_SECONDS: Final = 10.0
"""Time between two looks for events that are not in the search index."""
_SLICE_SECONDS: Final = 0.2
"""How long the index is filled at a time, so that a server stops at once."""
_MISSIONS: Final = 3


async def keep_warm(services: Services, stopping: asyncio.Event) -> None:
    # A damaged row is reported by the request that needs it.
    with suppress(PunchlistError):
        await asyncio.to_thread(_prepare_pages, services)
    while not stopping.is_set():
        complete = True
        # A database that cannot be written or reached is searched as it was indexed last.
        with suppress(StoreError):
            complete = await asyncio.to_thread(catch_up, services.store, _SLICE_SECONDS)
        if complete:
            with suppress(TimeoutError):
                async with asyncio.timeout(INDEX_SECONDS):
                    await stopping.wait()


def _prepare_pages(services: Services) -> None:
    templates = environment()
    for name in templates.list_templates(extensions=["html"]):
        templates.get_template(name)
    viewer = Actor(Role.VIEWER, "warm-up")
    attention.attention(PageRequest(services, viewer, "", "/"))
    for mission in services.missions.list()[:_MISSIONS]:
        board.board(PageRequest(services, viewer, "", f"/missions/{mission.slug}/board", {"mission": mission.slug}))
