"""Paths of the workspace for `@` completion.

In a git repository, git lists the files, so `.gitignore` counts. The list is kept for a few seconds: completion asks
at every key press, and listing 50,000 files takes a tenth of a second.
"""

from __future__ import annotations

import heapq
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import Final

from punchlist.kernel.process_runner import ProcessStartError, run_captured
from punchlist.kernel.text import visible

MAX_FILES: Final = 200_000
MAX_BYTES: Final = 40_000_000
TIMEOUT: Final = 10.0
FRESH_SECONDS: Final = 5.0
MAX_MATCHES: Final = 20
# A repository may come from another author: its configuration must not start programs.
GIT: Final = ("git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
_SKIPPED: Final = frozenset({"node_modules", "__pycache__"})


class WorkspaceFiles:
    """Called from threads."""

    def __init__(self, root: Path, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._root = root
        self._monotonic = monotonic
        self._lock = Lock()
        self._listed_at: float | None = None
        self._paths: Sequence[str] = ()
        self._lowered: Sequence[str] = ()

    def match(self, word: str, limit: int = MAX_MATCHES) -> list[str]:
        """The paths that fit a word best."""
        with self._lock:
            if self._listed_at is None or self._monotonic() - self._listed_at > FRESH_SECONDS:
                self._paths = list_files(self._root)
                self._lowered = [path.lower() for path in self._paths]
                self._listed_at = self._monotonic()
            paths, lowered = self._paths, self._lowered
        return best_matches(word, paths, lowered, limit)


def best_matches(word: str, paths: Sequence[str], lowered: Sequence[str], limit: int) -> list[str]:
    """Paths that contain the word; if there are few, those that contain its letters in order."""
    wanted = word.lower()
    found = [place for place, path in enumerate(lowered) if wanted in path]
    if len(found) < limit and wanted:
        letters = re.compile(".*?".join(map(re.escape, wanted)))
        known = set(found)
        found += [place for place, path in enumerate(lowered) if place not in known and letters.search(path)]
    best = heapq.nsmallest(limit, found, key=lambda place: _rank(wanted, lowered[place]))
    return [paths[place] for place in best]


def _rank(wanted: str, path: str) -> tuple[int, int, str]:
    name = path.rpartition("/")[2]
    if name.startswith(wanted):
        group = 0
    elif path.startswith(wanted):
        group = 1
    elif wanted in name:
        group = 2
    else:
        group = 3 if wanted in path else 4
    return group, len(path), path


def list_files(root: Path) -> list[str]:
    """Relative paths, sorted. Names with control characters or line breaks are left out."""
    paths = _git_files(root)
    found = _walk(root) if paths is None else paths
    return sorted(path for path, _ in zip(found, range(MAX_FILES), strict=False) if path == visible(path))


def _git_files(root: Path) -> list[str] | None:
    """Tracked and untracked files that are not ignored; None outside of a repository."""
    command = [*GIT, "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", "-z"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = run_captured(command, folder=root, environment=environment, seconds=TIMEOUT, max_output=MAX_BYTES)
    except (ProcessStartError, OSError):
        return None
    if done.code != 0:
        return None
    return [path for path in done.output.decode(errors="surrogateescape").split("\0") if path]


def _walk(root: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED)
        below = os.path.relpath(folder, root)
        for name in files:
            yield name if below == "." else f"{below}/{name}"
