"""Settings from flags, the environment (`PUNCHLIST_*`), the project's file and the user's file, in this order.

Every command reads its settings, so this module imports nothing heavy.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from punchlist.errors import ConfigError, NotAllowed
from punchlist.kernel.text import did_you_mean, excerpt
from punchlist.trust import MAX_FILE_BYTES, UnsafeFile, is_own, read_regular, user_folder

FILE_NAME: Final = "punchlist.toml"
PROJECT_FOLDER: Final = ".punchlist"
HOOK_LOG: Final = "hooks.log"
PROJECT_MARKERS: Final = (FILE_NAME, PROJECT_FOLDER, ".git")
DEFAULT_SESSION: Final = "default"
SYNCHRONOUS: Final = ("normal", "full")
DEFAULT_POOL_SIZE: Final = 32
POOL_SIZES: Final = range(4, 1_001)
"""A service that reads within a write needs two connections at once."""
CONTINUES: Final = "PUNCHLIST_AUTO_COMPLETE_TODOS"
CONTINUATIONS: Final = "PUNCHLIST_MAX_TODO_CONTINUATIONS"
"""Variables that limit how often an agent is sent back to its list."""
_YES: Final = frozenset({"1", "true", "t", "yes", "y", "on"})
_NO: Final = frozenset({"0", "false", "f", "no", "n", "off"})
_MAX_DIGITS: Final = 9
TABLES: Final = ("policy", "workspace", "sandbox", "mcp", "agent", "agents", "notify")


@dataclass(frozen=True, slots=True)
class SettingsTables:
    """The unparsed tables of one settings file; the package that a table belongs to parses it."""

    path: Path
    content: Mapping[str, Any]
    source: bytes = field(default=b"", repr=False)
    """The bytes that were parsed: trust is given to them, not to what the file contains later."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The effective settings. `root` is the project's folder, None outside a project."""

    database: str
    session: str
    synchronous: str
    root: Path | None
    project: SettingsTables | None = None
    user: SettingsTables | None = None
    session_is_named: bool = False
    """Whether a flag, the environment or a settings file names the session."""
    untrusted: tuple[str, ...] = ()
    """Lines of the project's file that need trust and do not have it: its session, a database outside the project."""
    refused_database: str | None = None
    """The database that the project's file sets and that is not used, because it needs trust."""
    pool_size: int = DEFAULT_POOL_SIZE
    """Database connections of this process that may be in use at once."""

    def check_database_is_trusted(self) -> None:
        """Raise if the project's file sets a database that it may not set without trust."""
        if self.refused_database is not None:
            raise NotAllowed(
                "This project's punchlist.toml sets a database outside of the project, which is used only after "
                "you have trusted the file. Run `punchlist trust` to review it."
            )

    def outputs(self, environment: Mapping[str, str]) -> Path:
        """The folder for the full text of long results."""
        return self.folder(environment) / "outputs"

    def folder(self, environment: Mapping[str, str]) -> Path:
        """The data folder: in the project, else the user's. It may not exist."""
        return _data_folder(self.root, environment)


