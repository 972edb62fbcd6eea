"""Our server and hooks in a host's JSON settings, as pure functions of the text.

    {"hooks": {EVENT: [{"hooks": [{"type": "command", "command": …, "timeout": …}]}]},
     "mcpServers": {"punchlist": {"command": …, "args": […]}}}

An entry is ours if it runs our command. All other entries stay.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from punchlist.integrations.install import jsonc
from punchlist.integrations.install.entries import (
    COMMAND_KEYS,
    NOT_OURS,
    Entry,
    EntryState,
    HookEntry,
    ServerEntry,
    command_words,
    entry_state,
    pending_changes,
)
from punchlist.integrations.install.entry_command import NAME, EntryCommand
from punchlist.integrations.install.jsonc import JsonNode, JsonStyle
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


@dataclass(frozen=True, slots=True)
class _FoundHook:
    host_event: str
    group: int
    index: int
    node: JsonNode
    event: str
    command: str


@dataclass(frozen=True, slots=True)
class SettingsJson:
    command: EntryCommand
    hooks: tuple[HookEntry, ...] = ()
    server: ServerEntry | None = None
    off_switch: tuple[Path, bool] | None = None
    """The setting, and its value, by which a person disables all hooks."""
    initial: Mapping[str, Any] = field(default_factory=dict)
    """What the host itself writes to a new file."""

    # --- adding ---

    def add_entries(self, text: str | None) -> EditedText:
        text, root = self._without_stale_hooks(text or "")
        if root is None:
            return self._new_content(text)
        style = jsonc.detect_style(text, root)
        edits, new_tables, created = list[TextEdit](), dict[str, Any](), list[Path]()
        new_groups = dict[str, Any]()
        found = {hook.host_event: hook for hook in self._find_hooks(text, root)}
        for hook in self.hooks:
            if existing := found.get(hook.host_event):
                edits += self._update_hook(text, hook, existing, style)
            else:
                new_groups[hook.host_event] = hook.group(self.command.hook(hook.event))
        if new_groups:
            events = _child(text, root, HOOKS, "{")
            if events is None:
                new_tables[HOOKS] = {event: [group] for event, group in new_groups.items()}
                created += [(HOOKS,), *((HOOKS, hook.host_event) for hook in self.hooks)]
            else:
                edits += _add_groups(text, events, new_groups, style, created)
        if self.server:
            table = _child(text, root, self.server.table, "{")
            existing_server = jsonc.get(text, table, NAME) if table else None
            if table is None:
                new_tables[self.server.table] = {NAME: dict(self.server.value)}
                created.append((self.server.table,))
            elif existing_server is None:
                edits += jsonc.append_edits(text, table, {NAME: dict(self.server.value)}, style)
            else:
                edits += self._update_server(text, existing_server, style)
        if new_tables:
            edits += jsonc.append_edits(text, root, new_tables, style)
        return EditedText(apply_edits(text, edits), inserted_texts(text, edits), tuple(created))

    def _new_content(self, text: str) -> EditedText:
        """For a file that has no value yet."""
        content, created = dict[str, Any](self.initial), list[Path]()
        if self.hooks:
            content[HOOKS] = {hook.host_event: [hook.group(self.command.hook(hook.event))] for hook in self.hooks}
            created += [(HOOKS,), *((HOOKS, hook.host_event) for hook in self.hooks)]
        if self.server:
            content[self.server.table] = {NAME: dict(self.server.value)}
            created.append((self.server.table,))
        newline = line_ending(text)
        gap = newline if text and not text.endswith("\n") else ""
        body = gap + jsonc.dump(content, jsonc.detect_style(text, None), "") + newline
        edits = [TextEdit(len(text), len(text), body)]
        return EditedText(apply_edits(text, edits), inserted_texts(text, edits), tuple(created))

    def _update_hook(self, text: str, hook: HookEntry, found: _FoundHook, style: JsonStyle) -> list[TextEdit]:
        expected = hook.value(self.command.updated_hook(hook.event, found.command))
        return _update(text, found.node, pending_changes(jsonc.to_python(text, found.node), expected), style)

    def _update_server(self, text: str, node: JsonNode, style: JsonStyle) -> list[TextEdit]:
        assert self.server is not None
        value = jsonc.to_python(text, node)
        words = command_words(value)
        if not self.command.is_server(words):
            reason = f"{self.server.name} {NOT_OURS}. Rename or remove it, then install again"
            raise UneditableFile(reason, line_number(text, node.start))
        expected = self.server.with_command(self.command.updated_server(words))
        return _update(text, node, pending_changes(value, expected), style)

    def _without_stale_hooks(self, text: str) -> tuple[str, JsonNode | None]:
        """Remove our hooks that are duplicates or belong to another event."""
        root = _root(text)
        if root is None:
            return text, root
        expected, stale = {(hook.host_event, hook.event) for hook in self.hooks}, list[_FoundHook]()
        for found in self._find_hooks(text, root):
            if (found.host_event, found.event) in expected:
                expected.remove((found.host_event, found.event))
            else:
                stale.append(found)
        if stale:
            edits, _ = _remove_hooks(text, root, stale, None)
            text = apply_edits(text, edits)
            root = _root(text)
        return text, root

    # --- removing ---

    def remove_entries(
        self, text: str, inserted: tuple[InsertedText, ...] = (), created: tuple[Path, ...] | None = None
    ) -> str:
        root = _root_with_entries(text)
        if root is None:
            return text
        if resets := list(self._reset_edits(text, root)):
            # Insertions are located by the values that we wrote.
            text = apply_edits(text, resets)
            root = jsonc.parse(text)
            assert root is not None
        edits, removed = list[TextEdit](), set[int]()
        if hooks := list(self._find_hooks(text, root)):
            hook_edits, all_removed = _remove_hooks(text, root, hooks, created)
            if all_removed and (created is None or (HOOKS,) in created):
                removed.add(root.keys.index(HOOKS))
            else:
                edits += hook_edits
        if self.server and self._find_own_server(text, root):
            index = root.keys.index(self.server.table)
            table = root.nodes[index]
            if len(table.nodes) == 1 and (created is None or (self.server.table,) in created):
                removed.add(index)
            else:
                edits += jsonc.remove_edits(text, table, [table.keys.index(NAME)])
        if removed:
            edits += jsonc.remove_edits(text, root, removed)
        left = apply_edits(text, edits)
        exact = remove_inserted(text, inserted) if inserted else None
        # An empty file means the same as an empty object.
        if exact is not None and (jsonc.minify(exact) or "{}") == jsonc.minify(left):
            return exact
        return left

    def reset_values(self, text: str) -> str:
        root = _root_with_entries(text)
        return apply_edits(text, self._reset_edits(text, root)) if root else text

    def _reset_edits(self, text: str, root: JsonNode) -> Iterator[TextEdit]:
        style = jsonc.detect_style(text, root)
        values = {hook.event: hook.value("") for hook in self.hooks}
        for found in self._find_hooks(text, root):
            yield from _reset(text, found.node, values.get(found.event, {}), style)
        if self.server and (server := self._find_own_server(text, root)):
            yield from _reset(text, server, self.server.value, style)

    def is_empty(self, text: str) -> bool:
        return "".join(text.split()) in ("", "{}", json.dumps(self.initial, separators=(",", ":")))

    # --- reading ---

    def entries(self, text: str) -> Iterator[Entry]:
        root = _root(text)
        found = {(hook.host_event, hook.event): hook for hook in self._find_hooks(text, root)} if root else {}
        for hook in self.hooks:
            existing = found.get((hook.host_event, hook.event))
            name = f"{HOOKS}.{hook.host_event}"
            if existing is None:
                yield Entry(name, EntryState.MISSING)
            else:
                expected = hook.value(self.command.updated_hook(hook.event, existing.command))
                state = entry_state(jsonc.to_python(text, existing.node), expected)
                yield Entry(name, state, tuple(self.command.split(existing.command)))
        if self.server:
            yield self._server_status(text, root, self.server)
        if self.off_switch and root and _scalar(text, root, self.off_switch[0]) is self.off_switch[1]:
            yield Entry(".".join(self.off_switch[0]), EntryState.DISABLED)

    def hook_positions(self, text: str) -> list[tuple[str, int, int]]:
        """The host's event, the group and the index in it of each of our hooks."""
        root = _root(text)
        return [(hook.host_event, hook.group, hook.index) for hook in self._find_hooks(text, root)] if root else []

    def _server_status(self, text: str, root: JsonNode | None, server: ServerEntry) -> Entry:
        node = self._find_server(text, root) if root else None
        if node is None:
            return Entry(server.name, EntryState.MISSING)
        value = jsonc.to_python(text, node)
        words = command_words(value)
        if not self.command.is_server(words):
            return Entry(server.name, EntryState.FOREIGN)
        state = entry_state(value, server.with_command(self.command.updated_server(words)))
        return Entry(server.name, state, tuple(words))

    def _find_server(self, text: str, root: JsonNode) -> JsonNode | None:
        table = _child(text, root, self.server.table, "{") if self.server else None
        return jsonc.get(text, table, NAME) if table else None

    def _find_own_server(self, text: str, root: JsonNode) -> JsonNode | None:
        found = self._find_server(text, root)
        return found if found and self.command.is_server(command_words(jsonc.to_python(text, found))) else None

    def _find_hooks(self, text: str, root: JsonNode) -> Iterator[_FoundHook]:
        """Every hook that runs our command for this host, under any event."""
        events = _child(text, root, HOOKS, "{") if self.hooks else None
        for host_event in events.keys if events else ():
            groups = jsonc.get(text, events, host_event) if events else None
            for group, group_node in enumerate(groups.nodes) if groups and groups.bracket == "[" else ():
                for index, node in enumerate(_commands(group_node).nodes):
                    command = _command(text, node)
                    event = self.command.hook_event(command) if command else None
                    if command and event:
                        yield _FoundHook(host_event, group, index, node, event, command)


