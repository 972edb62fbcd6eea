"""Our server and hooks in a host's JSON settings, as pure functions of the text.

    {"hooks": {EVENT: [{"hooks": [{"type": "command", "command": …, "timeout": …}]}]},
     "mcpServers": {"punchlist": {"command": …, "args": […]}}}

An entry is ours if it runs our command. All other entries stay: the two tables are changed as values, and `jsonc`
edits the text where they differ.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from punchlist.integrations.install import jsonc
from punchlist.integrations.install.entries import (
    Entry,
    EntryState,
    HookEntry,
    ServerEntry,
    entry_state,
    original_values,
)
from punchlist.integrations.install.entry_command import NAME, EntryCommand
from punchlist.integrations.install.jsonc import REMOVED, JsonNode
from punchlist.integrations.install.text_edits import (
    EditedText,
    InsertedText,
    Path,
    TextEdit,
    UneditableFile,
    apply_edits,
    inserted_texts,
    line_ending,
    line_number,
    remove_inserted,
)
from punchlist.kernel.text import excerpt

HOOKS: Final = "hooks"

Tables = dict[str, Any]
"""The tables that can have our entries: hooks by host event, and servers by name."""


HookPosition = tuple[str, int, int]
"""The host's event, the group, and the index in the group."""


class _OwnHook(NamedTuple):
    position: HookPosition
    event: str
    value: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SettingsJson:
    command: EntryCommand
    hooks: tuple[HookEntry, ...] = ()
    server: ServerEntry | None = None
    off_switch: tuple[Path, bool] | None = None
    """The setting, and its value, by which a person disables all hooks."""
    initial: Mapping[str, Any] = field(default_factory=dict)
    """What the host itself writes to a new file."""

    def add_entries(self, text: str | None) -> EditedText:
        text = self._edit(text or "", self._without_stale_hooks)
        root = _root(text)
        old = self._tables(text, root)
        new = self._with_entries(text, root, old)
        style = jsonc.detect_style(text, root)
        if root is None:
            newline = line_ending(text)
            gap = newline if text and not text.endswith("\n") else ""
            body = gap + jsonc.dump({**self.initial, **new}, style, "") + newline
            edits = [TextEdit(len(text), len(text), body)]
        else:
            edits = jsonc.value_edits(text, root, old, new, style)
        paths = [(key,) for key in new] + [(HOOKS, hook.host_event) for hook in self.hooks]
        created = tuple(path for path in paths if path[-1] not in (old if len(path) == 1 else old.get(HOOKS, {})))
        return EditedText(apply_edits(text, edits), inserted_texts(text, edits), created)

    def remove_entries(
        self, text: str, inserted: tuple[InsertedText, ...] = (), created: tuple[Path, ...] | None = None
    ) -> str:
        # Insertions are located by the values that we wrote.
        text = self.reset_values(text)
        left = self._edit_own(text, lambda tables: self._without_entries(tables, created))
        exact = remove_inserted(text, inserted) if inserted and left != text else None
        # An empty file means the same as an empty object.
        if exact is not None and (jsonc.minify(exact) or "{}") == jsonc.minify(left):
            return exact
        return left

    def reset_values(self, text: str) -> str:
        return self._edit_own(text, self._with_original_values)

    def is_empty(self, text: str) -> bool:
        return "".join(text.split()) in ("", "{}", json.dumps(self.initial, separators=(",", ":")))

    def entries(self, text: str) -> Iterator[Entry]:
        root = _root(text)
        tables = self._tables(text, root)
        found = {(own.position[0], own.event): own.value for own in self._own_hooks(tables)}
        for hook in self.hooks:
            name, value = f"{HOOKS}.{hook.host_event}", found.get((hook.host_event, hook.event))
            if value is None:
                yield Entry(name, EntryState.MISSING)
            else:
                state = entry_state(hook.pending_changes(self.command, value))
                yield Entry(name, state, tuple(self.command.split(value["command"])))
        if self.server:
            yield self.server.status(self.command, tables.get(self.server.table, {}).get(NAME))
        if self.off_switch:
            path, off = self.off_switch
            node = _find(text, root, *path)
            if node is not None and not node.bracket and jsonc.to_python(text, node) is off:
                yield Entry(".".join(path), EntryState.DISABLED)

    def hook_positions(self, text: str) -> list[HookPosition]:
        return [own.position for own in self._own_hooks(self._tables(text, _root(text)))]

    def _edit(self, text: str, change: Callable[[Tables], Tables]) -> str:
        root = _root(text)
        if root is None:
            return text
        tables = self._tables(text, root)
        return apply_edits(text, jsonc.value_edits(text, root, tables, change(tables), jsonc.detect_style(text, root)))

    def _edit_own(self, text: str, change: Callable[[Tables], Tables]) -> str:
        """Edit existing entries. Large files are not parsed in vain: our commands have `--for`."""
        return self._edit(text, change) if "--for" in text else text

    # --- the tables as values ---

    def _tables(self, text: str, root: JsonNode | None) -> Tables:
        tables = Tables()
        for key in [*([HOOKS] if self.hooks else []), *([self.server.table] if self.server else [])]:
            node = _child(text, root, key, "{") if root else None
            if node is not None:
                for name in node.keys if key == HOOKS else (NAME,):
                    jsonc.get(text, node, name)
                tables[key] = jsonc.to_python(text, node)
        return tables

    def _own_hooks(self, tables: Tables) -> Iterator[_OwnHook]:
        """Every hook that runs our command for this host, under any event."""
        for host_event, groups in tables.get(HOOKS, {}).items():
            for group, value in enumerate(groups if isinstance(groups, list) else ()):
                hooks = value.get(HOOKS) if isinstance(value, dict) else None
                for index, hook in enumerate(hooks if isinstance(hooks, list) else ()):
                    line = hook.get("command") if isinstance(hook, dict) else None
                    event = self.command.hook_event(line) if isinstance(line, str) else None
                    if event:
                        yield _OwnHook((host_event, group, index), event, hook)

    def _with_entries(self, text: str, root: JsonNode | None, tables: Tables) -> Tables:
        """The tables with our entries. `text` and `root` locate errors."""
        new, updated, added = dict(tables), dict[HookPosition, Any](), dict[str, Any]()
        found = {own.position[0]: own for own in self._own_hooks(tables)}
        for hook in self.hooks:
            if own := found.get(hook.host_event):
                updated[own.position] = own.value | hook.pending_changes(self.command, own.value)
            else:
                if root and (events := _child(text, root, HOOKS, "{")):
                    _child(text, events, hook.host_event, "[", (HOOKS,))
                added[hook.host_event] = {HOOKS: [hook.value(self.command.hook(hook.event))]}
        if self.hooks:
            hooks = _replace_hooks(tables.get(HOOKS, {}), updated)
            new[HOOKS] = hooks | {event: [*hooks.get(event, ()), group] for event, group in added.items()}
        if self.server:
            table = tables.get(self.server.table, {})
            value = table.get(NAME, self.server.value)
            if not self.server.is_own(self.command, value):
                node = _find(text, root, self.server.table, NAME)
                raise self.server.foreign(line_number(text, node.start) if node else None)
            value = value | self.server.pending_changes(self.command, value)
            new[self.server.table] = {**table, NAME: value}
        return new

    def _without_stale_hooks(self, tables: Tables) -> Tables:
        """Remove our hooks that are duplicates or belong to another event."""
        expected, stale = {(hook.host_event, hook.event) for hook in self.hooks}, dict[HookPosition, Any]()
        for own in self._own_hooks(tables):
            place = own.position[0], own.event
            if place in expected:
                expected.remove(place)
            else:
                stale[own.position] = REMOVED
        return {**tables, HOOKS: _replace_hooks(tables[HOOKS], stale)} if stale else tables

    def _with_original_values(self, tables: Tables) -> Tables:
        """Restore our values where a person changed them in our entries."""
        new, values = dict(tables), {hook.event: hook.value("") for hook in self.hooks}
        if own := list(self._own_hooks(tables)):
            reset = {
                hook.position: hook.value | original_values(hook.value, values.get(hook.event, {})) for hook in own
            }
            new[HOOKS] = _replace_hooks(tables[HOOKS], reset)
        if self.server and self.server.is_own(self.command, value := tables.get(self.server.table, {}).get(NAME)):
            reset_server = value | original_values(value, self.server.value)
            new[self.server.table] = {**tables[self.server.table], NAME: reset_server}
        return new

    def _without_entries(self, tables: Tables, created: tuple[Path, ...] | None) -> Tables:
        new = dict(tables)
        if own := list(self._own_hooks(tables)):
            new[HOOKS] = _replace_hooks(tables[HOOKS], {hook.position: REMOVED for hook in own}, created)
        if self.server and self.server.is_own(self.command, tables.get(self.server.table, {}).get(NAME)):
            new[self.server.table] = {key: each for key, each in tables[self.server.table].items() if key != NAME}
        emptied = [key for key in new if tables[key] and not new[key] and (created is None or (key,) in created)]
        return {key: value for key, value in new.items() if key not in emptied}


