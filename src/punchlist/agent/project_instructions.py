"""The instructions of a project for agents: its AGENTS.md, CLAUDE.md or GEMINI.md.

A project may come from another author, so the file reaches a model only after the user has seen its content and
trusted it. A changed file must be trusted again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from punchlist.kernel.text import visible_block
from punchlist.trust import Trust, UnsafeFile, read_regular

NAMES: Final = ("AGENTS.md", "CLAUDE.md", "GEMINI.md")
"""The first that exists is used."""
MAX_BYTES: Final = 32_000


@dataclass(frozen=True, slots=True)
class ProjectInstructions:
    path: Path
    content: bytes

    @property
    def text(self) -> str:
        return visible_block(self.content.decode(errors="replace")).strip()

    @property
    def section(self) -> str:
        """The section of the system prompt."""
        return f"## Instructions of this project ({self.path.name})\n\n{self.text}"


def find_instructions(root: Path) -> ProjectInstructions | None:
    """The instructions in the root of the workspace, trusted or not; None if there are none, or no usable ones."""
    for name in NAMES:
        try:
            content = read_regular(root / name, MAX_BYTES)
        except FileNotFoundError:
            continue
        except (OSError, UnsafeFile):
            return None
        return ProjectInstructions(root / name, content) if content.strip() else None
    return None


def trusted_section(root: Path, trust: Trust | None) -> str:
    """The section of the system prompt; empty if there are no instructions, or the user has not trusted them."""
    found = find_instructions(root) if trust is not None else None
    return found.section if found is not None and trust is not None and trust.trusts(found.path, found.content) else ""
