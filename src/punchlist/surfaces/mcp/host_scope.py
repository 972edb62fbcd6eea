"""For a server that an agent has started for itself: its session is the agent's, whichever that is (seats)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from punchlist.host_sessions import HostSessions
from punchlist.kernel.actors import Actor
from punchlist.missions.model import MissionScope
from punchlist.surfaces.services import Services


class HostSession:
    def __init__(self, desk: Services, environment: Mapping[str, str], agent: str) -> None:
        self._desk = desk
        self._environment = environment
        self._agent = agent
        self._seen: int | None = None
        self._session = ""

    @cached_property
    def _seats(self) -> HostSessions:
        return HostSessions(self._desk.settings, self._environment)

    def session(self) -> str:
        # There is a seat only where there is a database.
        _ = self._desk.store
        if self._seen is None or self._seats.version() != self._seen:
            self._session = self._seats.acquire(self._agent)
            self._seen = self._seats.version()
        return self._session


class HostScope(MissionScope):
    """A scope whose session is looked up at every use: an agent can go on with another session of its own, which only
    its hooks hear of."""

    __slots__ = ("seat",)
    seat: HostSession

    def __init__(self, seat: HostSession, actor: Actor, mission: str | None = None, pillar: str | None = None) -> None:
        given = {"seat": seat, "actor": actor, "mission_slug": mission, "pillar_slug": pillar}
        for name, value in given.items():
            object.__setattr__(self, name, value)

    @property
    def conversation_id(self) -> str:
        return self.seat.session()