def load(
    flags: Mapping[str, str | None] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Settings:
    env = os.environ if environment is None else environment
    root = project_root(cwd or Path.cwd())
    project_settings, project = _from_file(root / FILE_NAME) if root else ({}, None)
    user_settings, user = _from_file(user_folder(env, "XDG_CONFIG_HOME", ".config") / FILE_NAME)
    flagged = {name: value for name, value in (flags or {}).items() if value}
    layers = [flagged, _from_environment(env), project_settings, user_settings]
    ignored = _without_trust(project_settings, project, env)
    refused = ignored.get("database") if "database" not in {**layers[0], **layers[1]} else None

    def setting(name: str) -> str | None:
        return next((layer[name] for layer in layers if name in layer), None)

    synchronous = (setting("synchronous") or "normal").lower()
    if synchronous not in SYNCHRONOUS:
        raise ConfigError(_synchronous_problem(synchronous))
    configured = setting("database")
    database = configured.strip() if configured else str(_default_database(root, env))
    named = setting("session")
    session = named or _default_session(root, shared=configured is not None)
    untrusted = tuple(f"{name} = {value}" for name, value in ignored.items())
    pool_size = _pool_size(setting("pool_size"))
    return Settings(
        *(database, session, synchronous, root, project, user, named is not None, untrusted, refused, pool_size)
    )


def _without_trust(settings: dict[str, str], tables: SettingsTables | None, env: Mapping[str, str]) -> dict[str, str]:
    """Remove from the settings of a project's file those that need trust and do not have it, and return them.

    A session can belong to another project; a database elsewhere receives lists and passwords.
    """
    if tables is None:
        return {}
    needed = [name for name in ("session", "database") if name in settings]
    if "database" in needed and not _is_outside(settings["database"], tables.path.parent):
        needed.remove("database")
    if not needed:
        return {}
    from punchlist.trust import Trust

    if Trust.of_user(env).trusts(tables.path, tables.source):
        return {}
    return {name: settings.pop(name) for name in needed}


def project_root(start: Path) -> Path | None:
    """The nearest folder from `start` upwards that contains a project marker of this user.

    In a folder that several users share, such as /tmp, another user could set a marker for everyone below.
    """
    start = start.resolve()
    for folder in (start, *start.parents):
        if any(is_own(folder / marker) for marker in PROJECT_MARKERS):
            return folder
    return None


def _is_outside(address: str, root: Path) -> bool:
    path = address.removeprefix("sqlite:///")
    try:
        return "://" in path or not Path(path).expanduser().resolve().is_relative_to(root)
    except (ValueError, RuntimeError, OSError):
        # Not a valid path; opening it reports the error.
        return True


def _default_database(root: Path | None, env: Mapping[str, str]) -> Path:
    return _data_folder(root, env) / "punchlist.db"


def _data_folder(root: Path | None, env: Mapping[str, str]) -> Path:
    return root / PROJECT_FOLDER if root else user_folder(env, "XDG_DATA_HOME", ".local/share")


def _default_session(root: Path | None, *, shared: bool) -> str:
    """One session per project.

    A database inside the project serves only this project and moves with it. In a shared database, a hash of the
    folder's path distinguishes projects.
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
    "pool_size": "PUNCHLIST_POOL_SIZE",
}


def _from_environment(env: Mapping[str, str]) -> dict[str, str]:
    return {key: env[variable] for key, variable in _KEYS.items() if env.get(variable)}


def continuation_settings(env: Mapping[str, str]) -> tuple[bool | None, int | None]:
    """Continuation on or off, and its limit (C1); None where the environment has no valid value."""
    switch = env.get(CONTINUES, "").strip().lower()
    limit = env.get(CONTINUATIONS, "").strip()
    continues = True if switch in _YES else False if switch in _NO else None
    return continues, int(limit) if limit.isdecimal() and limit.isascii() and len(limit) <= _MAX_DIGITS else None


def _from_file(path: Path) -> tuple[dict[str, str], SettingsTables | None]:
    try:
        raw = read_regular(path, MAX_FILE_BYTES)
        source = raw.decode()
    except FileNotFoundError:
        return {}, None
    except UnsafeFile as problem:
        raise ConfigError(f"{path}: {problem}, so it cannot be a settings file.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error}).") from error
    import tomllib

    try:
        content = tomllib.loads(source)
    except (ValueError, RecursionError) as error:
        # A number with too many digits raises a plain ValueError.
        raise ConfigError(f"{path}: is not valid TOML ({error}).") from error
    tables = {key: value for key, value in content.items() if key in TABLES}
    settings = {key: _text(path, source, key, value) for key, value in content.items() if key not in TABLES}
    if "database" in settings:
        settings["database"] = _resolve_path(settings["database"], path.parent)
    return settings, SettingsTables(path, tables, raw)


def _resolve_path(address: str, folder: Path) -> str:
    """Resolve a relative path in a settings file against the folder of that file."""
    path = address.removeprefix("sqlite:///")
    if "://" in path or ":" in path.partition("/")[0] or path.startswith("~"):
        return address
    return str(folder / path)


def _text(path: Path, source: str, key: str, value: Any) -> str:
    if key not in _KEYS:
        raise _error(path, source, key, _unknown(key))
    if key == "pool_size":
        if not isinstance(value, int) or value not in POOL_SIZES:
            raise _error(path, source, key, _pool_size_problem(str(value)))
        return str(value)
    if not isinstance(value, str):
        raise _error(path, source, key, f"{key} must be text in quotes.")
    if key == "synchronous" and value.lower() not in SYNCHRONOUS:
        raise _error(path, source, key, _synchronous_problem(value))
    return value


def _error(path: Path, source: str, key: str, problem: str) -> ConfigError:
    from punchlist.kernel.settings_table import location

    return ConfigError(f"{location(path, source, (key,))}: {problem}")


def _unknown(key: str) -> str:
    known = (*_KEYS, *TABLES)
    return f"unknown setting {excerpt(key)!r}.{did_you_mean(key, known)} Known settings: {', '.join(known)}."


def _synchronous_problem(value: str) -> str:
    return f"synchronous: must be one of {', '.join(SYNCHRONOUS)}, got {excerpt(value)!r}"


def _pool_size(text: str | None) -> int:
    if text is None:
        return DEFAULT_POOL_SIZE
    known = text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS
    if not known or int(text) not in POOL_SIZES:
        raise ConfigError(_pool_size_problem(text))
    return int(text)


def _pool_size_problem(text: str) -> str:
    limits = f"{POOL_SIZES.start} to {POOL_SIZES.stop - 1}"
    return f"pool_size: must be a whole number from {limits}, got {excerpt(text)!r}"


def exports_telemetry(environment: Mapping[str, str]) -> bool:
    """Whether a collector is named by the variables of the OpenTelemetry specification."""
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    return any(environment.get(f"OTEL_EXPORTER_OTLP_{signal}ENDPOINT") for signal in ("", "TRACES_", "METRICS_"))


def current_user() -> str:
    """The name of the person at the terminal, for the event log."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return f"uid-{os.getuid()}" if sys.platform != "win32" else "unknown"
