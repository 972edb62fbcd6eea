"""The services and the scope of a server that a host agent starts for itself (`punchlist mcp --for AGENT`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from threading import Lock
from typing import Any, cast

from punchlist.app import Services
from punchlist.errors import ConfigError
from punchlist.host_sessions import HostSessions
from punchlist.kernel.events import Actor
from punchlist.missions.model import MissionScope


def lazy_services(open_services: Callable[[], Services]) -> Services:
    """Services that are opened on first use.

    An agent may refuse to start without its servers, so invalid settings must not end the server: each tool call
    reports the error and tries again.
    """
    return cast("Services", _LazyServices(open_services))


class _LazyServices:
    def __init__(self, open_services: Callable[[], Services]) -> None:
        self._open = open_services
        self._lock = Lock()
        self._services: Services | None = None

    def __getattr__(self, name: str) -> Any:
        with self._lock:
            if self._services is None:
                try:
                    self._services = self._open()
                except OSError as error:
                    raise ConfigError(f"The settings cannot be read ({error.strerror or error}).") from error
        return getattr(self._services, name)


class HostSession:
    """The session of the host agent that started this server."""

    def __init__(self, services: Services, environment: Mapping[str, str], agent: str) -> None:
        self._services = services
        self._environment = environment
        self._agent = agent
        self._version: int | None = None
        self._session = ""

    @cached_property
    def _sessions(self) -> HostSessions:
        return HostSessions(self._services.settings, self._environment)

    def current(self) -> str:
        # Sessions are stored beside the database: open it first.
        _ = self._services.store
        if self._version is None or self._sessions.version() != self._version:
            self._session = self._sessions.acquire(self._agent)
            self._version = self._sessions.version()
        return self._session


class HostScope(MissionScope):
    """A scope that looks up its session at each use: the agent can resume another session, which only its hooks
    report."""

    __slots__ = ("host_session",)
    host_session: HostSession

    def __init__(
        self, host_session: HostSession, actor: Actor, mission: str | None = None, pillar: str | None = None
    ) -> None:
        fields = {"host_session": host_session, "actor": actor, "mission_slug": mission, "pillar_slug": pillar}
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def conversation_id(self) -> str:
        return self.host_session.current()
