"""Settings: from flags, the environment (`PUNCHLIST_*`), the project's file, the user's file; first wins.

Nothing heavy is imported here: every command reads its settings, and people wait for commands.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from punchlist.errors import ConfigError
from punchlist.kernel.text import excerpt

FILE_NAME: Final = "punchlist.toml"
PROJECT_FOLDER: Final = ".punchlist"
HOOK_LOG: Final = "hooks.log"
PROJECT_MARKS: Final = (FILE_NAME, PROJECT_FOLDER, ".git")
DEFAULT_SESSION: Final = "default"
SYNCHRONOUS: Final = ("normal", "full")
TABLES: Final = ("policy", "workspace", "mcp", "agent", "agents")
_LARGEST_FILE: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class SettingsTables:
    """The tables of one settings file, as they stand there; whoever they are for reads them."""

    path: Path
    content: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Settings:
    """What the program runs with. `root` is the project's folder, None outside of any."""

    database: str
    session: str
    synchronous: str
    root: Path | None
    project: SettingsTables | None = None
    user: SettingsTables | None = None
    external_database_file: Path | None = None
    """The project's file, where it is what puts the database outside of the project: that may be anybody's."""
    session_is_named: bool = False
    """Whether a flag, the environment or a settings file names the session."""

    def outputs(self, environment: Mapping[str, str]) -> Path:
        """Where the whole text of long results is kept."""
        return self.folder(environment) / "outputs"

    def folder(self, environment: Mapping[str, str]) -> Path:
        """Where we keep what is ours: in the project, else with the user. It need not be there."""
        return _own_folder(self.root, environment)


def load(
    flags: Mapping[str, str | None] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Settings:
    env = os.environ if environment is None else environment
    root = project_root(cwd or Path.cwd())
    of_project, project = _from_file(root / FILE_NAME) if root else ({}, None)
    of_user, user = _from_file(user_folder(env, "XDG_CONFIG_HOME", ".config") / FILE_NAME)
    flagged = {name: value for name, value in (flags or {}).items() if value}
    layers = [flagged, _from_environment(env), of_project, of_user]

    def setting(name: str) -> str | None:
        return next((layer[name] for layer in layers if name in layer), None)

    synchronous = (setting("synchronous") or "normal").lower()
    if synchronous not in SYNCHRONOUS:
        raise ConfigError(_not_synchronous(synchronous))
    own = setting("database")
    database = own.strip() if own else str(_default_database(root, env))
    named = setting("session")
    session = named or _default_session(root, shared=own is not None)
    decides = next((layer for layer in layers if "database" in layer), None)
    leads_out = root / FILE_NAME if root and decides is of_project and _is_outside(database, root) else None
    return Settings(database, session, synchronous, root, project, user, leads_out, named is not None)


def project_root(start: Path) -> Path | None:
    """The nearest folder, from `start` upwards, that looks like a project."""
    start = start.resolve()
    for folder in (start, *start.parents):
        if any((folder / mark).exists() for mark in PROJECT_MARKS):
            return folder
    return None


def _is_outside(address: str, root: Path) -> bool:
    path = address.removeprefix("sqlite:///")
    try:
        return "://" in path or not Path(path).expanduser().resolve().is_relative_to(root)
    except (ValueError, RuntimeError, OSError):
        # No path at all; whoever opens it says so.
        return True


def user_folder(env: Mapping[str, str], variable: str, fallback: str) -> Path:
    base = env.get(variable) or str(Path(env.get("HOME") or Path.home()) / fallback)
    return Path(base) / "punchlist"


def _default_database(root: Path | None, env: Mapping[str, str]) -> Path:
    return _own_folder(root, env) / "punchlist.db"


def _own_folder(root: Path | None, env: Mapping[str, str]) -> Path:
    return root / PROJECT_FOLDER if root else user_folder(env, "XDG_DATA_HOME", ".local/share")


def _default_session(root: Path | None, *, shared: bool) -> str:
    """One session per project folder.

    A database inside the project belongs to it alone, and moves with it. In a shared database the
    folder's path tells projects apart.
    """
    if root is None or not shared:
        return DEFAULT_SESSION
    digest = hashlib.sha256(str(root).encode(errors="surrogateescape")).hexdigest()[:8]
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", root.name)[:50] or "project"
    return f"{name}-{digest}"


_KEYS: Final = {
    "database": "PUNCHLIST_DATABASE_URL",
    "session": "PUNCHLIST_SESSION",
    "synchronous": "PUNCHLIST_SYNCHRONOUS",
}


def _from_environment(env: Mapping[str, str]) -> dict[str, str]:
    return {key: env[variable] for key, variable in _KEYS.items() if env.get(variable)}


def _from_file(path: Path) -> tuple[dict[str, str], SettingsTables | None]:
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise ConfigError(f"{path}: is larger than {_LARGEST_FILE:,} bytes; that is no settings file.")
        source = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}, None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error}).") from error
    import tomllib

    try:
        content = tomllib.loads(source)
    except (ValueError, RecursionError) as error:
        # Numbers that are too long even for Python are a plain ValueError.
        raise ConfigError(f"{path}: is not valid TOML ({error}).") from error
    tables = {key: value for key, value in content.items() if key in TABLES}
    settings = {key: _text(path, source, key, value) for key, value in content.items() if key not in TABLES}
    if "database" in settings:
        settings["database"] = _anchored(settings["database"], path.parent)
    return settings, SettingsTables(path, tables) if tables else None


def _anchored(address: str, folder: Path) -> str:
    """A relative path in a file means from that file's folder, wherever the command is run."""
    path = address.removeprefix("sqlite:///")
    if "://" in path or ":" in path.partition("/")[0] or path.startswith("~"):
        return address
    return str(folder / path)


def _text(path: Path, source: str, key: str, value: Any) -> str:
    if key not in _KEYS:
        raise _wrong(path, source, key, _unknown(key))
    if not isinstance(value, str):
        raise _wrong(path, source, key, f"{key} must be text in quotes.")
    if key == "synchronous" and value.lower() not in SYNCHRONOUS:
        raise _wrong(path, source, key, _not_synchronous(value))
    return value


def _wrong(path: Path, source: str, key: str, problem: str) -> ConfigError:
    from punchlist.kernel.settings_table import location

    return ConfigError(f"{location(path, source, (key,))}: {problem}")


def _unknown(key: str) -> str:
    from punchlist.kernel.settings_table import suggestion

    there = (*_KEYS, *TABLES)
    return f"unknown setting {excerpt(key)!r}.{suggestion(key, there)} There are: {', '.join(there)}."


def _not_synchronous(value: str) -> str:
    return f"synchronous: must be one of {', '.join(SYNCHRONOUS)}, got {excerpt(value)!r}"


def current_user() -> str:
    """Who sits at the terminal, for the trail."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return f"uid-{os.getuid()}" if sys.platform != "win32" else "somebody"
