"""A slash command, its context, and the eight kinds of results (S11).

A command decides; the application acts. `action` reads and changes lists through the services, never the screen, and
returns what the application must do next. So a command runs the same way in full screen, inline and plain mode.

Two results ask first. After a yes, the application runs the same line again with a context that contains the answer:
`confirmed=True` for `ConfirmAction`, `shell_output` for `ConfirmShellCommands`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from punchlist.app import Services
    from punchlist.conversations.model import Scope


class MessageLevel(StrEnum):
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class DialogName(StrEnum):
    """The dialogs and panels that a command can open."""

    APPROVALS = "approvals"
    COMMANDS = "commands"
    GO_ON = "go_on"
    """No dialog: continue the interrupted turn, or deliver the first queued message."""
    KEYS = "keys"
    MISSIONS = "missions"
    MODE = "mode"
    MODEL = "model"
    PLANS = "plans"
    QUEUE = "queue"
    RESUME = "resume"
    RUNS = "runs"
    SEARCH = "search"
    TODOS = "todos"


@dataclass(frozen=True, slots=True)
class ScheduleTool:
    """Schedule a tool call of the person. The policy applies as to every call."""

    tool: str
    arguments: Mapping[str, Any]
    approved: bool = False
    """The person wrote out what will run, so they are not asked again. What the policy denies stays denied."""


@dataclass(frozen=True, slots=True)
class ShowMessage:
    """Show text to the person. The model does not see it."""

    text: str
    level: MessageLevel = MessageLevel.INFO
    is_report: bool = False
    """Whether the text is to be read at leisure, such as a table."""


@dataclass(frozen=True, slots=True)
class QuitApplication:
    """Quit. A running turn continues in its own process."""


@dataclass(frozen=True, slots=True)
class OpenDialog:
    """Open a dialog. An argument answers it: `/mode plan` sets the mode without asking."""

    dialog: DialogName
    argument: str = ""


@dataclass(frozen=True, slots=True)
class LoadHistory:
    """Show another session, which may be new and empty."""

    session: str


@dataclass(frozen=True, slots=True)
class SubmitPrompt:
    """Send a prompt to the agent, or queue it while a turn runs."""

    prompt: str


@dataclass(frozen=True, slots=True)
class ConfirmShellCommands:
    """Ask before shell commands run; then run the line again with their output."""

    commands: Sequence[str]
    line: str


@dataclass(frozen=True, slots=True)
class ConfirmAction:
    """Ask a question; after a yes, run the line again with `confirmed=True`."""

    question: str
    line: str
    detail: str = ""
    """What the decision is about, such as the content of a file."""


SlashResult = (
    ScheduleTool
    | ShowMessage
    | QuitApplication
    | OpenDialog
    | LoadHistory
    | SubmitPrompt
    | ConfirmShellCommands
    | ConfirmAction
)


@dataclass(frozen=True, slots=True)
class SlashContext:
    """What a command knows. `line` is the whole line that was entered."""

    services: Services
    scope: Scope
    mode: str = "default"
    model: str = ""
    running: bool = False
    """Whether a turn of the session is running."""
    line: str = ""
    confirmed: bool = False
    shell_output: Mapping[str, str] = field(default_factory=dict)
    """The output of each confirmed shell command."""


SlashAction = Callable[[SlashContext, str], SlashResult]
"""Gets the context and the text after the command's name, without surrounding blanks."""


class CommandSource(StrEnum):
    BUILT_IN = "built in"
    USER = "user"
    PROJECT = "project"


@dataclass(frozen=True, slots=True)
class SlashCommand:
    name: str
    description: str
    action: SlashAction | None = None
    """None for a group that only has sub-commands."""
    sub_commands: Sequence[SlashCommand] = ()
    argument_hint: str = ""
    values: Callable[[SlashContext], Sequence[str]] | None = None
    """Completes the first argument."""
    source: CommandSource = CommandSource.BUILT_IN
    unavailable: str = ""
    """Why the command needs a decision before it runs, such as missing trust; empty if it does not."""

    @property
    def usage(self) -> str:
        return f"/{self.name} {self.argument_hint}".rstrip()
