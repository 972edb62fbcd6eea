"""What the user has trusted: settings, missions and databases, each by its content or identity.

A project comes from its author, and so may the files in its `.punchlist` folder. What they ask for takes effect only
after the user has reviewed it. The entries are stored in the user's own folder, so that a project cannot contain its
own trust, and each is signed with the user's key, which also signs answers to approvals.

A file that may come from another author is read with `read_regular`: within limits, and only if it is a regular one.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from punchlist.errors import ConfigError

_FOLDER: Final = "trusted"
_KEY: Final = "key"
KEY_LENGTH: Final = 32
_MAX_ENTRY: Final = 20_000
MAX_FILE_BYTES: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class TrustEntry:
    name: str
    """A path, or a name with a prefix and a colon (`mission:…`, `database:…`)."""
    digest: str
    at: float
    """Seconds since 1970."""


class Trust:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def folder(self) -> Path:
        """The user's own folder."""
        return self._folder

    @classmethod
    def of_user(cls, environment: Mapping[str, str]) -> Trust:
        return cls(user_folder(environment, "XDG_DATA_HOME", ".local/share"))

    # --- files and texts ----------------------------------------------------------------------------------

    def trusts(self, path: Path, content: bytes | None = None) -> bool:
        """Whether the file is trusted with this content, which the caller has read and is about to use."""
        content = _content(path) if content is None else content
        return content is not None and self._has(str(path.resolve()), _digest_of(content))

    def trust(self, path: Path, content: bytes | None = None) -> None:
        """Trust the content that the user has seen."""
        content = _content(path) if content is None else content
        self._add(str(path.resolve()), "" if content is None else _digest_of(content))

    def trusts_text(self, name: str, text: str) -> bool:
        """Whether the user has trusted exactly this text under this name.

        A name has a prefix with a colon (`mission:…`), so that it cannot collide with a path.
        """
        return self._has(name, _digest_of(text.encode()))

    def trust_text(self, name: str, text: str) -> None:
        self._add(name, _digest_of(text.encode()))

    def forget(self, path: Path) -> None:
        self.forget_text(str(path.resolve()))

    def forget_text(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self._file(name).unlink()

    def entries(self) -> list[TrustEntry]:
        """Everything that is trusted, by name."""
        found = [_read_entry(file) for file in self._folder.joinpath(_FOLDER).glob("*.json")]
        return sorted(
            (entry for entry, signature in filter(None, found) if self._is_signed(entry, signature)),
            key=lambda entry: entry.name,
        )

    def _has(self, name: str, digest: str) -> bool:
        found = _read_entry(self._file(name))
        if found is None:
            return False
        entry, signature = found
        return entry.name == name and entry.digest == digest and self._is_signed(entry, signature)

    def _add(self, name: str, digest: str) -> None:
        entry = {"name": name, "digest": digest, "at": time.time(), "signature": self.sign("trust", name, digest)}
        _write_private(self._file(name), json.dumps(entry, indent=2).encode() + b"\n")

    def _is_signed(self, entry: TrustEntry, signature: str) -> bool:
        return self.is_signature(signature, "trust", entry.name, entry.digest)

    def _file(self, name: str) -> Path:
        return self._folder / _FOLDER / f"{_digest_of(name.encode(errors='surrogateescape'))[:40]}.json"

    # --- the key ------------------------------------------------------------------------------------------

    def sign(self, *fields: str) -> str:
        """A signature of these fields with the user's key: proves that this user wrote them."""
        text = json.dumps(fields).encode()
        return hmac.new(self.key, text, hashlib.sha256).hexdigest()

    def is_signature(self, signature: str, *fields: str) -> bool:
        return hmac.compare_digest(signature.encode(), self.sign(*fields).encode())

    @property
    def key_file(self) -> Path:
        return self._folder / _KEY

    @cached_property
    def key(self) -> bytes:
        """The user's key, created on first use."""
        file = self.key_file
        for _ in range(2):
            with suppress(FileNotFoundError):
                return self._read_key(file)
            with suppress(FileExistsError):
                _create_private(file, os.urandom(KEY_LENGTH))
        raise ConfigError(f"{file}: cannot be created.")

    def replace_key(self, key: bytes) -> None:
        """Use a key of another machine. What the previous key signed is no longer trusted."""
        if len(key) != KEY_LENGTH:
            raise ConfigError(f"The key must have {KEY_LENGTH} bytes, got {len(key)}.")
        _write_private(self.key_file, key)
        self.__dict__.pop("key", None)

    def _read_key(self, file: Path) -> bytes:
        try:
            key = read_regular(file, KEY_LENGTH)
        except UnsafeFile as problem:
            raise ConfigError(f"{file}: {problem}. Remove it; Punchlist then creates a new key.") from None
        except FileNotFoundError:
            raise
        except OSError as error:
            raise ConfigError(f"{file}: cannot be read ({error.strerror}).") from error
        if len(key) != KEY_LENGTH:
            raise ConfigError(
                f"{file}: has {len(key)} bytes instead of {KEY_LENGTH}. Remove it; Punchlist then creates a new key, "
                "and asks again for what the old one signed."
            )
        return key


def _read_entry(file: Path) -> tuple[TrustEntry, str] | None:
    """An entry with its signature; None if there is none. An unreadable one grants no trust."""
    try:
        stored: Any = json.loads(read_regular(file, _MAX_ENTRY))
        return TrustEntry(str(stored["name"]), str(stored["digest"]), float(stored["at"])), str(stored["signature"])
    except (OSError, ValueError, KeyError, TypeError, UnsafeFile):
        return None


def _create_private(file: Path, content: bytes) -> None:
    """Create a file that only the user can read, complete or not at all."""
    try:
        beside = _written_beside(file, content)
        try:
            os.link(beside, file)
        finally:
            beside.unlink()
    except FileExistsError:
        raise
    except OSError as error:
        raise _unwritable(file, error) from error


def _write_private(file: Path, content: bytes) -> None:
    try:
        _written_beside(file, content).replace(file)
    except OSError as error:
        raise _unwritable(file, error) from error


def _unwritable(file: Path, error: OSError) -> ConfigError:
    return ConfigError(
        f"{file}: cannot be written ({error.strerror or error}). Punchlist keeps your key there and what you have "
        "trusted; set XDG_DATA_HOME to a folder that you can write to."
    )


def _written_beside(file: Path, content: bytes) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    beside = file.with_name(f"{file.name}.{os.getpid()}-{os.urandom(4).hex()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as made:
            made.write(content)
    except OSError:
        beside.unlink()
        raise
    return beside


def _content(path: Path) -> bytes | None:
    try:
        return read_regular(path, MAX_FILE_BYTES)
    except (OSError, UnsafeFile):
        return None


def _digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


# --- files of other authors ------------------------------------------------------------------------------


class UnsafeFile(Exception):
    """The file cannot be used as it is; the message says why, without its name."""


def user_folder(env: Mapping[str, str], variable: str, fallback: str) -> Path:
    """The folder of Punchlist in a base folder of the user, which `variable` can set."""
    base = env.get(variable) or str(Path(env.get("HOME") or Path.home()) / fallback)
    return Path(base) / "punchlist"


def read_regular(path: Path, max_bytes: int) -> bytes:
    """The content of a regular file, links followed.

    Raises UnsafeFile for a device, a pipe, a folder or a file that is too large; nothing blocks, and no more than
    `max_bytes` are read.
    """
    # A pipe blocks the process that opens it without O_NONBLOCK.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UnsafeFile("is not a regular file")
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise UnsafeFile(f"is larger than {max_bytes:,} bytes")
    return content


def is_own(path: Path) -> bool:
    """Whether the file or folder exists and belongs to the user of this process."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return not hasattr(os, "geteuid") or found.st_uid == os.geteuid()
