"""What the scheduler needs of a tool, and what a tool gets while it runs.

The scheduler knows tools by these names only; `punchlist.tools` makes them, and so may anybody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Protocol

from punchlist.errors import PunchlistError

Schema = Mapping[str, Any]
Arguments = Mapping[str, Any]


class Effect(StrEnum):
    """What a call does to the world; modes look at this."""

    READ = "read"
    LIST = "list"
    """Keeps the agent's own lists: what it has to do, nothing else."""
    EDIT = "edit"
    EXECUTE = "execute"


@dataclass(frozen=True, slots=True)
class Resources:
    """Keys of what a call reads and writes. Two writers of one key never overlap, nor do a writer and a reader."""

    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()

    def __or__(self, other: Resources) -> Resources:
        return Resources(self.reads | other.reads, self.writes | other.writes)


NO_RESOURCES = Resources()


class ToolFailure(PunchlistError):
    """A tool's way to fail: the message is for the model, and says what to do about it."""

    code: ClassVar[str] = "tool_failed"


class TransientFailure(ToolFailure):
    """It failed for a reason that passes, and has done nothing: it is tried once more before anybody hears of it."""

    code = "transient"


class ConnectionLost(ToolFailure):
    """Whoever does the work was lost in the middle; only what reads can be tried again without looking first."""

    code = "connection_lost"


class TimedOut(ToolFailure):
    """It took longer than it may."""

    code = "timed_out"


class ToolContext(Protocol):
    """A call while it runs, as its tool sees it."""

    @property
    def call_id(self) -> str: ...

    @property
    def output_folder(self) -> Path | None:
        """Where long output may be kept; None when nothing is to be written to disk."""

    @property
    def deadline(self) -> float | None:
        """The event loop's time at which the call is ended; for tools that want to end things in good order."""

    def output(self, text: str) -> None:
        """Show live output to whoever listens. From the event loop's thread or any other."""


class AgentTool(Protocol):
    """A tool that an agent can call.

    `run` is cancelled (`asyncio.CancelledError`) when the call is; it ends what it started before it
    lets that through. It returns JSON-like data or text, and raises `ToolFailure` with a message for
    the model. Whatever else it raises is reported as a failure of the tool.
    """

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def input_schema(self) -> Schema: ...

    @property
    def effect(self) -> Effect: ...

    @property
    def server(self) -> str | None:
        """The MCP server it comes from; None for our own. What a server says of its tools may change."""

    @property
    def time_limit(self) -> float | None:
        """Seconds, where it differs from the scheduler's."""

    def problems(self, arguments: Arguments) -> Sequence[str]:
        """What is wrong with the arguments, each beginning with the path to the field: `items[2].title: …`."""

    def resources(self, arguments: Arguments) -> Resources: ...

    def preview(self, arguments: Arguments) -> str:
        """What a person reads before saying yes: the command, the diff. Several lines are fine."""

    def command(self, arguments: Arguments) -> str | None:
        """The command line a shell would run, for tools that run one: policy judges it by parsing."""

    async def run(self, arguments: Arguments, running: ToolContext) -> Any: ...
