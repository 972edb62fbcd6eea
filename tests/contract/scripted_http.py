"""A model server on loopback that answers from a script, over a real socket.

It speaks three wires, whichever is asked for: /v1/chat/completions, /v1/responses and /v1/messages, all
streamed. The answers are given in order, whatever the wire; what was asked is kept in `asked`.

    with ScriptedServer([Answer("Hello."), Answer(status=429, headers={"Retry-After": "2"})]) as server:
        ... OPENAI_BASE_URL = f"{server.url}/v1" ...

As a process of its own it reads a list of answers from a JSON file, and prints its address:

    python -m tests.contract.scripted_http SCRIPT.json
"""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

Event = tuple[str, Mapping[str, Any] | str]
MODEL: Final = "scripted"
SECRET: Final = "sk-secret"


class Break(StrEnum):
    """What goes wrong after the first half of an answer."""

    CUT = "cut"
    """The connection is closed."""
    END = "end"
    """The answer ends as if it were whole."""
    ERROR = "error"
    """The server says in the stream that it is overloaded."""
    HANG = "hang"
    """Nothing more comes, until the client leaves."""
    TRICKLE = "trickle"
    """Only signs of life come, until the client leaves."""
    ENDLESS = "endless"
    """The last event comes again and again, until the client leaves."""


