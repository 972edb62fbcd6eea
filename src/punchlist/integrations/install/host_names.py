"""What the hosts are called on our command lines."""

from __future__ import annotations

from enum import StrEnum


class HostName(StrEnum):
    CLAUDE_CODE = "claude-code"
    CODEX = "codex"
    GEMINI = "gemini"
    OPENCODE = "opencode"
