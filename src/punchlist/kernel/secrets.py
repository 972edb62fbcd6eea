"""Redacts secrets from everything that is stored or sent on.

Values of environment variables whose names suggest a secret are searched for literally; other secrets are recognised
by their shape. Neither finds an encoded secret: this prevents accidents, not a deliberate leak.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

MIN_SECRET_LENGTH: Final = 8
"""Shorter values are ordinary words: `TOKEN=yes` must not redact every `yes`."""

MIN_LINE_LENGTH: Final = 12
"""A shorter line of a secret with several lines may be an ordinary line elsewhere."""

_SECRET_NAME: Final = re.compile(
    # As one word of the name: DEPLOY_KEY, AUTH_HEADER.
    r"(?:^|_)(?:KEY|PASS|PWD|PAT|AUTH|DSN|JWT|BEARER|CREDS?|SAS|HMAC)(?:_|$)"
    # At the end of a word: PGPASSWORD, SSHPASS, APIKEY, MYKEYS, githubToken, MYCOOKIE.
    r"|(?:PASSWORDS?|PASSWDS?|PASSPHRASES?|CREDENTIALS?|SECRETS?|COOKIES?|WEBHOOKS?|(?<!MAX_)(?<!MAX_INPUT_)(?<!MAX_OUTPUT_)TOKENS?)(?:_|$)"
    # A seed alone is for random numbers.
    r"|(?:OTP|MFA|2FA|WALLET|MASTER|RECOVERY|BIP39)_?(?:SEED|CODE|PHRASE)|SEED_?PHRASE|MNEMONIC"
    r"|(?:API|ACCESS|PRIVATE|SECRET|SIGNING|ENCRYPTION|LICENSE)_?KEY|KEYS$|(?<!ASK)(?<!BY)(?<!COM)PASS$"
    r"|CONNECTION_?STRING",
    re.IGNORECASE,
)
_DATABASE_NAME: Final = re.compile(r"(?:DATABASE|POSTGRES|REDIS|MONGO|AMQP)\w*_UR[IL]", re.IGNORECASE)
"""The addresses of databases: secrets if they contain a login."""
# The names of fields are ordinary words more often than those of variables: `keys` of a tool that types, `webhook`.
_SECRET_FIELD: Final = re.compile(
    r"(?:^|_)(?:API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|KEY|TOKEN|SECRET|PASS|PWD|PAT|CREDENTIALS?|AUTH|DSN)(?:_|$)"
    r"|PASSWORD|PASSWD|PASSPHRASE|(?:DATABASE|POSTGRES|REDIS|MONGO|AMQP)\w*_UR[IL]",
    re.IGNORECASE,
)
_NOT_SECRET: Final = frozenset({"PWD", "OLDPWD", "SSH_AUTH_SOCK", "XAUTHORITY"})
_LOGIN_IN_URL: Final = re.compile(r"://[^\s/@]+@|[?&;](?:ssl)?(?:password|passwd|pwd|token|secret|sig)=", re.IGNORECASE)

_SHAPES: Final = (
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
    re.compile(r"(?<![A-Za-z0-9_-])[prs]k[-_][A-Za-z0-9_-]{16,500}"),
    re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}|glpat-[A-Za-z0-9_-]{20,})"),
    re.compile(r"\bpunchlist_[0-9a-f]{12}_[A-Za-z0-9_-]{20,}"),
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
    *("punchlist_", "akia", "asia", "xox", "aiza", "eyj", "private key", "bearer", "authorization", "://"),
    *("key", "secret", "token", "passw", "passphrase"),
)
HIDDEN: Final = "[hidden]"
_SHORT: Final = 100
_MAX_CACHED: Final = 500


class Redactor:
    """Replaces secrets in text and in JSON-like values."""

    def __init__(self, environment: Mapping[str, str] | None = None, also: Iterable[str] = ()) -> None:
        known: dict[str, str] = {}
        for name, value in [*(("", value) for value in also), *(environment or {}).items()]:
            if not name or (len(value) >= MIN_SECRET_LENGTH and _names_secret(name)):
                shown = f"[hidden {name}]" if name else HIDDEN
                known.update(dict.fromkeys(_spellings(value), shown))
        self._cache: dict[str, str] = {}
        self._names = known
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
        is_secret = isinstance(item, str) and len(item) >= MIN_SECRET_LENGTH and _SECRET_FIELD.search(key)
        return HIDDEN if is_secret else self.value(item)


def without_secrets(environment: Mapping[str, str], passed: Iterable[str] = ()) -> dict[str, str]:
    """The environment for a command: without secrets, except for names that match a pattern of `passed`."""
    patterns = [re.compile(re.escape(pattern).replace(r"\*", ".*")) for pattern in passed]
    return {
        name: value
        for name, value in environment.items()
        if not _holds_secret(name, value) or any(pattern.fullmatch(name) for pattern in patterns)
    }


def _holds_secret(name: str, value: str) -> bool:
    if _LOGIN_IN_URL.search(value) or any(shape.search(value) for shape in _SHAPES):
        return True
    if _DATABASE_NAME.search(name) and "://" in value:
        # The address of a database without a login, such as a file, is no secret, unless the name says something else.
        return _SECRET_NAME.search(name) is not None
    return _names_secret(name)


def _spellings(value: str) -> Iterator[str]:
    """The forms in which programs print a value: as it is, line by line, and escaped."""
    yield value
    if value.isalnum():
        return
    import json
    from urllib.parse import quote

    # The second escape is for JSON inside JSON.
    escaped = json.dumps(value)[1:-1]
    yield from (escaped, json.dumps(value, ensure_ascii=False)[1:-1], json.dumps(escaped)[1:-1])
    yield quote(value, safe="")
    lines = [line.strip() for line in value.splitlines()]
    if len(lines) > 1:
        yield "\r\n".join(value.splitlines())
        yield from (line for line in lines if len(line) >= MIN_LINE_LENGTH and not line.startswith("-----"))


def _names_secret(name: str) -> bool:
    return name not in _NOT_SECRET and any(pattern.search(name) for pattern in (_SECRET_NAME, _DATABASE_NAME))
