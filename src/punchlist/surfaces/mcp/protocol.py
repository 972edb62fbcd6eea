"""The protocol without a wire: one decoded JSON-RPC message in, what to send back out.

Both generations of MCP are answered, each request by its own lights: one that carries the
2026-07-28 envelope in `_meta` is served statelessly, any other as in the versions that begin with
`initialize`. Nothing here knows the wire; `stdio` and `http` read and write it.

The official SDK is what we test against, not what we run: importing it takes most of a second,
and an agent waits for its servers at every start (adr/0004).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from punchlist import __version__
from punchlist.errors import PunchlistError
from punchlist.kernel.text import excerpt, json_type, visible_block
from punchlist.kernel.tool import ListToolSpec
from punchlist.surfaces.mcp import elicitation, messages
from punchlist.surfaces.mcp.capabilities import Capabilities
from punchlist.surfaces.mcp.elicitation import Elicitation
from punchlist.surfaces.mcp.messages import (
    CAPABILITIES_KEY,
    HANDSHAKE_VERSIONS,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    META,
    METHOD_NOT_FOUND,
    STATELESS_VERSIONS,
    VERSION_KEY,
    Json,
    ProtocolError,
    RequestId,
    RpcRequest,
    Send,
)
from punchlist.surfaces.mcp.notifications import ChangeNotifier
from punchlist.surfaces.mcp.subscriptions import Subscriptions

logger = logging.getLogger(__name__)

T = TypeVar("T")

_SERVER_KEY: Final = f"{META}serverInfo"
_SERVER_INFO: Final = {"name": "punchlist", "title": "Punchlist", "version": __version__}
_CAPABILITIES: Final = {"tools": {}, "resources": {"subscribe": True}, "prompts": {}, "completions": {}}
_CACHEABLE: Final = frozenset(
    {
        "server/discover", "tools/list", "resources/list", "resources/templates/list", "resources/read", "prompts/list",
    }
)  # fmt: skip
_HANDSHAKE_ONLY: Final = frozenset({"initialize", "ping", "resources/subscribe", "resources/unsubscribe"})
_STATELESS_ONLY: Final = frozenset({"server/discover", "subscriptions/listen"})
_MOST_IN_BATCH: Final = 100
_MOST_COMPLETIONS: Final = 100


class ClientConnection:
    """One client. `send` carries notifications, which may come at any time and from another thread."""

    def __init__(
        self,
        offer: Capabilities,
        send: Send,
        announcer: ChangeNotifier | None = None,
        *,
        patience: float = elicitation.PATIENCE,
    ) -> None:
        self._offer = offer
        self._send = send
        self._version = HANDSHAKE_VERSIONS[0]
        self._capabilities: Mapping[str, Any] = {}
        self._asking = Elicitation(offer, patience)
        self._following = Subscriptions(offer, announcer or ChangeNotifier(offer), send)
        self._methods: dict[str, Callable[[RpcRequest], Json | None]] = {
            "initialize": self._initialize,
            "server/discover": self._discover,
            "ping": lambda _: {},
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": self._read_resource,
            "resources/subscribe": self._following.subscribe,
            "resources/unsubscribe": self._following.unsubscribe,
            "subscriptions/listen": self._following.listen,
            "prompts/list": self._list_prompts,
            "prompts/get": self._get_prompt,
            "completion/complete": self._complete,
        }

    def answer(self, message: Any, send: Send | None = None, *, alone: bool = True) -> Json | list[Json] | None:
        """The response to a message; None where none is due, or where it comes later, through `send`."""
        if isinstance(message, list):
            return self._answer_batch(message)
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return _refused(None, INVALID_REQUEST, 'A message must be an object with "jsonrpc": "2.0".')
        if "method" not in message and ("result" in message or "error" in message):
            self._asking.hear(message)
            return None
        request_id = message.get("id")
        method, params = message.get("method"), message.get("params", {})
        if "id" not in message:
            self._notice(method, params)
            return None
        if isinstance(request_id, bool) or not isinstance(request_id, (str, int)):
            return _refused(None, INVALID_REQUEST, f"id: must be text or a whole number, got {json_type(request_id)}")
        try:
            if not isinstance(method, str):
                raise ProtocolError(INVALID_REQUEST, f"method: must be text, got {json_type(method)}")
            if not isinstance(params, dict):
                raise ProtocolError(INVALID_PARAMS, f"params: must be an object, got {json_type(params)}")
            result = self._respond(self._request(request_id, method, params, send or self._send, alone))
        except ProtocolError as error:
            return messages.failure(request_id, error)
        except Exception:
            logger.exception("request failed")
            return _refused(request_id, INTERNAL_ERROR, "Punchlist failed at this request; its log has the details.")
        return None if result is None else messages.response(request_id, result)

    def close(self) -> None:
        """The client is gone: nothing is followed for it any more, nobody asked."""
        self._asking.close()
        self._following.close()

    def _answer_batch(self, batch: list[Any]) -> Json | list[Json] | None:
        if not 0 < len(batch) <= _MOST_IN_BATCH:
            return _refused(None, INVALID_REQUEST, f"A batch has 1 to {_MOST_IN_BATCH} messages, got {len(batch)}.")
        answers = [self.answer(message, alone=False) for message in batch if not isinstance(message, list)]
        return [answer for answer in answers if isinstance(answer, dict)] or None

    def _request(self, request_id: RequestId, method: str, params: Json, send: Send, alone: bool) -> RpcRequest:
        meta = messages.envelope(params)
        if meta is None:
            return RpcRequest(request_id, method, params, send, self._capabilities, self._version, alone=alone)
        messages.check_envelope(meta)
        messages.check_responses(params)
        return RpcRequest(request_id, method, params, send, meta[CAPABILITIES_KEY], meta[VERSION_KEY], True, alone)

    def _respond(self, request: RpcRequest) -> Json | None:
        method = request.method
        if method not in self._methods or method in (_HANDSHAKE_ONLY if request.stateless else _STATELESS_ONLY):
            raise ProtocolError(METHOD_NOT_FOUND, "Method not found", excerpt(method))
        result = self._methods[method](request)
        if result is None or not request.stateless:
            return result
        hints = {"ttlMs": 0, "cacheScope": "private"} if method in _CACHEABLE else {}
        return {"resultType": "complete", **result, "_meta": {_SERVER_KEY: _SERVER_INFO}, **hints}

    def _notice(self, method: Any, params: Any) -> None:
        if method == "notifications/cancelled" and isinstance(params, dict):
            key = messages.key(params.get("requestId"))
            self._following.end(key)
            self._asking.cancel(key)

    # --- the methods ---------------------------------------------------------------------------

    def _initialize(self, request: RpcRequest) -> Json:
        wanted = messages.text(request.params, "protocolVersion")
        capabilities = request.params.get("capabilities")
        self._capabilities = capabilities if isinstance(capabilities, dict) else {}
        self._version = wanted if wanted in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
        return {
            "protocolVersion": self._version,
            "capabilities": _CAPABILITIES,
            "serverInfo": _SERVER_INFO,
            "instructions": self._offer.instructions(),
        }

    def _discover(self, _: RpcRequest) -> Json:
        return {
            "supportedVersions": list(STATELESS_VERSIONS),
            "capabilities": _CAPABILITIES,
            "instructions": self._offer.instructions(),
        }

    def _list_tools(self, request: RpcRequest) -> Json:
        messages.no_cursor(request.params)
        return {"tools": [_described(tool) for tool in self._offer.tools()]}

    def _call_tool(self, request: RpcRequest) -> Json | None:
        """What a model can put right is a result marked as an error, in the service's own words."""
        name = messages.text(request.params, "name")
        try:
            return self._asking.called(request, name, request.params.get("arguments"))
        except PunchlistError as error:
            return {"content": [messages.text_block(visible_block(str(error)))], "isError": True}

    def _list_resources(self, request: RpcRequest) -> Json:
        messages.no_cursor(request.params)
        resources = _or_refused(self._offer.listed)
        return {
            "resources": [
                {"uri": r.uri, "name": r.name, "description": r.description, "mimeType": "application/json"}
                for r in resources
            ]
        }

    def _list_templates(self, request: RpcRequest) -> Json:
        messages.no_cursor(request.params)
        return {"resourceTemplates": [{**one, "mimeType": "application/json"} for one in self._offer.templates()]}

    def _read_resource(self, request: RpcRequest) -> Json:
        uri = messages.text(request.params, "uri")
        content = _or_refused(lambda: self._offer.read(uri), {"uri": excerpt(uri)})
        return {"contents": [{"uri": uri, "mimeType": "application/json", "text": content}]}

    def _list_prompts(self, request: RpcRequest) -> Json:
        messages.no_cursor(request.params)
        return {
            "prompts": [
                {
                    "name": prompt.name,
                    "title": prompt.title,
                    "description": prompt.description,
                    "arguments": [
                        {"name": one.name, "description": one.description, "required": one.required}
                        for one in prompt.arguments
                    ],
                }
                for prompt in self._offer.prompts.all()
            ]
        }

    def _get_prompt(self, request: RpcRequest) -> Json:
        name, arguments = messages.text(request.params, "name"), messages.mapping(request.params, "arguments")
        prompt, said = _or_refused(lambda: self._offer.prompts.get(name, arguments))
        return {"description": prompt.description, "messages": [{"role": "user", "content": messages.text_block(said)}]}

    def _complete(self, request: RpcRequest) -> Json:
        ref, argument = messages.mapping(request.params, "ref"), messages.mapping(request.params, "argument")
        name, begun = messages.text(argument, "name"), messages.text(argument, "value")
        given = messages.mapping(messages.mapping(request.params, "context"), "arguments")
        values = _or_refused(lambda: self._offer.prompts.complete(ref, name, begun, given))
        shown = values[:_MOST_COMPLETIONS]
        return {"completion": {"values": shown, "total": len(values), "hasMore": len(values) > len(shown)}}


def _or_refused(do: Callable[[], T], data: Json | None = None) -> T:
    """What is refused is an error of the protocol, in the service's own words."""
    try:
        return do()
    except PunchlistError as error:
        raise ProtocolError(INVALID_PARAMS, visible_block(str(error)), data) from error


def _refused(request_id: RequestId | None, code: int, message: str) -> Json:
    return messages.failure(request_id, ProtocolError(code, message))


def _described(tool: ListToolSpec[Any]) -> Json:
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema,
        "annotations": {"readOnlyHint": tool.read_only, "destructiveHint": False, "openWorldHint": False},
    }
