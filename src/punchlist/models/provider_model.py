"""A provider's model, called through pydantic-ai's direct API.

Each request is one HTTP stream with its own client: nothing stays open between requests, nothing is bound to
an event loop, and cancelling a request closes its stream. The price is one handshake per request. The client
libraries' retries are off, because `retry.RetryingModel` must see every failure. A reply is complete or there
is none, and it is bounded in bytes, idle time and total time.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from punchlist.models.model import (
    REPLY_BROKEN,
    ModelBusy,
    ModelError,
    ModelInfo,
    ModelRequest,
    Reply,
    TextListener,
)
from punchlist.models.provider_errors import to_model_error
from punchlist.models.provider_messages import event_text, to_provider_messages, to_reply, tool_parameters
from punchlist.models.providers import ResolvedModel

if TYPE_CHECKING:
    from ssl import SSLContext

    from httpx2 import AsyncClient
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models import Model as PydanticModel
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.settings import ModelSettings

    from punchlist.models.stream_reader import StreamReader

_CONNECT_TIMEOUT: Final = 10.0
_PROVIDER_SETTINGS: Final[Any] = {
    "anthropic_cache_instructions": True,
    "anthropic_cache_tool_definitions": True,
    "openai_send_reasoning_ids": True,
}
"""Each provider reads its own. The first two mark system prompt and tools; `provider_messages` marks the messages."""


@dataclass(frozen=True, slots=True)
class ReplyLimits:
    """Bounds of one reply. None uses the default of the provider, or of all providers."""

    idle: float | None = None
    """Seconds without a byte."""
    total: float = 3600.0
    """Seconds for the whole reply."""
    max_bytes: int | None = None


class _TextForwarder:
    """Forwards streamed text and remembers whether there was any."""

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
        self._idle = bounds.idle or model.idle_timeout
        self._total = bounds.total
        self._most_bytes = bounds.max_bytes
        self._tls: SSLContext | None = None

    @cached_property
    def info(self) -> ModelInfo:
        from punchlist.models.pricing import model_info

        return model_info(self._model)

    async def ask(self, request: ModelRequest, on_text: TextListener | None = None) -> Reply:
        forwarder = _TextForwarder(on_text)
        try:
            return await self._request(request, forwarder)
        except ModelError:
            forwarder.broken()
            raise

    async def _request(self, request: ModelRequest, forwarder: _TextForwarder) -> Reply:
        # In a thread, because the first import takes seconds and would block the event loop.
        client, pydantic_model, reader = await asyncio.to_thread(self._open)
        limit = asyncio.timeout(self._total)
        async with client:
            markers = self._model.provider.cache_markers
            messages = to_provider_messages(request, self.name, cache_markers=markers)
            tools = tool_parameters(request)
            try:
                async with limit:
                    return await self._reply(
                        pydantic_model, messages, tools, self._settings(request), forwarder, reader
                    )
            except Exception as error:
                if error is forwarder.raised:
                    raise
                if limit.expired():
                    raise ModelBusy(f"{self._model.provider.name} took longer than {self._total:g} s.") from None
                # Not chained: the original exception contains the request with its key.
                raise to_model_error(error, self._model, self._idle, reader) from None

    def _open(self) -> tuple[AsyncClient, PydanticModel, StreamReader]:
        import httpx2
        import pydantic_ai.direct  # noqa: F401  imported here, off the event loop

        from punchlist.models.stream_reader import MAX_BYTES, StreamReader

        if self._tls is None:
            self._tls = httpx2.create_ssl_context()
        reader = StreamReader(self._most_bytes or MAX_BYTES)
        client = httpx2.AsyncClient(
            verify=self._tls,
            headers={"Accept-Encoding": "identity"},
            event_hooks={"response": [reader.watch]},
        )
        return client, self._model.pydantic_model(client), reader

    def _settings(self, request: ModelRequest) -> ModelSettings:
        import httpx2
        from pydantic_ai.settings import ModelSettings

        # The annotation of ModelSettings names the older httpx.
        timeout: Any = httpx2.Timeout(self._idle, connect=_CONNECT_TIMEOUT)
        settings = ModelSettings(max_retries=0, timeout=timeout)
        settings.update(_PROVIDER_SETTINGS)
        if request.max_tokens is not None:
            settings["max_tokens"] = request.max_tokens
        temperature = self._model.temperature if request.temperature is None else request.temperature
        if temperature is not None:
            settings["temperature"] = temperature
        return settings

    async def _reply(
        self,
        pydantic_model: PydanticModel,
        messages: list[ModelMessage],
        tools: ModelRequestParameters,
        settings: ModelSettings,
        forwarder: _TextForwarder,
        reader: StreamReader,
    ) -> Reply:
        from pydantic_ai.direct import model_request_stream

        async with model_request_stream(
            pydantic_model, messages, model_settings=settings, model_request_parameters=tools, instrument=False
        ) as stream:
            async for event in stream:
                forwarder.text(event_text(event))
        return to_reply(stream.get(), self.name, done=reader.done)
