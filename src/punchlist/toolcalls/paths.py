"""Finds what a path really names, for rules about files and programs.

`resolve` follows symbolic links and `..` from the folder in which commands run. A check at this moment cannot prevent
that a link is replaced before the file is opened: `tools/workspace.py` opens files without following links.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

_CURRENT_FOLDER: Final = re.compile(r"/proc/(?:self|thread-self|[0-9]+)(?:/task/[0-9]+)?/cwd(?=/|\Z)")
_ROOT_FOLDER: Final = re.compile(r"/proc/(?:self|thread-self|[0-9]+)(?:/task/[0-9]+)?/root(?=/|\Z)")
_MANY_SLASHES: Final = re.compile("//+")
PROTECTED_FOLDERS: Final = frozenset(
    (
        *(".git", ".hg", ".jj", ".husky", ".idea", ".vscode"),
        *(".claude", ".codex", ".cursor", ".gemini", ".opencode", ".punchlist"),
    )
)
PROTECTED_FILES: Final = frozenset((".mcp.json", "opencode.json", "punchlist.toml"))
"""Files that define what agents and tools do: an agent that may edit must not extend its own permissions."""


class PathResolver:
    """Resolves the paths of one workspace."""

    def __init__(self, root: str | os.PathLike[str], extra_folders: Iterable[str | os.PathLike[str]] = ()) -> None:
        self.root = os.path.realpath(root)
        self._allowed = (self.root, *map(os.path.realpath, extra_folders))

    def resolve(self, path: str, base: str | None = None) -> str:
        """The absolute path without links, from `base` or the root."""
        base = base or self.root
        if path.startswith("/"):
            path = _ROOT_FOLDER.sub("", _CURRENT_FOLDER.sub(lambda _: base, _MANY_SLASHES.sub("/", path))) or "/"
        if path == base or path.startswith(f"{base}/"):
            path = path[len(base) + 1 :]
        if path.startswith("/") or "\0" in path:
            return os.path.realpath(path) if "\0" not in path else path
        real = base
        for part in path.split("/"):
            if part in {"", "."}:
                continue
            if part == "..":
                real = posixpath.dirname(real)
                continue
            real = f"{real}/{part}" if real != "/" else f"/{part}"
            if os.path.islink(real):
                return os.path.realpath(os.path.join(base, path))
        return real

    def is_inside(self, real: str) -> bool:
        """Whether a resolved path is in the workspace or in a folder that the settings add."""
        return any(real == folder or real.startswith(f"{folder.rstrip('/')}/") for folder in self._allowed)

    def relative(self, real: str) -> str:
        """A resolved path as rules write it: relative to the root where it is inside."""
        return real[len(self.root) + 1 :] if real.startswith(f"{self.root}/") else real


@lru_cache(maxsize=512)
def protected_part(real: str) -> str | None:
    """The name in a path that makes it protected; None for other paths."""
    parts = real.casefold().split("/")
    for part in parts:
        if part in PROTECTED_FOLDERS:
            return part
    return parts[-1] if parts[-1] in PROTECTED_FILES else None
