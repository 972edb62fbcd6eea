"""Prices and context windows, from the table in `genai-prices`. No network access."""

from __future__ import annotations

from datetime import UTC, datetime

from punchlist.models.model import ModelInfo
from punchlist.models.providers import ResolvedModel


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
    return ModelInfo(known.context_window, _dollars(prices, "input_mtok"), _dollars(prices, "output_mtok"))


def _dollars(prices: object, unit: str) -> float | None:
    price = getattr(prices, unit, None)
    # Some models cost more for very long requests; the base price is the one for most requests.
    price = getattr(price, "base", price)
    return None if price is None else float(price)
