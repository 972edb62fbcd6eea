"""Whether Codex would use what was installed: it skips what the person has not trusted, without a word.

What is trusted is in the user's own settings: `[projects."/path"] trust_level = "trusted"`, and for each hook
`[hooks.state."/path/hooks.json:stop:0:0"] trusted_hash = "…"`. Whether a hash is still right only Codex can say.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from punchlist.integrations.install.settings_json import SettingsJson
from punchlist.integrations.install.text_edits import UneditableFile


def distrusted_project(root: Path, config: Mapping[str, Any]) -> Iterator[str]:
    projects = _table(config, "projects")
    if not any(_table(projects, str(path)).get("trust_level") == "trusted" for path in (root, root.resolve())):
        yield "Codex does not trust this project yet: start `codex` here, and say that you do."


def distrusted_hooks(file: Path, content: SettingsJson, config: Mapping[str, Any]) -> Iterator[str]:
    try:
        places = list(content.places(file.read_text(encoding="utf-8-sig")))
    except (OSError, ValueError, UneditableFile):
        # That is told elsewhere.
        return
    state = _table(_table(config, "hooks"), "state")
    accepted = [
        any("trusted_hash" in _table(state, f"{path}:{_snake(at)}:{group}:{place}") for path in (file, file.resolve()))
        for at, group, place in places
    ]
    if not all(accepted):
        yield (
            f"{accepted.count(False)} of {len(accepted)} hooks are not accepted in Codex yet, which skips them: "
            "start `codex` and accept them (/hooks)."
        )


def config_of(home: Path) -> dict[str, Any]:
    """The user's own settings of Codex; nothing, if they cannot be read: then nothing is trusted."""
    try:
        return tomllib.loads((home / "config.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}


def _table(tables: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = tables.get(key)
    return found if isinstance(found, Mapping) else {}


def _snake(event: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()
