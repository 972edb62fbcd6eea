"""Parsing of checks. Pure."""

from __future__ import annotations

from itertools import accumulate
from typing import Any, Final

from punchlist.errors import InvalidInput
from punchlist.kernel import text
from punchlist.verification.model import Check, Mark

MAX_COMMAND_LENGTH: Final = 4_000
MAX_FILE_LENGTH: Final = 1_000
MAX_TIMEOUT: Final = 3_600.0
_FIELDS: Final = ("command", "file", "contains", "metric", "timeout")

CHECK_SCHEMA: Final[dict[str, Any]] = {
    "description": "Decides if it is done: a shell command that exits 0, or {file, contains?}",
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "properties": {
                "command": {"type": "string"},
                "file": {"type": "string"},
                "contains": {"type": "string"},
                "metric": {"type": "string"},
                "timeout": {"type": "number"},
            },
        },
    ],
}

VERIFICATION_SCHEMA: Final[dict[str, Any]] = {
    "mark": {"type": "string", "enum": [mark.value for mark in Mark]},
    "check": {"type": ["string", "object"]},
    "checkResult": {"type": "object"},
    "evidence": {"type": "array", "items": {"type": "object"}},
    "acceptedBy": {"type": "string"},
    "copiedFrom": {"type": "string"},
}
"""The properties of `verification_json`."""


def parse_check(raw: Any, where: str, problems: list[str], *, by_person: bool = False) -> Check | None:
    """A check as a model or person writes it (V2); adds what is wrong to `problems`."""
    if raw is None or raw in ("", {}):
        # Models send empty values for fields that they do not use.
        return None
    if isinstance(raw, str):
        raw = {"command": raw}
    if not isinstance(raw, dict):
        problems.append(f"{where}: must be a command, or an object with command, file or metric")
        return None
    given = {name: value for name, value in raw.items() if value is not None}
    found = [*_shape_problems(given, where), *_value_problems(given, where)]
    problems += found
    return None if found else Check(**given, by_person=by_person)


def parse_command(raw: str) -> Check | None:
    """The check that a person writes on the command line; None for an empty text."""
    problems: list[str] = []
    check = parse_check(raw.strip(), "check", problems)
    if problems:
        raise InvalidInput(problems)
    return check


def _shape_problems(given: dict[str, Any], where: str) -> list[str]:
    unknown = [
        f"{where}.{text.excerpt(name)}: is not a field of a check ({', '.join(_FIELDS)} are)"
        for name in given
        if name not in _FIELDS
    ]
    kinds = [name for name in ("command", "file", "metric") if name in given]
    if len(kinds) != 1:
        unknown.append(f"{where}: needs exactly one of command, file and metric, got {len(kinds)}")
    for name, kind in (("contains", "file"), ("timeout", "command")):
        if name in given and kind not in given:
            unknown.append(f"{where}.{name}: applies to a {kind} only")
    return unknown


def _value_problems(given: dict[str, Any], where: str) -> list[str]:
    found: dict[str, str | None] = {
        **{name: _text_problem(given[name]) for name in ("command", "contains") if name in given},
        **{
            name: text.line_problem(given[name], max_length=MAX_FILE_LENGTH)
            for name in ("file", "metric")
            if name in given
        },
    }
    if "file" in given and not found["file"] and _leaves_workspace(given["file"]):
        found["file"] = "must be inside the workspace, as a path relative to it"
    if "timeout" in given and not _is_timeout(given["timeout"]):
        found["timeout"] = f"must be a number of seconds above 0 and at most {MAX_TIMEOUT:g}"
    return [f"{where}.{name}: {problem}" for name, problem in found.items() if problem]


def _text_problem(value: Any) -> str | None:
    if problem := text.raw_problem(value, max_length=MAX_COMMAND_LENGTH):
        return problem
    return None if str(value).strip() else "must not be empty"


def _leaves_workspace(path: str) -> bool:
    parts = path.strip().replace("\\", "/").split("/")
    if parts[0] in ("", "~") or parts[0].endswith(":"):
        return True
    depths = accumulate({"..": -1, ".": 0, "": 0}.get(part, 1) for part in parts)
    return min(depths) < 0


def _is_timeout(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= MAX_TIMEOUT
