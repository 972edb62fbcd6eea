"""Send a message through a channel: a command, a signed webhook, or a service of apprise."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from punchlist.errors import PunchlistError
from punchlist.extras import require
from punchlist.kernel.process_runner import ProcessStartError, run_captured
from punchlist.missions.metrics.http_fetch import FetchError, fetch
from punchlist.notify.settings import NotifyChannel

SECONDS: Final = 20.0
_MAX_OUTPUT: Final = 10_000
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
SIGNATURE: Final = "X-Punchlist-Signature"
TIMESTAMP: Final = "X-Punchlist-Timestamp"


class NotSent(PunchlistError):
    """A message could not be sent."""

    code = "not_sent"


def send(
    channel: NotifyChannel, message: Mapping[str, Any], at: str, environment: Mapping[str, str], *, allow_private: bool
) -> None:
    """Raises `NotSent`. Blocks for at most `SECONDS`."""
    body = json.dumps(message, ensure_ascii=False).encode()
    if channel.command:
        _run(channel, body, environment)
    elif channel.webhook:
        _post(channel, body, at, environment, allow_private)
    else:
        _notify(channel, message, environment)


def _run(channel: NotifyChannel, body: bytes, environment: Mapping[str, str]) -> None:
    home = Path.home()
    try:
        done = run_captured(
            channel.command,
            folder=home if home.is_dir() else Path("/"),
            environment=environment,
            seconds=SECONDS,
            max_output=_MAX_OUTPUT,
            input=body,
            stop_at_max=False,
        )
    except (OSError, ProcessStartError) as error:
        raise NotSent(f"{channel.command[0]} cannot be run: {error}") from error
    if done.code != 0:
        state = "exceeded its time limit" if done.timed_out else f"ended with code {done.code}"
        raise NotSent(f"{channel.command[0]} {state}")


def _post(channel: NotifyChannel, body: bytes, at: str, environment: Mapping[str, str], allow_private: bool) -> None:
    headers = {"Content-Type": "application/json", TIMESTAMP: at}
    if channel.secret_env:
        secret = environment.get(channel.secret_env)
        if not secret:
            raise NotSent(f"the environment variable {channel.secret_env}, which signs the webhook, is not set")
        headers[SIGNATURE] = sign(secret, at, body)
    try:
        fetch(
            channel.webhook,
            headers=headers,
            environment={},
            seconds=SECONDS,
            max_bytes=_MAX_OUTPUT,
            allow_private=allow_private,
            body=body,
        )
    except FetchError as error:
        raise NotSent(str(error)) from error


def sign(secret: str, at: str, body: bytes) -> str:
    """Covers the time, so that an old message cannot be sent again."""
    return "sha256=" + hmac.new(secret.encode(), at.encode() + b"." + body, hashlib.sha256).hexdigest()


def _notify(channel: NotifyChannel, message: Mapping[str, Any], environment: Mapping[str, str]) -> None:
    def variable(found: re.Match[str]) -> str:
        value = environment.get(found[1])
        if value is None:
            raise NotSent(f"the environment variable {found[1]} is not set")
        return value

    apprise = require("apprise", extra="notify", feature="Notification services")
    services = apprise.Apprise()
    if not services.add(_VARIABLE.sub(variable, channel.service)):
        raise NotSent(f"channel {channel.name}: apprise does not know the service")
    if not services.notify(title=message["title"], body=message["body"]):
        raise NotSent(f"channel {channel.name}: the service did not accept the message")
