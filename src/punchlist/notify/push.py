"""Web push: messages about the inbox, to the browsers in which a person turned it on.

A browser subscribes with its vendor's push service and gives us an address there and a key; messages are encrypted for
that key (pywebpush), so that the service reads none. The subscriptions are in a file of the user's data folder, one for
each database, which the servers and workers of a user share. A subscription ends with the login of its browser.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from punchlist.errors import InvalidInput, MissingExtra
from punchlist.extras import require
from punchlist.kernel.text import excerpt

SERVICES: Final = (
    "fcm.googleapis.com",
    "push.services.mozilla.com",
    "notify.windows.com",
    "push.apple.com",
)
"""The hosts of the browsers' push services, or the ends of their names. The server sends requests nowhere else."""
MAX_SUBSCRIPTIONS: Final = 20
_SECONDS: Final = 10
_DAY: Final = 24 * 3_600
_MAX_BODY: Final = 1_500
"""Characters; a push service takes at most 4,096 bytes, encrypted."""
_CONTACT: Final = "mailto:punchlist@example.com"
"""A push service requires a contact address; the address of the person is not given to it."""
_GONE: Final = (404, 410)


@dataclass(frozen=True, slots=True)
class PushSubscription:
    endpoint: str
    p256dh: str
    auth: str
    token_id: str
    """The login of the browser."""


class WebPush:
    def __init__(
        self,
        folder: Path,
        database: str,
        sign: Callable[..., str],
        is_valid: Callable[[str], bool],
        *,
        allow_private: bool = False,
    ) -> None:
        """`folder` is the user's; `sign` derives the server's key from theirs; `is_valid` knows the logins."""
        self._file = folder / "push" / f"{hashlib.sha256(database.encode()).hexdigest()[:32]}.json"
        self._sign = sign
        self._is_valid = is_valid
        self._allow_private = allow_private

    def public_key(self) -> str:
        """What browsers subscribe with."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        point = self._vapid().public_key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        return base64.urlsafe_b64encode(point).rstrip(b"=").decode()

    def subscriptions(self) -> list[PushSubscription]:
        try:
            return [PushSubscription(**each) for each in json.loads(self._file.read_text(encoding="utf-8"))]
        except (OSError, ValueError, TypeError):
            return []

    def subscribe(self, new: PushSubscription) -> None:
        self._check(new)
        # A subscription with which nothing can be sent would fail for the first time when an agent needs the person.
        self._vapid()
        with self._locked() as kept:
            kept[:] = [each for each in kept if each.endpoint != new.endpoint and self._is_valid(each.token_id)]
            if len(kept) >= MAX_SUBSCRIPTIONS:
                raise InvalidInput(
                    f"endpoint: {MAX_SUBSCRIPTIONS} browsers are subscribed. Turn push off in one of them."
                )
            kept.append(new)

    def unsubscribe(self, endpoint: str) -> None:
        with self._locked() as kept:
            kept[:] = [each for each in kept if each.endpoint != endpoint]

    def send(self, message: Mapping[str, Any]) -> list[str]:
        """Send to all browsers. Returns why others than expired ones did not get it; raises if the extra is missing."""
        data, problems, gone = json.dumps(payload(message)), list[str](), list[str]()
        for each in self.subscriptions():
            if not self._is_valid(each.token_id) or (status := self._post(each, data)) in _GONE:
                gone.append(each.endpoint)
            elif isinstance(status, str):
                problems.append(status)
        for endpoint in gone:
            self.unsubscribe(endpoint)
        return problems

    def _post(self, to: PushSubscription, data: str) -> int | str:
        pywebpush = require("pywebpush", extra="push", feature="Web push")
        import requests

        keys = {"p256dh": to.p256dh, "auth": to.auth}
        host = urlsplit(to.endpoint).hostname
        with requests.Session() as session:
            session.max_redirects = 0
            try:
                answer = pywebpush.webpush(
                    {"endpoint": to.endpoint, "keys": keys},
                    data,
                    vapid_private_key=self._vapid(),
                    vapid_claims={"sub": _CONTACT},
                    ttl=_DAY,
                    timeout=_SECONDS,
                    requests_session=session,
                )
                return int(answer.status_code)
            except pywebpush.WebPushException as error:
                status = getattr(error.response, "status_code", None)
                return int(status) if status in _GONE else f"{host} answered {status or excerpt(str(error), 200)}"
            except (requests.RequestException, ValueError) as error:
                return f"{host}: {type(error).__name__}"

    def _check(self, new: PushSubscription) -> None:
        parts = urlsplit(new.endpoint)
        host = parts.hostname or ""
        known = any(host == each or host.endswith(f".{each}") for each in SERVICES)
        if not (known and parts.scheme == "https" and parts.port in (None, 443)) and not self._allow_private:
            raise InvalidInput("endpoint: is not an address of a browser's push service")
        for name, length in (("p256dh", 65), ("auth", 16)):
            if _decoded_length(getattr(new, name)) != length:
                raise InvalidInput(f"keys.{name}: must be {length} bytes as base64url")

    def _vapid(self) -> Any:
        """The key that identifies this user's servers, derived from the user's key."""
        module = require("py_vapid", extra="push", feature="Web push")
        seed = int.from_bytes(hashlib.sha512(self._sign("web-push").encode()).digest(), "big")
        # The order of the curve P-256: a private key is a number from 1 to one less.
        order = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
        number = seed % (order - 1) + 1
        return module.Vapid02.from_raw(base64.urlsafe_b64encode(number.to_bytes(32, "big")).rstrip(b"="))

    def _locked(self) -> _Locked:
        return _Locked(self._file, self.subscriptions)


class _Locked:
    """The stored subscriptions, to be changed in place; written at the end of the block."""

    def __init__(self, file: Path, read: Callable[[], list[PushSubscription]]) -> None:
        from filelock import FileLock

        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._file, self._read = file, read
        self._lock = FileLock(f"{file}.lock", timeout=10)
        self._kept: list[PushSubscription] = []

    def __enter__(self) -> list[PushSubscription]:
        self._lock.acquire()
        self._kept = self._read()
        return self._kept

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                new = self._file.with_suffix(".new")
                with open(new, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                    json.dump([asdict(each) for each in self._kept], file)
                new.replace(self._file)
        finally:
            self._lock.release()


def payload(message: Mapping[str, Any]) -> dict[str, Any]:
    """What the service worker shows. A single approval can be answered there if the whole question is shown."""
    requests = message["requests"]
    title, shown = str(message["title"]).removeprefix("Punchlist: "), str(message["body"]).rpartition("\n")[0]
    found: dict[str, Any] = {"title": title, "url": "/", "count": len(requests)}
    if len(requests) == 1:
        one = requests[0]
        found |= {"url": f"/#request-{one['id']}", "tag": one["id"]}
        if one["kind"] == "approval" and len(one["question"]) <= 300:
            found["answers"], shown = one["id"], one["question"]
    return {**found, "body": excerpt_block(shown)}


def excerpt_block(text: str) -> str:
    return text if len(text) <= _MAX_BODY else f"{text[:_MAX_BODY]}…"


def _decoded_length(text: str) -> int:
    try:
        return len(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except ValueError:
        return -1


def is_installed() -> bool:
    try:
        require("pywebpush", extra="push", feature="Web push")
    except MissingExtra:
        return False
    return True
