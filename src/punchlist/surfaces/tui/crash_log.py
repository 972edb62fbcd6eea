"""Where an unexpected error of the application is described. The terminal gets one sentence, never values of locals."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from punchlist.kernel.text import excerpt
from punchlist.trust import user_folder

KEPT: Final = 20


def write_crash(error: BaseException, environment: Mapping[str, str]) -> Path | None:
    """Write the traceback, without values of locals; None if it cannot be written."""
    folder = user_folder(environment, "XDG_DATA_HOME", ".local/share") / "crashes"
    path = folder / f"crash-{time.time_ns() // 1_000_000}-{os.getpid()}.log"
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for old in sorted(folder.glob("crash-*.log"))[: -KEPT + 1]:
            old.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write("".join(traceback.format_exception(error)))
        return path
    return None


def crash_sentence(error: BaseException, log: Path | None) -> str:
    where = f" The details are in {log}." if log is not None else ""
    return f"The application ended unexpectedly ({excerpt(f'{type(error).__name__}: {error}')}).{where}"
