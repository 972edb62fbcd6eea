"""What people see, kept in the files of this folder and compared byte for byte.

When a difference is what you wanted: UPDATE_SNAPSHOTS=1 .venv/bin/python -m pytest tests/surfaces
writes the files anew; read the difference before you commit it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent


def assert_same(name: str, shown: str) -> None:
    file = FOLDER / name
    if os.environ.get("UPDATE_SNAPSHOTS"):
        file.write_bytes(shown.encode())
    assert file.exists(), f"{file} is missing: UPDATE_SNAPSHOTS=1 writes it"
    assert shown == file.read_bytes().decode()


def assert_all(prefix: str, shown: dict[str, str]) -> None:
    """A whole family of files: none may be missing, and none left over."""
    for name, content in shown.items():
        assert_same(f"{prefix}{name}.txt", content)
    left_over = {file.name for file in FOLDER.glob(f"{prefix}*.txt")} - {f"{prefix}{name}.txt" for name in shown}
    if os.environ.get("UPDATE_SNAPSHOTS"):
        for name in left_over:
            (FOLDER / name).unlink()
    else:
        assert left_over == set()
