"""Installing and uninstalling: what would change, and then changing it.

A plan is made of what is there, without touching it. Whoever carries it out holds a lock, so that two of us do not work
on the same files. What was made is on record before it is made: a record that is ahead of the files does no harm, since
a file that is not as the record says is only ever edited, never put back.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from punchlist.config import user_folder
from punchlist.errors import ConfigError, Conflict, InvalidInput
from punchlist.integrations.install import files
from punchlist.integrations.install.entry_command import EntryCommand, own
from punchlist.integrations.install.files import FileChange
from punchlist.integrations.install.hosts import Host, HostFile, InstallLocation, InstallScope, ManagedContent
from punchlist.integrations.install.manifest import FileRecord, InstallManifest, InstallRecord, digest, installed
from punchlist.integrations.install.text_edits import UneditableFile

LONGEST_WAIT: Final = 30.0
TWICE: Final = "Where both apply, hooks can run twice, and then count twice: uninstall one of them."


@dataclass(frozen=True, slots=True)
class InstallPlan:
    """What would become of which files, and what would be on record then."""

    changes: tuple[FileChange, ...]
    record: InstallRecord | None
    folders: tuple[Path, ...] = ()
    """Those to be made; or, where something is undone, those to be removed."""
    edited: tuple[Path, ...] = ()
    """Files that somebody has edited since, so that they are not put back but have our entries taken out."""


class Installer:
    """One host at one place."""

    def __init__(self, host: Host, place: InstallLocation) -> None:
        self.host = host
        self.place = place
        self._data = data_folder(place.environment)
        self._records = InstallManifest(self._data, host.name, place.scope, place.root)

    # --- planning ---

    def install(self, program: tuple[str, ...] | None) -> InstallPlan:
        old = self._records.read()
        command = self._command(old, program)
        changes, told = list[FileChange](), list[FileRecord]()
        for file in self.host.files(self.place, command):
            known = old.of(file.path) if old else None
            change, noted = _put_in(file, known)
            changes += [change] if change else []
            told += [noted] if noted else []
        if not changes:
            return InstallPlan((), old)
        folders = files.missing_folders(change.path.resolve() for change in changes)
        made = (*(old.folders if old else ()), *(str(folder) for folder in folders))
        record = InstallRecord(
            command.program, program is not None or bool(old and old.named), tuple(dict.fromkeys(made)), tuple(told)
        )
        return InstallPlan(tuple(changes), record, tuple(folders))

    def uninstall(self) -> InstallPlan:
        old = self._records.read()
        command = self._command(old)
        changes, edited = list[FileChange](), list[Path]()
        for file in self.host.files(self.place, command):
            for path in file.names:
                known = old.of(path) if old else None
                change = _take_out(path, file.content, known)
                if change is not None:
                    changes.append(change)
                    if known is not None and known.before != change.after:
                        edited.append(path)
        folders = tuple(Path(folder) for folder in reversed(old.folders)) if old else ()
        return InstallPlan(tuple(changes), None, folders, tuple(edited))

    def state(self) -> Iterator[tuple[Path, str, str, tuple[str, ...]]]:
        """Each of our entries: its file, what it is, how it is, and the words of its command."""
        old = self._records.read()
        command = self._command(old)
        for file in self.host.files(self.place, command):
            try:
                content = files.read(file.path)
                text = files.decoded(file.path, content)[1] if content is not None else ""
                with _told_where(file.path):
                    found = list(file.content.pieces(text))
            except ConfigError as error:
                yield file.path, str(error), "unreadable", ()
                continue
            for what, how, words in found:
                yield file.path, what, how, tuple(words)

    def distrust(self) -> list[str]:
        """What keeps the host from using what is installed."""
        return list(self.host.distrust(self.place, self._command(self._records.read())))

    def _command(self, old: InstallRecord | None, named: tuple[str, ...] | None = None) -> EntryCommand:
        """Somebody who named a command once need not do so again."""
        before = old.program if old else ()
        program = named or (before if old and old.named else own(self.place.environment))
        return EntryCommand(program, self.host.name, before)

    def start_in(self) -> Path | None:
        """The folder that the host has to be started in for the installation to count; None if any will do."""
        if self.place.scope is InstallScope.USER or self.host.finds_root(self.place.root):
            return None
        return self.place.root

    def seen_from(self, folder: Path) -> list[str]:
        """What somebody should know who is in this folder, and not in the project's root."""
        root = self.place.root
        if self.place.scope is InstallScope.USER or folder.resolve() == root.resolve():
            return []
        if self.start_in() is None:
            return [f"The project is {root}: {self.host.title} finds it from this folder, too."]
        return [
            f"The project is {root}: {self.host.title} has to be started there, not in this folder, for it to count."
        ]

    def notes(self, plan: InstallPlan) -> list[str]:
        """What a person should know beside the change itself."""
        told = list[str]()
        if plan.record is None:
            names = ", ".join(map(str, plan.edited))
            return [f"Edited since, so only our entries were taken out: {names}"] if plan.edited else []
        if plan.changes:
            told += self.host.then(self.place.scope)
        told += (f"{path}: {what} switches hooks off." for path, what, how, _ in self.state() if how == "switched off")
        if shutil.which(self.host.program, path=self.place.environment.get("PATH", os.defpath)) is None:
            told.append(f"`{self.host.program}` is not on the PATH here.")
        program = plan.record.program[0]
        if self.place.scope is InstallScope.PROJECT and Path(program).is_absolute():
            told.append(f"These files name {program}, which is on this machine: think of that before you commit them.")
        told += (
            f"It is installed {'for you' if other.scope is InstallScope.USER else f'in {other.root}'} as well. " + TWICE
            for other in self._elsewhere()
        )
        return told

    def _elsewhere(self) -> Iterator[InstallLocation]:
        """Where else the host has us: on record, and still there."""
        for scope, root in installed(self._data, self.host.name):
            if scope in tuple(InstallScope) and scope != self.place.scope:
                other = Installer(self.host, replace(self.place, scope=InstallScope(scope), root=Path(root)))
                if any(how in ("there", "old") for _, _, how, _ in other.state()):
                    yield other.place

    def led_outside(self, path: Path) -> Path | None:
        """Where a project's file really is, if links lead out of the project, which may be a stranger's."""
        real = path.resolve()
        inside = self.place.scope is InstallScope.USER or real.is_relative_to(self.place.root.resolve())
        return None if inside else real

    # --- doing ---

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While nobody else of us installs anything."""
        from filelock import FileLock, Timeout

        try:
            self._data.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise ConfigError(f"{self._data}: cannot be made ({error.strerror or error}).") from error
        try:
            with FileLock(self._data / "install.lock", timeout=LONGEST_WAIT):
                yield
        except Timeout:
            raise Conflict(
                "Another `punchlist install` or `uninstall` is at work. Try again when it is done."
            ) from None

    def carry_out(self, plan: InstallPlan) -> list[Path]:
        """Where the backups are."""
        before = self._records.read()
        backups = [self._backup(number, change) for number, change in enumerate(plan.changes)]
        undoing = plan.record is None
        try:
            files.apply(plan.changes, () if undoing else plan.folders, lambda: self._note(plan.record))
        except BaseException:
            self._records.write(before)
            raise
        if undoing:
            files.remove_empty(plan.folders)
            self._records.write(None)
        return [backup for backup in backups if backup is not None]

    def _note(self, record: InstallRecord | None) -> None:
        if record is not None:
            self._records.write(record)

    def _backup(self, number: int, change: FileChange) -> Path | None:
        if change.before is None:
            return None
        moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        path = self._data / "backups" / f"{moment}-{self.host.name}-{number}-{change.path.name.lstrip('.')}"
        files.write_private(path, change.before)
        return path


def data_folder(environment: Mapping[str, str]) -> Path:
    try:
        return user_folder(environment, "XDG_DATA_HOME", ".local/share").absolute()
    except RuntimeError:
        raise ConfigError("There is no home folder to keep backups in: set HOME or XDG_DATA_HOME.") from None


def place(scope: InstallScope, root: Path | None, environment: Mapping[str, str]) -> InstallLocation:
    """Where to install. `root` is the project's folder, None outside of any."""
    try:
        home = Path(environment.get("HOME") or Path.home()).absolute()
    except RuntimeError:
        raise ConfigError("There is no home folder: set HOME.") from None
    if scope is InstallScope.USER:
        return InstallLocation(scope, home, home, environment)
    folder = root or Path.cwd()
    if folder.resolve() == home.resolve():
        raise InvalidInput(
            f"{folder} is your home folder and no project. Say --user to install it for all your projects, "
            "or run this in a project's folder."
        )
    return InstallLocation(scope, folder, home, environment)