@dataclass(frozen=True, slots=True)
class Answer:
    text: str = ""
    calls: Sequence[tuple[str, Any]] = ()
    """The tool, and its arguments: text is sent as it stands."""
    finish: str | None = None
    """stop, tool_calls, length or content_filter; the first two are found out when it is not given.

    Empty: no reason is given, and no tokens are counted."""
    tokens: tuple[int, int] = (11, 7)
    cached: int = 0
    """Of the input tokens: read from the cache."""
    cache_written: int = 0
    """Of the input tokens: written to the cache. Only the messages wire counts them."""
    thought: str = ""
    """What the model thinks before it answers: signed, or with the id of its item."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    error: str = "It went wrong."
    code: str | None = None
    broken: Break | None = None
    content: str | None = None
    """Sent in place of a stream, or of an error, as it stands."""
    kind: str = "text/html; charset=utf-8"
    """The media type of `content`."""

    @property
    def reason(self) -> str:
        return ("tool_calls" if self.calls else "stop") if self.finish is None else self.finish

    def pieces(self) -> list[str]:
        """The text as it is streamed: two pieces."""
        middle = (len(self.text) + 1) // 2
        return [piece for piece in (self.text[:middle], self.text[middle:]) if piece]

    def written(self) -> Iterator[tuple[str, str, str]]:
        """The id, tool and arguments of each call, as text."""
        for number, (tool, arguments) in enumerate(self.calls, start=1):
            yield f"call_{number}", tool, arguments if isinstance(arguments, str) else json.dumps(arguments)


@dataclass(frozen=True, slots=True)
class Asked:
    path: str
    headers: Mapping[str, str]
    body: Any


# --- the wires --------------------------------------------------------------------------------------------


def chat(answer: Answer) -> Iterator[Event]:
    def chunk(delta: Mapping[str, Any], finish: str | None = None) -> Event:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return "", {**head, "choices": [choice]}

    head = {"id": "chat_1", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
    yield chunk({"role": "assistant", "content": ""})
    if answer.thought:
        yield chunk({"reasoning_content": answer.thought})
    for piece in answer.pieces():
        yield chunk({"content": piece})
    for index, (id, tool, arguments) in enumerate(answer.written()):
        function = {"name": tool, "arguments": ""}
        yield chunk({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]})
        yield chunk({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]})
    yield chunk({}, answer.reason or None)
    input, output = answer.tokens
    usage: dict[str, Any] = {"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output}
    usage["prompt_tokens_details"] = {"cached_tokens": answer.cached}
    if answer.reason:
        yield "", {**head, "choices": [], "usage": usage}
    yield "", "[DONE]"


def messages(answer: Answer) -> Iterator[Event]:
    reasons = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal"}

    def event(type: str, **content: Any) -> Event:
        return type, {"type": type, **content}

    def block(index: int, start: Mapping[str, Any], deltas: Sequence[Mapping[str, Any]]) -> Iterator[Event]:
        yield event("content_block_start", index=index, content_block=start)
        for delta in deltas:
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)

    input, output = answer.tokens
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL, "content": []}
    usage = {"input_tokens": input - answer.cached - answer.cache_written, "output_tokens": 1}
    usage |= {"cache_read_input_tokens": answer.cached, "cache_creation_input_tokens": answer.cache_written}
    yield event("message_start", message={**message, "stop_reason": None, "stop_sequence": None, "usage": usage})
    index = 0
    if answer.thought:
        thinking = {"type": "thinking_delta", "thinking": answer.thought}
        signature = {"type": "signature_delta", "signature": f"signed {answer.thought}"}
        yield from block(index, {"type": "thinking", "thinking": "", "signature": ""}, [thinking, signature])
        index += 1
    if answer.text:
        deltas = [{"type": "text_delta", "text": piece} for piece in answer.pieces()]
        yield from block(index, {"type": "text", "text": ""}, deltas)
        index += 1
    for id, tool, arguments in answer.written():
        start = {"type": "tool_use", "id": id, "name": tool, "input": {}}
        yield from block(index, start, [{"type": "input_json_delta", "partial_json": arguments}])
        index += 1
    delta = {"stop_reason": reasons.get(answer.reason), "stop_sequence": None}
    yield event("message_delta", delta=delta, usage={"output_tokens": output})
    yield event("message_stop")


def responses(answer: Answer) -> Iterator[Event]:
    events = _responses(answer)
    for number, (type, content) in enumerate(events):
        yield type, {"type": type, "sequence_number": number, **content}


def _responses(answer: Answer) -> Iterator[tuple[str, Mapping[str, Any]]]:
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": MODEL, "output": []}
    head |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    yield "response.created", {"response": {**head, "status": "in_progress"}}
    output: list[Mapping[str, Any]] = []
    if answer.thought:
        item = {"id": "rs_1", "type": "reasoning", "encrypted_content": f"signed {answer.thought}"}
        output.append({**item, "summary": [{"type": "summary_text", "text": answer.thought}]})
        at = {"output_index": 0, "item_id": "rs_1", "summary_index": 0}
        part: dict[str, Any] = {"type": "summary_text", "text": ""}
        yield "response.output_item.added", {"output_index": 0, "item": {**item, "summary": []}}
        yield "response.reasoning_summary_part.added", {**at, "part": part}
        yield "response.reasoning_summary_text.delta", {**at, "delta": answer.thought}
        yield "response.reasoning_summary_text.done", {**at, "text": answer.thought}
        yield "response.output_item.done", {"output_index": 0, "item": output[0]}
    if answer.text:
        item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
        part = {"type": "output_text", "text": answer.text, "annotations": []}
        at = {"output_index": len(output), "item_id": "msg_1", "content_index": 0}
        output.append({**item, "content": [part]})
        yield "response.output_item.added", {"output_index": at["output_index"], "item": {**item, "content": []}}
        yield "response.content_part.added", {**at, "part": {**part, "text": ""}}
        for piece in answer.pieces():
            yield "response.output_text.delta", {**at, "delta": piece, "logprobs": []}
        yield "response.output_text.done", {**at, "text": answer.text, "logprobs": []}
        yield "response.content_part.done", {**at, "part": part}
        yield "response.output_item.done", {"output_index": at["output_index"], "item": output[-1]}
    for id, tool, arguments in answer.written():
        at = {"output_index": len(output), "item_id": f"fc_{id}"}
        call = {"id": f"fc_{id}", "type": "function_call", "call_id": id, "name": tool, "status": "completed"}
        output.append({**call, "arguments": arguments})
        yield "response.output_item.added", {**at, "item": {**call, "arguments": ""}}
        yield "response.function_call_arguments.delta", {**at, "delta": arguments}
        yield "response.function_call_arguments.done", {**at, "name": tool, "arguments": arguments}
        yield "response.output_item.done", {**at, "item": output[-1]}
    yield _last(answer, {**head, "output": output})


def _last(answer: Answer, head: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    input, output = answer.tokens
    usage: dict[str, Any] = {"input_tokens": input, "output_tokens": output, "total_tokens": input + output}
    usage |= {
        "input_tokens_details": {"cached_tokens": answer.cached},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    cut_short = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(answer.reason)
    if cut_short is None:
        return "response.completed", {"response": {**head, "status": "completed", "usage": usage}}
    why = {"reason": cut_short}
    return "response.incomplete", {
        "response": {**head, "status": "incomplete", "incomplete_details": why, "usage": usage}
    }


WIRES: Final = {"/v1/chat/completions": chat, "/v1/responses": responses, "/v1/messages": messages}
_ERROR: Final = {"type": "overloaded_error", "code": "server_is_overloaded", "message": "Overloaded.", "param": None}
OVERLOADED: Final[Mapping[str, Event]] = {
    "/v1/chat/completions": ("", {"error": _ERROR}),
    "/v1/responses": ("error", {**_ERROR, "type": "error", "sequence_number": 99}),
    "/v1/messages": ("error", {"type": "error", "error": _ERROR}),
}


# --- the server -------------------------------------------------------------------------------------------


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = self.path.partition("?")[0]
        owner = self.server.owner
        answer = owner.answer_to(Asked(path, {k.lower(): v for k, v in self.headers.items()}, json.loads(body)))
        self.close_connection = True
        with suppress(OSError):
            if path not in WIRES:
                self._refuse(Answer(status=404, error=f"There is no {path}."))
            elif answer.content is not None:
                self._head(answer.status, {**answer.headers, "Content-Type": answer.kind}, len(answer.content.encode()))
                self.wfile.write(answer.content.encode())
            elif answer.status != 200:
                self._refuse(answer)
            else:
                self._stream(path, answer)

    def _refuse(self, answer: Answer) -> None:
        error = {"message": answer.error, "type": answer.code or "scripted", "code": answer.code, "param": None}
        content = json.dumps({"type": "error", "error": error}).encode()
        self._head(answer.status, {**answer.headers, "Content-Type": "application/json"}, len(content))
        self.wfile.write(content)

    def _head(self, status: int, headers: Mapping[str, str], length: int | None) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if length is None:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(length))
        self.send_header("Connection", "close")
        self.end_headers()

    def _stream(self, path: str, answer: Answer) -> None:
        self._head(200, {**answer.headers, "Content-Type": "text/event-stream"}, None)
        events = list(WIRES[path](answer))
        for event in events[: len(events) // 2] if answer.broken else events:
            self._send(event)
        if answer.broken is Break.ERROR:
            self._send(OVERLOADED[path])
        if answer.broken is Break.ENDLESS:
            while True:
                self._send(events[len(events) // 2 - 1])
        if answer.broken is Break.TRICKLE:
            self.server.owner.hanging.set()
            while not self.server.owner.stopping.wait(0.05):
                self._write(b": alive\n\n")
        if answer.broken is Break.HANG:
            self.server.owner.hanging.set()
            # Comes back empty when the client leaves, or when the server stops; with an error when it had not read
            # everything that was sent.
            with suppress(OSError):
                self.connection.recv(1)
            self.server.owner.left.set()
        elif answer.broken is not Break.CUT:
            self.wfile.write(b"0\r\n\r\n")

    def _send(self, event: Event) -> None:
        name, content = event
        data = content if isinstance(content, str) else json.dumps(content)
        line = (f"event: {name}\n" if name else "") + f"data: {data}\n\n"
        self._write(line.encode())

    def _write(self, content: bytes) -> None:
        self.wfile.write(f"{len(content):x}\r\n".encode() + content + b"\r\n")
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads it."""


