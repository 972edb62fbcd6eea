"""What a provider's failure means for the loop: ask again, or tell a person.

A message never holds a key. Providers quote (parts of) keys when they refuse them, so of a refused key
nothing that the provider says is repeated, and elsewhere the key is struck out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from punchlist.kernel.text import excerpt
from punchlist.models.model import ModelBusy, ModelError, ModelRefused, RequestRefused
from punchlist.models.providers import ResolvedModel

if TYPE_CHECKING:
    from punchlist.models.stream_reader import StreamReader

BROKE_OFF: Final = "The stream broke off."
_BUSY: Final = {408: "took too long", 409: "was in conflict with itself", 425: "is not ready", 429: "limits the rate"}
_OVERLOADED: Final = (503, 529)
_LONGEST: Final = 300


def to_model_error(error: Exception, model: ResolvedModel, idle: float, reading: StreamReader) -> ModelError:
    """Takes whatever `pydantic_ai` and what is below it raise: a server can send anything."""
    if reading.too_much:
        most = f"{reading.most / 1_000_000:g} MB"
        return ModelRefused(f"{model.name} sent more than {most} for one reply, and was cut off.")
    meant = error if isinstance(error, ModelError) else _meant(error, model, idle)
    if reading.no_stream and isinstance(meant, ModelBusy):
        # A proxy's page, or a server that knows no streams: it will do the same again.
        what = f"{model.host} answered with {excerpt(reading.kind)}, not with a stream of events."
        return ModelRefused(f"{what} {_check(model)}")
    return meant


def _meant(error: Exception, model: ResolvedModel, idle: float) -> ModelError:
    import httpx2
    from pydantic_ai import exceptions as known

    name = model.provider.name
    match error:
        case known.ModelQuotaExceededError():
            return ModelRefused(f"{name}: the account has no quota or credit left.")
        case known.ModelContextWindowExceededError():
            return RequestRefused(f"The request is longer than {model.model} takes.")
        case known.ModelHTTPError():
            return _answered(error.status_code, error, model)
        case known.ModelConnectionError(phase="connect") | httpx2.ConnectError() | httpx2.ConnectTimeout():
            return _unreachable(model)
        case known.ModelRequestTimeout() | known.ModelTimeoutError() | httpx2.TimeoutException():
            return ModelBusy(f"{name} sent nothing for {idle:g} s.")
        case known.ModelRequestRejectedError():
            return RequestRefused(f"{name} refused: {_words(error, model)}")
        case known.ModelAPIError() if 300 <= getattr(error.__cause__, "status_code", 0) < 400:
            # It is not followed: the key would go along.
            return ModelRefused(f"{model.host} refused: it sends elsewhere. {_check(model)}")
        case known.ModelAPIError() | known.UnexpectedModelBehavior() | httpx2.HTTPError() | httpx2.StreamError():
            return ModelBusy(BROKE_OFF, getattr(error, "retry_after", None))
        case known.UserError() | UnicodeEncodeError():
            return RequestRefused(f"{name} cannot be asked: {_clean(str(error), model)}")
    return ModelBusy(f"{model.host} sent what cannot be read ({type(error).__name__}).")


def _unreachable(model: ResolvedModel) -> ModelBusy:
    return ModelBusy(f"No connection to {model.host}. {_check(model)}".rstrip())


def _check(model: ResolvedModel) -> str:
    return f"Check {model.provider.url_variable}." if model.provider.url_variable else ""


def _answered(status: int, error: Any, model: ResolvedModel) -> ModelError:
    provider = model.provider
    if status in _BUSY or status >= 500:
        what = _BUSY.get(status, "is overloaded" if status in _OVERLOADED else "has a problem of its own")
        return ModelBusy(f"{provider.name} {what} (HTTP {status}).", error.retry_after)
    match status:
        case 401:
            if model.key is None:
                return ModelRefused(f"{provider.key_variable} is not set.")
            return ModelRefused(f"{provider.name} does not accept the key. Check {provider.key_variable}.")
        case 403:
            return ModelRefused(f"The key in {provider.key_variable} may not use {excerpt(model.model)}.")
        case 404:
            what = f"{model.host} has no model {excerpt(model.model)!r}."
            return ModelRefused(f"{what} Check the name and {provider.url_variable}.")
    return RequestRefused(f"{provider.name} refused the request (HTTP {status}): {_words(error, model)}")


def _words(error: Any, model: ResolvedModel) -> str:
    """What the provider said, wherever in its body that stands."""
    body = error.body
    while isinstance(body, dict):
        body = body.get("message") or body.get("error")
    if not isinstance(body, str) or body.lstrip().startswith("<"):
        # The page of a proxy.
        return "it gave no reason that can be read."
    return _clean(body, model)


def _clean(text: str, model: ResolvedModel) -> str:
    if model.key is not None:
        text = text.replace(model.key, "***")
    return excerpt(" ".join(text.split()), _LONGEST)
