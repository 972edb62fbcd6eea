"""The hook log: says why a hook did nothing. Failure to write it is ignored."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from punchlist.config import HOOK_LOG, PROJECT_FOLDER, project_root
from punchlist.kernel.text import excerpt
from punchlist.trust import user_folder

_MAX_LINE_LENGTH: Final = 1_000
_MAX_SIZE: Final = 256_000
_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""A project may come from another author: its log may be a link to a file of the user, or a pipe that blocks."""


def write_log(folder: Path | None, environment: Mapping[str, str], text: str) -> None:
    """Append a line to the log of the project that `folder` belongs to; to the user's log if there is none, or if it
    cannot be written."""
    from punchlist.kernel.secrets import Redactor

    with suppress(Exception):
        line = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {excerpt(Redactor(environment).text(text), _MAX_LINE_LENGTH)}\n"
        for file in _log_files(folder, environment):
            with suppress(OSError):
                _append(file, line)
                return


def _append(file: Path, line: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.is_symlink():
        return
    _truncate(file)
    # One write per line, so that lines of concurrent hooks do not mix.
    handle = os.open(file, _FLAGS, 0o600)
    try:
        os.write(handle, line.encode("utf-8", "replace"))
    finally:
        os.close(handle)


def _log_files(folder: Path | None, environment: Mapping[str, str]) -> Iterator[Path]:
    root = project_root(folder) if folder is not None else None
    if root is not None and (root / PROJECT_FOLDER).is_dir():
        yield root / PROJECT_FOLDER / HOOK_LOG
    yield user_folder(environment, "XDG_DATA_HOME", ".local/share") / HOOK_LOG


def _truncate(file: Path) -> None:
    """Keep the newer half of a log that is too large."""
    if file.is_file() and file.stat().st_size > _MAX_SIZE:
        file.write_bytes(file.read_bytes()[-_MAX_SIZE // 2 :].partition(b"\n")[2])