class _Server(ThreadingHTTPServer):
    # Their threads are waited for: what a test leaves behind would disturb the next one.
    daemon_threads = False

    def __init__(self, owner: ScriptedServer, port: int) -> None:
        self.owner = owner
        self.open: set[socket.socket] = set()
        super().__init__(("127.0.0.1", port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.open.add(request)
        self.owner.idle.clear()
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        self.open.discard(request)
        if not self.open:
            self.owner.idle.set()

    def hang_up(self) -> None:
        for connection in list(self.open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class ScriptedServer:
    def __init__(self, answers: Sequence[Answer], port: int = 0) -> None:
        self.asked: list[Asked] = []
        self.hanging = threading.Event()
        """An answer has begun, and does not end."""
        self.left = threading.Event()
        """A client went away while an answer hung."""
        self.idle = threading.Event()
        """No connection is open."""
        self.stopping = threading.Event()
        self._answers = iter(answers)
        self._lock = threading.Lock()
        self._server = _Server(self, port)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def environment(self) -> dict[str, str]:
        """The variables that lead every provider here."""
        return {
            "OPENAI_BASE_URL": f"{self.url}/v1",
            "OPENAI_API_KEY": SECRET,
            "OLLAMA_BASE_URL": f"{self.url}/v1",
            "OLLAMA_API_KEY": SECRET,
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": SECRET,
        }

    def answer_to(self, asked: Asked) -> Answer:
        with self._lock:
            self.asked.append(asked)
            return next(self._answers, Answer(status=500, error="The script has no more answers."))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.hang_up()
        self._server.server_close()
        self._thread.join()


def read(path: Path) -> list[Answer]:
    """The answers of a JSON file: a list of tables with the fields of `Answer`."""
    answers = []
    for entry in json.loads(path.read_text(encoding="utf-8")):
        broken = entry.pop("broken", None)
        calls = tuple((tool, arguments) for tool, arguments in entry.pop("calls", ()))
        answers.append(Answer(**entry, calls=calls, broken=Break(broken) if broken else None))
    return answers


def main() -> None:
    with ScriptedServer(read(Path(sys.argv[1]))) as server:
        print(server.url, flush=True)
        # It serves until whoever started it closes its stdin.
        sys.stdin.read()


if __name__ == "__main__":
    main()
