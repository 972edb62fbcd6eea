"""A desk for a server that is greeted before anybody knows whether there can be one.

An agent may not start at all without its servers, and a project's settings may be anybody's: what is wrong with them is
told to whoever calls a tool. It is tried again at each call, so that one comes through once they are right.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, cast

from punchlist.errors import ConfigError
from punchlist.surfaces.services import Services


def late(opened: Callable[[], Services]) -> Services:
    """The desk that `opened` gives, once something is wanted of it."""
    return cast("Services", _LazyServices(opened))


class _LazyServices:
    def __init__(self, opened: Callable[[], Services]) -> None:
        self._open = opened
        self._opening = Lock()
        self._desk: Services | None = None

    def __getattr__(self, part: str) -> Any:
        with self._opening:
            if self._desk is None:
                try:
                    self._desk = self._open()
                except OSError as error:
                    raise ConfigError(f"The settings cannot be read ({error.strerror or error}).") from error
        return getattr(self._desk, part)
