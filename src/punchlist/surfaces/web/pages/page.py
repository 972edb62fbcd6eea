"""What a page receives and returns. Pages are synchronous functions from a request to a `Page` or a `Redirect`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from punchlist.missions.model import MissionScope

if TYPE_CHECKING:
    from punchlist.app import Services
    from punchlist.kernel.events import Actor


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request of a logged-in person. `form` is empty unless the request was posted with a valid CSRF token."""

    services: Services
    actor: Actor
    csrf: str
    path: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Parts of the path."""
    token_id: str = ""
    """The access token of this request."""
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)
    form: Mapping[str, Sequence[str]] = field(default_factory=dict)
    seen_until: str | None = None
    """When this browser last looked at the attention page."""
    model: str | None = None
    """The model and the permission mode that the server was started with."""
    mode: str | None = None
    hosts_worker: bool = True

    def get(self, name: str, default: str = "") -> str:
        """The last value of a query parameter."""
        return self.query[name][-1].strip() if self.query.get(name) else default

    def posted(self, name: str, default: str = "") -> str:
        """The last value of a form field."""
        # Browsers send line ends as CRLF.
        return self.form[name][-1].strip().replace("\r\n", "\n") if self.form.get(name) else default

    def scope(self, conversation_id: str | None = None) -> MissionScope:
        """The person, not bound to one mission."""
        return MissionScope(conversation_id or self.services.settings.session, self.actor)

    def link(self, **changes: str | None) -> str:
        """The address of this page with other query parameters; None removes one."""
        values = {name: list(given) for name, given in self.query.items()}
        for name, value in changes.items():
            values.pop(name, None)
            if value is not None:
                values[name] = [value]
        query = urlencode([(name, value) for name, given in sorted(values.items()) for value in given if value])
        return f"{self.path}?{query}" if query else self.path


@dataclass(frozen=True, slots=True)
class Page:
    """A template and its values."""

    template: str
    title: str
    values: Mapping[str, Any] = field(default_factory=dict)
    section: str = ""
    """The entry of the sidebar that is marked as current."""
    mission: str | None = None
    """The mission whose events refresh the page; None for all events."""
    status: int = 200
    marks_seen: bool = False
    live_text: bool = False
    """Whether the page shows text while it is written."""


@dataclass(frozen=True, slots=True)
class Redirect:
    """The answer to a form: where to go next and what to say there."""

    to: str
    message: str = ""
    warning: bool = False


PageFunction = Callable[[PageRequest], Page]
FormFunction = Callable[[PageRequest], Redirect]
