"""Prices and context windows, from the table in `genai-prices`. No network access."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from punchlist.models.model import ModelInfo
from punchlist.models.providers import ResolvedModel

_CACHE_READ_FACTOR: Final = {"anthropic": 0.1}
_CACHE_WRITE_FACTOR: Final = {"anthropic": 1.25}
"""Prices relative to other input tokens, for models that the table has no cache prices for."""


def model_info(model: ResolvedModel) -> ModelInfo:
    if model.provider.priced_as is None:
        return ModelInfo()
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, known = get_snapshot().find_provider_model(
            model.model, provider=None, provider_id=model.provider.priced_as, provider_api_url=None
        )
    except LookupError:
        return ModelInfo()
    prices = known.get_prices(datetime.now(UTC)) if known.prices else None
    input_price, provider = _dollars(prices, "input_mtok"), model.provider.priced_as
    return ModelInfo(
        known.context_window,
        input_price,
        _dollars(prices, "output_mtok"),
        _cache_price(prices, "cache_read_mtok", input_price, _CACHE_READ_FACTOR.get(provider)),
        _cache_price(prices, "cache_write_mtok", input_price, _CACHE_WRITE_FACTOR.get(provider)),
    )


def _cache_price(prices: object, unit: str, input_price: float | None, factor: float | None) -> float | None:
    price = _dollars(prices, unit)
    return input_price * factor if price is None and input_price is not None and factor is not None else price


def _dollars(prices: object, unit: str) -> float | None:
    price = getattr(prices, unit, None)
    # Some models cost more for very long requests; the base price is the one for most requests.
    price = getattr(price, "base", price)
    return None if price is None else float(price)
