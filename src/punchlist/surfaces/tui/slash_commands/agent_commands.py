"""Commands that give the agent or a tool something to do: `/continue /review /shell /tool`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from punchlist.conversations.message_queue import MessageQueue
from punchlist.errors import InvalidInput
from punchlist.surfaces.tui.slash_commands.model import (
    ConfirmShellCommands,
    DialogName,
    OpenDialog,
    ScheduleTool,
    ShowMessage,
    SlashCommand,
    SlashContext,
    SlashResult,
    SubmitPrompt,
)
from punchlist.surfaces.tui.slash_commands.shell_blocks import fence
from punchlist.views.conversations import turn_state

if TYPE_CHECKING:
    from punchlist.app import Services

RUN_COMMAND: Final = "run_command"
REVIEW_COMMANDS: Final = ("git status --short", "git diff HEAD")


def _continue(context: SlashContext, arguments: str) -> SlashResult:
    services, session = context.services, context.scope.conversation_id
    if not context.running and not arguments and _can_go_on(services, session):
        return OpenDialog(DialogName.GO_ON)
    items = services.todos.list(context.scope).open_items
    if not items:
        return ShowMessage("Nothing is open in this session.")
    prompt = ["Finish the open items of this session's list:", *(f"- {item.title}" for item in items)]
    return SubmitPrompt("\n".join([*prompt, *(["", arguments] if arguments else [])]))


def _can_go_on(services: Services, session: str) -> bool:
    """Whether a turn was interrupted, or messages wait although nothing runs."""
    if MessageQueue(services.store).pending(session):
        return True
    turn = services.conversations.current_turn(session)
    return turn is not None and turn_state(turn) == "interrupted"


def _review(context: SlashContext, arguments: str) -> SlashResult:
    if any(command not in context.shell_output for command in REVIEW_COMMANDS):
        return ConfirmShellCommands(REVIEW_COMMANDS, context.line)
    parts = [
        "Review the uncommitted changes below. Name real defects with file and line, most serious first; say so if "
        "there are none. Change nothing.",
        *([f"Look in particular at: {arguments}"] if arguments else []),
        *(f"$ {command}\n{fence(context.shell_output[command])}" for command in REVIEW_COMMANDS),
    ]
    return SubmitPrompt("\n\n".join(parts))


def _shell(context: SlashContext, arguments: str) -> SlashResult:
    del context
    if not arguments:
        raise InvalidInput("/shell needs a command: /shell make test")
    return ScheduleTool(RUN_COMMAND, {"command": arguments}, approved=True)


def _tool(context: SlashContext, arguments: str) -> SlashResult:
    del context
    name, _, rest = arguments.partition(" ")
    if not name:
        raise InvalidInput('/tool needs a name and JSON arguments: /tool read_file {"path": "README.md"}')
    try:
        values: Any = json.loads(rest) if rest.strip() else {}
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"The arguments of /tool {name} must be a JSON object ({error}).") from None
    if not isinstance(values, dict):
        raise InvalidInput(f'The arguments of /tool {name} must be a JSON object, such as {{"path": "README.md"}}.')
    return ScheduleTool(name, values)


COMMANDS: Final = (
    SlashCommand("continue", "Resume the turn, or finish the open items", _continue, argument_hint="[NOTE]"),
    SlashCommand("review", "Have the agent review the uncommitted changes", _review, argument_hint="[FOCUS]"),
    SlashCommand("shell", "Run a command in the workspace", _shell, argument_hint="COMMAND"),
    SlashCommand("tool", "Call a tool yourself", _tool, argument_hint="NAME [JSON]"),
)
