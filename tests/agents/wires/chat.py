"""OpenAI's chat completions, streamed or whole: what opencode speaks to a provider of one's own."""

from __future__ import annotations

import json
from itertools import count

from tests.agents.scripted import Asked, Call, JsonObject, Reply

_numbers = count(1)


def answers(path: str) -> bool:
    return path.partition("?")[0].endswith("/chat/completions")


def read(body: JsonObject) -> Asked:
    return Asked(
        tools=tuple(tool["function"]["name"] for tool in body.get("tools", ())),
        heard=json.dumps(body.get("messages"), ensure_ascii=False),
        body=body,
    )


def write(reply: Reply, asked: Asked, path: str) -> tuple[str, bytes]:
    number = next(_numbers)
    message: JsonObject
    if isinstance(reply, Call):
        function = {"name": asked.offered(reply.tool) or reply.tool, "arguments": json.dumps(reply.arguments)}
        call = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        reason = "tool_calls"
    else:
        message = {"role": "assistant", "content": reply.text}
        reason = "stop"
    head = {"id": f"chat_{number}", "created": 1, "model": "scripted"}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    if not asked.body.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": reason}
        whole = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
        return "application/json", json.dumps(whole).encode()
    chunk = {**head, "object": "chat.completion.chunk"}
    chunks: list[JsonObject] = [
        {**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage},
    ]
    return "text/event-stream", ("".join(f"data: {json.dumps(c)}\n\n" for c in chunks) + "data: [DONE]\n\n").encode()
