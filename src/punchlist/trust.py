"""Which files of strangers the person at this machine has trusted, by their content.

A project's settings come with the project, and so from anybody. What in them would let something
run, a rule that allows or a server that is started, counts only after the person has seen the file
and trusted it; a file that has changed since has to be trusted again. This is kept in the user's own
folder: a project cannot bring its own trust along.
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
        """For whatever runs by itself in any folder that an agent is started in: nobody has looked at that folder's
        settings then, and a person's prompts and lists must not go where a stranger wants them."""
        if settings.external_database_file is not None and not self.trusts(settings.external_database_file):
            raise NotAllowed(
                f"{settings.external_database_file}: names a database outside of the project. Hooks and MCP servers "
                "use it only after `punchlist trust`."
            )

    def trusts_text(self, name: str, text: str) -> bool:
        """Whether a text that is kept elsewhere is, to the letter, what the person has trusted by this name.

        A name has a colon and begins with what it is of (`mission:…`), so that no path can be mistaken for one.
        """
        return self._all().get(name) == _digest_of(text.encode())

    def trust_text(self, name: str, text: str) -> None:
        self._write({**self._all(), name: _digest_of(text.encode())})

    def forget_text(self, name: str) -> None:
        self._write({other: digest for other, digest in self._all().items() if other != name})

    def seal(self, text: str) -> str:
        """A mark that only this user can make of a text: what is stored elsewhere with it came from here."""
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
        raise ConfigError(f"{file}: cannot be made.")

    def _all(self) -> dict[str, str]:
        try:
            found = json.loads(self._file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError):
            # What cannot be read is not trusted; trusting again writes it anew.
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