def _root(text: str) -> JsonNode | None:
    root = jsonc.parse(text)
    if root is not None and root.bracket != "{":
        raise UneditableFile(f"must be an object, got {jsonc.type_name(text, root)}", line_number(text, root.start))
    return root


def _root_with_entries(text: str) -> JsonNode | None:
    """The root if there can be an entry of ours. Large files are not parsed in vain: our commands have `--for`."""
    return _root(text) if "--for" in text else None


def _child(text: str, node: JsonNode, key: str, bracket: str, path: Path = ()) -> JsonNode | None:
    """An object or array in an object."""
    found = jsonc.get(text, node, key)
    if found is not None and found.bracket != bracket:
        expected = "an object" if bracket == "{" else "an array"
        name = ".".join(excerpt(part) for part in (*path, key))
        reason = f"{name} must be {expected}, got {jsonc.type_name(text, found)}. Correct or remove it, then try again"
        raise UneditableFile(reason, line_number(text, found.start))
    return found


def _scalar(text: str, root: JsonNode, path: Path) -> Any:
    node: JsonNode | None = root
    for key in path:
        node = jsonc.get(text, node, key) if node is not None and node.bracket == "{" else None
    return jsonc.to_python(text, node) if node is not None and not node.bracket else None


def _commands(group: JsonNode) -> JsonNode:
    """The array of commands in a group of hooks; an empty one if there is none."""
    found = dict(zip(group.keys, group.nodes, strict=True)).get(HOOKS) if group.bracket == "{" else None
    return found if found is not None and found.bracket == "[" else JsonNode(group.start, "[", group.start)


