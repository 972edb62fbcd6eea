"""Anthropic's Messages, streamed or whole: what claude-code speaks."""

from __future__ import annotations

import json
from itertools import count

from tests.agents.scripted import Asked, Call, JsonObject, Reply

_numbers = count(1)


def answers(path: str) -> bool:
    return path.partition("?")[0].endswith("/v1/messages")


def read(body: JsonObject) -> Asked:
    return Asked(
        tools=tuple(tool["name"] for tool in body.get("tools", ())),
        heard=json.dumps([body.get("system"), body.get("messages")], ensure_ascii=False),
        body=body,
    )


def write(reply: Reply, asked: Asked, path: str) -> tuple[str, bytes]:
    number = next(_numbers)
    start: JsonObject
    delta: JsonObject
    if isinstance(reply, Call):
        name = asked.offered(reply.tool) or reply.tool
        start = {"type": "tool_use", "id": f"toolu_{number:08}", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(reply.arguments)}
        whole = {**start, "input": reply.arguments}
        reason = "tool_use"
    else:
        start = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": reply.text}
        whole = {**start, "text": reply.text}
        reason = "end_turn"
    usage = {"input_tokens": 100, "output_tokens": 10}
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": asked.body.get("model")}
    if not asked.body.get("stream"):
        done = {**message, "content": [whole], "stop_reason": reason, "stop_sequence": None, "usage": usage}
        return "application/json", json.dumps(done).encode()
    begun: JsonObject = {**message, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    events: list[JsonObject] = [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": start},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]
    return "text/event-stream", "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events).encode()
