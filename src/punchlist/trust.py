"""The files that the user has trusted, by their content.

The settings of a project come from its author. Settings that allow a tool or start a server take effect only after the
user has reviewed and trusted the file; a changed file must be trusted again. The list is stored in the user's own
folder, so that a project cannot contain its own trust.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from punchlist.config import Settings, user_folder
from punchlist.errors import ConfigError, NotAllowed

_FILE: Final = "trusted.json"
_KEY: Final = "key"


class Trust:
    def __init__(self, folder: Path) -> None:
        self._file = folder / _FILE

    @classmethod
    def of_user(cls, environment: Mapping[str, str]) -> Trust:
        return cls(user_folder(environment, "XDG_DATA_HOME", ".local/share"))

    def trusts(self, path: Path) -> bool:
        return self._all().get(str(path.resolve())) == _digest(path)

    def trust(self, path: Path) -> None:
        self._write({**self._all(), str(path.resolve()): _digest(path)})

    def forget(self, path: Path) -> None:
        self._write({name: digest for name, digest in self._all().items() if name != str(path.resolve())})

    def check_database(self, settings: Settings) -> None:
        """Refuse an untrusted external database, for hooks and MCP servers.

        They run without the user in any folder where an agent starts; prompts and lists must not be sent to a
        database that the author of a project chose.
        """
        if settings.external_database_file is not None and not self.trusts(settings.external_database_file):
            raise NotAllowed(
                f"{settings.external_database_file}: names a database outside of the project. Hooks and MCP servers "
                "use it only after `punchlist trust`."
            )

    def trusts_text(self, name: str, text: str) -> bool:
        """Whether the user has trusted exactly this text under this name.

        A name has a prefix with a colon (`mission:…`), so that it cannot collide with a path.
        """
        return self._all().get(name) == _digest_of(text.encode())

    def trust_text(self, name: str, text: str) -> None:
        self._write({**self._all(), name: _digest_of(text.encode())})

    def forget_text(self, name: str) -> None:
        self._write({other: digest for other, digest in self._all().items() if other != name})

    def seal(self, text: str) -> str:
        """A MAC of a text with the user's key: proves that this user stored it."""
        return hmac.new(self._key(), text.encode(), hashlib.sha256).hexdigest()

    def _key(self) -> bytes:
        file = self._file.with_name(_KEY)
        for _ in range(2):
            with suppress(FileNotFoundError):
                return file.read_bytes()
            with suppress(FileExistsError):
                file.parent.mkdir(parents=True, exist_ok=True)
                descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(descriptor, "wb") as made:
                    made.write(secrets.token_bytes(32))
        raise ConfigError(f"{file}: cannot be created.")

    def _all(self) -> dict[str, str]:
        try:
            found = json.loads(self._file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError):
            # Nothing is trusted if the file is unreadable; the next `trust` rewrites it.
            return {}
        return {str(name): str(digest) for name, digest in found.items()} if isinstance(found, dict) else {}

    def _write(self, trusted: Mapping[str, str]) -> None:
        beside = self._file.with_suffix(f".{os.getpid()}")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            beside.write_text(json.dumps(trusted, indent=2) + "\n", encoding="utf-8")
            beside.chmod(0o600)
            beside.replace(self._file)
        except OSError as error:
            with suppress(OSError):
                beside.unlink()
            raise ConfigError(f"{self._file}: cannot be written ({error.strerror or error}).") from error


def _digest(path: Path) -> str:
    try:
        return _digest_of(path.read_bytes())
    except OSError:
        return ""


def _digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
