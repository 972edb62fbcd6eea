"""Every action that a key can start: its name, default keys, description and where it is valid.

Widgets and screens take their bindings from here (`bindings`), so that the key file, the sheet of keys and the command
palette know the same actions. The name of an action is `SCOPE.NAME`; `NAME` is also the method `action_NAME`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from textual.binding import Binding


class KeyScope(StrEnum):
    """Where keys are valid."""

    APP = "app"
    COMPOSER = "composer"
    QUEUE = "queue"
    BOARD = "board"
    TODO = "todo"
    RUNS = "runs"
    PLANS = "plans"
    SEARCH = "search"
    COPY = "copy"
    HOME = "home"
    CONVERSATION = "conversation"
    HISTORY = "history"
    LIST = "list"
    APPROVALS = "approvals"


@dataclass(frozen=True, slots=True)
class KeyAction:
    scope: KeyScope
    name: str
    keys: tuple[str, ...]
    description: str
    show: bool = True
    """Whether the footer shows it."""
    priority: bool = False
    """Whether it precedes the keys of the focused widget, such as those that insert text."""

    @property
    def id(self) -> str:
        return f"{self.scope}.{self.name}"


def _actions(scope: KeyScope, *rows: tuple[str, str, str], priority: bool = False) -> Iterator[KeyAction]:
    """A description that begins with a dot is not shown in the footer."""
    for name, keys, description in rows:
        yield KeyAction(
            scope, name, tuple(keys.split()), description.removeprefix("."), not description.startswith("."), priority
        )


NO_KEY: Final = "unbound"
"""A key that no terminal sends: an action without a key."""
KEYS: Final[tuple[KeyAction, ...]] = (
    *_actions(
        KeyScope.APP,
        ("command_palette", "ctrl+p", "Commands"),
        ("show_keys", "f1 question_mark", "Keys"),
        ("copy_mode", "f2", ".Select and copy text with the keyboard"),
    ),
    *_actions(
        KeyScope.COMPOSER,
        ("send", "enter", "Send"),
        ("newline", "shift+enter ctrl+j alt+enter", ".New line"),
        ("complete", "tab", "Complete, or queue the message"),
        ("previous", "up", ".Previous prompt, or the line above"),
        ("next", "down", ".Next prompt, or the line below"),
        ("search_history", "ctrl+r", "Search earlier prompts"),
        ("open_editor", "ctrl+g", "Write in $EDITOR"),
        ("escape", "escape", ".Close, interrupt, or twice: copy an earlier message"),
        ("back", "left", ".Back, if the prompt is empty"),
        ("help", "?", ".Keys, if the prompt is empty"),
        ("edit_queue", "alt+up", ".Change the queued messages"),
    ),
    *_actions(
        KeyScope.QUEUE,
        ("edit", "enter e", "Change"),
        ("remove", "delete backspace d", "Remove"),
        ("leave", "escape", "Back to the prompt"),
    ),
    *_actions(
        KeyScope.BOARD,
        ("left", "left h", ".Column to the left"),
        ("right", "right l", ".Column to the right"),
        ("up", "up k", ".Card above"),
        ("down", "down j", ".Card below"),
        ("open", "enter", "Open"),
        ("start", "s", "Start"),
        ("move_left", "shift+left H", "Move left"),
        ("move_right", "shift+right L", "Move right"),
        ("complete", "c", "Complete"),
        ("cancel", "x", "Cancel"),
        ("metrics", "m", "Metrics"),
        ("filter", "/", "Filter"),
        ("close", "escape q", "Close"),
    ),
    *_actions(
        KeyScope.TODO,
        ("runs", "r", "Runs"),
        ("chat", "c", "Execution chat"),
        ("close", "escape q left", "Close"),
    ),
    *_actions(
        KeyScope.RUNS,
        ("pause", "p", "Pause"),
        ("resume", "r", "Resume"),
        ("redirect", "e", "Redirect"),
        ("stop", "x", "Stop"),
        ("ended", "a", "Show ended runs"),
        ("close", "escape q", "Close"),
    ),
    *_actions(KeyScope.PLANS, ("close", "escape q", "Close")),
    *_actions(
        KeyScope.SEARCH,
        ("down", "down", ".Next row"),
        ("up", "up", ".Previous row"),
        ("close", "escape", "Close"),
        priority=True,
    ),
    *_actions(
        KeyScope.COPY,
        ("copy", "enter y", "Copy"),
        ("mark", "space v", "Begin or end the selection"),
        ("code", "b", "Copy the code block"),
        ("everything", "a", "Select all"),
        ("close", "escape q", "Close"),
        priority=True,
    ),
    *_actions(
        KeyScope.HOME,
        ("open", "enter", "Open"),
        ("peek", "space", "Peek and answer"),
        ("new", "n", "New"),
        ("search", "slash", "Search"),
        ("leave", "q", "Quit"),
    ),
    *_actions(
        KeyScope.CONVERSATION,
        ("toggle_todos", "ctrl+t", "List"),
        ("focus_todos", "ctrl+l", "Change the list"),
        ("focus_approvals", "ctrl+y", "Approvals"),
        ("toggle_cards", "ctrl+o", "Open all cards"),
        ("change_mode", "shift+tab", "Mode"),
        ("focus_history", "ctrl+up", ".Move in the history"),
        ("home", "ctrl+b", "Home"),
        priority=True,
    ),
    *_actions(
        KeyScope.CONVERSATION,
        ("page_up", "pageup", ".Scroll the history up"),
        ("page_down", "pagedown", ".Scroll the history down"),
        ("focus_prompt", "escape", ".Back to the prompt"),
    ),
    *_actions(
        KeyScope.HISTORY,
        ("previous_card", "left_square_bracket ctrl+up", ".Previous card"),
        ("next_card", "right_square_bracket ctrl+down", ".Next card"),
        ("toggle_card", "enter space", "Open or close the card"),
        ("copy_card", "c", "Copy the card"),
    ),
    *_actions(
        KeyScope.LIST,
        ("add", "a", "Add"),
        ("edit", "e enter", "Edit"),
        ("complete", "x", "Done, or reopen"),
        ("start", "s", "Start"),
        ("cancel", "c", "Cancel"),
        ("accept", "v", "Accept"),
        ("up", "K shift+up", "Move up"),
        ("down", "J shift+down", "Move down"),
        ("undo", "u", "Undo"),
    ),
    *_actions(
        KeyScope.APPROVALS,
        ("once", "y", ".Once"),
        ("always_tool", "a", ".Always this tool"),
        ("always_prefix", "p", ".Always this prefix"),
        ("always_server", "s", ".Always this server"),
        ("edit", "e", ".Edit the arguments"),
        ("deny", "d", ".Deny"),
        ("deny_with_reason", "n", ".Deny with a reason"),
        ("previous", "up", ".Previous approval"),
        ("next", "down", ".Next approval"),
        ("scroll_back", "pageup k", ".Scroll up"),
        ("scroll_on", "pagedown j space", ".Scroll down"),
    ),
)


def bindings(scope: KeyScope) -> list[Binding]:
    """The bindings of a widget or screen. Their ids let the key file replace the keys."""
    return [
        Binding(
            ",".join(action.keys),
            action.name if scope is not KeyScope.APP else f"app.{action.name}",
            action.description,
            show=action.show,
            priority=action.priority,
            id=action.id,
        )
        for action in KEYS
        if action.scope is scope
    ]
