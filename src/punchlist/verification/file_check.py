"""Runs the check of a file: read-only, inside the workspace, within limits."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from punchlist.trust import UnsafeFile, read_regular
from punchlist.verification.model import Check, CheckOutcome

MAX_FILE_SIZE: Final = 10_000_000


def run_file_check(check: Check, workspace: Path) -> tuple[CheckOutcome, str]:
    assert check.file is not None
    root = workspace.resolve()
    try:
        path = (root / check.file).resolve()
        if not path.is_relative_to(root):
            return CheckOutcome.NOT_RUN, f"{check.file} is outside of the workspace."
        content = read_regular(path, MAX_FILE_SIZE)
    except (FileNotFoundError, NotADirectoryError):
        return CheckOutcome.FAILED, f"{check.file} does not exist."
    except UnsafeFile as problem:
        return CheckOutcome.NOT_RUN, f"{check.file} {problem}."
    except (OSError, ValueError, RuntimeError) as error:
        return CheckOutcome.NOT_RUN, f"{check.file} cannot be read ({error})."
    if check.contains is not None and check.contains not in content.decode(errors="replace"):
        return CheckOutcome.FAILED, f"{check.file} does not contain “{check.contains}”."
    if not content.strip():
        return CheckOutcome.FAILED, f"{check.file} is empty."
    return CheckOutcome.PASSED, ""