def _command(text: str, node: JsonNode) -> str | None:
    found = dict(zip(node.keys, node.nodes, strict=True)).get("command") if node.bracket == "{" else None
    value = jsonc.to_python(text, found) if found is not None and not found.bracket else None
    return value if isinstance(value, str) else None


def _add_groups(
    text: str, events: JsonNode, groups: Mapping[str, Any], style: JsonStyle, created: list[Path]
) -> Iterator[TextEdit]:
    new_events = dict[str, Any]()
    for event, group in groups.items():
        array = _child(text, events, event, "[", (HOOKS,))
        if array is None:
            new_events[event] = [group]
            created.append((HOOKS, event))
        else:
            yield from jsonc.append_edits(text, array, [group], style)
    if new_events:
        yield from jsonc.append_edits(text, events, new_events, style)


def _update(text: str, node: JsonNode, values: Mapping[str, Any], style: JsonStyle) -> list[TextEdit]:
    edits, missing = list[TextEdit](), dict[str, Any]()
    for key, value in values.items():
        present = jsonc.get(text, node, key)
        if present is None:
            missing[key] = value
        else:
            edits.append(jsonc.replace_edit(text, present, value, style))
    return [*edits, *(jsonc.append_edits(text, node, missing, style) if missing else ())]


def _reset(text: str, node: JsonNode, values: Mapping[str, Any], style: JsonStyle) -> Iterator[TextEdit]:
    for key, present in zip(node.keys, node.nodes, strict=True):
        if key in values and key not in COMMAND_KEYS and jsonc.to_python(text, present) != values[key]:
            yield jsonc.replace_edit(text, present, values[key], style)


def _remove_hooks(
    text: str, root: JsonNode, hooks: Iterable[_FoundHook], created: tuple[Path, ...] | None
) -> tuple[list[TextEdit], bool]:
    """Edits that remove hooks and what becomes empty, and whether all events are removed."""
    events = _child(text, root, HOOKS, "{")
    assert events is not None
    indexes = dict[str, dict[int, set[int]]]()
    for hook in hooks:
        indexes.setdefault(hook.host_event, {}).setdefault(hook.group, set()).add(hook.index)
    edits, removed_events = list[TextEdit](), set[int]()
    for host_event, by_group in indexes.items():
        groups = events.nodes[events.keys.index(host_event)]
        arrays = {group: _commands(groups.nodes[group]) for group in by_group}
        emptied = {group for group, array in arrays.items() if len(by_group[group]) == len(array.nodes)}
        if len(emptied) == len(groups.nodes) and (created is None or (HOOKS, host_event) in created):
            removed_events.add(events.keys.index(host_event))
            continue
        for group in by_group.keys() - emptied:
            edits += jsonc.remove_edits(text, arrays[group], by_group[group])
        if emptied:
            edits += jsonc.remove_edits(text, groups, emptied)
    if removed_events:
        edits += jsonc.remove_edits(text, events, removed_events)
    return edits, len(removed_events) == len(events.nodes)
