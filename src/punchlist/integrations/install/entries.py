"""Our entries in the settings of a host: an MCP server, hooks, or a whole file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple, Protocol

from punchlist.integrations.install.entry_command import NAME, EntryCommand

COMMAND_KEYS: Final = ("command", "args")
"""The keys that start Punchlist. Only these are updated in an existing entry; a person may have changed the rest."""
NOT_OURS: Final = "already exists and was not made by this command"


class UneditableFile(Exception):
    def __init__(self, reason: str, line: int | None = None) -> None:
        self.reason = reason
        self.line = line
        super().__init__(reason)


def line_ending(text: str) -> str:
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def line_number(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


class EntryState(StrEnum):
    INSTALLED = "installed"
    OUTDATED = "outdated"
    MISSING = "missing"
    FOREIGN = "foreign"
    """An entry with our name that starts something else."""
    DISABLED = "disabled"
    UNREADABLE = "unreadable"


class Entry(NamedTuple):
    name: str
    state: EntryState
    command: tuple[str, ...] = ()

    @property
    def is_active(self) -> bool:
        return self.state in (EntryState.INSTALLED, EntryState.OUTDATED)


class ManagedContent(Protocol):
    """Our entries in one file, as pure functions of its text."""

    def add_entries(self, text: str | None) -> str:
        """Add our entries or update them; an up-to-date text stays the same."""

    def remove_entries(self, text: str) -> str:
        """Remove our entries, and the tables that are empty without them."""

    def is_empty(self, text: str) -> bool: ...
    def entries(self, text: str) -> Iterator[Entry]: ...


@dataclass(frozen=True, slots=True)
class HookEntry:
    host_event: str
    event: str
    timeout: int
    named: bool = False
    """Whether the host shows a hook's name."""

    def value(self, command: str) -> dict[str, Any]:
        name = {"name": f"{NAME}-{self.event}"} if self.named else {}
        return {**name, "type": "command", "command": command, "timeout": self.timeout}

    def pending_changes(self, command: EntryCommand, value: Mapping[str, Any]) -> dict[str, Any]:
        return pending_changes(value, self.value(command.updated_hook(self.event, value["command"])))


@dataclass(frozen=True, slots=True)
class ServerEntry:
    table: str
    value: Mapping[str, Any]

    @property
    def name(self) -> str:
        return f"{self.table}.{NAME}"

    def is_own(self, command: EntryCommand, value: Any) -> bool:
        return command.is_server(_command_words(value))

    def pending_changes(self, command: EntryCommand, value: Mapping[str, Any]) -> dict[str, Any]:
        words = command.updated_server(_command_words(value))
        # A host has one of two spellings: one array, or a command and `args`.
        spelled = {"command": words} if "args" not in self.value else {"command": words[0], "args": words[1:]}
        return pending_changes(value, {**self.value, **spelled})

    def status(self, command: EntryCommand, value: Any) -> Entry:
        if value is None:
            return Entry(self.name, EntryState.MISSING)
        if not self.is_own(command, value):
            return Entry(self.name, EntryState.FOREIGN)
        return Entry(self.name, entry_state(self.pending_changes(command, value)), tuple(_command_words(value)))

    def foreign(self, line: int | None) -> UneditableFile:
        return UneditableFile(f"{self.name} {NOT_OURS}. Rename or remove it, then install again", line)


def _command_words(value: Any) -> list[str]:
    """A server's command in either spelling."""
    if not isinstance(value, Mapping):
        return []
    command, arguments = value.get("command"), value.get("args", [])
    words = command if isinstance(command, list) else [command, *(arguments if isinstance(arguments, list) else ())]
    return words if all(isinstance(word, str) for word in words) else []


def pending_changes(value: Mapping[str, Any], expected: Mapping[str, Any]) -> dict[str, Any]:
    """The values to write to an existing entry: a changed command, and missing keys."""
    return {
        key: new for key, new in expected.items() if key not in value or (key in COMMAND_KEYS and value[key] != new)
    }


def entry_state(changes: Mapping[str, Any]) -> EntryState:
    return EntryState.OUTDATED if changes else EntryState.INSTALLED


@dataclass(frozen=True, slots=True)
class OwnFile:
    """A file that is ours as a whole, such as a plugin. Its first line identifies it."""

    name: str
    content: str
    command: tuple[str, ...]

    def add_entries(self, text: str | None) -> str:
        if text is not None and not self._is_ours(text):
            raise UneditableFile(f"{NOT_OURS}. Move it away, then install again")
        return self.content

    def remove_entries(self, text: str) -> str:
        return "" if self._is_ours(text) else text

    def is_empty(self, text: str) -> bool:
        return not text.strip()

    def entries(self, text: str) -> Iterator[Entry]:
        if not text:
            yield Entry(self.name, EntryState.MISSING)
        elif not self._is_ours(text):
            yield Entry(self.name, EntryState.FOREIGN)
        else:
            state = EntryState.INSTALLED if text == self.content else EntryState.OUTDATED
            yield Entry(self.name, state, self.command)

    def _is_ours(self, text: str) -> bool:
        """An empty file can be taken over."""
        return not text.strip() or text.lstrip().splitlines()[0] == self.content.splitlines()[0]
