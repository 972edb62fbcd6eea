"""Makes a database the user's own that a test has copied, replaced or written itself."""

from __future__ import annotations

from pathlib import Path

from punchlist.storage import trusted_files
from punchlist.trust import Trust


def own(file: Path, home: Path, *, name: Path | None = None) -> None:
    """`name`: where the test is about to move the file."""
    trusted_files.sign(file, Trust.of_user({"HOME": str(home)}), name=name)
