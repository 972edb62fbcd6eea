"""Which SQLite files this user created or adopted.

A repository can contain a `.punchlist` folder, and whatever is in its database would count as the user's own: open
items, queued messages, answers to approvals. So a file is opened only if this user created it, or adopted it after
seeing what it contains. The user's folder has a signed entry per file: its real path, its inode, and a random number
in the file's header (`user_version`). A file that was moved, restored or replaced does not match any more and is
offered for adoption again.

The inode alone would not do, since file systems use a free number again; nor would the number in the header, which a
copy has too.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from punchlist.errors import NotAllowed, StoreBusy, StoreUnavailable
from punchlist.trust import Trust

PROJECT_FOLDER: Final = ".punchlist"
PREFIX: Final = "database:"
_MAGIC: Final = b"SQLite format 3\x00"
_HEADER_LENGTH: Final = 100


class UntrustedDatabase(NotAllowed):
    """The file was neither created nor adopted by this user."""

    code = "untrusted_database"

    def __init__(self, file: Path) -> None:
        self.file = file
        super().__init__(
            f"{file} was not created by you on this machine, or was replaced since: nothing of it is used. Run "
            "`punchlist trust` to see what it contains and adopt it, or `punchlist trust --new-database` to set it "
            "aside and start an empty one."
        )


def check_file(file: Path) -> None:
    """Refuse a file that cannot be the user's own database: a link of a project, a special file, another owner."""
    if file.parent.name == PROJECT_FOLDER and (file.is_symlink() or file.parent.is_symlink()):
        raise NotAllowed(
            f"{file} is a link, or is in a linked folder. A project's database must be a file in the project itself. "
            "Remove the link; to use a database elsewhere, set PUNCHLIST_DATABASE_URL."
        )
    try:
        found = os.stat(file)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreUnavailable(f"Cannot use {file} as a database ({error.strerror}).") from error
    if not stat.S_ISREG(found.st_mode):
        raise StoreUnavailable(f"Cannot use {file} as a database: it is not a regular file.")
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        raise NotAllowed(
            f"{file} belongs to another user (uid {found.st_uid}). Nothing of it is used; set PUNCHLIST_DATABASE_URL "
            "to a file of your own."
        )


def is_regular(file: Path) -> bool:
    return stat.S_ISREG(os.lstat(file).st_mode)


def is_adopted(file: Path, trust: Trust) -> bool:
    """Whether this user created or adopted the file. An empty file has no content to distrust."""
    try:
        if os.stat(file).st_size == 0:
            return True
        number = _read_number(file)
        return number is not None and trust.trusts_text(_name(file), _identity(file, number))
    except OSError:
        return False


def check_adopted(file: Path, trust: Trust) -> None:
    """Raise unless the file, if it exists, may be opened; restrict its permissions to the user."""
    check_file(file)
    if not file.exists():
        return
    # Again, since another process may have replaced the file while it was read.
    if not is_adopted(file, trust) and not is_adopted(file, trust):
        if not file.exists():
            return
        _refuse_damaged(file)
        raise UntrustedDatabase(file)
    if stat.S_IMODE(os.stat(file).st_mode) & 0o077:
        # Not possible on a read-only file system, where nothing can be changed anyway.
        with suppress(OSError):
            os.chmod(file, 0o600)


def _refuse_damaged(file: Path) -> None:
    """Report a file without a header as damaged. It is not opened: its log could contain a whole database."""
    if _read_number(file) is None:
        from punchlist.storage.sqlite import SQLite

        raise SQLite(file).damaged("file is not a database")


def create_file(file: Path, trust: Trust) -> None:
    """Create a database of this user. An empty file can be used as it is."""
    # Without a key there must be no file: nothing could show later that it is the user's.
    _ = trust.key
    is_new = not os.path.lexists(file)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    os.close(descriptor)
    try:
        sign(file, trust)
    except BaseException:
        if is_new:
            os.unlink(file)
        raise


def sign(file: Path, trust: Trust, *, name: Path | None = None) -> None:
    """Record the file as this user's, with a new number in its header.

    `name`: the path to which the caller is about to move the file.
    """
    number = int.from_bytes(os.urandom(4), "big") >> 1
    # The entry first: with the number alone, other processes would refuse a new file.
    trust.trust_text(_name(name or file), _identity(file, number))
    _write_number(file, number)


def copy_number(file: Path, to: Path) -> None:
    """Give a copy the number of the file whose content it replaces."""
    if (number := _read_number(file)) is not None:
        _write_number(to, number)


def _write_number(file: Path, number: int) -> None:
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=rw", uri=True, timeout=30)) as connection:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute(f"PRAGMA user_version = {number}")
        # The number must be in the file itself, where `_read_number` reads it, and not only in the log.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    if _read_number(file) != number:
        raise StoreBusy(f"{file} is in use by another process. Stop it and try again.")


def _read_number(file: Path) -> int | None:
    """The number in the header; None if the file is no SQLite database.

    Read without SQLite, which refuses a file that is in the middle of a checkpoint unless it may also apply the log.
    """
    header = os.pread(_descriptor(file), _HEADER_LENGTH, 0)
    if len(header) < _HEADER_LENGTH or not header.startswith(_MAGIC):
        return None
    return int.from_bytes(header[60:64], "big")


_descriptors: dict[tuple[int, int], int] = {}


def _descriptor(file: Path) -> int:
    """A descriptor of the file, which stays open: to close one drops the locks that this process has on it (POSIX)."""
    found = os.stat(file)
    identity = found.st_dev, found.st_ino
    if identity not in _descriptors:
        descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
        opened = os.fstat(descriptor)
        identity = opened.st_dev, opened.st_ino
        _descriptors.setdefault(identity, descriptor)
    return _descriptors[identity]


def forget(file: Path, trust: Trust) -> None:
    trust.forget_text(_name(file))


def _name(file: Path) -> str:
    return f"{PREFIX}{os.path.realpath(file)}"


def _identity(file: Path, number: int) -> str:
    return f"{os.stat(file).st_ino}:{number}"
