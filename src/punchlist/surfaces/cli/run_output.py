"""What receives the events of `punchlist run`: a display, a stream of JSON lines, or nothing with `--json`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from punchlist.agent.events import AgentEvent


class RunOutput:
    """Shows nothing."""

    animated = False
    """Whether `tick` shows anything."""
    on_closed: Callable[[str], None] = staticmethod(lambda _: None)
    """Called when the reader of the output is gone."""

    def show_event(self, event: AgentEvent) -> None:
        """An event of the agent or of one of its workers."""

    def note(self, text: str) -> None:
        """A line about the run that is not an event of a turn."""

    def pause(self) -> None:
        """A question to the person is on the terminal."""

    def resume(self) -> None:
        """The question is answered."""

    def tick(self) -> None:
        """Called several times a second while a turn runs."""

    def close(self) -> None:
        """The run has ended."""

    def has_shown(self, answer: str) -> bool:
        """Whether the person reads the answer on the terminal of stdout already."""
        del answer
        return False
