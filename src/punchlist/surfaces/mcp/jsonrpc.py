"""JSON-RPC messages as MCP uses them, and the envelope of stateless requests (2026-07-28)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from punchlist.kernel.text import excerpt, json_type
from punchlist.kernel.tool import ToolResult

HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS_VERSIONS: Final = ("2026-07-28",)
_FIRST_ELICITATION_VERSION: Final = "2025-06-18"

MAX_MESSAGE_SIZE: Final = 16 * 1024 * 1024

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
HEADER_MISMATCH: Final = -32020
UNSUPPORTED_VERSION: Final = -32022

META: Final = "io.modelcontextprotocol/"
VERSION_KEY: Final = f"{META}protocolVersion"
CAPABILITIES_KEY: Final = f"{META}clientCapabilities"

Json = dict[str, Any]
RequestId = str | int
Send = Callable[[Json | None], None]
"""Sends a message to the client; None closes the request's stream."""


class ProtocolError(Exception):
    """Becomes a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


@dataclass(frozen=True, slots=True)
class RpcRequest:
    id: RequestId
    method: str
    params: Json
    send: Send
    """Carries everything that belongs to this request, also after the call has returned."""
    client_capabilities: Mapping[str, Any]
    version: str
    stateless: bool = False
    in_batch: bool = False
    """The responses of a batch are sent together."""

    @property
    def key(self) -> str:
        return request_key(self.id)

    @property
    def can_elicit(self) -> bool:
        """Whether the client can show a form to the person. An empty capability once meant forms."""
        elicitation: Any = self.client_capabilities.get("elicitation")
        if not isinstance(elicitation, dict) or self.version < _FIRST_ELICITATION_VERSION or self.in_batch:
            return False
        return "form" in elicitation or not elicitation


def request_key(request_id: object) -> str:
    """A dictionary key for a request id that distinguishes 1, "1" and true."""
    return f"{type(request_id).__name__}:{request_id}"


def decode(data: bytes | str) -> Any:
    try:
        return json.loads(data, parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        raise ProtocolError(PARSE_ERROR, "The message is not valid JSON.") from None


def encode(message: Any) -> bytes:
    """ASCII only: text in a list cannot break a line."""
    return json.dumps(message).encode()


def response(request_id: RequestId, result: Json) -> Json:
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def notification(method: str, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def error_response(request_id: RequestId | None, error: ProtocolError) -> Json:
    content: Json = {"code": error.code, "message": str(error)}
    if error.data is not None:
        content["data"] = error.data
    return {"jsonrpc": "2.0", "id": request_id, "error": content}


def tool_result(result: ToolResult) -> Json:
    return {"content": [text_block(result.text)], "structuredContent": result.data, "isError": False}


def text_block(text: str) -> Json:
    return {"type": "text", "text": text}


def envelope(params: Any) -> Json | None:
    """The `_meta` of a stateless request; None for other requests."""
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta if isinstance(meta, dict) and VERSION_KEY in meta else None


def check_envelope(meta: Json, params: Json) -> None:
    version = meta[VERSION_KEY]
    if not isinstance(version, str):
        raise ProtocolError(INVALID_PARAMS, f"_meta.{VERSION_KEY}: must be text, got {json_type(version)}")
    if not isinstance(meta.get(CAPABILITIES_KEY), dict):
        raise ProtocolError(INVALID_PARAMS, f"_meta.{CAPABILITIES_KEY}: must be an object")
    if version not in STATELESS_VERSIONS:
        raise unsupported_version(version)
    responses = params.get("inputResponses", {})
    if not isinstance(responses, dict) or any(not isinstance(answer, dict) for answer in responses.values()):
        raise ProtocolError(INVALID_PARAMS, "inputResponses: must be an object of objects")


def unsupported_version(version: str) -> ProtocolError:
    return ProtocolError(
        UNSUPPORTED_VERSION,
        f"Protocol version {excerpt(version)!r} is not supported.",
        {"supported": list(STATELESS_VERSIONS), "requested": excerpt(version)},
    )


def text_param(params: Mapping[str, Any], key: str) -> str:
    value = params.get(key)
    if not isinstance(value, str):
        raise ProtocolError(INVALID_PARAMS, f"{key}: must be text, got {json_type(value)}")
    return value


def object_param(params: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """An optional object."""
    value = params.get(key)
    if value is not None and not isinstance(value, dict):
        raise ProtocolError(INVALID_PARAMS, f"{key}: must be an object, got {json_type(value)}")
    return value or {}


def reject_cursor(params: Json) -> None:
    """Lists are sent as one page."""
    if params.get("cursor") is not None:
        raise ProtocolError(INVALID_PARAMS, "cursor: there are no further pages")


def _reject_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
