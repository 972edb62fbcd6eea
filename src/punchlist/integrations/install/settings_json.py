"""Our entries in a host's JSON settings: a server, and hooks. Pure: a text goes in, a text comes out.

    {"hooks": {EVENT: [{"hooks": [{"type": "command", "command": …, "timeout": …}]}]},
     "mcpServers": {"punchlist": {"command": …, "args": […]}}}

Ours is what runs our command. Whatever else is there is somebody else's, and stays. In an entry of ours that is there
already, only what starts us is brought up to date: a person may have chosen the rest.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from punchlist.integrations.install import jsonc
from punchlist.integrations.install.entry_command import NAME, EntryCommand
from punchlist.integrations.install.jsonc import JsonNode
from punchlist.integrations.install.text_edits import (
    EditedText,
    InsertedText,
    TextEdit,
    UneditableFile,
    apply,
    insertions,
    line_at,
    newline,
    without_pieces,
)
from punchlist.kernel.text import excerpt

HOOKS: Final = "hooks"
STARTS_US: Final = ("command", "args")
Way = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HookEntry:
    """One of our hooks: the host's event, ours, and how the host is told."""

    at: str
    event: str
    timeout: int
    named: bool = False
    """Whether the host shows hooks by a name."""

    def entry(self, command: str) -> dict[str, Any]:
        name = {"name": f"{NAME}-{self.event}"} if self.named else {}
        return {**name, "type": "command", "command": command, "timeout": self.timeout}

    def group(self, command: str) -> dict[str, Any]:
        return {HOOKS: [self.entry(command)]}


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """The table of servers in a host's settings, and how ours is written there."""

    table: str
    value: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Appended:
    """For an array that has to have one more."""

    value: Any


@dataclass(frozen=True, slots=True)
class _Found:
    """A hook of ours: where it stands, and for which event of ours it is."""

    at: str
    group: int
    place: int
    node: JsonNode
    event: str
    line: str


