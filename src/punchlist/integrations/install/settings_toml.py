"""Our server in a host's TOML settings, as pure functions of the text.

    [mcp_servers.punchlist]
    command = "punchlist"
    args = ["mcp", "--for", "codex"]

The text is split into statements, each a heading or a key with its value, and only ours are changed. A library that
writes TOML would reformat the rest of the file, and takes seconds for files that are read here in milliseconds.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from punchlist.integrations.install.entries import (
    Entry,
    ServerEntry,
    original_values,
)
from punchlist.integrations.install.entry_command import NAME, EntryCommand
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

_TOKEN: Final = re.compile(
    r'"""(?s:[^"\\]|\\.|"(?!""))*+"{3,5}'  # strings, the long ones first
    r"|'''(?s:[^']|'(?!''))*+'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*+"'
    r"|'[^'\n]*+'"
    r"|\#[^\n]*+"
    r"|\r?\n"
    r"|[\[\]{}=]"
    r"|[^\"'\#\n\[\]{}=\r]++"
    r"|\r"
)
_LINE: Final = re.compile(r"line (\d+)")


@dataclass(frozen=True, slots=True)
class TomlStatement:
    """Whole lines: a heading, or a key with the position of its value."""

    start: int
    end: int
    path: Path
    is_heading: bool
    value: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class SettingsToml:
    command: EntryCommand
    server: ServerEntry

    def add_entries(self, text: str | None) -> EditedText:
        text = text or ""
        tables = _load(text)
        present = self._present(tables)
        if present is None:
            return self._append(text, tables)
        if not self.server.is_own(self.command, present):
            raise self.server.foreign(self._line(text))
        changes = self.server.pending_changes(self.command, present)
        edits = list(self._update(text, present, changes))
        new = apply_edits(text, edits)
        if self._present(_load(new)) != {**present, **changes}:
            reason = f"{self.server.name} has a form that cannot be updated. Remove it, then install again"
            raise UneditableFile(reason, self._line(text))
        return EditedText(new, inserted_texts(text, edits))

    def _append(self, text: str, tables: Mapping[str, Any]) -> EditedText:
        table, newline = self.server.table, line_ending(text)
        before = "" if not text else newline if text.endswith("\n") else newline * 2
        lines = [f"[{self.server.name}]", *(f"{key} = {dump(value)}" for key, value in self.server.value.items())]
        entry = before + "".join(line + newline for line in lines)
        try:
            tomllib.loads(text + entry)
        except ValueError:
            raise UneditableFile(
                f"{table} is written on one line, where nothing can be added. Write it as tables, [{table}.NAME], "
                "then install again",
                next((line_number(text, one.start) for one in _statements(text) if one.path[0] == table), None),
            ) from None
        created = () if table in tables else ((table,),)
        return EditedText(text + entry, inserted_texts(text, [TextEdit(len(text), len(text), entry)]), created)

    def _update(self, text: str, present: Mapping[str, Any], values: Mapping[str, Any]) -> Iterator[TextEdit]:
        statements = self._statements(text)
        by_path = {statement.path: statement for statement in statements if not statement.is_heading}
        for key, value in values.items():
            found = by_path.get((self.server.table, NAME, key))
            if found is not None and present.get(key) != value:
                yield TextEdit(*found.value, dump(value))
        missing = [key for key in values if key not in present]
        ours = (self.server.table, NAME)
        heading = next((statement for statement in statements if statement.is_heading and statement.path == ours), None)
        if missing and heading:
            newline = line_ending(text)
            gap = "" if text[: heading.end].endswith("\n") else newline
            lines = "".join(f"{key} = {dump(values[key])}{newline}" for key in missing)
            yield TextEdit(heading.end, heading.end, gap + lines)

    def remove_entries(
        self, text: str, inserted: tuple[InsertedText, ...] = (), created: tuple[Path, ...] | None = None
    ) -> str:
        del created  # An empty table has no heading of ours.
        text = self.reset_values(text)
        tables, table = _load(text), self.server.table
        if not self.server.is_own(self.command, self._present(tables)):
            return text
        expected = {**tables, table: {key: value for key, value in tables[table].items() if key != NAME}}
        left = apply_edits(text, _removals(text, self._statements(text)))
        if not _equals(left, expected, table):
            reason = f"{self.server.name} has a form that cannot be removed. Remove it yourself"
            raise UneditableFile(reason, self._line(text))
        exact = remove_inserted(text, inserted) if inserted else None
        return exact if exact is not None and _equals(exact, expected, table) else left

    def reset_values(self, text: str) -> str:
        present = self._present(_load(text))
        if present is None or not self.server.is_own(self.command, present):
            return text
        return apply_edits(text, self._update(text, present, original_values(present, self.server.value)))

    def is_empty(self, text: str) -> bool:
        return not text.strip()

    def entries(self, text: str) -> Iterator[Entry]:
        yield self.server.status(self.command, self._present(_load(text)))

    def _present(self, tables: Mapping[str, Any]) -> dict[str, Any] | None:
        table = tables.get(self.server.table, {})
        if not isinstance(table, dict):
            raise UneditableFile(f"{self.server.table} must be a table. Correct or remove it, then try again")
        present = table.get(NAME)
        if present is not None and not isinstance(present, dict):
            raise UneditableFile(f"{self.server.name} must be a table. Correct or remove it, then try again")
        return present

    def _statements(self, text: str) -> list[TomlStatement]:
        return [one for one in _statements(text) if one.path[:2] == (self.server.table, NAME)]

    def _line(self, text: str) -> int | None:
        return next((line_number(text, statement.start) for statement in self._statements(text)), None)


