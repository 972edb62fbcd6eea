"""Whether Codex uses what is installed: it silently skips what the person has not trusted.

The user's own settings have `[projects."/path"] trust_level = "trusted"`, and for each hook
`[hooks.state."/path/hooks.json:stop:0:0"] trusted_hash = "…"`. Only Codex can check the hash.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from punchlist.integrations.install.settings_json import SettingsJson
from punchlist.integrations.install.text_edits import UneditableFile


def project_problems(root: Path, config: Mapping[str, Any]) -> Iterator[str]:
    projects = _table(config, "projects")
    if not any(_table(projects, str(path)).get("trust_level") == "trusted" for path in (root, root.resolve())):
        yield "Codex does not trust this project yet: start `codex` here and trust it."


def hook_problems(file: Path, content: SettingsJson, config: Mapping[str, Any]) -> Iterator[str]:
    try:
        positions = content.hook_positions(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, UneditableFile):
        return
    state = _table(_table(config, "hooks"), "state")
    trusted = [
        any(
            "trusted_hash" in _table(state, f"{path}:{_snake_case(event)}:{group}:{index}")
            for path in (file, file.resolve())
        )
        for event, group, index in positions
    ]
    if not all(trusted):
        yield (
            f"{trusted.count(False)} of {len(trusted)} hooks are not accepted in Codex yet, which skips them: "
            "start `codex` and accept them (/hooks)."
        )


def read_config(home: Path) -> dict[str, Any]:
    """The user's Codex settings; empty if they cannot be read."""
    try:
        return tomllib.loads((home / "config.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}


def _table(tables: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = tables.get(key)
    return found if isinstance(found, Mapping) else {}


def _snake_case(event: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()
