"""The parts of a provider's response that a reply needs when it is sent back: reasoning, and the ids of items.

Providers require the reasoning of a reply together with its calls, unchanged and in its place. It is opaque to
us: never shown, and never sent to another model than the one that wrote it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from punchlist.models.model import PartKind, ProviderParts, Reply, ReplyPart

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse, ModelResponsePart, TextPart, ThinkingPart, ToolCallPart

_FROM_TEXT: Final = "content"
"""The id that pydantic-ai gives to reasoning that was found between tags in the text of a reply."""


def provider_parts(response: ModelResponse, model: str) -> ProviderParts | None:
    """None if the response has no reasoning that must be sent back."""
    from pydantic_ai.messages import TextPart, ThinkingPart, ToolCallPart

    parts: list[ReplyPart] = []
    for part in response.parts:
        match part:
            case ThinkingPart() if part.id != _FROM_TEXT:
                parts.append(_reasoning(part))
            case TextPart():
                parts.append(ReplyPart(PartKind.TEXT, len(part.content), id=part.id, details=_json(part)))
            case ToolCallPart():
                parts.append(ReplyPart(PartKind.CALL, id=part.id, details=_json(part)))
    if not any(part.kind is PartKind.REASONING for part in parts):
        return None
    return ProviderParts(model, response.provider_name or "", tuple(parts))


def _reasoning(part: ThinkingPart) -> ReplyPart:
    return ReplyPart(PartKind.REASONING, text=part.content, id=part.id, signature=part.signature, details=_json(part))


def _json(part: TextPart | ThinkingPart | ToolCallPart) -> Mapping[str, Any] | None:
    """The provider's own data of a part; None if there is none, or if it cannot be stored."""
    try:
        copied: Mapping[str, Any] | None = json.loads(json.dumps(part.provider_details)) or None
    except (TypeError, ValueError):
        return None
    return copied


def with_reasoning(
    reply: Reply, text: str, calls: Sequence[ToolCallPart], model: str
) -> tuple[str | None, list[ModelResponsePart]] | None:
    """The provider and the parts of a reply as `model` wrote it; None if it is another model's, or has no reasoning.

    `text` and `calls` are those of the reply, ready to be sent.
    """
    from pydantic_ai.messages import TextPart, ThinkingPart

    written = reply.provider_parts
    if written is None or written.model != model:
        return None
    provider, rest, remaining = written.provider or None, text, list(calls)
    parts: list[ModelResponsePart] = []
    for part in written.parts:
        details = dict(part.details) if part.details else None
        match part.kind:
            case PartKind.REASONING:
                parts.append(
                    ThinkingPart(
                        part.text,
                        id=part.id,
                        signature=part.signature,
                        provider_name=provider,
                        provider_details=details,
                    )
                )
            case PartKind.TEXT:
                piece, rest = rest[: part.length], rest[part.length :]
                if piece.strip():
                    parts.append(TextPart(piece, id=part.id, provider_name=provider, provider_details=details))
            case PartKind.CALL if remaining:
                call = remaining.pop(0)
                call.id, call.provider_name, call.provider_details = part.id, provider, details
                parts.append(call)
    # The parts must be exactly the reply; otherwise the provider would refuse them.
    return None if rest or remaining else (provider, parts)
