"""The names of hosts and scopes on the command line. Kept apart so that `--help` loads nothing else."""

from __future__ import annotations

from enum import StrEnum


class HostName(StrEnum):
    CLAUDE_CODE = "claude-code"
    CODEX = "codex"
    GEMINI = "gemini"
    OPENCODE = "opencode"


class InstallScope(StrEnum):
    PROJECT = "project"
    USER = "user"
