"""How often an agent has used a tool since it last touched its list: a file with a byte for each.

It is asked after every single tool call, so it must cost next to nothing; the database is opened only
when there is something to say.
"""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

_FOLDER: Final = "uses"
_OLDEST: Final = 7 * 24 * 3600.0
_NAME: Final = re.compile("[0-9a-f]{16}")


class ToolCounter:
    def __init__(self, folder: Path, session: str) -> None:
        self._folder = folder / _FOLDER
        self._file = self._folder / hashlib.sha256(session.encode()).hexdigest()[:16]

    def count(self) -> int:
        """One more; how many there are. 0 where that cannot be written down."""
        try:
            self._folder.mkdir(exist_ok=True)
            if self._folder.is_symlink():
                return 0
            handle = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        except OSError:
            return 0
        try:
            os.write(handle, b".")
            return os.fstat(handle).st_size
        except OSError:
            return 0
        finally:
            os.close(handle)

    def any(self) -> bool:
        return self._file.exists()

    def clear(self) -> None:
        with suppress(OSError):
            self._file.unlink(missing_ok=True)

    def tidy(self, now: float) -> None:
        """Forget sessions that nobody has come back to. The folder comes with a project, which may be a stranger's and
        lead elsewhere: nothing goes that is not ours by its name."""
        with suppress(OSError):
            for file in () if self._folder.is_symlink() else self._folder.iterdir():
                if _NAME.fullmatch(file.name) and now - file.lstat().st_mtime > _OLDEST:
                    file.unlink(missing_ok=True)
