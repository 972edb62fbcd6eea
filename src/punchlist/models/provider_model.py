"""A model of a provider, asked over pydantic-ai's direct interface.

One question is one HTTP stream with a client of its own: nothing is left open between questions, nothing
belongs to an event loop, and cancelling the question closes the stream. The price is a handshake for each.
The libraries' own retries are off: `retry.Persistent` acts, and it must see every failure. A reply is whole
or there is none, and it has an end: in bytes, in silence and in time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from punchlist.models.model import (
    REPLY_BROKEN,
    Model,
    ModelBusy,
    ModelError,
    ModelInfo,
    ModelRequest,
    Reply,
    TextListener,
)
from punchlist.models.provider_errors import to_model_error
from punchlist.models.provider_messages import event_text, to_provider_messages, to_reply, tool_parameters
from punchlist.models.providers import REHEARSAL, ResolvedModel, resolve_model

if TYPE_CHECKING:
    from ssl import SSLContext

    from httpx2 import AsyncClient
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models import Model as Wire
    from pydantic_ai.models import ModelRequestParameters

    from punchlist.models.stream_reader import StreamReader

_CONNECTING: Final = 10.0


@dataclass(frozen=True, slots=True)
class ReplyLimits:
    """How much of a reply is waited for. None: what is usual for the provider, or for all of them."""

    idle: float | None = None
    """Seconds without a byte."""
    total: float = 3600.0
    """Seconds for all of it."""
    max_bytes: int | None = None


def model_named(name: str, environment: Mapping[str, str]) -> Model:
    """Raises `ConfigError` where there is no such provider, key, rehearsal or file."""
    kind, _, rest = name.partition(":")
    if kind == REHEARSAL and rest:
        from punchlist.models.rehearsal import Rehearsal, load_rehearsal

        return Rehearsal(load_rehearsal(Path(rest)), name=name)
    return ProviderModel(resolve_model(name, environment))


class _TextForwarder:
    """Passes text on, and knows whether any was."""

    def __init__(self, on_text: TextListener | None) -> None:
        self._hear = on_text
        self._any = False
        self.raised: Exception | None = None

    def text(self, text: str) -> None:
        if self._hear is None or not text:
            return
        self._any = True
        try:
            self._hear(text)
        except Exception as error:
            self.raised = error
            raise

    def broken(self) -> None:
        if self._any:
            self.text(REPLY_BROKEN)


class ProviderModel:
    def __init__(self, model: ResolvedModel, bounds: ReplyLimits | None = None) -> None:
        bounds = bounds or ReplyLimits()
        self.name = model.name
        self._model = model
        self._idle = bounds.idle or model.provider.idle_timeout
        self._whole = bounds.total
        self._most_bytes = bounds.max_bytes
        self._tls: SSLContext | None = None

    @cached_property
    def info(self) -> ModelInfo:
        from punchlist.models.pricing import model_info

        return model_info(self._model)

    async def ask(self, request: ModelRequest, on_text: TextListener | None = None) -> Reply:
        hearing = _TextForwarder(on_text)
        try:
            return await self._asked(request, hearing)
        except ModelError:
            hearing.broken()
            raise

    async def _asked(self, request: ModelRequest, hearing: _TextForwarder) -> Reply:
        # In a thread: the first time it imports for seconds, and others want the event loop.
        client, wire, reading = await asyncio.to_thread(self._opened)
        limit = asyncio.timeout(self._whole)
        async with client:
            messages, tools = to_provider_messages(request), tool_parameters(request)
            try:
                async with limit:
                    return await self._reply(wire, messages, tools, request.max_tokens, hearing, reading)
            except Exception as error:
                if error is hearing.raised:
                    raise
                if limit.expired():
                    raise ModelBusy(f"{self._model.provider.name} took longer than {self._whole:g} s.") from None
                # Not as a cause: it holds the request, with its key.
                raise to_model_error(error, self._model, self._idle, reading) from None

    def _opened(self) -> tuple[AsyncClient, Wire, StreamReader]:
        import httpx2
        import pydantic_ai.direct  # noqa: F401  for later, while this is not the event loop's thread

        from punchlist.models.stream_reader import MAX_BYTES, StreamReader

        if self._tls is None:
            self._tls = httpx2.create_ssl_context()
        reading = StreamReader(self._most_bytes or MAX_BYTES)
        client = httpx2.AsyncClient(
            verify=self._tls,
            headers={"Accept-Encoding": "identity"},
            event_hooks={"response": [reading.watch]},
        )
        return client, self._model.wire(client), reading

    async def _reply(
        self,
        wire: Wire,
        messages: list[ModelMessage],
        tools: ModelRequestParameters,
        max_tokens: int | None,
        hearing: _TextForwarder,
        reading: StreamReader,
    ) -> Reply:
        import httpx2
        from pydantic_ai.direct import model_request_stream
        from pydantic_ai.settings import ModelSettings

        # Its annotation names the library that it used before, where that is installed.
        patience: Any = httpx2.Timeout(self._idle, connect=_CONNECTING)
        settings = ModelSettings(max_retries=0, timeout=patience)
        if max_tokens is not None:
            settings["max_tokens"] = max_tokens
        async with model_request_stream(
            wire, messages, model_settings=settings, model_request_parameters=tools, instrument=False
        ) as stream:
            async for event in stream:
                hearing.text(event_text(event))
        return to_reply(stream.get(), done=reading.done)
