"""OpenAI's Responses, streamed: what codex speaks."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

from tests.agents.scripted import Asked, Call, JsonObject, Reply

_numbers = count(1)


def answers(path: str) -> bool:
    return path.partition("?")[0].endswith("/responses")


def read(body: JsonObject) -> Asked:
    return Asked(
        tools=tuple(name for tool in body.get("tools", ()) for name in _names(tool)),
        heard=json.dumps(body.get("input"), ensure_ascii=False),
        body=body,
    )


def _names(tool: JsonObject) -> list[str]:
    """A server's tools come in a namespace; the others by themselves."""
    if tool.get("type") == "namespace":
        return [f"{tool['name']}__{inner['name']}" for inner in tool["tools"]]
    return [str(tool.get("name", tool["type"]))]


def write(reply: Reply, asked: Asked, path: str) -> tuple[str, bytes]:
    number = next(_numbers)
    item: JsonObject
    if isinstance(reply, Call):
        item = {
            "type": "function_call",
            "id": f"fc_{number}",
            "call_id": f"call_{number}",
            "status": "completed",
            "arguments": json.dumps(reply.arguments),
            **_name(reply.tool, asked),
        }
    else:
        item = {
            "type": "message",
            "id": f"msg_{number}",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": reply.text, "annotations": []}],
        }
    response = {"id": f"resp_{number}", "object": "response", "model": "scripted", "output": []}
    usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
    events: list[JsonObject] = [
        {"type": "response.created", "response": {**response, "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {
            "type": "response.completed",
            "response": {**response, "status": "completed", "output": [item], "usage": usage},
        },
    ]
    return "text/event-stream", "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events).encode()


def _name(tool: str, asked: Asked) -> dict[str, Any]:
    for offered in asked.body.get("tools", ()):
        if offered.get("type") == "namespace" and any(inner["name"] == tool for inner in offered["tools"]):
            return {"name": tool, "namespace": offered["name"]}
    return {"name": asked.offered(tool) or tool}
