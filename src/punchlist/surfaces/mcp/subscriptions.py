"""What one client follows: by subscription (handshake), or on streams that it keeps open (stateless)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from punchlist.kernel.text import excerpt
from punchlist.surfaces.mcp import messages
from punchlist.surfaces.mcp.capabilities import Capabilities
from punchlist.surfaces.mcp.messages import INVALID_PARAMS, META, Json, ProtocolError, RpcRequest, Send
from punchlist.surfaces.mcp.notifications import ChangeNotifier

MOST_FOLLOWED: Final = 200
_SUBSCRIPTION_KEY: Final = f"{META}subscriptionId"
_UPDATED: Final = "notifications/resources/updated"


class Subscriptions:
    def __init__(self, offer: Capabilities, announcer: ChangeNotifier, send: Send) -> None:
        self._offer = offer
        self._announcer = announcer
        self._send = send
        self._subscribed: set[str] = set()
        self._streams: dict[str, tuple[RpcRequest, frozenset[str]]] = {}

    def subscribe(self, request: RpcRequest) -> Json:
        uri = messages.text(request.params, "uri")
        if not self._offer.knows(uri):
            raise ProtocolError(INVALID_PARAMS, f"There is no resource {excerpt(uri)!r}.")
        if len(self._subscribed) >= MOST_FOLLOWED:
            raise ProtocolError(INVALID_PARAMS, f"uri: {MOST_FOLLOWED} are followed already, which is the limit")
        self._subscribed.add(uri)
        self._announcer.follow(uri, self._announce)
        return {}

    def unsubscribe(self, request: RpcRequest) -> Json:
        uri = messages.text(request.params, "uri")
        self._subscribed.discard(uri)
        self._leave([uri])
        return {}

    def listen(self, request: RpcRequest) -> None:
        """A stream that stays open: acknowledged now, fed by `_announce`, ended when it is cancelled."""
        self.end(request.key)
        wanted = request.params.get("notifications")
        uris = wanted.get("resourceSubscriptions") if isinstance(wanted, dict) else None
        named = [uri for uri in uris if isinstance(uri, str)] if isinstance(uris, list) else []
        honoured = [uri for uri in named[:MOST_FOLLOWED] if self._offer.knows(uri)]
        self._streams[request.key] = request, frozenset(honoured)
        for uri in honoured:
            self._announcer.follow(uri, self._announce)
        request.send(
            messages.notification(
                "notifications/subscriptions/acknowledged",
                notifications={"resourceSubscriptions": honoured} if honoured else {},
                _meta={_SUBSCRIPTION_KEY: request.id},
            )
        )

    def end(self, key: str) -> None:
        """The stream of this request, if there is one."""
        if (stream := self._streams.pop(key, None)) is not None:
            request, uris = stream
            self._leave(uris)
            request.send(None)

    def close(self) -> None:
        followed = self._followed()
        self._subscribed.clear()
        self._streams.clear()
        self._leave(followed)

    def _announce(self, uri: str) -> None:
        """Tell the client, in each of the ways in which it follows."""
        if uri in self._subscribed:
            self._send(messages.notification(_UPDATED, uri=uri))
        for request, uris in list(self._streams.values()):
            if uri in uris:
                request.send(messages.notification(_UPDATED, uri=uri, _meta={_SUBSCRIPTION_KEY: request.id}))

    def _followed(self) -> set[str]:
        return self._subscribed.union(*(uris for _, uris in list(self._streams.values())))

    def _leave(self, uris: Iterable[str]) -> None:
        """Those that nothing else of this client follows."""
        for uri in set(uris) - self._followed():
            self._announcer.leave(uri, self._announce)
