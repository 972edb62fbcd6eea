"""Optional dependencies: import them, or say how to install them."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Final

from punchlist.errors import MissingExtra

EXTRA_OF: Final = {
    "anthropic": "agent",
    "genai_prices": "agent",
    "httpx2": "agent",
    "jsonschema": "agent",
    "mcp": "agent",
    "openai": "agent",
    "pydantic": "agent",
    "pydantic_ai": "agent",
    "textual": "agent",
    "croniter": "missions",
    "dbos": "missions",
    "jinja2": "missions",
    "markdown_it": "missions",
    "nh3": "missions",
    "segno": "missions",
    "sqlalchemy": "missions",
    "starlette": "missions",
    "uvicorn": "missions",
    "psycopg": "postgres",
    "apprise": "notify",
    "pywebpush": "push",
    "py_vapid": "push",
}
"""Optional packages and the extra that installs each."""
FEATURES: Final = {
    "agent": "The agent",
    "missions": "Mission support",
    "postgres": "PostgreSQL support",
    "notify": "Notification services",
    "push": "Web push",
}


def missing_extra(error: ModuleNotFoundError) -> MissingExtra | None:
    """The error to report if an optional package is missing; None if the module is not an optional package."""
    package = (error.name or "").partition(".")[0]
    extra = EXTRA_OF.get(package)
    return MissingExtra(FEATURES[extra], extra) if extra else None


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
