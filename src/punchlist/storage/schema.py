"""What `schema.sql` says: how our tables are made, and what is in them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

from punchlist.storage.statements import Kind, Statement

_COUNTED: Final = {"sqlite": "INTEGER", "postgresql": "BIGSERIAL"}
_TABLE: Final = re.compile(r"^CREATE TABLE (\w+) \((.*?)^\)", re.DOTALL | re.MULTILINE)
_TEXT: Final = re.compile(r"^ +(\w+) TEXT\b", re.MULTILINE)


def statements(kind: Kind) -> list[Statement]:
    """All that make a new database, in their order."""
    return [Statement(one) for one in _sql().replace("COUNTED", _COUNTED[kind]).split(";\n") if one.strip()]


@cache
def tables() -> dict[str, list[str]]:
    """Our tables by their names, and which of their columns are text."""
    return {name: _TEXT.findall(columns) for name, columns in _TABLE.findall(_sql())}


def _sql() -> str:
    return Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
