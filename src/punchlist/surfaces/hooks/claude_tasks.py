"""The files in which Claude Code keeps the tasks of a session: `~/.claude/tasks/SESSION/1.json` and so on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")
_FILE: Final = re.compile(r"[1-9][0-9]{0,8}\.json")
_MOST: Final = 1_000
_LARGEST: Final = 256 * 1024


def task_files(environment: Mapping[str, str], session: str | None) -> list[str] | None:
    """What stands in them, in the order in which the tasks were made; None where there are none to be found."""
    # As the program itself makes a folder's name of it; so it can lead nowhere else.
    name = _NOT_IN_A_NAME.sub("-", environment.get("CLAUDE_CODE_TASK_LIST_ID") or session or "")
    if not name:
        return None
    home = Path(environment.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")
    try:
        found = [file for file in (home / "tasks" / name).iterdir() if _FILE.fullmatch(file.name) and file.is_file()]
    except OSError:
        return None
    found.sort(key=lambda file: int(file.stem))
    return [text for file in found[-_MOST:] if (text := _text(file)) is not None]


def _text(file: Path) -> str | None:
    try:
        with file.open("rb") as opened:
            data = opened.read(_LARGEST + 1)
    except OSError:
        # Taken away since.
        return None
    return data.decode("utf-8", "replace") if len(data) <= _LARGEST else None
