"""Gemini's generateContent, whole and streamed: what gemini-cli speaks."""

from __future__ import annotations

import json

from tests.agents.scripted import Asked, Call, JsonObject, Reply


def answers(path: str) -> bool:
    return "enerateContent" in path


def read(body: JsonObject) -> Asked:
    declared = [tool for group in body.get("tools", ()) for tool in group.get("functionDeclarations", ())]
    return Asked(
        tools=tuple(tool["name"] for tool in declared),
        heard=json.dumps(body.get("contents"), ensure_ascii=False),
        body=body,
    )


def write(reply: Reply, asked: Asked, path: str) -> tuple[str, bytes]:
    part: JsonObject
    if isinstance(reply, Call):
        part = {"functionCall": {"name": asked.offered(reply.tool) or reply.tool, "args": reply.arguments}}
    else:
        part = {"text": reply.text}
    answer = json.dumps(
        {
            "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110},
            "modelVersion": "scripted",
        }
    )
    if "streamGenerateContent" in path:
        return "text/event-stream", f"data: {answer}\n\n".encode()
    return "application/json", answer.encode()
