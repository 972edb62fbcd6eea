"""Redacts secrets from everything that is stored or sent on.

Values of environment variables whose names suggest a secret are searched for literally; other secrets are recognised
by their shape. Neither finds an encoded secret: this prevents accidents, not a deliberate leak.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

MIN_SECRET_LENGTH: Final = 8
"""Shorter values are ordinary words: `TOKEN=yes` must not redact every `yes`."""

_SECRET_NAME: Final = re.compile(
    r"(?:^|_)(?:API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|PWD|CREDENTIALS?|AUTH|DSN)"
    r"(?:_|$)|(?:DATABASE|POSTGRES|REDIS|MONGO|AMQP)\w*_UR[IL]",
    re.IGNORECASE,
)
_NOT_SECRET: Final = frozenset({"PWD", "OLDPWD", "SSH_AUTH_SOCK", "XAUTHORITY"})

_SHAPES: Final = (
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
    re.compile(r"(?<![A-Za-z0-9_-])[prs]k[-_][A-Za-z0-9_-]{16,500}"),
    re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}|glpat-[A-Za-z0-9_-]{20,})"),
    re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    re.compile(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    re.compile(r"\bAIza[A-Za-z0-9_-]{35}\b"),
    re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{10,8000}\.[A-Za-z0-9_-]{5,1000}"),
)
# The first group is kept as context, the second is redacted.
_NAMED: Final = (
    re.compile(
        r"(?i)(\b(?:authorization|proxy-authorization)[\"']?\s{0,20}[:=]\s{0,20}[\"']?(?:bearer|basic|token)\s{1,20})([^\s\"',;]{4,})"
    ),
    re.compile(r"(?i)(\bbearer\s{1,20})([A-Za-z0-9._~+/=-]{12,})"),
    re.compile(r"([a-z][a-z0-9+.-]{1,20}://[^\s:/@\"']{0,100}:)([^\s@/\"']{3,200})(?=@)"),
    re.compile(
        r"(?i)((?:\b|_)(?:api[_-]?key|access[_-]?key|secret|token|passw(?:or)?d|passphrase)[\"']?\s{0,20}[:=]\s{0,20}[\"']?)"
        r"([^\s\"'&;,)}\]]{6,})"
    ),
)
# No pattern matches a text without one of these; most texts need no further search.
_HINTS: Final = (
    *("sk-", "sk_", "rk-", "rk_", "pk-", "pk_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat", "glpat"),
    *("akia", "asia", "xox", "aiza", "eyj", "private key", "bearer", "authorization", "://"),
    *("key", "secret", "token", "passw", "passphrase"),
)
HIDDEN: Final = "[hidden]"
_SHORT: Final = 100
_MAX_CACHED: Final = 500


class Redactor:
    """Replaces secrets in text and in JSON-like values."""

    def __init__(self, environment: Mapping[str, str] | None = None, also: Iterable[str] = ()) -> None:
        named = {value: name for name, value in (environment or {}).items() if _is_secret(name, value)}
        known = {**dict.fromkeys(also, ""), **named}
        self._cache: dict[str, str] = {}
        self._names = {value: f"[hidden {name}]" if name else HIDDEN for value, name in known.items()}
        # Longest first: one secret may be a prefix of another.
        longest_first = sorted(self._names, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def text(self, text: str) -> str:
        if len(text) > _SHORT:
            return self._redact(text)
        # Short texts such as names and reasons recur.
        found = self._cache.get(text)
        if found is None:
            if len(self._cache) >= _MAX_CACHED:
                self._cache.clear()
            found = self._cache[text] = self._redact(text)
        return found

    def _redact(self, text: str) -> str:
        if len(text) < MIN_SECRET_LENGTH:
            return text
        if self._known is not None:
            text = self._known.sub(lambda found: self._names[found.group()], text)
        lower = text.lower()
        if any(hint in lower for hint in _HINTS):
            for shape in _SHAPES:
                text = shape.sub(HIDDEN, text)
            for named in _NAMED:
                text = named.sub(lambda found: f"{found.group(1)}{HIDDEN}", text)
        return text

    def value(self, value: Any) -> Any:
        """A JSON-like value with secrets redacted, including the values of keys that suggest a secret."""
        match value:
            case str():
                return self.text(value)
            case dict():
                return {self.text(str(key)): self._item(str(key), item) for key, item in value.items()}
            case list() | tuple():
                return [self.value(item) for item in value]
        return value

    def _item(self, key: str, item: Any) -> Any:
        return HIDDEN if isinstance(item, str) and _is_secret(key, item) else self.value(item)


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment without secrets, for child processes that do not need them."""
    return {name: value for name, value in environment.items() if not _names_secret(name)}


def _is_secret(name: str, value: str) -> bool:
    return len(value) >= MIN_SECRET_LENGTH and _names_secret(name)


def _names_secret(name: str) -> bool:
    return name not in _NOT_SECRET and _SECRET_NAME.search(name) is not None
