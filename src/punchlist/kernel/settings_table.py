"""Typed access to the tables of a settings file; errors name the file, line and key, and what is allowed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from punchlist.errors import ConfigError
from punchlist.kernel.text import did_you_mean, excerpt, json_type
from punchlist.kernel.toml_lines import KeyPath, find_line

MAX_NUMBER: Final = 10**12
"""The upper bound for every number."""


@dataclass(frozen=True, slots=True)
class SettingsTable:
    """A table and its path, such as `policy.rules[2]`."""

    path: Path
    key_path: KeyPath
    content: Mapping[str, Any]

    @classmethod
    def top_level(cls, path: Path, name: str, content: Any) -> SettingsTable:
        """A top-level table of a file."""
        return cls._at(path, (name,), content)

    @classmethod
    def _at(cls, path: Path, way: KeyPath, content: Any) -> SettingsTable:
        if not isinstance(content, Mapping):
            raise _error(path, way, f"must be a table, got {json_type(content)}")
        return cls(path, way, content)

    @property
    def name(self) -> str:
        return _format_path(self.key_path)

    def error(self, key: str | None, problem: str) -> ConfigError:
        """An error at a key, or, without one, of the whole table."""
        return _error(self.path, self.key_path if key is None else (*self.key_path, key), problem)

    def check_keys(self, *known: str) -> None:
        for key in self.content:
            if key not in known:
                raise self.error(key, f"is not known.{did_you_mean(key, known)} There are: {', '.join(known)}")

    def text(self, key: str, default: str = "", *, one_of: Collection[str] = ()) -> str:
        value = self.content.get(key, default)
        if not isinstance(value, str):
            raise self.error(key, f"must be text in quotes, got {json_type(value)}")
        if one_of and value not in one_of:
            raise self.error(key, f"must be one of {', '.join(one_of)}, got {excerpt(value)!r}")
        return value

    def text_list(self, key: str) -> list[str]:
        """A string, or a list of strings."""
        value = self.content.get(key, [])
        found = [value] if isinstance(value, str) else value
        if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
            raise self.error(key, "must be text in quotes, or a list of texts")
        return found

    def text_map(self, key: str) -> dict[str, str]:
        value = self.content.get(key, {})
        if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
            raise self.error(key, "must be a table of texts")
        return value

    def number(self, key: str, default: float) -> float:
        value = self.content.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MAX_NUMBER:
            raise self.error(key, "must be a number above 0")
        return float(value)

    def integer(self, key: str, default: int = 0, *, minimum: int = 0, maximum: int = MAX_NUMBER) -> int:
        value = self.content.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
            until = f"to {maximum:,}" if maximum < MAX_NUMBER else "up"
            raise self.error(key, f"must be a whole number from {minimum} {until}")
        return value

    def flag(self, key: str, default: bool = False) -> bool:
        value = self.content.get(key, default)
        if not isinstance(value, bool):
            raise self.error(key, f"must be true or false, without quotes, got {json_type(value)}")
        return value

    def tables(self, key: str) -> list[SettingsTable]:
        value = self.content.get(key, [])
        if not isinstance(value, list):
            raise self.error(key, "must be a list of tables")
        return [SettingsTable._at(self.path, (*self.key_path, key, index), item) for index, item in enumerate(value)]

    def table(self, key: str) -> SettingsTable:
        return SettingsTable._at(self.path, (*self.key_path, key), self.content.get(key, {}))


def location(path: Path, source: str | None, way: KeyPath) -> str:
    """The file, and the line if it can be found."""
    line = find_line(source, way) if source is not None else None
    return f"{path}, line {line}" if line else str(path)


def _error(path: Path, way: KeyPath, problem: str) -> ConfigError:
    return ConfigError(f"{location(path, _source(path), way)}: {_format_path(way)}: {problem}.")


def _source(path: Path) -> str | None:
    """Read the file again; only errors need it."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _format_path(way: KeyPath) -> str:
    """The path in the notation of messages: array indexes start at 1."""
    parts = (f"[{key + 1}]" if isinstance(key, int) else f".{excerpt(key)}" for key in way)
    return "".join(parts).removeprefix(".")
