"""What a provider's failure means for the loop: ask again, or tell a person.

A message never holds a key. Providers quote (parts of) keys when they refuse them, so of a refused key
nothing that the provider says is repeated, and elsewhere the key is struck out.
"""

from __future__ import annotations

from typing import Any, Final

from punchlist.kernel.text import excerpt
from punchlist.models.choosing import Chosen
from punchlist.models.model import ModelBusy, ModelError, ModelRefused

BROKE_OFF: Final = "The stream broke off."
_BUSY: Final = {408: "took too long", 409: "was in conflict with itself", 425: "is not ready", 429: "limits the rate"}
_OVERLOADED: Final = (503, 529)
_LONGEST: Final = 300


def silent(model: Chosen, seconds: float) -> ModelBusy:
    return ModelBusy(f"{model.provider.name} sent nothing for {seconds:g} s.")


def failure(error: Exception, model: Chosen, idle: float) -> ModelError:
    """Takes what `pydantic_ai` and its transport raise."""
    import httpx2
    from pydantic_ai import exceptions as known

    match error:
        case known.ModelQuotaExceededError():
            return ModelRefused(f"{model.provider.name}: the account has no quota or credit left.")
        case known.ModelContextWindowExceededError():
            return ModelRefused(f"The request is longer than {model.model} takes.")
        case known.ModelHTTPError():
            return _answered(error.status_code, error, model)
        case known.ModelTimeoutError(phase="connect") | httpx2.ConnectTimeout():
            return _unreachable(model)
        case known.ModelRequestTimeout() | known.ModelTimeoutError() | httpx2.TimeoutException():
            return silent(model, idle)
        case known.ModelConnectionError(phase="connect") | httpx2.ConnectError():
            return _unreachable(model)
        case known.ModelRequestRejectedError():
            return ModelRefused(f"{model.provider.name} refused: {_words(error, model)}")
        case known.ModelAPIError() if 300 <= getattr(error.__cause__, "status_code", 0) < 400:
            # It is not followed: the key would go along.
            return ModelRefused(f"{model.host} refused: it sends elsewhere. Check {model.provider.address}.")
        case known.ModelAPIError() | known.UnexpectedModelBehavior() | httpx2.HTTPError() | httpx2.StreamError():
            return ModelBusy(BROKE_OFF, getattr(error, "retry_after", None))
    return ModelRefused(f"{model.provider.name} cannot be asked: {_clean(str(error), model)}")


def _unreachable(model: Chosen) -> ModelBusy:
    return ModelBusy(f"No connection to {model.host}. Is {model.provider.address} right?")


def _answered(status: int, error: Any, model: Chosen) -> ModelError:
    provider = model.provider
    if status in _BUSY or status >= 500:
        what = _BUSY.get(status, "is overloaded" if status in _OVERLOADED else "has a problem of its own")
        return ModelBusy(f"{provider.name} {what} (HTTP {status}).", error.retry_after)
    match status:
        case 401:
            if model.key is None:
                return ModelRefused(f"{provider.key} is not set.")
            return ModelRefused(f"{provider.name} does not accept the key. Check {provider.key}.")
        case 403:
            return ModelRefused(f"The key in {provider.key} may not use {excerpt(model.model)}.")
        case 404:
            what = f"{model.host} has no model {excerpt(model.model)!r}."
            return ModelRefused(f"{what} Check the name and {provider.address}.")
    return ModelRefused(f"{provider.name} refused the request (HTTP {status}): {_words(error, model)}")


def _words(error: Any, model: Chosen) -> str:
    """What the provider said, wherever in its body that stands."""
    body = error.body
    while isinstance(body, dict):
        body = body.get("message") or body.get("error")
    return _clean(body if isinstance(body, str) else "it gave no reason.", model)


def _clean(text: str, model: Chosen) -> str:
    if model.key is not None:
        text = text.replace(model.key, "***")
    return excerpt(" ".join(text.split()), _LONGEST)
