"""Optional dependencies: import them, or say how to install them."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from punchlist.errors import MissingExtra


def require(module: str, *, extra: str, feature: str) -> ModuleType:
    """Import an optional dependency. `feature` is what needs it, as the subject of a sentence: "PostgreSQL support".

    Only the absence of the package itself means that the extra is missing; an import error inside it is passed on.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise MissingExtra(feature, extra) from error


def require_agent() -> None:
    """Check for the packages that agents and their tools need. Provider SDKs are checked when a model is opened."""
    require("pydantic", extra="agent", feature="The agent")
