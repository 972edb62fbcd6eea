"""Opens the panel of a slash command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from punchlist.surfaces.tui.dialogs import ChoiceDialog
from punchlist.surfaces.tui.panels.board_screen import BoardScreen
from punchlist.surfaces.tui.panels.plans_screen import PlansScreen
from punchlist.surfaces.tui.panels.runs_screen import RunsScreen
from punchlist.surfaces.tui.panels.search_screen import SearchScreen
from punchlist.surfaces.tui.slash_commands.model import DialogName

if TYPE_CHECKING:
    from punchlist.surfaces.tui.app import PunchlistApp


async def open_panel(app: PunchlistApp, dialog: DialogName, argument: str, session: str) -> None:
    match dialog:
        case DialogName.MISSIONS:
            await _open_board(app, argument)
        case DialogName.PLANS:
            app.push_screen(PlansScreen(session))
        case DialogName.RUNS:
            app.push_screen(RunsScreen())
        case DialogName.RESUME | DialogName.SEARCH:
            app.push_screen(SearchScreen(argument))
        case DialogName.QUEUE if app.conversation is not None:
            app.conversation.composer.action_edit_queue()
        case _:
            app.say(f"There is no panel {dialog}.", "warning")


async def _open_board(app: PunchlistApp, slug: str) -> None:
    """The board of a mission; which one is asked if there are several."""
    if not slug:
        missions = await app.in_thread(app.backend.services.missions.list)
        if len(missions) == 1:
            slug = missions[0].slug
        elif missions:
            choices = [(mission.slug, mission.name) for mission in missions]

            def open_chosen(chosen: str | None) -> None:
                if chosen:
                    app.push_screen(BoardScreen(chosen))

            app.push_screen(ChoiceDialog("Mission", choices), open_chosen)
    if slug:
        app.push_screen(BoardScreen(slug))
