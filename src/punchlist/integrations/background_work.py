"""Work that an agent of others has left to run, and of whose end its program will tell it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_ENDING: Final = ("subagent", "workflow")
"""Kinds that surely come to an end. A command may be a server that runs all day."""


@dataclass(frozen=True, slots=True)
class BackgroundWork:
    kind: str
    what: str = ""

    def __str__(self) -> str:
        return f"its {self.kind} “{self.what}”" if self.what else f"its {self.kind}"


def waited_for(work: Sequence[BackgroundWork], *, again: bool) -> tuple[BackgroundWork, ...]:
    """What an agent may be waiting for that stops with items open. `again`: it was sent back before, and has stopped
    once more, with its lists as they were."""
    return tuple(one for one in work if again or one.kind in _ENDING)
