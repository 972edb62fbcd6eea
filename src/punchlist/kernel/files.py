"""Files that may come from another author: read within limits, and only regular ones."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path


class UnsafeFile(Exception):
    """The file cannot be used as it is; the message says why, without its name."""


def user_folder(env: Mapping[str, str], variable: str, fallback: str) -> Path:
    """The folder of Punchlist in a base folder of the user, which `variable` can set."""
    base = env.get(variable) or str(Path(env.get("HOME") or Path.home()) / fallback)
    return Path(base) / "punchlist"


def read_regular(path: Path, max_bytes: int) -> bytes:
    """The content of a regular file, links followed.

    Raises UnsafeFile for a device, a pipe, a folder or a file that is too large; nothing blocks, and no more than
    `max_bytes` are read.
    """
    # A pipe blocks the process that opens it without O_NONBLOCK.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UnsafeFile("is not a regular file")
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise UnsafeFile(f"is larger than {max_bytes:,} bytes")
    return content


def is_own(path: Path) -> bool:
    """Whether the file or folder exists and belongs to the user of this process."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return not hasattr(os, "geteuid") or found.st_uid == os.geteuid()
