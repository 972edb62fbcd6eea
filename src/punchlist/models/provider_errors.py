"""Maps provider errors to `ModelBusy` (retry) and `ModelRefused` (report to the person).

A message never contains a key. Providers quote parts of rejected keys, so their message about a rejected key
is not repeated, and other messages have the key removed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from punchlist.kernel.text import excerpt
from punchlist.models.model import ModelBusy, ModelError, ModelRefused, RequestRefused, RequestTooLong
from punchlist.models.providers import ResolvedModel

if TYPE_CHECKING:
    from punchlist.models.stream_reader import StreamReader

STREAM_BROKEN: Final = "The server closed the stream before the reply was complete."
_BUSY: Final = {408: "took too long", 409: "reported a conflict", 425: "is not ready", 429: "limits the request rate"}
_OVERLOADED: Final = (503, 529)
_MAX_LENGTH: Final = 300
_TOO_LARGE: Final = 413
_TOO_LONG: Final = re.compile(
    r"context[ _-](length|window|size)|(prompt|input|request) is too long|too many (input )?tokens"
    r"|(available|maximum) (context|input)",
    re.IGNORECASE,
)


def to_model_error(error: Exception, model: ResolvedModel, idle: float, reader: StreamReader) -> ModelError:
    """Accepts any exception of `pydantic_ai` and the layers below: a server can send anything."""
    if reader.too_long:
        limit = f"{reader.limit / 1_000_000:g} MB"
        return ModelRefused(f"{model.name} sent more than {limit} for one reply. The request was aborted.")
    mapped = error if isinstance(error, ModelError) else _map_error(error, model, idle)
    if reader.not_a_stream and isinstance(mapped, ModelBusy):
        # A proxy's page, or a server without streaming: a retry would bring the same.
        what = f"{model.host} answered with {excerpt(reader.media_type)} instead of an event stream."
        return ModelRefused(f"{what} {_check(model)}")
    return mapped


def _map_error(error: Exception, model: ResolvedModel, idle: float) -> ModelError:
    import httpx2
    from pydantic_ai import exceptions as known

    name = model.provider.name
    match error:
        case known.ModelQuotaExceededError():
            return ModelRefused(f"{name}: the account has no quota or credit left.")
        case known.ModelContextWindowExceededError():
            return RequestTooLong(f"The request is longer than {model.model} takes.")
        case known.ModelHTTPError():
            return _http_error(error.status_code, error, model)
        case known.ModelConnectionError(phase="connect") | httpx2.ConnectError() | httpx2.ConnectTimeout():
            return _unreachable(model)
        case known.ModelRequestTimeout() | known.ModelTimeoutError() | httpx2.TimeoutException():
            return ModelBusy(f"{name} sent nothing for {idle:g} s.")
        case known.ModelRequestRejectedError():
            return _refused(f"{name} refused", _words(error, model))
        case known.ModelAPIError() if 300 <= getattr(error.__cause__, "status_code", 0) < 400:
            # Redirects are not followed, since the key would be sent along.
            return ModelRefused(f"{model.host} redirects to another address. {_check(model)}")
        case known.ModelAPIError() | known.UnexpectedModelBehavior() | httpx2.HTTPError() | httpx2.StreamError():
            return ModelBusy(STREAM_BROKEN, getattr(error, "retry_after", None))
        case known.UserError() | UnicodeEncodeError():
            return RequestRefused(f"{name} cannot take the request: {_clean(str(error), model)}")
    return ModelBusy(f"{model.host} sent a response that cannot be read ({type(error).__name__}).")


def _unreachable(model: ResolvedModel) -> ModelBusy:
    return ModelBusy(f"No connection to {model.host}. {_check(model)}".rstrip())


def _check(model: ResolvedModel) -> str:
    return f"Check {model.provider.url_variable}." if model.provider.url_variable else ""


def _http_error(status: int, error: Any, model: ResolvedModel) -> ModelError:
    provider = model.provider
    if status in _BUSY or status >= 500:
        what = _BUSY.get(status, "is overloaded" if status in _OVERLOADED else "has an internal error")
        return ModelBusy(f"{provider.name} {what} (HTTP {status}).", error.retry_after)
    match status:
        case 401:
            if model.key is None:
                return ModelRefused(f"{provider.key_variable} is not set.")
            return ModelRefused(f"{provider.name} rejected the key. Check {provider.key_variable}.")
        case 403:
            return ModelRefused(f"The key in {provider.key_variable} is not allowed to use {excerpt(model.model)}.")
        case 404:
            what = f"{model.host} has no model {excerpt(model.model)!r}."
            return ModelRefused(f"{what} Check the name and {provider.url_variable}.")
    return _refused(f"{provider.name} refused the request (HTTP {status})", _words(error, model), status)


def _refused(what: str, words: str, status: int = 0) -> RequestRefused:
    """Servers have many words for a request that is longer than the context window."""
    too_long = status == _TOO_LARGE or _TOO_LONG.search(words) is not None
    return (RequestTooLong if too_long else RequestRefused)(f"{what}: {words}")


def _words(error: Any, model: ResolvedModel) -> str:
    """The provider's message, wherever it is in the response body."""
    body = error.body
    while isinstance(body, dict):
        body = body.get("message") or body.get("error")
    if not isinstance(body, str) or body.lstrip().startswith("<"):
        # HTML from a proxy.
        return "it gave no readable reason."
    return _clean(body, model)


def _clean(text: str, model: ResolvedModel) -> str:
    if model.key is not None:
        text = text.replace(model.key, "***")
    return excerpt(" ".join(text.split()), _MAX_LENGTH)
