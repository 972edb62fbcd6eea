"""The command palette: slash commands and what they do."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual.command import DiscoveryHit, Hit, Hits, Provider

from punchlist.surfaces.tui.display_text import line, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from punchlist.surfaces.tui.slash_commands.model import SlashCommand


class SlashProvider(Provider):
    async def discover(self) -> Hits:
        for name, command in self._commands():
            yield DiscoveryHit(plain(name), partial(self._run, name, command), name, line(command.description))

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for name, command in self._commands():
            score = max(matcher.match(name), matcher.match(command.description) / 2)
            if score > 0:
                shown = matcher.highlight(name)
                yield Hit(score, shown, partial(self._run, name, command), name, line(command.description))

    def _commands(self) -> Iterator[tuple[str, SlashCommand]]:
        from punchlist.surfaces.tui.app import PunchlistApp

        assert isinstance(self.app, PunchlistApp)
        for command in self.app.slash_registry().commands:
            yield f"/{command.name}", command

    def _run(self, name: str, command: SlashCommand) -> None:
        """Run a command; one that needs an argument is written into the prompt."""
        from punchlist.surfaces.tui.app import PunchlistApp

        assert isinstance(self.app, PunchlistApp)
        self.app.run_or_write(name, needs_argument=command.argument_hint.startswith(("<", "TEXT", "WORDS")))
