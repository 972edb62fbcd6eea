"""JSON-RPC as MCP uses it: what a message is made of, and the envelope that tells the generations apart."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from punchlist.kernel.text import excerpt, json_type

HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS_VERSIONS: Final = ("2026-07-28",)

LONGEST_MESSAGE: Final = 16 * 1024 * 1024

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
"""Where a message goes. None says that nothing more will come of the request."""


class ProtocolError(Exception):
    """Becomes a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


@dataclass(frozen=True, slots=True)
class RpcRequest:
    """One request, and who sent it."""

    id: RequestId
    method: str
    params: Json
    send: Send
    """Where all goes that belongs to it, also later."""
    capabilities: Mapping[str, Any]
    """What the client has said that it can do."""
    version: str
    stateless: bool = False
    alone: bool = True
    """Not one of a batch, whose answers are sent together."""

    @property
    def key(self) -> str:
        return key(self.id)


def key(request_id: object) -> str:
    """A request's id to look it up by: 1 and "1" are two, 1 and true too."""
    return f"{type(request_id).__name__}:{request_id}"


def decode(data: bytes | str) -> Any:
    """The message, or a ProtocolError that can be sent back."""
    try:
        return json.loads(data, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise ProtocolError(PARSE_ERROR, "This is not a JSON message.") from None


def encode(message: Any) -> bytes:
    """ASCII only, so that no text in a list can upset a line."""
    return json.dumps(message).encode()


def response(request_id: RequestId, result: Json) -> Json:
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def notification(method: str, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def failure(request_id: RequestId | None, error: ProtocolError) -> Json:
    told: Json = {"code": error.code, "message": str(error)}
    if error.data is not None:
        told["data"] = error.data
    return {"jsonrpc": "2.0", "id": request_id, "error": told}


def envelope(params: Any) -> Json | None:
    """What a request of the stateless generation carries; None where it carries none."""
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta if isinstance(meta, dict) and VERSION_KEY in meta else None


def check_envelope(meta: Json) -> None:
    version = meta[VERSION_KEY]
    if not isinstance(version, str):
        raise ProtocolError(INVALID_PARAMS, f"_meta.{VERSION_KEY}: must be text, got {json_type(version)}")
    if not isinstance(meta.get(CAPABILITIES_KEY), dict):
        raise ProtocolError(INVALID_PARAMS, f"_meta.{CAPABILITIES_KEY}: must be an object")
    if version not in STATELESS_VERSIONS:
        raise unsupported(version)


def check_responses(params: Json) -> None:
    """What a client sends when it makes a request again, with what was asked of it."""
    responses = params.get("inputResponses", {})
    if not isinstance(responses, dict) or any(not isinstance(one, dict) for one in responses.values()):
        raise ProtocolError(INVALID_PARAMS, "inputResponses: must be an object, with an object for each request")


def unsupported(version: str) -> ProtocolError:
    return ProtocolError(
        UNSUPPORTED_VERSION,
        f"Protocol version {excerpt(version)!r} is not supported.",
        {"supported": list(STATELESS_VERSIONS), "requested": excerpt(version)},
    )


def text(params: Mapping[str, Any], key: str) -> str:
    value = params.get(key)
    if not isinstance(value, str):
        raise ProtocolError(INVALID_PARAMS, f"{key}: must be text, got {json_type(value)}")
    return value


def mapping(params: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """An object that may be left out."""
    value = params.get(key)
    if value is not None and not isinstance(value, dict):
        raise ProtocolError(INVALID_PARAMS, f"{key}: must be an object, got {json_type(value)}")
    return value or {}


def text_block(text: str) -> Json:
    return {"type": "text", "text": text}


def no_cursor(params: Json) -> None:
    if params.get("cursor") is not None:
        raise ProtocolError(INVALID_PARAMS, "cursor: there are no further pages")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
