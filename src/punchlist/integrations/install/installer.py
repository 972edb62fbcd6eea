"""Plans the installation in a host's settings files, and carries it out.

A plan is computed from the files without changing them. A lock keeps two installations apart. The record is written
before the files: a record that is ahead of its files does no harm, because a file that differs from the record is
edited and never restored.
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

from punchlist.errors import ConfigError, Conflict, InvalidInput
from punchlist.integrations.install import files
from punchlist.integrations.install.entries import Entry, EntryState, ManagedContent, UneditableFile
from punchlist.integrations.install.entry_command import EntryCommand, default_command
from punchlist.integrations.install.files import FileChange
from punchlist.integrations.install.host_names import InstallScope
from punchlist.integrations.install.hosts import Host, HostFile, InstallLocation
from punchlist.integrations.install.manifest import (
    FileRecord,
    InstallManifest,
    InstallRecord,
    digest,
    recorded_locations,
)
from punchlist.trust import user_folder

_LOCK_TIMEOUT: Final = 30.0
DOUBLE_INSTALL: Final = "Where both apply, hooks can run and count twice: uninstall one of them."


@dataclass(frozen=True, slots=True)
class InstallPlan:
    changes: tuple[FileChange, ...]
    record: InstallRecord | None
    """The record after the change; None for an uninstallation."""
    folders: tuple[Path, ...] = ()
    """Folders to create, or to remove when uninstalling."""
    edited: tuple[Path, ...] = ()
    """Files that were edited since the installation: only our entries are removed from them."""


class Installer:
    """One host at one location."""

    def __init__(self, host: Host, location: InstallLocation) -> None:
        self.host = host
        self.location = location
        self._data = data_folder(location.environment)
        self._manifest = InstallManifest(self._data, host.name, location.scope, location.root)

    # --- planning ---

    def plan_install(self, program: tuple[str, ...] | None, lists: str | None = None) -> InstallPlan:
        """`program` and `lists` are a person's choices; None keeps earlier ones."""
        old = self._manifest.read()
        command = replace(self._command(old, program), lists=lists)
        changes, records = list[FileChange](), list[FileRecord]()
        for file in self.host.files(self.location, command):
            change, file_record = _plan_addition(file, old.find(file.path) if old else None)
            changes += [change] if change else []
            records += [file_record] if file_record else []
        if not changes:
            return InstallPlan((), old)
        folders = files.missing_folders(change.path.resolve() for change in changes)
        created = dict.fromkeys((*(old.folders if old else ()), *map(str, folders)))
        custom = program is not None or bool(old and old.custom)
        record = InstallRecord(command.program, custom, tuple(created), tuple(records))
        return InstallPlan(tuple(changes), record, tuple(folders))

    def plan_uninstall(self) -> InstallPlan:
        old = self._manifest.read()
        changes, edited = list[FileChange](), list[Path]()
        for file in self.host.files(self.location, self._command(old)):
            for path in file.names:
                record = old.find(path) if old else None
                change = _plan_removal(path, file.content, record)
                if change is not None:
                    changes.append(change)
                    if record is not None and record.before != change.after:
                        edited.append(path)
        folders = tuple(Path(folder) for folder in reversed(old.folders)) if old else ()
        return InstallPlan(tuple(changes), None, folders, tuple(edited))

    def _command(self, old: InstallRecord | None, program: tuple[str, ...] | None = None) -> EntryCommand:
        """A program that a person chose once stays chosen."""
        previous = old.program if old else ()
        chosen = program or (previous if old and old.custom else default_command(self.location.environment))
        return EntryCommand(chosen, self.host.name, previous)

    # --- reading ---

    def entries(self) -> Iterator[tuple[Path, Entry]]:
        for file in self.host.files(self.location, self._command(self._manifest.read())):
            try:
                content = files.read(file.path)
                text = files.decode(file.path, content)[1] if content is not None else ""
                with _located_errors(file.path):
                    entries = list(file.content.entries(text))
            except ConfigError as error:
                entries = [Entry(str(error), EntryState.UNREADABLE)]
            yield from ((file.path, entry) for entry in entries)

    def offered_lists(self) -> str | None:
        """The lists that the installed server offers; None if it is not installed."""
        command = self._command(self._manifest.read())
        offered = (command.offered_lists(entry.command) for _, entry in self.entries() if entry.is_active)
        return next((lists for lists in offered if lists), None)

    def trust_problems(self) -> list[str]:
        """Why the host does not use what is installed."""
        return list(self.host.trust_problems(self.location, self._command(self._manifest.read())))

    def start_folder(self) -> Path | None:
        """The folder in which the host must be started; None if any will do."""
        if self.location.scope is InstallScope.USER or self.host.finds_root(self.location.root):
            return None
        return self.location.root

    def folder_notes(self, folder: Path) -> list[str]:
        """What a person in a subfolder of the project should know."""
        root, title = self.location.root, self.host.title
        if self.location.scope is InstallScope.USER or folder.resolve() == root.resolve():
            return []
        if self.start_folder() is None:
            return [f"The project is {root}: {title} also finds it from this folder."]
        return [f"The project is {root}: start {title} there, not in this folder, to use the installation."]

    def notes(self, plan: InstallPlan) -> list[str]:
        """What a person should know besides the changes."""
        if plan.record is None:
            names = ", ".join(map(str, plan.edited))
            return [f"Edited since the installation; only our entries were removed: {names}"] if plan.edited else []
        notes = list(self.host.next_steps(self.location.scope)) if plan.changes else []
        disabled = ((path, entry.name) for path, entry in self.entries() if entry.state is EntryState.DISABLED)
        notes += (f"{path}: {name} disables hooks." for path, name in disabled)
        if shutil.which(self.host.program, path=self.location.environment.get("PATH", os.defpath)) is None:
            notes.append(f"`{self.host.program}` is not on the PATH here.")
        program = plan.record.program[0]
        if self.location.scope is InstallScope.PROJECT and Path(program).is_absolute():
            notes.append(f"These files contain {program}, a path on this machine: check that before you commit them.")
        for other in self._other_locations():
            where = "for you" if other.scope is InstallScope.USER else f"in {other.root}"
            notes.append(f"Punchlist is also installed {where}. {DOUBLE_INSTALL}")
        return notes

    def _other_locations(self) -> Iterator[InstallLocation]:
        """Locations of the other scope that still have our entries."""
        for scope, root in recorded_locations(self._data, self.host.name):
            if scope in tuple(InstallScope) and scope != self.location.scope:
                other = Installer(self.host, replace(self.location, scope=InstallScope(scope), root=Path(root)))
                if any(entry.is_active for _, entry in other.entries()):
                    yield other.location

    def target_outside_project(self, path: Path) -> Path | None:
        """The target of a link that leads out of the project, which may come from another author."""
        real = path.resolve()
        inside = self.location.scope is InstallScope.USER or real.is_relative_to(self.location.root.resolve())
        return None if inside else real

    # --- changing ---

    @contextmanager
    def lock(self) -> Iterator[None]:
        from filelock import FileLock, Timeout

        try:
            self._data.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise ConfigError(f"{self._data}: cannot be created ({error.strerror or error}).") from error
        try:
            with FileLock(self._data / "install.lock", timeout=_LOCK_TIMEOUT):
                yield
        except Timeout:
            raise Conflict(
                "Another `punchlist install` or `uninstall` is running. Try again when it is done."
            ) from None

    def apply(self, plan: InstallPlan) -> list[Path]:
        """Carry out a plan, and return the paths of the backups."""
        old, new = self._manifest.read(), plan.record
        backups = [
            self._back_up(number, change.path, change.before)
            for number, change in enumerate(plan.changes)
            if change.before is not None
        ]

        def write_record() -> None:
            if new is not None:
                self._manifest.write(new)

        try:
            files.apply_changes(plan.changes, () if new is None else plan.folders, write_record)
        except BaseException:
            self._manifest.write(old)
            raise
        if new is None:
            files.remove_empty(plan.folders)
            self._manifest.write(None)
        return backups

    def _back_up(self, number: int, path: Path, content: bytes) -> Path:
        moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        backup = self._data / "backups" / f"{moment}-{self.host.name}-{number}-{path.name.lstrip('.')}"
        files.write_private(backup, content)
        return backup


