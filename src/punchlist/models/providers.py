"""The table of providers: their keys, addresses and pydantic-ai models.

Provider names and variables are pydantic-ai's. The table is here because importing pydantic-ai takes seconds,
and a wrong name should fail at once. Other OpenAI-compatible servers use `openai-chat` with OPENAI_BASE_URL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from punchlist.errors import ConfigError
from punchlist.kernel.text import excerpt

if TYPE_CHECKING:
    from httpx2 import AsyncClient
    from pydantic_ai.models import Model as PydanticModel


@dataclass(frozen=True, slots=True)
class Provider:
    name: str
    key_variable: str
    url_variable: str
    """The environment variable that overrides `default_url`."""
    default_url: str
    needs_key: bool = True
    priced_as: str | None = None
    cache_markers: bool = False
    """Requests must mark what the provider should cache; the others do it by themselves."""
    default_model: str | None = None
    """Used if a key is set and no model is named."""


REHEARSAL: Final = "rehearsal"
_OPENAI: Final = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1")
PROVIDERS: Final[Mapping[str, Provider]] = {
    provider.name: provider
    for provider in (
        Provider(
            "anthropic",
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_BASE_URL",
            "https://api.anthropic.com",
            priced_as="anthropic",
            cache_markers=True,
            default_model="claude-sonnet-5-5",
        ),
        Provider("openai", *_OPENAI, priced_as="openai", default_model="gpt-6.1-sol"),
        Provider("openai-chat", *_OPENAI, priced_as="openai"),
        Provider("ollama", "OLLAMA_API_KEY", "OLLAMA_BASE_URL", "http://localhost:11434/v1", needs_key=False),
    )
}
_CLASSES: Final = {
    "anthropic": ("anthropic", "AnthropicModel", "AnthropicProvider"),
    "openai": ("openai", "OpenAIResponsesModel", "OpenAIProvider"),
    "openai-chat": ("openai", "OpenAIChatModel", "OpenAIProvider"),
    "ollama": ("ollama", "OllamaModel", "OllamaProvider"),
}
"""Module, model class and provider class in pydantic-ai."""
_NO_KEY: Final = "no-key"
"""The client libraries require a key even if the server does not."""
_IDLE_TIMEOUT: Final = 120.0
_LOCAL_IDLE_TIMEOUT: Final = 600.0
_LOCAL_TEMPERATURE: Final = 0.2
"""The defaults of local servers are made for chats: with them, small models write broken code and calls."""
_LOCAL_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """A model with its address and key."""

    provider: Provider
    model: str
    url: str
    key: str | None

    @property
    def name(self) -> str:
        return f"{self.provider.name}:{self.model}"

    @property
    def _is_local(self) -> bool:
        return self.provider.name == "ollama" or urlsplit(self.url).hostname in _LOCAL_HOSTS

    @property
    def idle_timeout(self) -> float:
        """Seconds without a byte before a request is aborted.

        A local server loads the model and reads the whole prompt before it sends the first byte.
        """
        return _LOCAL_IDLE_TIMEOUT if self._is_local else _IDLE_TIMEOUT

    @property
    def temperature(self) -> float | None:
        """Where an agent sets none; None for the provider's default, since many models refuse another one."""
        return _LOCAL_TEMPERATURE if self._is_local and self.provider.name in ("ollama", "openai-chat") else None

    @property
    def host(self) -> str:
        """Host and port for messages, since the URL may contain a password."""
        parts = urlsplit(self.url)
        return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)

    def pydantic_model(self, client: AsyncClient) -> PydanticModel:
        """Slow the first time, since it imports the client library."""
        module, model, provider = _CLASSES[self.provider.name]
        models = import_module(f"pydantic_ai.models.{module}")
        providers = import_module(f"pydantic_ai.providers.{module}")
        service = getattr(providers, provider)(api_key=self.key or _NO_KEY, base_url=self.url, http_client=client)
        made: PydanticModel = getattr(models, model)(self.model, provider=service)
        return made


def default_model(environment: Mapping[str, str]) -> str | None:
    """The default model of the first provider whose key is set; None without a key.

    A provider with a custom address is skipped, since its models are unknown.
    """
    for provider in PROVIDERS.values():
        url = (environment.get(provider.url_variable) or provider.default_url).strip().rstrip("/")
        has_key = bool((environment.get(provider.key_variable) or "").strip())
        if provider.default_model and url == provider.default_url and has_key:
            return f"{provider.name}:{provider.default_model}"
    return None


def no_model(environment: Mapping[str, str]) -> ConfigError:
    """The error where neither a setting nor the environment names a model."""
    for name, provider in PROVIDERS.items():
        if provider.needs_key and environment.get(provider.url_variable) and environment.get(provider.key_variable):
            # OPENAI_BASE_URL usually belongs to a server with the Chat Completions API.
            example = "openai-chat" if name == "openai" else name
            return ConfigError(
                f"No model: the models of the server in {provider.url_variable} are unknown. Name one with --model or "
                f"PUNCHLIST_MODEL, such as {example}:NAME."
            )
    return ConfigError(
        "No model: set ANTHROPIC_API_KEY or OPENAI_API_KEY, or name one with --model or PUNCHLIST_MODEL.\n"
        "Models without a key: ollama:NAME, rehearsal:FILE. `punchlist demo` shows an agent at work."
    )


def resolve_model(name: str, environment: Mapping[str, str]) -> ResolvedModel:
    """Raises `ConfigError` for an unknown name, an invalid address or a missing key."""
    provider_name, _, model = name.partition(":")
    provider = PROVIDERS.get(provider_name)
    if provider_name == "local":
        raise ConfigError(
            f"{excerpt(name)!r}: Punchlist does not run model files itself. Serve the file with Ollama and use "
            "ollama:NAME, or with any OpenAI-compatible server and use openai-chat:NAME with OPENAI_BASE_URL."
        )
    if provider is None or not model.strip():
        known = ", ".join(f"{known}:MODEL" for known in PROVIDERS)
        raise ConfigError(f"{excerpt(name)!r} is not a model name. Use one of: {known}, {REHEARSAL}:FILE.")
    url = (environment.get(provider.url_variable) or provider.default_url).strip()
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(f"{provider.url_variable} is not a URL of the form https://HOST/….")
    if provider.name == "ollama" and parts.path in ("", "/"):
        # Ollama's own tools use this variable without the path of the OpenAI-compatible API.
        url = url.rstrip("/") + "/v1"
    key = (environment.get(provider.key_variable) or "").strip() or None
    # A self-hosted server often needs no key.
    if key is None and provider.needs_key and url == provider.default_url:
        raise ConfigError(f"{provider.key_variable} is not set; {excerpt(name)} needs it.")
    return ResolvedModel(provider, model.strip(), url, key)
