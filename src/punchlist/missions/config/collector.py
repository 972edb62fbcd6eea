"""How a metric is collected, as its mission file says it. `collectors.py` does it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, Final
from urllib.parse import urlsplit

from punchlist.kernel.text import excerpt, json_type, line_problem
from punchlist.missions.config.fields import Fields, meant, shown

MOST_WORDS: Final = 100
LONGEST_WORD: Final = 10_000
LONGEST_PATH: Final = 1_000
LONGEST_URL: Final = 2_000
LONGEST_PATTERN: Final = 500
LONGEST_HEADER: Final = 4_000
MOST_HEADERS: Final = 20
COMMAND_SECONDS: Final = 600.0
"""How long a check may take that says nothing else."""
LEAST_SECONDS: Final = 0.1
LONGEST_SECONDS: Final = 3_600.0

_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}", re.ASCII)
ENTRY_POINT: Final = re.compile(
    r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*|[A-Za-z_][\w-]*", re.ASCII
)
POINTER: Final = re.compile(r"(/([^/~]|~[01])*)*")

FIELDS: Final = {
    "manual": ("type",),
    "command": ("type", "command", "pattern", "timeoutSeconds"),
    "file": ("type", "path", "pointer", "pattern"),
    "http": ("type", "url", "pointer", "headers", "timeoutSeconds"),
    "python": ("type", "entryPoint", "timeoutSeconds"),
}
REQUIRED: Final = {
    "manual": (),
    "command": ("command",),
    "file": ("path",),
    "http": ("url", "pointer"),
    "python": ("entryPoint",),
}
RUNS: Final = frozenset({"command", "http", "python"})
"""Those that do something on this machine or to another one: only after the person has trusted the file (M7)."""


def parse_collector(raw: Any, metric: Fields) -> dict[str, Any]:
    """As it is written, when there is nothing wrong with it."""
    where, manual = metric.way("collector"), {"type": "manual"}
    if not isinstance(raw, dict):
        metric.wrong("collector", f'must be an object such as {{"type": "manual"}}, got {json_type(raw)}')
        return manual
    kind = raw.get("type")
    if not isinstance(kind, str) or kind not in FIELDS:
        near = meant(kind, FIELDS) if isinstance(kind, str) else ""
        said = f"got {shown(kind)}" if "type" in raw else "is left out"
        metric.problems.append(f"{where}.type: must be one of {', '.join(FIELDS)}, {said}.{near}".rstrip("."))
        return manual
    fields = Fields.of(raw, where, metric.problems, *FIELDS[kind])
    before = len(metric.problems)
    fields.require(*(key for key in REQUIRED[kind] if key != "command"))
    for key in FIELDS[kind]:
        if key in _READ and (key in raw or key == "command"):
            _READ[key](fields, key)
    if {"pointer", "pattern"} <= raw.keys():
        fields.wrong("pattern", "is of no use beside a pointer; leave one of them out")
    return manual if len(metric.problems) > before else {key: raw[key] for key in FIELDS[kind] if key in raw}


def _command(fields: Fields, key: str) -> None:
    fields.words(key, most=MOST_WORDS, longest=LONGEST_WORD)


def _seconds(fields: Fields, key: str) -> None:
    fields.number(key, 1.0, least=LEAST_SECONDS, most=LONGEST_SECONDS)


def _pattern(fields: Fields, key: str) -> None:
    pattern = fields.content[key]
    if problem := line_problem(pattern, longest=LONGEST_PATTERN):
        fields.wrong(key, problem)
        return
    try:
        groups = re.compile(pattern).groups
    except (re.error, OverflowError, RecursionError) as error:
        fields.wrong(key, f"is no regular expression ({excerpt(str(error))})")
        return
    if groups != 1:
        fields.wrong(key, f"must have one group in parentheses, for the number; it has {groups}")


def _path(fields: Fields, key: str) -> None:
    path = fields.content[key]
    if problem := line_problem(path, longest=LONGEST_PATH):
        fields.wrong(key, problem)
        return
    windows = PureWindowsPath(path)
    # Whoever wrote the file may sit at another kind of machine than whoever applies it.
    if PurePosixPath(path).is_absolute() or windows.drive or windows.root or path.startswith("~"):
        fields.wrong(key, f"must be relative to the project's folder, got {shown(path)}")
    elif ".." in windows.parts:
        fields.wrong(key, f"must not climb out of the project's folder, got {shown(path)}")


def _url(fields: Fields, key: str) -> None:
    url = fields.content[key]
    if problem := line_problem(url, longest=LONGEST_URL):
        fields.wrong(key, problem)
        return
    try:
        parts = urlsplit(url)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
        secret = parts.username is not None or parts.password is not None
    except ValueError:
        fine, secret = False, False
    if not fine or re.search(r"\s", url):
        fields.wrong(key, f"must be an http:// or https:// address, got {shown(url)}")
    elif secret:
        fields.wrong(key, "must not hold a name or a password")


def _pointer(fields: Fields, key: str) -> None:
    pointer = fields.content[key]
    if problem := line_problem(pointer, longest=LONGEST_PATTERN, shortest=0):
        fields.wrong(key, problem)
    elif not POINTER.fullmatch(pointer):
        fields.wrong(key, f'must be a JSON pointer such as "/data/0/value", got {shown(pointer)}')


def _headers(fields: Fields, key: str) -> None:
    headers = fields.content[key]
    if not isinstance(headers, dict) or len(headers) > MOST_HEADERS:
        fields.wrong(key, f"must be an object of at most {MOST_HEADERS} texts, got {json_type(headers)}")
        return
    inside = Fields.of(headers, fields.way(key), fields.problems, *headers)
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            inside.wrong(name, "is no name of a header")
        elif problem := line_problem(value, longest=LONGEST_HEADER, shortest=0):
            inside.wrong(name, problem)


def _entry_point(fields: Fields, key: str) -> None:
    value = fields.content[key]
    if not isinstance(value, str) or not ENTRY_POINT.fullmatch(value) or len(value) > LONGEST_PATTERN:
        fields.wrong(key, f'must be "module:function", or the name of an entry point, got {shown(value)}')


_READ: Final[dict[str, Callable[[Fields, str], None]]] = {
    "command": _command,
    "timeoutSeconds": _seconds,
    "pattern": _pattern,
    "path": _path,
    "url": _url,
    "pointer": _pointer,
    "headers": _headers,
    "entryPoint": _entry_point,
}
