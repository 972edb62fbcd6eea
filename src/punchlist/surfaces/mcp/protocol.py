"""The protocol without a wire: one decoded JSON-RPC message in, what to send back out.

Both generations of MCP are answered, each request by its own lights: one that carries the
2026-07-28 envelope in `_meta` is served statelessly, any other as in the versions that begin with
`initialize`. Nothing here knows the wire; `stdio` reads and writes it.

The official SDK is what we test against, not what we run: importing it takes most of a second,
and an agent waits for its servers at every start (adr/0004).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from punchlist import __version__
from punchlist.errors import PunchlistError
from punchlist.kernel.text import excerpt, json_type, visible_block
from punchlist.kernel.tooling import Tool
from punchlist.surfaces.mcp.announcing import Announcer
from punchlist.surfaces.mcp.offer import Offer

logger = logging.getLogger(__name__)

HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS_VERSIONS: Final = ("2026-07-28",)

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
UNSUPPORTED_VERSION: Final = -32022

_META: Final = "io.modelcontextprotocol/"
_VERSION_KEY: Final = f"{_META}protocolVersion"
_CAPABILITIES_KEY: Final = f"{_META}clientCapabilities"
_SERVER_KEY: Final = f"{_META}serverInfo"
_SUBSCRIPTION_KEY: Final = f"{_META}subscriptionId"

_SERVER_INFO: Final = {"name": "punchlist", "title": "Punchlist", "version": __version__}
_CAPABILITIES: Final = {"tools": {}, "resources": {"subscribe": True}}
_CACHEABLE: Final = frozenset(
    {"server/discover", "tools/list", "resources/list", "resources/templates/list", "resources/read"}
)
_MOST_IN_BATCH: Final = 100

Json = dict[str, Any]
Send = Callable[[Json], None]


class ProtocolError(Exception):
    """Becomes a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class Connection:
    """One client. `send` carries notifications, which may come at any time and from another thread."""

    def __init__(self, offer: Offer, send: Send) -> None:
        self._offer = offer
        self._send = send
        self._announcer = Announcer(offer, self._announce)
        self._subscribed: set[str] = set()
        self._streams: dict[str | int, frozenset[str]] = {}
        self._methods: dict[str, Callable[[Json], Json]] = {
            "initialize": self._initialize,
            "ping": lambda _: {},
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "resources/list": self._list_resources,
            "resources/templates/list": lambda _: {"resourceTemplates": []},
            "resources/read": self._read_resource,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
        }

    def answer(self, message: Any) -> Json | list[Json] | None:
        """The response to a message; None where none is due."""
        if isinstance(message, list):
            return self._answer_batch(message)
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return _error(None, INVALID_REQUEST, 'A message must be an object with "jsonrpc": "2.0".')
        if "method" not in message and ("result" in message or "error" in message):
            return None
        request_id = message.get("id")
        method, params = message.get("method"), message.get("params", {})
        if "id" not in message:
            self._notice(method, params)
            return None
        if isinstance(request_id, bool) or not isinstance(request_id, (str, int)):
            return _error(None, INVALID_REQUEST, f"id: must be text or a whole number, got {json_type(request_id)}")
        try:
            if not isinstance(method, str):
                raise ProtocolError(INVALID_REQUEST, f"method: must be text, got {json_type(method)}")
            if not isinstance(params, dict):
                raise ProtocolError(INVALID_PARAMS, f"params: must be an object, got {json_type(params)}")
            result = self._respond(request_id, method, params)
        except ProtocolError as error:
            return _error(request_id, error.code, str(error), error.data)
        except Exception:
            logger.exception("request failed")
            return _error(request_id, INTERNAL_ERROR, "Punchlist failed at this request; its log has the details.")
        return None if result is None else {"jsonrpc": "2.0", "id": request_id, "result": result}

    def _answer_batch(self, messages: list[Any]) -> Json | list[Json] | None:
        if not 0 < len(messages) <= _MOST_IN_BATCH:
            return _error(None, INVALID_REQUEST, f"A batch has 1 to {_MOST_IN_BATCH} messages, got {len(messages)}.")
        answers = [answer for answer in map(self.answer, messages) if isinstance(answer, dict)]
        return answers or None

    def _respond(self, request_id: str | int, method: str, params: Json) -> Json | None:
        if method == "initialize" or not _has_envelope(params):
            return self._method(method)(params)
        _check_envelope(params["_meta"])
        if method == "subscriptions/listen":
            self._listen(request_id, params)
            return None
        handler = self._discover if method == "server/discover" else self._method(method)
        result = {**handler(params), "resultType": "complete", "_meta": {_SERVER_KEY: _SERVER_INFO}}
        if method in _CACHEABLE:
            result |= {"ttlMs": 0, "cacheScope": "private"}
        return result

    def _method(self, method: str) -> Callable[[Json], Json]:
        try:
            return self._methods[method]
        except KeyError:
            raise ProtocolError(METHOD_NOT_FOUND, "Method not found", excerpt(method)) from None

    def _notice(self, method: Any, params: Any) -> None:
        if method == "notifications/cancelled" and isinstance(params, dict):
            cancelled = params.get("requestId")
            if isinstance(cancelled, (str, int)):
                self._streams.pop(cancelled, None)

    # --- the methods ---------------------------------------------------------------------------

    def _initialize(self, params: Json) -> Json:
        wanted = params.get("protocolVersion")
        if not isinstance(wanted, str):
            raise ProtocolError(INVALID_PARAMS, f"protocolVersion: must be text, got {json_type(wanted)}")
        return {
            "protocolVersion": wanted if wanted in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1],
            "capabilities": _CAPABILITIES,
            "serverInfo": _SERVER_INFO,
            "instructions": self._offer.instructions(),
        }

    def _discover(self, _params: Json) -> Json:
        return {
            "supportedVersions": list(STATELESS_VERSIONS),
            "capabilities": _CAPABILITIES,
            "instructions": self._offer.instructions(),
        }

    def _list_tools(self, params: Json) -> Json:
        _no_cursor(params)
        return {"tools": [_described(tool) for tool in self._offer.tools()]}

    def _call_tool(self, params: Json) -> Json:
        """What a model can put right is a result marked as an error, in the service's own words."""
        name = _text(params, "name")
        try:
            result = self._offer.call(name, params.get("arguments"))
        except PunchlistError as error:
            return {"content": [_text_block(visible_block(str(error)))], "isError": True}
        return {"content": [_text_block(result.text)], "structuredContent": result.data, "isError": False}

    def _list_resources(self, params: Json) -> Json:
        _no_cursor(params)
        return {
            "resources": [
                {"uri": r.uri, "name": r.name, "description": r.description, "mimeType": "application/json"}
                for r in self._offer.resources()
            ]
        }

    def _read_resource(self, params: Json) -> Json:
        uri = _text(params, "uri")
        try:
            text = self._offer.read(uri)
        except PunchlistError as error:
            raise ProtocolError(INVALID_PARAMS, visible_block(str(error))) from error
        return {"contents": [{"uri": uri, "mimeType": "application/json", "text": text}]}

    def _subscribe(self, params: Json) -> Json:
        self._subscribed.add(self._known_uri(_text(params, "uri")))
        self._announcer.start()
        return {}

    def _unsubscribe(self, params: Json) -> Json:
        self._subscribed.discard(_text(params, "uri"))
        return {}

    def _listen(self, request_id: str | int, params: Json) -> None:
        """A stream that stays open: acknowledged now, fed by `_announce`, ended when it is cancelled."""
        wanted = params.get("notifications")
        uris = wanted.get("resourceSubscriptions") if isinstance(wanted, dict) else None
        honoured = [uri for uri in uris or [] if isinstance(uri, str)] if isinstance(uris, list) else []
        self._streams[request_id] = frozenset(honoured)
        self._announcer.start()
        self._send(
            _notification(
                "notifications/subscriptions/acknowledged",
                notifications={"resourceSubscriptions": honoured} if honoured else {},
                _meta={_SUBSCRIPTION_KEY: request_id},
            )
        )

    def _announce(self, uri: str) -> None:
        """Tell whoever asked that a list has changed."""
        method = "notifications/resources/updated"
        if uri in self._subscribed:
            self._send(_notification(method, uri=uri))
        for request_id, uris in list(self._streams.items()):
            if uri in uris:
                self._send(_notification(method, uri=uri, _meta={_SUBSCRIPTION_KEY: request_id}))

    def _known_uri(self, uri: str) -> str:
        if all(resource.uri != uri for resource in self._offer.resources()):
            raise ProtocolError(INVALID_PARAMS, f"There is no resource {excerpt(uri)!r}.")
        return uri