def data_folder(environment: Mapping[str, str]) -> Path:
    try:
        return user_folder(environment, "XDG_DATA_HOME", ".local/share").absolute()
    except RuntimeError:
        raise ConfigError("There is no home folder for backups: set HOME or XDG_DATA_HOME.") from None


def install_location(scope: InstallScope, root: Path | None, environment: Mapping[str, str]) -> InstallLocation:
    """`root` is the project's folder, or None outside a project."""
    try:
        home = Path(environment.get("HOME") or Path.home()).absolute()
    except RuntimeError:
        raise ConfigError("There is no home folder: set HOME.") from None
    if scope is InstallScope.USER:
        return InstallLocation(scope, home, home, environment)
    folder = root or Path.cwd()
    if folder.resolve() == home.resolve():
        raise InvalidInput(
            f"{folder} is your home folder, not a project. Use --user to install it for all your projects, "
            "or run this in a project's folder."
        )
    return InstallLocation(scope, folder, home, environment)


def _plan_addition(file: HostFile, record: FileRecord | None) -> tuple[FileChange | None, FileRecord | None]:
    """The change of one file, if it needs one, and its new record."""
    path, current = file.path, files.read(file.path)
    mark, text = files.decode(path, current) if current is not None else (b"", None)
    with _located_errors(path):
        after = mark + file.content.add_entries(text).encode()
    if after == current:
        return None, record
    before = _original(path, file.content, current, record)
    return FileChange(path, current, after), FileRecord(str(path), before, digest(after))


def _plan_removal(path: Path, content: ManagedContent, record: FileRecord | None) -> FileChange | None:
    current = files.read(path)
    before = _original(path, content, current, record)
    return FileChange(path, current, before) if before != current else None


def _original(path: Path, content: ManagedContent, current: bytes | None, record: FileRecord | None) -> bytes | None:
    """A file before the installation: as recorded or, if the rest was edited since, without our entries."""
    if current is None:
        return None
    if record is not None and digest(current) == record.after:
        return record.before
    mark, text = files.decode(path, current)
    with _located_errors(path):
        left = content.remove_entries(text)
        if record is not None and record.before is not None:
            _, before = files.decode(path, record.before)
            if content.remove_entries(content.add_entries(before)) == left:
                # Only our entries were edited.
                return record.before
    # Without a record, a file with only our entries was most likely created for them.
    created_by_us = record is None or record.before is None
    return None if left != text and created_by_us and content.is_empty(left) else mark + left.encode()


@contextmanager
def _located_errors(path: Path) -> Iterator[None]:
    """Add the file and the line to errors."""
    try:
        yield
    except UneditableFile as error:
        where = f"{path}, line {error.line}" if error.line else str(path)
        raise ConfigError(f"{where}: {error.reason}. Nothing was changed.") from None
