"""A line for whoever wants to know why a hook did nothing. Never in the way: what cannot be written is not."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from punchlist.config import HOOK_LOG, PROJECT_FOLDER, project_root, user_folder
from punchlist.kernel.text import excerpt

_LONGEST_LINE: Final = 1_000
_LARGEST: Final = 256_000
_OPENING: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""A project may be a stranger's: its log is no link to a file of the user's, and no pipe to wait at."""


def note(where: Path | None, environment: Mapping[str, str], text: str) -> None:
    """`where` is the folder that the agent works in, as far as it is known."""
    from punchlist.kernel.secrets import Redactor

    # There may not even be a home.
    with suppress(Exception):
        file = place(where, environment)
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.is_symlink():
            return
        _shorten(file)
        line = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {excerpt(Redactor(environment).text(text), _LONGEST_LINE)}\n"
        # One write, so that lines of two hooks do not mix.
        handle = os.open(file, _OPENING, 0o600)
        try:
            os.write(handle, line.encode("utf-8", "replace"))
        finally:
            os.close(handle)


def place(where: Path | None, environment: Mapping[str, str]) -> Path:
    """In the project, where it has lists already; else with the user."""
    root = project_root(where) if where is not None else None
    if root is not None and (root / PROJECT_FOLDER).is_dir():
        return root / PROJECT_FOLDER / HOOK_LOG
    return user_folder(environment, "XDG_DATA_HOME", ".local/share") / HOOK_LOG


def _shorten(file: Path) -> None:
    """Keep the newer half of a log that has grown long."""
    if file.is_file() and file.stat().st_size > _LARGEST:
        kept = file.read_bytes()[-_LARGEST // 2 :].partition(b"\n")[2]
        file.write_bytes(kept)
