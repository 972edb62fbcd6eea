"""Our server in a host's TOML settings, as pure functions of the text.

    [mcp_servers.punchlist]
    command = "punchlist"
    args = ["mcp", "--for", "codex"]

The lines of our table are edited and the result is parsed: an edit counts only if nothing else changed. A library
that writes TOML would reformat the rest of the file.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from punchlist.integrations.install.entries import Entry, ServerEntry, UneditableFile, line_ending
from punchlist.integrations.install.entry_command import NAME, EntryCommand

_ERROR_LINE: Final = re.compile(r"line (\d+)")
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")

Lines = list[str]


@dataclass(frozen=True, slots=True)
class SettingsToml:
    command: EntryCommand
    server: ServerEntry

    def add_entries(self, text: str | None) -> str:
        text = text or ""
        tables = _load(text)
        present = self._present(tables)
        if present is None:
            return self._append(text)
        if not self.server.is_own(self.command, present):
            raise self.server.foreign(self._line(text))
        changes = self.server.pending_changes(self.command, present)
        if not changes:
            return text

        def update(table: Lines) -> Lines:
            lines = {key: f"{key} = {dump(value)}{line_ending(table[0])}" for key, value in changes.items()}
            keys = [line.partition("=")[0].strip() for line in table]
            missing = [line for key, line in lines.items() if key not in keys]
            return [table[0], *missing, *(lines.get(key, line) for key, line in zip(keys[1:], table[1:], strict=True))]

        return self._edit(text, self._with_server(tables, {**present, **changes}), update, "updated")

    def _append(self, text: str) -> str:
        newline = line_ending(text)
        before = "" if not text else newline if text.endswith("\n") else newline * 2
        lines = [f"[{self.server.name}]", *(f"{key} = {dump(value)}" for key, value in self.server.value.items())]
        new = text + before + "".join(line + newline for line in lines)
        try:
            tomllib.loads(new)
        except ValueError:
            table = self.server.table
            raise UneditableFile(
                f"{table} is written on one line, where nothing can be added. Write it as tables, [{table}.NAME], "
                "then install again",
                self._line(text, table),
            ) from None
        return new

    def remove_entries(self, text: str) -> str:
        tables = _load(text)
        if not self.server.is_own(self.command, self._present(tables)):
            return text
        return self._edit(text, self._with_server(tables, None), lambda _: [], "removed")

    def is_empty(self, text: str) -> bool:
        return not text.strip()

    def entries(self, text: str) -> Iterator[Entry]:
        yield self.server.status(self.command, self._present(_load(text)))

    def _present(self, tables: Mapping[str, Any]) -> dict[str, Any] | None:
        table = tables.get(self.server.table, {})
        present = table.get(NAME) if isinstance(table, dict) else None
        for name, value in ((self.server.table, table), (self.server.name, present)):
            if value is not None and not isinstance(value, dict):
                raise UneditableFile(f"{name} must be a table. Correct or remove it, then try again")
        return present

    def _with_server(self, tables: Mapping[str, Any], server: Mapping[str, Any] | None) -> dict[str, Any]:
        servers = {key: value for key, value in tables[self.server.table].items() if key != NAME}
        return {**tables, self.server.table: {**servers, **({NAME: server} if server else {})}}

    def _edit(self, text: str, expected: Mapping[str, Any], edit: Callable[[Lines], Lines], what: str) -> str:
        """Edit the lines of our table. Lines that only look like it are in a string: with them the result differs."""
        lines = _LINE.findall(text)
        ours = re.compile(rf"\s*\[\s*{self.server.table}\s*\.\s*[\"']?{NAME}[\"']?\s*[].]")
        for start in reversed([index for index, line in enumerate(lines) if ours.match(line)]):
            after = range(start + 1, len(lines))
            end = next((at for at in after if lines[at].lstrip()[:1] == "[" and not ours.match(lines[at])), len(lines))
            # Comments and blank lines before the next table belong to that table.
            while lines[end - 1].lstrip()[:1] in ("", "#"):
                end -= 1
            table = edit(lines[start:end])
            first = start - 1 if not table and start and not lines[start - 1].strip() else start
            new = "".join((*lines[:first], *table, *lines[end:]))
            if _equals(new, expected, self.server.table):
                return new
        reason = f"{self.server.name} has a form that cannot be {what}. Remove it yourself, then try again"
        raise UneditableFile(reason, self._line(text))

    def _line(self, text: str, name: str = NAME) -> int | None:
        """The first line that names our table."""
        return next((number for number, line in enumerate(text.split("\n"), start=1) if name in line), None)


def dump(value: Any) -> str:
    """A value as TOML. Its strings are JSON strings, except that TOML forbids a raw DEL."""
    if isinstance(value, list):
        return f"[{', '.join(map(dump, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _load(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise UneditableFile("is nested too deeply") from None
    except ValueError as error:
        line = _ERROR_LINE.search(str(error))
        raise UneditableFile(f"is not valid TOML: {error}", int(line.group(1)) if line else None) from None


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
