"""The formats by name, and detection of the format of a file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from punchlist.errors import InvalidInput
from punchlist.import_export import backlog, beads, claude, markdown, punchlist_json, taskmaster
from punchlist.import_export.format_limits import FormatLimits
from punchlist.import_export.item import ExchangeItem, ParsedFile
from punchlist.import_export.reader import parse_json

_FRONT_MATTER: Final = re.compile(r"\s*---[ \t]*\r?\n((?:(?!---).*\n){0,40})")


@dataclass(frozen=True, slots=True)
class ExchangeFormat:
    name: str
    limits: FormatLimits
    read: Callable[[str], ParsedFile]
    write: Callable[[list[ExchangeItem]], str] | None = None
    """Writes one text; None if the format needs a file per item."""
    read_files: Callable[[Mapping[str, str]], ParsedFile] | None = None
    write_files: Callable[[list[ExchangeItem]], dict[str, str]] | None = None
    suffix: str = ".json"
    stable_ids: bool = True
    """Whether an id means the same item in another file and at another time."""


_ALL: Final = (
    ExchangeFormat("json", punchlist_json.LIMITS, punchlist_json.read, punchlist_json.write),
    ExchangeFormat("markdown", markdown.LIMITS, markdown.read, markdown.write, suffix=".md", stable_ids=False),
    ExchangeFormat(
        "claude", claude.LIMITS, claude.read, claude.write, claude.read_files, claude.write_files, stable_ids=False
    ),
    ExchangeFormat("beads", beads.LIMITS, beads.read, beads.write, suffix=".jsonl"),
    ExchangeFormat("taskmaster", taskmaster.LIMITS, taskmaster.read, taskmaster.write, stable_ids=False),
    ExchangeFormat(
        "backlog",
        backlog.LIMITS,
        backlog.read,
        read_files=backlog.read_files,
        write_files=backlog.write_files,
        suffix=".md",
    ),
)
FORMATS: Final = {format.name: format for format in _ALL}


def guess_export_format(name: str) -> ExchangeFormat:
    """The format for a file or folder of this name."""
    lower = name.replace("\\", "/").rstrip("/").lower()
    base = lower.rpartition("/")[2]
    if base.endswith(".jsonl"):
        return FORMATS["beads"]
    if base.endswith((".md", ".markdown", ".txt")):
        return FORMATS["markdown"]
    if base == "tasks.json":
        return FORMATS["taskmaster"]
    if "." not in base and "/.claude/" in f"/{lower}/":
        return FORMATS["claude"]
    if base in ("backlog", "tasks"):
        return FORMATS["backlog"]
    return FORMATS["json"]


def guess_folder_format(files: Mapping[str, str]) -> ExchangeFormat:
    if any(name.endswith(".md") for name in files):
        return FORMATS["backlog"]
    if any(name.endswith(".json") for name in files):
        return FORMATS["claude"]
    raise InvalidInput(
        "That folder contains no tasks. Give the folder that does: `backlog/tasks` of Backlog.md, or "
        "`~/.claude/tasks/SESSION` of Claude Code."
    )


def guess_import_format(name: str, written: str) -> ExchangeFormat:
    """The format of a file, from its name and content."""
    start = written.lstrip()[:4]
    if name.lower().endswith(".jsonl"):
        return FORMATS["beads"]
    if _is_backlog_task(written):
        return FORMATS["backlog"]
    if not start.startswith(("{", "[")) or start.startswith(("[ ]", "[x]")):
        return FORMATS["markdown"]
    try:
        format = _guess_json(parse_json(written))
    except InvalidInput:
        # JSON lines are not one JSON document.
        if not _is_json_object(written.lstrip().partition("\n")[0]):
            raise
        format = FORMATS["beads"]
    if format is None:
        raise InvalidInput(f"The format cannot be detected. Use --from {'|'.join(FORMATS)}.")
    return format


def _is_backlog_task(written: str) -> bool:
    """Whether the front matter has an id and a status; other documents may have an id only."""
    matter = _FRONT_MATTER.match(written)
    keys = {line.partition(":")[0] for line in matter[1].splitlines()} if matter else set()
    return {"id", "status"} <= keys


def _guess_json(raw: Any) -> ExchangeFormat | None:
    match raw:
        case {"format": "punchlist"}:
            return FORMATS["json"]
        case {"tasks": list()}:
            return FORMATS["taskmaster"]
        case {"subject": _} | [{"subject": _}, *_] | [{"content": _}, *_]:
            return FORMATS["claude"]
        case {"title": _, "status": _} | [{"title": _, "status": _}, *_]:
            return FORMATS["beads"]
        case {**tags} if any(isinstance(tag, dict) and isinstance(tag.get("tasks"), list) for tag in tags.values()):
            return FORMATS["taskmaster"]
    return None


def _is_json_object(line: str) -> bool:
    try:
        return isinstance(parse_json(line), dict)
    except InvalidInput:
        return False