@dataclass(frozen=True, slots=True)
class SettingsJson:
    """What of ours belongs into one file."""

    command: EntryCommand
    hooks: tuple[HookEntry, ...] = ()
    server: ServerEntry | None = None
    off: tuple[Way, bool] | None = None
    """The setting by which a person switches all hooks off."""
    opening: Mapping[str, Any] = field(default_factory=dict)
    """What the host itself writes into a new file: it is there from the beginning, so that it need not."""

    # --- putting in ---

    def merged(self, text: str | None) -> EditedText:
        """The text with our entries, brought up to date; the same text if they are."""
        text, root = self._less_stale(text or "")
        if root is None:
            made = self._all_new()
            ends = newline(text)
            gap = ends if text and not text.endswith("\n") else ""
            body = gap + jsonc.written(made, jsonc.style(text, None), "") + ends
            edits = [TextEdit(len(text), len(text), body)]
            return EditedText(apply(text, edits), insertions(text, edits), tuple(self._ways()))
        look = jsonc.style(text, root)
        edits = list[TextEdit]()
        _merge(text, root, self._wanted(text, root, edits, look), look, edits, ())
        return EditedText(apply(text, edits), insertions(text, edits), tuple(_absent(text, root, self._ways())))

    def _all_new(self) -> dict[str, Any]:
        made = dict[str, Any](self.opening)
        if self.hooks:
            made[HOOKS] = {hook.at: [hook.group(self.command.hook(hook.event))] for hook in self.hooks}
        if self.server:
            made[self.server.table] = {NAME: dict(self.server.value)}
        return made

    def _wanted(self, text: str, root: JsonNode, edits: list[TextEdit], look: jsonc.JsonStyle) -> dict[str, Any]:
        """What has to be there. Hooks of ours that are there already are brought up to date on the way."""
        wanted = dict[str, Any]()
        there = {found.at: found for found in self._found(text, root)}
        events = dict[str, Any]()
        for hook in self.hooks:
            if found := there.get(hook.at):
                line = self.command.renewed_hook(hook.event, found.line)
                entry = due(jsonc.plain(text, found.node), hook.entry(line))
                _merge(text, found.node, entry, look, edits, (HOOKS, hook.at))
            else:
                events[hook.at] = _Appended(hook.group(self.command.hook(hook.event)))
        if events:
            wanted[HOOKS] = events
        if self.server:
            present = self._server(text, root)
            value = self.server.value if present is None else self._renewed(text, present)
            wanted[self.server.table] = {NAME: dict(value)}
        return wanted

    def _renewed(self, text: str, present: JsonNode) -> dict[str, Any]:
        """What has to be written of the server that is there."""
        assert self.server is not None
        value = jsonc.plain(text, present)
        if not self.command.is_server(words_of(value)):
            where = line_at(text, present.start)
            raise UneditableFile(
                f"{self.server.table}.{NAME} is there already and was not made by this command. "
                "Rename or remove it, then install again",
                where,
            )
        return due(value, spelled(self.server.value, self.command.renewed(words_of(value))))

    def _less_stale(self, text: str) -> tuple[str, JsonNode | None]:
        """The text less hooks of ours that are where none of ours belongs, or there twice."""
        root = _object(text)
        if root is None:
            return text, root
        wanted, stale = {(hook.at, hook.event) for hook in self.hooks}, list[_Found]()
        for found in self._found(text, root):
            if (found.at, found.event) in wanted:
                wanted.remove((found.at, found.event))
            else:
                stale.append(found)
        if stale:
            text = apply(text, _cut_hooks(text, root, stale, None))
            root = _object(text)
        return text, root

    # --- taking out ---

    def stripped(self, text: str, inserted: tuple[InsertedText, ...] = (), made: tuple[Way, ...] | None = None) -> str:
        """The text less our entries, and less the tables that were made for them; without knowing: that are empty."""
        root = _with_ours(text)
        if root is None:
            return text
        if chosen := list(self._chosen(text, root)):
            # The pieces that were put in are found again by what we wrote.
            text = apply(text, chosen)
            root = jsonc.parse(text)
            assert root is not None
        hooks = list(self._found(text, root))
        edits, gone = list[TextEdit](), set[int]()
        if hooks:
            edits += _cut_hooks(text, root, hooks, made, gone)
        if self.server and self._our_server(text, root):
            table = root.nodes[root.keys.index(self.server.table)]
            if len(table.nodes) == 1 and (made is None or (self.server.table,) in made):
                gone.add(root.keys.index(self.server.table))
            else:
                edits += jsonc.cut(text, table, [table.keys.index(NAME)])
        if gone:
            edits += jsonc.cut(text, root, gone)
        left = apply(text, edits)
        exact = _exactly(text, inserted, left)
        return left if exact is None else exact

    def set_back(self, text: str) -> str:
        """The text with the values that a person chose in our entries as we write them."""
        root = _with_ours(text)
        return apply(text, self._chosen(text, root)) if root else text

    def _chosen(self, text: str, root: JsonNode) -> Iterator[TextEdit]:
        """Edits that put our own values in the place of those that a person chose."""
        look = jsonc.style(text, root)
        entries = {hook.event: hook.entry("") for hook in self.hooks}
        for found in self._found(text, root):
            yield from _set_back(text, found.node, entries.get(found.event, {}), look)
        if self.server and (server := self._our_server(text, root)):
            yield from _set_back(text, server, self.server.value, look)

    def is_empty(self, text: str) -> bool:
        """Whether nothing is in it but what was there when it was new."""
        new = json.dumps(self.opening, separators=(",", ":"))
        return "".join(text.split()) in ("", "{}", new)

    # --- looking ---

    def pieces(self, text: str) -> Iterator[tuple[str, str, list[str]]]:
        """Each of our entries: what it is, `there`, `old` or `missing`, and the command's words."""
        root = _object(text)
        there = {(one.at, one.event): one for one in self._found(text, root)} if root else {}
        for hook in self.hooks:
            found = there.get((hook.at, hook.event))
            what = f"{HOOKS}.{hook.at}"
            if found is None:
                yield what, "missing", []
            else:
                value = jsonc.plain(text, found.node)
                wanted = hook.entry(self.command.renewed_hook(hook.event, found.line))
                yield what, state(value, wanted), self.command.words(found.line)
        if self.server:
            yield self._server_piece(text, root)
        if self.off and root and _setting(text, root, self.off[0]) is self.off[1]:
            yield ".".join(self.off[0]), "switched off", []

    def places(self, text: str) -> Iterator[tuple[str, int, int]]:
        """Where our hooks stand: under which event, in which group, at which place in it."""
        root = _object(text)
        return ((found.at, found.group, found.place) for found in (self._found(text, root) if root else ()))

    def _server_piece(self, text: str, root: JsonNode | None) -> tuple[str, str, list[str]]:
        assert self.server is not None
        what = f"{self.server.table}.{NAME}"
        present = self._server(text, root) if root else None
        if present is None:
            return what, "missing", []
        value = jsonc.plain(text, present)
        words = words_of(value)
        if not self.command.is_server(words):
            return what, "of somebody else", []
        return what, state(value, spelled(self.server.value, self.command.renewed(words))), words

    def _server(self, text: str, root: JsonNode) -> JsonNode | None:
        table = _inner(text, root, self.server.table, "{") if self.server else None
        return jsonc.member(text, table, NAME) if table else None

    def _our_server(self, text: str, root: JsonNode) -> JsonNode | None:
        found = self._server(text, root)
        return found if found and self.command.is_server(words_of(jsonc.plain(text, found))) else None

    def _found(self, text: str, root: JsonNode) -> Iterator[_Found]:
        """Every hook that runs our command for this host, under whatever event."""
        events = _inner(text, root, HOOKS, "{") if self.hooks else None
        if events is None:
            return
        for at in events.keys:
            groups = jsonc.member(text, events, at)
            for number, group in enumerate(groups.nodes) if groups and groups.opens == "[" else ():
                for place, node in enumerate(_commands(group).nodes):
                    line = _line(text, node)
                    event = self.command.hook_event(line) if line else None
                    if line and event:
                        yield _Found(at, number, place, node, event, line)

    def _ways(self) -> Iterator[Way]:
        if self.hooks:
            yield (HOOKS,)
        for hook in self.hooks:
            yield (HOOKS, hook.at)
        if self.server:
            yield (self.server.table,)