def _put_in(file: HostFile, known: FileRecord | None) -> tuple[FileChange | None, FileRecord | None]:
    """The change of one file, if it needs one, and what is on record of it then."""
    path, current = file.path, files.read(file.path)
    mark, text = files.decoded(path, current) if current is not None else (b"", None)
    with _told_where(path):
        merged = file.content.merged(text)
        after = mark + merged.text.encode()
        if after == current:
            return None, known
        if current is None or text is None:
            before, inserted, made = None, merged.inserted, merged.made
        elif known is not None:
            # It was installed before: what was there then is still what undoing it comes back to.
            left = _left(file.content, text, mark, known)
            before = known.before if _as_left(file.content, text, mark, known) else left
            inserted = (*known.inserted, *merged.inserted) if merged.inserted else ()
            made = tuple(dict.fromkeys((*known.made, *merged.made)))
        else:
            before, inserted, made = _left(file.content, text, mark, None), merged.inserted, merged.made
        ours = mark + file.content.set_back(merged.text).encode()
    record = FileRecord(str(path), before, digest(ours), inserted, made)
    return FileChange(path, current, after), record


def _take_out(path: Path, content: ManagedContent, known: FileRecord | None) -> FileChange | None:
    current = files.read(path)
    if current is None:
        return None
    mark, text = files.decoded(path, current)
    with _told_where(path):
        if known is not None and _as_left(content, text, mark, known):
            return FileChange(path, current, known.before)
        left = _left(content, text, mark, known)
    return FileChange(path, current, left) if left != current else None


def _as_left(content: ManagedContent, text: str, mark: bytes, known: FileRecord) -> bool:
    """Whether a file is as we left it, but for values that a person chose in our entries."""
    return known.made_this(mark + text.encode()) or known.made_this(mark + content.set_back(text).encode())


def _left(content: ManagedContent, text: str, mark: bytes, known: FileRecord | None) -> bytes | None:
    """What is left of a file without our entries; None if there was no file without us, and nothing is left."""
    left = content.stripped(text, known.inserted, known.made) if known else content.stripped(text)
    if left is None:
        return None
    # Without a record, a file in which there is nothing but our entries was most likely made for them.
    made_by_us = known is None or known.before is None
    if left != text and made_by_us and content.is_empty(left):
        return None
    return mark + left.encode()


@contextmanager
def _told_where(path: Path) -> Iterator[None]:
    try:
        yield
    except UneditableFile as unfit:
        where = f"{path}, line {unfit.line}" if unfit.line else str(path)
        raise ConfigError(f"{where}: {unfit.why}. Nothing was changed.") from None
    except RecursionError:
        raise ConfigError(f"{path}: is nested too deep to be worked with. Nothing was changed.") from None
