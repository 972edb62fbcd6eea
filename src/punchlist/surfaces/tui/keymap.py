"""The user's own keys: `keys.toml` in the configuration folder replaces default keys.

    [composer]
    send = "ctrl+s"
    newline = ["enter", "shift+enter"]
    open_editor = []                     # no key

A wrong line is reported and ignored; the application starts with the others.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from textual.keys import KEY_ALIASES, KEY_NAME_REPLACEMENTS, Keys, key_to_character

from punchlist.kernel.settings_table import location
from punchlist.kernel.text import did_you_mean, excerpt, json_type, visible
from punchlist.surfaces.tui.key_table import KEYS, NO_KEY, KeyAction, KeyScope
from punchlist.trust import UnsafeFile, read_regular, user_folder

FILE_NAME: Final = "keys.toml"
MAX_BYTES: Final = 100_000
MODIFIERS: Final = ("ctrl", "alt", "shift", "super", "hyper", "meta")
_NAMES: Final = (
    {key.value for key in Keys}
    | set(KEY_NAME_REPLACEMENTS.values())
    | {alias for names in KEY_ALIASES.values() for alias in names}
)
_SHARED: Final = frozenset({KeyScope.APP})
"""Scopes whose keys are valid everywhere."""


@dataclass(frozen=True, slots=True)
class UserKeys:
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The keys of each action that the file names, by the id of the action."""
    problems: Sequence[str] = ()

    @property
    def textual_keymap(self) -> dict[str, str]:
        """For `App.set_keymap`."""
        return {id: ",".join(keys) or NO_KEY for id, keys in self.keys.items()}

    def keys_of(self, action: KeyAction) -> tuple[str, ...]:
        return self.keys.get(action.id, action.keys)


def load_user_keys(environment: Mapping[str, str]) -> UserKeys:
    path = user_folder(environment, "XDG_CONFIG_HOME", ".config") / FILE_NAME
    try:
        source = read_regular(path, MAX_BYTES).decode()
    except FileNotFoundError:
        return UserKeys()
    except (OSError, UnicodeDecodeError, UnsafeFile) as error:
        return UserKeys(problems=(f"{visible(path)}: cannot be read ({visible(error)}). The default keys are used.",))
    return parse_user_keys(path, source)


def parse_user_keys(path: Path, source: str) -> UserKeys:
    try:
        content = tomllib.loads(source)
    except (ValueError, RecursionError) as error:
        return UserKeys(problems=(f"{visible(path)}: is not valid TOML ({error}). The default keys are used.",))
    reader = _Reader(path, source)
    reader.read(content)
    keys = UserKeys(reader.keys)
    conflicts = [reader.at(id, text) for id, text in find_conflicts(keys)]
    return UserKeys(reader.keys, (*reader.problems, *conflicts))


class _Reader:
    def __init__(self, path: Path, source: str) -> None:
        self._path = path
        self._source = source
        self.keys: dict[str, tuple[str, ...]] = {}
        self.problems: list[str] = []

    def read(self, content: Mapping[str, Any]) -> None:
        scopes = {scope.value for scope in KeyScope}
        for scope, table in content.items():
            if scope not in scopes:
                hint = did_you_mean(scope, scopes)
                self._problem((scope,), f"unknown group of keys.{hint} There are: {', '.join(sorted(scopes))}.")
            elif not isinstance(table, dict):
                self._problem((scope,), f"must be a table, such as [{scope}], got {json_type(table)}.")
            else:
                self._read_scope(scope, table)

    def _read_scope(self, scope: str, table: Mapping[str, Any]) -> None:
        known = [action.name for action in KEYS if action.scope == scope]
        for name, value in table.items():
            if name not in known:
                hint = did_you_mean(name, known)
                self._problem((scope, name), f"unknown action.{hint} There are: {', '.join(known)}.")
                continue
            keys = [value] if isinstance(value, str) else value
            if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
                self._problem((scope, name), 'must be a key in quotes, such as "ctrl+s", or a list of keys.')
                continue
            wrong = [key for key in keys if not is_key(key)]
            if wrong:
                self._problem((scope, name), f"{excerpt(wrong[0])!r} is not a key. Examples: ctrl+s, f2, alt+up, a, ?.")
                continue
            self.keys[f"{scope}.{name}"] = tuple(keys)

    def _problem(self, way: tuple[str, ...], text: str) -> None:
        self.problems.append(self.at(".".join(map(excerpt, way)), text, way))

    def at(self, id: str, text: str, way: tuple[str, ...] | None = None) -> str:
        where = location(self._path, self._source, way or tuple(id.split(".")))
        return f"{visible(where)}: {id}: {text}"


def is_key(text: str) -> bool:
    """Whether a terminal can send this key, by Textual's names."""
    *modifiers, name = text.split("+") if text != "+" else ["+"]
    if any(modifier not in MODIFIERS for modifier in modifiers):
        return False
    if len(name) == 1:
        return name.isprintable() and not name.isspace()
    return text in _NAMES or name in _NAMES or key_to_character(name) is not None


def find_conflicts(keys: UserKeys) -> Iterable[tuple[str, str]]:
    """Keys of the file that already start another action in the same place, each reported once."""
    reported: set[frozenset[str]] = set()
    for action in KEYS:
        if action.id not in keys.keys:
            continue
        for other in KEYS:
            together = action.scope is other.scope or {action.scope, other.scope} & _SHARED
            shared = set(keys.keys_of(action)) & set(keys.keys_of(other))
            pair = frozenset((action.id, other.id))
            if action.id == other.id or not together or not shared or pair in reported:
                continue
            reported.add(pair)
            key = sorted(shared)[0]
            yield action.id, f"{key} is also the key of {other.id} ({other.description}). Give one of them another key."
