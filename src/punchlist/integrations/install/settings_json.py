"""Our server and hooks in a host's JSON settings, as pure functions of the text.

    {"hooks": {EVENT: [{"hooks": [{"type": "command", "command": …, "timeout": …}]}]},
     "mcpServers": {"punchlist": {"command": …, "args": […]}}}

An entry is ours if it runs our command. All other entries stay.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from punchlist.integrations.install import jsonc
from punchlist.integrations.install.entries import (
    Entry,
    EntryState,
    HookEntry,
    ServerEntry,
    entry_state,
    line_ending,
)
from punchlist.integrations.install.entry_command import NAME, EntryCommand

HOOKS: Final = "hooks"

HookPosition = tuple[str, int, int]
"""The host's event, the group, and the index in the group."""


class _OwnHook(NamedTuple):
    position: HookPosition
    event: str
    value: dict[str, Any]
    alone: bool
    """Whether it is the only hook of its group."""

    @property
    def path(self) -> jsonc.Path:
        host_event, group, index = self.position
        return HOOKS, host_event, group, HOOKS, index

    @property
    def removed_path(self) -> jsonc.Path:
        return self.path[:3] if self.alone else self.path


@dataclass(frozen=True, slots=True)
class SettingsJson:
    command: EntryCommand
    hooks: tuple[HookEntry, ...] = ()
    server: ServerEntry | None = None
    off_switch: tuple[tuple[str, ...], bool] | None = None
    """The setting, and its value, by which a person disables all hooks."""
    initial: Mapping[str, Any] = field(default_factory=dict)
    """What the host itself writes to a new file."""

    def add_entries(self, text: str | None) -> str:
        text = text or ""
        if jsonc.load(text) is None:
            newline = line_ending(text)
            gap = newline if text and not text.endswith("\n") else ""
            text += gap + json.dumps(self.initial, indent=2).replace("\n", newline) + newline
        data = self._load(text)
        while stale := self._stale_hook(data):
            text = jsonc.remove(text, stale.removed_path)
            data = self._load(text)
        found = {own.position[0]: own for own in self._own_hooks(data)}
        for hook in self.hooks:
            if own := found.get(hook.host_event):
                for key, value in hook.pending_changes(self.command, own.value).items():
                    text = jsonc.put(text, (*own.path, key), value)
            else:
                groups = data.get(HOOKS, {}).get(hook.host_event, ())
                group = {HOOKS: [hook.value(self.command.hook(hook.event))]}
                text = jsonc.put(text, (HOOKS, hook.host_event, len(groups)), group)
        if self.server is None:
            return text
        path = (self.server.table, NAME)
        present = data.get(self.server.table, {}).get(NAME)
        if present is None:
            return jsonc.put(text, path, self.server.value)
        if not self.server.is_own(self.command, present):
            raise self.server.foreign(jsonc.line_of(text, path))
        for key, value in self.server.pending_changes(self.command, present).items():
            text = jsonc.put(text, (*path, key), value)
        return text

    def remove_entries(self, text: str) -> str:
        if "--for" not in text:
            # All our commands have it. Large files are not parsed in vain.
            return text
        data = self._load(text)
        while own := next(self._own_hooks(data), None):
            text = jsonc.remove(text, own.removed_path)
            data = self._load(text)
        if self.server and self.server.is_own(self.command, data.get(self.server.table, {}).get(NAME)):
            text = jsonc.remove(text, (self.server.table, NAME))
        return text

    def is_empty(self, text: str) -> bool:
        return "".join(text.split()) in ("", "{}", json.dumps(self.initial, separators=(",", ":")))

    def entries(self, text: str) -> Iterator[Entry]:
        data = self._load(text)
        found = {(own.position[0], own.event): own.value for own in self._own_hooks(data)}
        for hook in self.hooks:
            name, value = f"{HOOKS}.{hook.host_event}", found.get((hook.host_event, hook.event))
            if value is None:
                yield Entry(name, EntryState.MISSING)
            else:
                state = entry_state(hook.pending_changes(self.command, value))
                yield Entry(name, state, tuple(self.command.split(value["command"])))
        if self.server:
            yield self.server.status(self.command, data.get(self.server.table, {}).get(NAME))
        if self.off_switch:
            path, off = self.off_switch
            for key in path:
                data = data.get(key) if isinstance(data, dict) else None
            if data is off:
                yield Entry(".".join(path), EntryState.DISABLED)

    def hook_positions(self, text: str) -> list[HookPosition]:
        return [own.position for own in self._own_hooks(self._load(text))]

    def _load(self, text: str) -> Any:
        """The settings; the tables that can have our entries have the right types."""
        data = jsonc.load(text)
        if data is None:
            return {}
        jsonc.check_type(text, data, (), dict)
        if self.hooks:
            jsonc.check_type(text, data, (HOOKS,), dict)
            for hook in self.hooks:
                jsonc.check_type(text, data, (HOOKS, hook.host_event), list)
        if self.server:
            jsonc.check_type(text, data, (self.server.table,), dict)
        return data

    def _own_hooks(self, data: Mapping[str, Any]) -> Iterator[_OwnHook]:
        """Every hook that runs our command for this host, under any event."""
        for host_event, groups in data.get(HOOKS, {}).items() if self.hooks else ():
            for group, value in enumerate(groups if isinstance(groups, list) else ()):
                hooks = value.get(HOOKS) if isinstance(value, dict) else None
                for index, hook in enumerate(hooks if isinstance(hooks, list) else ()):
                    line = hook.get("command") if isinstance(hook, dict) else None
                    event = self.command.hook_event(line) if isinstance(line, str) else None
                    if event:
                        yield _OwnHook((host_event, group, index), event, hook, len(value[HOOKS]) == 1)

    def _stale_hook(self, data: Mapping[str, Any]) -> _OwnHook | None:
        """One of our hooks that is a duplicate or belongs to another event."""
        expected = {(hook.host_event, hook.event) for hook in self.hooks}
        for own in self._own_hooks(data):
            place = own.position[0], own.event
            if place not in expected:
                return own
            expected.remove(place)
        return None