def _line(text: str, node: JsonNode) -> str | None:
    found = dict(zip(node.keys, node.nodes, strict=True)).get("command") if node.opens == "{" else None
    said = jsonc.plain(text, found) if found is not None and not found.opens else None
    return said if isinstance(said, str) else None


def _setting(text: str, root: JsonNode, way: Way) -> Any:
    """A value that holds no others; None if there is none."""
    node: JsonNode | None = root
    for key in way:
        node = jsonc.member(text, node, key) if node is not None and node.opens == "{" else None
    return jsonc.plain(text, node) if node is not None and not node.opens else None


def words_of(value: Any) -> list[str]:
    """A server's command, in either spelling: all words in one array, or the arguments apart."""
    if not isinstance(value, Mapping):
        return []
    command, arguments = value.get("command"), value.get("args", [])
    words = command if isinstance(command, list) else [command, *(arguments if isinstance(arguments, list) else ())]
    return words if all(isinstance(word, str) for word in words) else []


def spelled(value: Mapping[str, Any], words: list[str]) -> Mapping[str, Any]:
    """A server's entry with other words in its spelling."""
    if isinstance(value.get("command"), list):
        return {**value, "command": words}
    return {**value, "command": words[0], "args": words[1:]}


def due(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """What has to be written of an entry of ours that is there: what starts us, if it differs, and what is missing."""
    return {key: one for key, one in wanted.items() if key not in value or (key in STARTS_US and value[key] != one)}


def state(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    return "old" if due(value, wanted) else "there"


def _with_ours(text: str) -> JsonNode | None:
    """The object of a text, if there can be anything of ours in it: every command of ours has `--for`."""
    # Settings can be megabytes.
    return _object(text) if "--for" in text else None


def _object(text: str) -> JsonNode | None:
    root = jsonc.parse(text)
    if root is not None and root.opens != "{":
        raise UneditableFile(f"must be an object, got {jsonc.kind(text, root)}", line_at(text, root.start))
    return root


def _inner(text: str, node: JsonNode, key: str, opens: str, way: Way = ()) -> JsonNode | None:
    """The object or the array that an object has by a key."""
    found = jsonc.member(text, node, key)
    if found is not None and found.opens != opens:
        kind = "an object" if opens == "{" else "an array"
        spelled_way = ".".join(excerpt(one) for one in (*way, key))
        raise UneditableFile(
            f"{spelled_way} must be {kind}, got {jsonc.kind(text, found)}. Correct or remove it, then try again",
            line_at(text, found.start),
        )
    return found


def _merge(
    text: str, node: JsonNode, wanted: Mapping[str, Any], look: jsonc.JsonStyle, edits: list[TextEdit], way: Way
) -> None:
    missing = dict[str, Any]()
    for key, want in wanted.items():
        present = jsonc.member(text, node, key)
        if present is None:
            missing[key] = _made(want)
        elif isinstance(want, _Appended):
            array = _inner(text, node, key, "[", way)
            assert array is not None
            edits += jsonc.added(text, array, [want.value], look)
        elif isinstance(want, Mapping):
            table = _inner(text, node, key, "{", way)
            assert table is not None
            _merge(text, table, want, look, edits, (*way, key))
        elif jsonc.plain(text, present) != want:
            edits.append(_replaced(text, present, want, look))
    if missing:
        edits += jsonc.added(text, node, missing, look)


def _set_back(text: str, node: JsonNode, ours: Mapping[str, Any], look: jsonc.JsonStyle) -> Iterator[TextEdit]:
    for key, present in zip(node.keys, node.nodes, strict=True):
        if key in ours and key not in STARTS_US and jsonc.plain(text, present) != ours[key]:
            yield _replaced(text, present, ours[key], look)


def _replaced(text: str, present: JsonNode, value: Any, look: jsonc.JsonStyle) -> TextEdit:
    return TextEdit(present.start, present.end, jsonc.written(value, look, jsonc.indentation(text, present)))


def _made(want: Any) -> Any:
    if isinstance(want, _Appended):
        return [want.value]
    return {key: _made(one) for key, one in want.items()} if isinstance(want, Mapping) else want


def _absent(text: str, root: JsonNode, ways: Iterator[Way]) -> Iterator[Way]:
    for way in ways:
        node: JsonNode | None = root
        for key in way:
            node = jsonc.member(text, node, key) if node is not None else None
        if node is None:
            yield way


def _cut_hooks(
    text: str, root: JsonNode, hooks: Iterable[_Found], made: tuple[Way, ...] | None, gone: set[int] | None = None
) -> list[TextEdit]:
    """Edits that take hooks out, and what is empty without them. If all hooks go, `gone` is told, and cuts them."""
    events = _inner(text, root, HOOKS, "{")
    assert events is not None
    ours = dict[str, dict[int, set[int]]]()
    for found in hooks:
        ours.setdefault(found.at, {}).setdefault(found.group, set()).add(found.place)
    edits, events_gone = list[TextEdit](), set[int]()
    for at, places in ours.items():
        groups = events.nodes[events.keys.index(at)]
        inner = {group: _commands(groups.nodes[group]) for group in places}
        whole = {group for group, node in inner.items() if len(places[group]) == len(node.nodes)}
        if len(whole) == len(groups.nodes) and (made is None or (HOOKS, at) in made):
            events_gone.add(events.keys.index(at))
            continue
        for group in places.keys() - whole:
            edits += jsonc.cut(text, inner[group], places[group])
        if whole:
            edits += jsonc.cut(text, groups, whole)
    if gone is not None and len(events_gone) == len(events.nodes) and (made is None or (HOOKS,) in made):
        gone.add(root.keys.index(HOOKS))
        return []
    return [*edits, *(jsonc.cut(text, events, events_gone) if events_gone else ())]


def _commands(group: JsonNode) -> JsonNode:
    """The array of commands in a group of hooks; an empty one if there is none."""
    found = dict(zip(group.keys, group.nodes, strict=True)).get(HOOKS) if group.opens == "{" else None
    return found if found is not None and found.opens == "[" else JsonNode(group.start, "[", group.start)


def _exactly(text: str, inserted: tuple[InsertedText, ...], left: str) -> str | None:
    """The text less the very pieces that were put in, if that comes to the same as what should be left of it."""
    exact = without_pieces(text, inserted) if inserted else None
    # A file in which there is nothing says what an empty object says.
    return exact if exact is not None and (jsonc.bare(exact) or "{}") == jsonc.bare(left) else None
