"""Tool calls in words: what a call is about, and the change that it makes to a file. Pure functions."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any, Final

SUBJECTS: Final = ("command", "path", "pattern", "query", "mission", "title")
"""The arguments that say what a call is about, in the order of their importance."""
_OMITTED: Final = frozenset({"missionSlug", "pillarSlug"})
_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{20,}")


def call_subject(arguments: Mapping[str, Any]) -> str:
    """The argument that names what the call is about; empty if there is none."""
    found = (arguments.get(name) for name in SUBJECTS)
    return next((text for text in found if isinstance(text, str) and text), "")


def call_summary(arguments: Mapping[str, Any]) -> str:
    """The subject, or all texts and numbers without ids."""
    if subject := call_subject(arguments):
        return subject
    values = [
        str(value)
        for name, value in arguments.items()
        if isinstance(value, str | int | float) and name not in _OMITTED and not _ID.fullmatch(str(value))
    ]
    return ", ".join(value for value in values if value)


def call_diff(tool: str, arguments: Mapping[str, Any]) -> str:
    """The change that a call of a file tool describes, as a unified diff; empty for other calls."""
    match tool, arguments:
        case "edit_file", {"path": str(path), "old": str(old), "new": str(new)}:
            return _unified(path, old, new)
        case "write_file", {"path": str(path), "content": str(content)}:
            return _unified(path, "", content)
    return ""


def _unified(path: str, old: str, new: str) -> str:
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), path, path, lineterm="")
    return "\n".join(line.rstrip("\n") for line in lines)
