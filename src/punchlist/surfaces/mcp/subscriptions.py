"""The resources that clients follow, and notifications when a process changes one of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from threading import Lock, Thread
from typing import Final

from punchlist.errors import PunchlistError
from punchlist.kernel.text import excerpt
from punchlist.surfaces.mcp import jsonrpc
from punchlist.surfaces.mcp.capabilities import Capabilities
from punchlist.surfaces.mcp.jsonrpc import INVALID_PARAMS, META, Json, ProtocolError, RpcRequest, Send

logger = logging.getLogger(__name__)

MAX_SUBSCRIPTIONS: Final = 200
_SUBSCRIPTION_KEY: Final = f"{META}subscriptionId"
_UPDATED: Final = "notifications/resources/updated"


_POLL_INTERVAL: Final = 1.0
"""Seconds after which a database that was unavailable is read again."""

Listener = Callable[[str], None]


class ChangeNotifier:
    """One thread watches while there are listeners."""

    def __init__(self, capabilities: Capabilities) -> None:
        self._capabilities = capabilities
        self._lock = Lock()
        self._listeners: dict[str, set[Listener]] = {}
        self._last_seen: dict[str, str] = {}
        self._watching = False

    def add(self, uri: str, listener: Listener) -> None:
        with self._lock:
            if uri not in self._listeners:
                self._has_changed(uri)
            self._listeners.setdefault(uri, set()).add(listener)
            if not self._watching:
                Thread(target=self._watch, daemon=True).start()
                self._watching = True

    def remove(self, uri: str, listener: Listener) -> None:
        with self._lock:
            listeners = self._listeners.get(uri, set())
            listeners.discard(listener)
            if not listeners:
                self._listeners.pop(uri, None)
                self._last_seen.pop(uri, None)

    def _watch(self) -> None:
        """Run until there are no listeners. After an error, the next `add` starts a new thread."""
        try:
            with self._capabilities.watch() as watch:
                while self._notify():
                    watch.wait(_POLL_INTERVAL)
        except PunchlistError:
            # The database cannot be opened; reading a resource reports that.
            self._stop()
        except Exception:
            logger.exception("watching for changes failed")
            self._stop()

    def _stop(self) -> None:
        with self._lock:
            self._watching = False

    def _notify(self) -> bool:
        """Notify the listeners of changed resources; False if there are no listeners."""
        with self._lock:
            self._watching = watching = bool(self._listeners)
            changed = [(uri, list(all)) for uri, all in self._listeners.items() if self._has_changed(uri)]
        for uri, listeners in changed:
            for listener in listeners:
                try:
                    listener(uri)
                except Exception:
                    # The client may be gone; the others are still notified.
                    logger.exception("a client could not be notified of a change")
        return watching

    def _has_changed(self, uri: str) -> bool:
        try:
            text = self._capabilities.read_resource(uri)
        except PunchlistError:
            return False
        previous = self._last_seen.setdefault(uri, text)
        self._last_seen[uri] = text
        return previous != text


class Subscriptions:
    """The resources that one client follows: by subscription (handshake) or on open streams (stateless)."""

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
