"""Reading tables of a settings file: every mistake is an error that says where and what is possible."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from punchlist.errors import ConfigError
from punchlist.kernel.text import excerpt, json_type


@dataclass(frozen=True, slots=True)
class Table:
    """A table and where it stands, such as `policy.rules[2]`."""

    path: Path
    where: str
    content: Mapping[str, Any]

    @classmethod
    def of(cls, path: Path, where: str, content: Any) -> Table:
        if not isinstance(content, Mapping):
            raise ConfigError(f"{path}: {where}: must be a table, got {json_type(content)}.")
        return cls(path, where, content)

    def wrong(self, key: str, problem: str) -> ConfigError:
        return ConfigError(f"{self.path}: {self.where}.{excerpt(key)}: {problem}.")

    def only(self, *known: str) -> None:
        for key in self.content:
            if key not in known:
                raise self.wrong(key, f"is not known. There are: {', '.join(known)}")

    def text(self, key: str, default: str = "", *, one_of: Collection[str] = ()) -> str:
        value = self.content.get(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, f"must be text in quotes, got {json_type(value)}")
        if one_of and value not in one_of:
            raise self.wrong(key, f"must be one of {', '.join(one_of)}, got {excerpt(value)!r}")
        return value

    def texts(self, key: str) -> list[str]:
        """One text, or a list of them."""
        value = self.content.get(key, [])
        found = [value] if isinstance(value, str) else value
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            raise self.wrong(key, "must be text in quotes, or a list of such")
        return found

    def pairs(self, key: str) -> dict[str, str]:
        value = self.content.get(key, {})
        if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
            raise self.wrong(key, "must be a table of texts")
        return value

    def number(self, key: str, default: float) -> float:
        value = self.content.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise self.wrong(key, "must be a number above 0")
        return float(value)

    def tables(self, key: str) -> list[Table]:
        value = self.content.get(key, [])
        if not isinstance(value, list):
            raise self.wrong(key, "must be a list of tables")
        return [Table.of(self.path, f"{self.where}.{key}[{number}]", one) for number, one in enumerate(value, start=1)]

    def table(self, key: str) -> Table:
        return Table.of(self.path, f"{self.where}.{key}", self.content.get(key, {}))
