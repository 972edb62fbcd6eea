"""The MCP protocol without a transport: takes a decoded JSON-RPC message, returns the response.

Both generations are served: a request with the 2026-07-28 envelope in `_meta` statelessly, any other as in the
versions that begin with `initialize`. `stdio` and `http` are the transports.

The official SDK is a test dependency only: importing it takes most of a second, and an agent waits for its servers at
every start (adr/0004).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeVar

from punchlist import __version__
from punchlist.errors import PunchlistError
from punchlist.kernel.text import excerpt, json_type, visible_block
from punchlist.kernel.tool import ListToolSpec
from punchlist.surfaces.mcp import jsonrpc
from punchlist.surfaces.mcp.capabilities import Capabilities
from punchlist.surfaces.mcp.jsonrpc import (
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

if TYPE_CHECKING:
    from punchlist.surfaces.mcp.elicitation import Elicitation
    from punchlist.surfaces.mcp.subscriptions import ChangeNotifier, Subscriptions

logger = logging.getLogger(__name__)

T = TypeVar("T")

ANSWER_TIMEOUT: Final = 300.0
"""Seconds that a person has to answer a question before the call returns."""
_SERVER_KEY: Final = f"{META}serverInfo"
_SERVER_INFO: Final = {"name": "punchlist", "title": "Punchlist", "version": __version__}
_SERVER_CAPABILITIES: Final = {"tools": {}, "resources": {"subscribe": True}, "prompts": {}, "completions": {}}
_CACHEABLE: Final = frozenset(
    {
        "server/discover", "tools/list", "resources/list", "resources/templates/list", "resources/read", "prompts/list",
    }
)  # fmt: skip
_HANDSHAKE_ONLY: Final = frozenset({"initialize", "ping", "resources/subscribe", "resources/unsubscribe"})
_STATELESS_ONLY: Final = frozenset({"server/discover", "subscriptions/listen"})
_MAX_BATCH: Final = 100
_MAX_COMPLETIONS: Final = 100


class ClientConnection:
    """One client. `send` carries notifications, at any time and from any thread."""

    def __init__(
        self,
        capabilities: Capabilities,
        send: Send,
        notifier: ChangeNotifier | None = None,
        *,
        answer_timeout: float = ANSWER_TIMEOUT,
    ) -> None:
        self._capabilities = capabilities
        self._send = send
        self._notifier = notifier
        self._answer_timeout = answer_timeout
        self._version = HANDSHAKE_VERSIONS[0]
        self._client_capabilities: Mapping[str, Any] = {}
        self._listed: list[str] | None = None
        """The tools that the client has listed, if they can change."""
        self._lock = Lock()
        # Built on first use: most clients need neither.
        self._elicitation: Elicitation | None = None
        self._subscriptions: Subscriptions | None = None
        self._methods: dict[str, Callable[[RpcRequest], Json | None]] = {
            "initialize": self._initialize,
            "server/discover": self._discover,
            "ping": lambda _: {},
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": self._read_resource,
            "resources/subscribe": lambda request: self._open_subscriptions().subscribe(request),
            "resources/unsubscribe": lambda request: self._open_subscriptions().unsubscribe(request),
            "subscriptions/listen": lambda request: self._open_subscriptions().listen(request),
            "prompts/list": self._list_prompts,
            "prompts/get": self._get_prompt,
            "completion/complete": self._complete,
        }

    def answer(self, message: Any, send: Send | None = None, *, in_batch: bool = False) -> Json | list[Json] | None:
        """The response to a message; None if there is none, or if it follows through `send`."""
        if isinstance(message, list):
            return self._answer_batch(message)
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return _error(None, INVALID_REQUEST, 'A message must be an object with "jsonrpc": "2.0".')
        if "method" not in message and ("result" in message or "error" in message):
            self._receive_response(message)
            return None
        request_id = message.get("id")
        method, params = message.get("method"), message.get("params", {})
        if "id" not in message:
            self._handle_notification(method, params)
            return None
        if isinstance(request_id, bool) or not isinstance(request_id, (str, int)):
            return _error(None, INVALID_REQUEST, f"id: must be text or a whole number, got {json_type(request_id)}")
        try:
            if not isinstance(method, str):
                raise ProtocolError(INVALID_REQUEST, f"method: must be text, got {json_type(method)}")
            if not isinstance(params, dict):
                raise ProtocolError(INVALID_PARAMS, f"params: must be an object, got {json_type(params)}")
            result = self._respond(self._request(request_id, method, params, send or self._send, in_batch))
        except ProtocolError as error:
            return jsonrpc.error_response(request_id, error)
        except Exception:
            logger.exception("request failed")
            return _error(request_id, INTERNAL_ERROR, "Internal error in Punchlist; see the server's log for details.")
        return None if result is None else jsonrpc.response(request_id, result)

    def close(self) -> None:
        """The client is gone."""
        if self._elicitation:
            self._elicitation.close()
        if self._subscriptions:
            self._subscriptions.close()

    def _answer_batch(self, batch: list[Any]) -> Json | list[Json] | None:
        if not 0 < len(batch) <= _MAX_BATCH:
            return _error(None, INVALID_REQUEST, f"A batch has 1 to {_MAX_BATCH} messages, got {len(batch)}.")
        answers = [self.answer(message, in_batch=True) for message in batch if not isinstance(message, list)]
        return [answer for answer in answers if isinstance(answer, dict)] or None

    def _request(self, request_id: RequestId, method: str, params: Json, send: Send, in_batch: bool) -> RpcRequest:
        meta = jsonrpc.envelope(params)
        if meta is None:
            capabilities, version = self._client_capabilities, self._version
            return RpcRequest(request_id, method, params, send, capabilities, version, in_batch=in_batch)
        jsonrpc.check_envelope(meta, params)
        return RpcRequest(request_id, method, params, send, meta[CAPABILITIES_KEY], meta[VERSION_KEY], True, in_batch)

    def _respond(self, request: RpcRequest) -> Json | None:
        method = request.method
        if method not in self._methods or method in (_HANDSHAKE_ONLY if request.stateless else _STATELESS_ONLY):
            raise ProtocolError(METHOD_NOT_FOUND, "Method not found", excerpt(method))
        result = self._methods[method](request)
        if result is None or not request.stateless:
            return result
        hints = {"ttlMs": 0, "cacheScope": "private"} if method in _CACHEABLE else {}
        return {"resultType": "complete", **result, "_meta": {_SERVER_KEY: _SERVER_INFO}, **hints}

    def _receive_response(self, message: Json) -> None:
        if self._elicitation:
            self._elicitation.receive_answer(message)

    def _handle_notification(self, method: Any, params: Any) -> None:
        if method == "notifications/cancelled" and isinstance(params, dict):
            key = jsonrpc.request_key(params.get("requestId"))
            if self._subscriptions:
                self._subscriptions.end_stream(key)
            if self._elicitation:
                self._elicitation.cancel(key)

    def _open_subscriptions(self) -> Subscriptions:
        from punchlist.surfaces.mcp.subscriptions import ChangeNotifier, Subscriptions

        with self._lock:
            if self._subscriptions is None:
                notifier = self._notifier or ChangeNotifier(self._capabilities)
                self._subscriptions = Subscriptions(self._capabilities, notifier, self._send)
            return self._subscriptions

    def _open_elicitation(self) -> Elicitation:
        from punchlist.surfaces.mcp.elicitation import Elicitation

        with self._lock:
            if self._elicitation is None:
                self._elicitation = Elicitation(self._capabilities, self._answer_timeout)
            return self._elicitation

    # --- methods -------------------------------------------------------------------------------

    def _initialize(self, request: RpcRequest) -> Json:
        version = jsonrpc.text_param(request.params, "protocolVersion")
        capabilities = request.params.get("capabilities")
        self._client_capabilities = capabilities if isinstance(capabilities, dict) else {}
        self._version = version if version in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
        return {
            "protocolVersion": self._version,
            "capabilities": {
                **_SERVER_CAPABILITIES,
                "tools": {"listChanged": True} if self._capabilities.tools_can_change else {},
            },
            "serverInfo": _SERVER_INFO,
            "instructions": self._capabilities.instructions(),
        }

    def _discover(self, _: RpcRequest) -> Json:
        return {
            "supportedVersions": list(STATELESS_VERSIONS),
            "capabilities": _SERVER_CAPABILITIES,
            "instructions": self._capabilities.instructions(),
        }

    def _list_tools(self, request: RpcRequest) -> Json:
        jsonrpc.reject_cursor(request.params)
        announced = self._capabilities.announces_results
        if self._capabilities.tools_can_change and not request.stateless:
            self._listed = self._tool_names()
        return {"tools": [_tool_json(tool, announced) for tool in self._capabilities.tools()]}

    def _announce_tools(self) -> None:
        """Tell the client that other tools are offered than it has listed."""
        if self._listed is not None and self._listed != (names := self._tool_names()):
            self._listed = names
            self._send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})

    def _tool_names(self) -> list[str]:
        return [tool.name for tool in self._capabilities.tools()]

    def _call_tool(self, request: RpcRequest) -> Json | None:
        try:
            return self._run_tool(request)
        finally:
            self._announce_tools()

    def _run_tool(self, request: RpcRequest) -> Json | None:
        """An error that the model can correct is a result with `isError`."""
        name, arguments = jsonrpc.text_param(request.params, "name"), request.params.get("arguments")
        try:
            if request.can_elicit and self._capabilities.has_plan:
                return self._open_elicitation().call(request, name, arguments)
            return jsonrpc.tool_result(self._capabilities.call(name, arguments))
        except PunchlistError as error:
            return {"content": [jsonrpc.text_block(visible_block(str(error)))], "isError": True}

    def _list_resources(self, request: RpcRequest) -> Json:
        jsonrpc.reject_cursor(request.params)
        resources = _or_invalid_params(self._capabilities.resources)
        return {"resources": [{**resource.as_json(), "mimeType": "application/json"} for resource in resources]}

    def _list_templates(self, request: RpcRequest) -> Json:
        jsonrpc.reject_cursor(request.params)
        templates = self._capabilities.resource_templates()
        return {"resourceTemplates": [{**template, "mimeType": "application/json"} for template in templates]}

    def _read_resource(self, request: RpcRequest) -> Json:
        uri = jsonrpc.text_param(request.params, "uri")
        content = _or_invalid_params(lambda: self._capabilities.read_resource(uri), {"uri": excerpt(uri)})
        return {"contents": [{"uri": uri, "mimeType": "application/json", "text": content}]}

    def _list_prompts(self, request: RpcRequest) -> Json:
        jsonrpc.reject_cursor(request.params)
        return {"prompts": [prompt.as_json() for prompt in self._capabilities.prompts.all()]}

    def _get_prompt(self, request: RpcRequest) -> Json:
        name = jsonrpc.text_param(request.params, "name")
        arguments = jsonrpc.object_param(request.params, "arguments")
        prompt, text = _or_invalid_params(lambda: self._capabilities.prompts.get(name, arguments))
        return {"description": prompt.description, "messages": [{"role": "user", "content": jsonrpc.text_block(text)}]}

    def _complete(self, request: RpcRequest) -> Json:
        ref, argument = jsonrpc.object_param(request.params, "ref"), jsonrpc.object_param(request.params, "argument")
        name, prefix = jsonrpc.text_param(argument, "name"), jsonrpc.text_param(argument, "value")
        context = jsonrpc.object_param(jsonrpc.object_param(request.params, "context"), "arguments")
        values = _or_invalid_params(lambda: self._capabilities.prompts.complete(ref, name, prefix, context))
        shown = values[:_MAX_COMPLETIONS]
        return {"completion": {"values": shown, "total": len(values), "hasMore": len(values) > len(shown)}}


def _or_invalid_params(call: Callable[[], T], data: Json | None = None) -> T:
    """Turn an error of a service into a protocol error."""
    try:
        return call()
    except PunchlistError as error:
        raise ProtocolError(INVALID_PARAMS, visible_block(str(error)), data) from error


def _error(request_id: RequestId | None, code: int, message: str) -> Json:
    return jsonrpc.error_response(request_id, ProtocolError(code, message))


def _tool_json(tool: ListToolSpec[Any], announces_result: bool) -> Json:
    """`announces_result`: with the schema of the result, which takes as many tokens as all the rest."""
    hints = {"readOnlyHint": True} if tool.read_only else {"destructiveHint": False}
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        **({"outputSchema": tool.output_schema} if announces_result else {}),
        "annotations": {**hints, "openWorldHint": False},
    }