def unreadable(reason: str) -> Json:
    """The answer to a line that is not JSON."""
    return _error(None, PARSE_ERROR, reason)


def _has_envelope(params: Json) -> bool:
    meta = params.get("_meta")
    return isinstance(meta, dict) and _VERSION_KEY in meta


def _check_envelope(meta: Mapping[str, Any]) -> None:
    version = meta[_VERSION_KEY]
    if not isinstance(version, str):
        raise ProtocolError(INVALID_PARAMS, f"_meta.{_VERSION_KEY}: must be text, got {json_type(version)}")
    if not isinstance(meta.get(_CAPABILITIES_KEY), dict):
        raise ProtocolError(INVALID_PARAMS, f"_meta.{_CAPABILITIES_KEY}: must be an object")
    if version not in STATELESS_VERSIONS:
        raise ProtocolError(
            UNSUPPORTED_VERSION,
            f"Protocol version {excerpt(version)!r} is not supported.",
            {"supported": list(STATELESS_VERSIONS), "requested": excerpt(version)},
        )


def _text(params: Json, key: str) -> str:
    value = params.get(key)
    if not isinstance(value, str):
        raise ProtocolError(INVALID_PARAMS, f"{key}: must be text, got {json_type(value)}")
    return value


def _no_cursor(params: Json) -> None:
    if params.get("cursor") is not None:
        raise ProtocolError(INVALID_PARAMS, "cursor: there are no further pages")


def _described(tool: Tool[Any]) -> Json:
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema,
        "annotations": {"readOnlyHint": tool.read_only, "destructiveHint": False, "openWorldHint": False},
    }


def _text_block(text: str) -> Json:
    return {"type": "text", "text": text}


def _notification(method: str, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def _error(request_id: str | int | None, code: int, message: str, data: Any = None) -> Json:
    error: Json = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return {"jsonrpc": "2.0", "id": request_id, "error": error}
