"""How the application starts turns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class AgentOptions:
    """Set by flags, `/model`, `/mode` and Shift+Tab; used by the next turn."""

    model: str | None = None
    mode: str = "default"
    """Empty for the mode of the configuration."""
    agent: str | None = None
