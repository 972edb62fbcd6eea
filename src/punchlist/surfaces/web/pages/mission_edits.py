"""Changes of a mission's settings from forms: each takes the configuration and returns a new one. Pure functions.

The configuration is that of the mission file, so that one form changes what it shows and keeps everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, Final

from punchlist.errors import InvalidInput
from punchlist.kernel.text import excerpt
from punchlist.missions.config.model import slug_of
from punchlist.missions.metrics.status import parse_number

Config = dict[str, Any]
Fields = Mapping[str, str]
"""The fields of a form."""

_WHOLE: Final = {"activeTodoLimit": "todo", "backlogTodoLimit": "todo", "maxReviews": "todo"}
_OPTIONAL: Final = ("costPerDay", "costPerTodo", "tokensPerDay", "tokensPerTodo")
"""Limits; empty is none."""


def edit_mission(config: Config, fields: Fields) -> Config:
    changed = deepcopy(config)
    changed["name"], changed["description"] = fields["name"], fields["description"]
    for name, part in _WHOLE.items():
        changed[part][name] = number_in(name, fields[name], whole=True)
    changed["cadence"] = {"timezone": fields["timezone"]} | ({"cron": fields["cron"]} if fields["cron"] else {})
    limits = changed.setdefault("limits", {})
    for name in _OPTIONAL:
        limits.pop(name, None)
        if fields[name]:
            limits[name] = number_in(name, fields[name], whole=name.startswith("tokens"))
    return changed


def edit_pillar(config: Config, fields: Fields) -> Config:
    """Without `slug`, a new pillar."""
    changed = deepcopy(config)
    values = {"name": fields["name"], "description": fields["description"]}
    if fields.get("slug"):
        _pillar(changed, fields["slug"]).update(values)
    else:
        changed["pillars"].append({**values, "slug": slug_of(fields["name"])})
    return changed


def remove_pillar(config: Config, fields: Fields) -> Config:
    changed = deepcopy(config)
    changed["pillars"].remove(_pillar(changed, fields["slug"]))
    return changed


def edit_metric(config: Config, fields: Fields) -> Config:
    """Without `slug`, a new metric, whose readings people record."""
    changed = deepcopy(config)
    metrics = _pillar(changed, fields["pillar"]).setdefault("metrics", [])
    values: dict[str, Any] = {
        "name": fields["name"],
        "unit": fields["unit"],
        "target": number_in("target", fields["target"]),
        "direction": fields["direction"],
    }
    if fields["warning"]:
        values["warning"] = number_in("warning", fields["warning"])
    if fields.get("slug"):
        metric = _metric(changed, fields)
        metric.pop("warning", None)
        metric.update(values)
    else:
        metrics.append({**values, "slug": slug_of(fields["name"]), "collector": {"type": "manual"}})
    return changed


def remove_metric(config: Config, fields: Fields) -> Config:
    changed = deepcopy(config)
    _pillar(changed, fields["pillar"])["metrics"].remove(_metric(changed, fields))
    return changed


EDITS: Final[dict[str, Callable[[Config, Fields], Config]]] = {
    "mission": edit_mission,
    "pillar": edit_pillar,
    "remove-pillar": remove_pillar,
    "metric": edit_metric,
    "remove-metric": remove_metric,
}


def _pillar(config: Config, slug: str) -> Config:
    found: Config | None = next((each for each in config["pillars"] if each["slug"] == slug), None)
    if found is None:
        raise InvalidInput(f"pillar: there is no pillar {excerpt(slug)!r} any more")
    return found


def _metric(config: Config, fields: Fields) -> Config:
    metrics = _pillar(config, fields["pillar"]).get("metrics", [])
    found: Config | None = next((each for each in metrics if each["slug"] == fields["slug"]), None)
    if found is None:
        raise InvalidInput(f"metric: there is no metric {excerpt(fields['slug'])!r} any more")
    return found


def number_in(name: str, text: str, *, whole: bool = False) -> float | int:
    """The number in a field; `name` is the field's name or label."""
    try:
        number = parse_number(text)
    except InvalidInput:
        raise InvalidInput(f"{name}: must be a number, got {excerpt(text)!r}") from None
    return int(number) if whole and number == int(number) else number
