"""The formats, by name; and which one a file is in."""

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

_MATTER: Final = re.compile(r"\s*---[ \t]*\r?\n((?:(?!---).*\n){0,40})")


@dataclass(frozen=True, slots=True)
class ExchangeFormat:
    name: str
    limits: FormatLimits
    read: Callable[[str], ParsedFile]
    write: Callable[[list[ExchangeItem]], str] | None = None
    """As one text; None when it takes a file for each item."""
    read_files: Callable[[Mapping[str, str]], ParsedFile] | None = None
    write_files: Callable[[list[ExchangeItem]], dict[str, str]] | None = None
    suffix: str = ".json"
    stable_ids: bool = True
    """Whether an id means the same item elsewhere, and the next time."""


FORMATS: Final = {
    one.name: one
    for one in (
        ExchangeFormat("json", punchlist_json.SHAPE, punchlist_json.read, punchlist_json.write),
        ExchangeFormat(
            "markdown",
            markdown.SHAPE,
            markdown.read,
            markdown.write,
            suffix=".md",
            stable_ids=False,
        ),
        ExchangeFormat(
            "claude",
            claude.SHAPE,
            claude.read,
            claude.write,
            claude.read_files,
            claude.files,
            stable_ids=False,
        ),
        ExchangeFormat("beads", beads.SHAPE, beads.read, beads.write, suffix=".jsonl"),
        ExchangeFormat(
            "taskmaster",
            taskmaster.SHAPE,
            taskmaster.read,
            taskmaster.write,
            stable_ids=False,
        ),
        ExchangeFormat(
            "backlog",
            backlog.SHAPE,
            backlog.read,
            read_files=backlog.read_files,
            write_files=backlog.files,
            suffix=".md",
        ),
    )
}


def guess_export_format(name: str) -> ExchangeFormat:
    """The format to write a file of that name in."""
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
    """The format of a folder with these files."""
    if any(name.endswith(".md") for name in files):
        return FORMATS["backlog"]
    if any(name.endswith(".json") for name in files):
        return FORMATS["claude"]
    raise InvalidInput(
        "There are no tasks in that folder. Name the one that has them: `backlog/tasks` of Backlog.md, or "
        "`~/.claude/tasks/SESSION` of Claude Code."
    )


def guess_import_format(name: str, written: str) -> ExchangeFormat:
    """The format of a file, by what is in it first."""
    start = written.lstrip()[:4]
    if name.lower().endswith(".jsonl"):
        return FORMATS["beads"]
    if _is_task(written):
        return FORMATS["backlog"]
    if not start.startswith(("{", "[")) or start.startswith(("[ ]", "[x]")):
        return FORMATS["markdown"]
    try:
        found = _by_content(parse_json(written))
    except InvalidInput:
        first = written.lstrip().partition("\n")[0]
        found = _of_lines(first)
        if found is None:
            raise
    if found is None:
        raise InvalidInput(f"What it is cannot be told from what is in it. Say --from {'|'.join(FORMATS)}.")
    return found


def _is_task(written: str) -> bool:
    """Whether its front matter is that of a task; that of other documents may have an id, but no status."""
    matter = _MATTER.match(written)
    keys = {line.partition(":")[0] for line in matter[1].splitlines()} if matter else set()
    return {"id", "status"} <= keys


def _by_content(raw: Any) -> ExchangeFormat | None:
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


def _of_lines(first: str) -> ExchangeFormat | None:
    try:
        return FORMATS["beads"] if isinstance(parse_json(first), dict) else None
    except InvalidInput:
        return None
