"""Whether the condition of a rule about an argument holds, such as `path = "docs/*"`."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

from punchlist.toolcalls.paths import PathResolver

_PATH_NAME: Final = re.compile(
    r"(?:.*_)?(?:path|file|filename|folder|directory|dir|cwd|root|src|dst|source|destination|target)s?\Z"
)
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_GLOB: Final = re.compile(r"[*?\[]")


class ArgumentPattern(NamedTuple):
    """A pattern of a rule for one argument."""

    name: str
    pattern: str
    folder: str | None
    """The folder that a relative pattern starts from; None for the root of the workspace."""

    def allows(self, value: Any, paths: PathResolver) -> bool:
        """Whether an allowing rule covers the value: a path by what it really names."""
        found = list(_texts(value))
        return bool(found) and all(self._allows(text, paths) for text in found)

    def _allows(self, text: str, paths: PathResolver) -> bool:
        if not self._is_path(text):
            return fnmatchcase(text, self.pattern) and ".." not in text.split("/")
        real = paths.resolve(text)
        return any(fnmatchcase(real, pattern) for pattern in self._absolute(paths))

    def may_apply(self, value: Any, paths: PathResolver) -> bool | None:
        """Whether an asking or denying rule applies; None for a folder that contains what the pattern names."""
        results = [self._may_apply(text, paths) for text in _texts(value)]
        if True in results:
            return True
        return None if None in results else False

    def _may_apply(self, text: str, paths: PathResolver) -> bool | None:
        if fnmatchcase(text, self.pattern):
            return True
        if not self._is_path(text):
            return False
        plain = posixpath.normpath(re.sub("^//+", "/", text))
        if fnmatchcase(plain, self.pattern):
            return True
        # A process can have another current folder than the workspace, and `/proc/self/cwd` is its own.
        reals = {paths.resolve(text), os.path.realpath(os.path.join(paths.root, text.replace("\0", "")))}
        patterns = list(self._absolute(paths))
        if any(fnmatchcase(real, one) or fnmatchcase(f"{real}/", one) for real in reals for one in patterns):
            return True
        within = any(_static(one).startswith(f"{real.rstrip('/')}/") for real in reals for one in patterns)
        return None if within else False

    def _is_path(self, text: str) -> bool:
        if _URL.match(text):
            return False
        return "/" in self.pattern or "/" in text or _PATH_NAME.match(self.name) is not None

    def _absolute(self, paths: PathResolver) -> Iterator[str]:
        """The pattern from the root of the file system, as written and with links resolved."""
        folder = self.folder or paths.root
        relative = not self.pattern.startswith("/")
        yield f"{_escaped(folder)}/{self.pattern.removeprefix('./')}" if relative else self.pattern
        static = self.pattern[: -len(rest)] if (rest := _dynamic(self.pattern)) else self.pattern
        if static:
            yield _escaped(paths.resolve(static, folder)).rstrip("/") + ("/" if rest else "") + rest


def _escaped(folder: str) -> str:
    return _GLOB.sub(lambda found: f"[{found[0]}]", folder)


def _dynamic(pattern: str) -> str:
    """The part of a pattern from the path segment with the first `*` on."""
    found = _GLOB.search(pattern)
    return pattern[pattern.rfind("/", 0, found.start()) + 1 :] if found else ""


def _static(pattern: str) -> str:
    found = _GLOB.search(pattern)
    return pattern[: found.start()] if found else pattern


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)
    elif value is not None:
        yield str(value)


def argument_value(schema: Mapping[str, Any], arguments: Mapping[str, Any], name: str) -> Any:
    """The value of an argument, or its default."""
    if name in arguments:
        return arguments[name]
    return schema.get("properties", {}).get(name, {}).get("default")