def _replace_hooks(
    hooks: Mapping[str, Any], values: Mapping[HookPosition, Any], created: tuple[Path, ...] | None = None
) -> dict[str, Any]:
    """Replace hooks. Groups that become empty are removed, and events too if they were created or that is unknown."""
    new = copy.deepcopy(dict(hooks))
    for (event, group, index), value in values.items():
        new[event][group][HOOKS][index] = value
    for event, group in {(event, group) for event, group, _ in values}:
        if all(hook is REMOVED for hook in new[event][group][HOOKS]):
            new[event][group] = REMOVED
    for event in {event for event, _, _ in values}:
        if all(group is REMOVED for group in new[event]) and (created is None or (HOOKS, event) in created):
            del new[event]
    return new


def _root(text: str) -> JsonNode | None:
    root = jsonc.parse(text)
    if root is not None and root.bracket != "{":
        raise UneditableFile(f"must be an object, got {jsonc.type_name(text, root)}", line_number(text, root.start))
    return root


def _child(text: str, node: JsonNode, key: str, bracket: str, path: Path = ()) -> JsonNode | None:
    """An object or array in an object."""
    found = jsonc.get(text, node, key)
    if found is not None and found.bracket != bracket:
        expected = "an object" if bracket == "{" else "an array"
        name = ".".join(excerpt(part) for part in (*path, key))
        reason = f"{name} must be {expected}, got {jsonc.type_name(text, found)}. Correct or remove it, then try again"
        raise UneditableFile(reason, line_number(text, found.start))
    return found


def _find(text: str, node: JsonNode | None, *path: str) -> JsonNode | None:
    for key in path:
        node = jsonc.get(text, node, key) if node is not None and node.bracket == "{" else None
    return node
