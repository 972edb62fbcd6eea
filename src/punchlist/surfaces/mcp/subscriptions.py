"""The resources that one client follows: by subscription (handshake) or on open streams (stateless)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from punchlist.kernel.text import excerpt
from punchlist.surfaces.mcp import jsonrpc
from punchlist.surfaces.mcp.capabilities import Capabilities
from punchlist.surfaces.mcp.jsonrpc import INVALID_PARAMS, META, Json, ProtocolError, RpcRequest, Send
from punchlist.surfaces.mcp.notifications import ChangeNotifier

MAX_SUBSCRIPTIONS: Final = 200
_SUBSCRIPTION_KEY: Final = f"{META}subscriptionId"
_UPDATED: Final = "notifications/resources/updated"


class Subscriptions:
    def __init__(self, capabilities: Capabilities, notifier: ChangeNotifier, send: Send) -> None:
        self._capabilities = capabilities
        self._notifier = notifier
        self._send = send
        self._subscribed: set[str] = set()
        self._streams: dict[str, tuple[RpcRequest, frozenset[str]]] = {}

    def subscribe(self, request: RpcRequest) -> Json:
        uri = jsonrpc.text_param(request.params, "uri")
        if not self._capabilities.has_resource(uri):
            raise ProtocolError(INVALID_PARAMS, f"There is no resource {excerpt(uri)!r}.")
        if len(self._subscribed) >= MAX_SUBSCRIPTIONS:
            raise ProtocolError(INVALID_PARAMS, f"uri: limit of {MAX_SUBSCRIPTIONS} subscriptions reached")
        self._subscribed.add(uri)
        self._notifier.add(uri, self._on_change)
        return {}

    def unsubscribe(self, request: RpcRequest) -> Json:
        uri = jsonrpc.text_param(request.params, "uri")
        self._subscribed.discard(uri)
        self._stop_watching([uri])
        return {}

    def listen(self, request: RpcRequest) -> None:
        """Open a stream that ends when the client cancels the request."""
        self.end_stream(request.key)
        requested = request.params.get("notifications")
        uris = requested.get("resourceSubscriptions") if isinstance(requested, dict) else None
        named = [uri for uri in uris if isinstance(uri, str)] if isinstance(uris, list) else []
        accepted = [uri for uri in named[:MAX_SUBSCRIPTIONS] if self._capabilities.has_resource(uri)]
        self._streams[request.key] = request, frozenset(accepted)
        for uri in accepted:
            self._notifier.add(uri, self._on_change)
        request.send(
            jsonrpc.notification(
                "notifications/subscriptions/acknowledged",
                notifications={"resourceSubscriptions": accepted} if accepted else {},
                _meta={_SUBSCRIPTION_KEY: request.id},
            )
        )

    def end_stream(self, key: str) -> None:
        if (stream := self._streams.pop(key, None)) is not None:
            request, uris = stream
            self._stop_watching(uris)
            request.send(None)

    def close(self) -> None:
        watched = self._watched()
        self._subscribed.clear()
        self._streams.clear()
        self._stop_watching(watched)

    def _on_change(self, uri: str) -> None:
        if uri in self._subscribed:
            self._send(jsonrpc.notification(_UPDATED, uri=uri))
        for request, uris in list(self._streams.values()):
            if uri in uris:
                request.send(jsonrpc.notification(_UPDATED, uri=uri, _meta={_SUBSCRIPTION_KEY: request.id}))

    def _watched(self) -> set[str]:
        return self._subscribed.union(*(uris for _, uris in list(self._streams.values())))

    def _stop_watching(self, uris: Iterable[str]) -> None:
        """Remove the listener from resources that this client no longer follows in any way."""
        for uri in set(uris) - self._watched():
            self._notifier.remove(uri, self._on_change)
