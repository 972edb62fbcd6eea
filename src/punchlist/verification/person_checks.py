"""Commands of checks that this machine's user wrote. They run without approval, so write access to the database must
not be enough to add one: each is recorded among the things that the user trusts, for one project."""

from __future__ import annotations

import hashlib
from pathlib import Path

from punchlist.trust import Trust
from punchlist.verification.model import Check


def record_person_check(trust: Trust, workspace: Path, command: str) -> None:
    """The caller has made sure that a person gave the command, not an agent's tool call."""
    trust.trust_text(_name(workspace, command), command)


def is_person_check(trust: Trust, workspace: Path, check: Check) -> bool:
    """Whether the user wrote the command of this check, in this project."""
    command = check.command
    return check.by_person and command is not None and trust.trusts_text(_name(workspace, command), command)


def _name(workspace: Path, command: str) -> str:
    # A command has no name of its own; the digest keeps several of a project apart.
    digest = hashlib.sha256(command.encode(errors="surrogatepass")).hexdigest()[:16]
    return f"todo-check:{digest}@{workspace.resolve()}"