def dump(value: Any) -> str:
    """A value as TOML. Its strings are JSON strings, except that TOML forbids a raw DEL."""
    if isinstance(value, list):
        return f"[{', '.join(map(dump, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _load(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise UneditableFile("is nested too deeply to be read") from None
    except ValueError as error:
        line = _LINE.search(str(error))
        raise UneditableFile(f"is not valid TOML: {error}", int(line.group(1)) if line else None) from None


def _statements(text: str) -> Iterator[TomlStatement]:
    """Headings and keys with their full paths. The text must be valid TOML."""
    table: Path = ()
    start = position = depth = last = 0
    equals: int | None = None
    while True:
        found = _TOKEN.match(text, position)
        token = found.group() if found else ""
        position += len(token)
        if not token or (token in ("\n", "\r\n") and depth == 0):
            if last > start and equals is None:
                table = _path(text[start:last])
                yield TomlStatement(start, position, table, is_heading=True)
            elif equals is not None:
                value = (last - len(text[equals:last].lstrip()), last)
                key = _path(f"{text[start : equals - 1]}=0")
                yield TomlStatement(start, position, (*table, *key), False, value)
            if not token:
                return
            start, equals = position, None
        elif token.strip() and token[0] != "#":
            last = position - len(token) + len(token.rstrip())
            if token == "=" and depth == 0 and equals is None:
                equals = position
            depth += (token in ("[", "{")) - (token in ("]", "}"))


def _path(statement: str) -> Path:
    """The names of a heading or of a dotted key."""
    path, inner = list[str](), tomllib.loads(statement)
    while inner and isinstance(inner, dict):
        name, inner = next(iter(inner.items()))
        path.append(name)
    return tuple(path)


def _removals(text: str, statements: Iterable[TomlStatement]) -> Iterator[TextEdit]:
    """Remove each statement, and the blank line above a heading."""
    for statement in statements:
        before = text[: statement.start]
        blank = next((end for end in ("\r\n", "\n") if statement.is_heading and before.endswith(end * 2)), "")
        yield TextEdit(statement.start - len(blank), statement.end, "")


def _equals(text: str, tables: Mapping[str, Any], table: str) -> bool:
    """Whether a text has these tables. An empty table of servers does not count."""
    try:
        return _comparable(tomllib.loads(text), table) == _comparable(tables, table)
    except ValueError:
        return False


def _comparable(tables: Mapping[str, Any], table: str) -> str:
    # As text, because NaN is not equal to itself.
    kept = {key: value for key, value in tables.items() if key != table or value}
    return json.dumps(kept, sort_keys=True, default=repr)
