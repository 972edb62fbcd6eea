"""Reads mission.json: text to `MissionConfig`, or to the list of everything that is wrong with it.

A problem starts with the path of its field, such as `pillars[2].metrics[0].target`. Nothing that the file names is
run, opened or fetched here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, BinaryIO, Final

from punchlist.errors import InvalidInput, NotFound
from punchlist.kernel.camel_json import camel_case
from punchlist.kernel.text import did_you_mean, display_value, excerpt, field_path, json_type
from punchlist.missions.config import model
from punchlist.missions.config.model import MAX_METRICS, MAX_STRATEGIES, MissionConfig
from punchlist.missions.config.policy import Cadence, TodoPolicy

MAX_FILE_BYTES: Final = 1_000_000

FieldPath = tuple[int | str, ...]


# --- text -------------------------------------------------------------------------------------------------


def read(path: Path) -> str:
    """The text of a mission file; `-` reads stdin."""
    if str(path) == "-":
        return _decode(sys.stdin.buffer, "stdin")
    try:
        if path.is_dir():
            raise InvalidInput(f"{path}: is a folder, not a mission file.")
        with path.open("rb") as file:
            return _decode(file, str(path))
    except FileNotFoundError:
        raise NotFound(f"{path}: there is no such file. Create one with `punchlist mission init {path}`.") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InvalidInput(f"{excerpt(str(path), 200)}: cannot be read ({reason}).") from error


def _decode(file: BinaryIO, where: str) -> str:
    content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise InvalidInput(f"{where}: is larger than {MAX_FILE_BYTES:,} bytes, the limit for a mission file.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{where}: is not UTF-8 (byte {error.start + 1:,}). Save it as UTF-8.") from None


class _Object(dict[str, Any]):
    """A JSON object that remembers its duplicate keys."""

    duplicates: tuple[str, ...] = ()

    @classmethod
    def from_pairs(cls, pairs: list[tuple[str, Any]]) -> _Object:
        made = cls(pairs)
        if len(made) < len(pairs):
            keys = [key for key, _ in pairs]
            made.duplicates = tuple(key for key in made if keys.count(key) > 1)
        return made


def parse_mission(source: str, where: str = "mission.json") -> MissionConfig:
    """Validate the text of a mission file; `where` is the name used in error messages."""
    if len(source) > MAX_FILE_BYTES:
        raise InvalidInput(f"{where}: is larger than {MAX_FILE_BYTES:,} characters, the limit for a mission file.")
    try:
        raw = json.loads(source, object_pairs_hook=_Object.from_pairs)
    except json.JSONDecodeError as error:
        raise InvalidInput(
            f"{where}, line {error.lineno}, column {error.colno}: is not JSON "
            f"({error.msg[:1].lower()}{error.msg[1:]}).{_syntax_hint(source, error.pos)}"
        ) from None
    except RecursionError:
        raise InvalidInput(f"{where}: is nested too deeply; a mission file needs no more than six levels.") from None
    except ValueError:
        raise InvalidInput(f"{where}: has a number with thousands of digits.") from None
    try:
        return parse_value(raw)
    except InvalidInput as error:
        raise InvalidInput([f"{where}: {problem}" for problem in error.problems]) from None


def _syntax_hint(source: str, position: int) -> str:
    """Explains the usual mistakes in hand-written JSON."""
    rest, before = source[position : position + 2], source[:position].rstrip()
    if rest in ("//", "/*") or rest.startswith("#"):
        return " JSON has no comments: remove them, or put them into a description."
    if rest.startswith("'"):
        return " JSON needs double quotes."
    if rest[:1] in ("}", "]") and before.endswith(","):
        return " Remove the comma before it."
    if before.endswith(",") and rest[:1] == ",":
        return " Remove the second comma."
    return ""


# --- values -----------------------------------------------------------------------------------------------


def parse_value(raw: Any) -> MissionConfig:
    """Validate parsed JSON. `InvalidInput.problems` lists everything that is wrong."""
    from pydantic import ValidationError

    problems = [f"{_path(path)}: occurs more than once" for path in _duplicates(raw, ())]
    try:
        config = MissionConfig.model_validate(raw)
    except ValidationError as error:
        # Unknown fields first: a misspelt name explains the missing field after it.
        errors = sorted(error.errors(include_url=False), key=lambda each: each["type"] not in _UNKNOWN_FIELD)
        raise InvalidInput(problems + [problem for each in errors for problem in _explain(each)]) from None
    problems += _cross_reference_problems(config)
    if problems:
        raise InvalidInput(problems)
    return config


def _duplicates(raw: Any, path: FieldPath) -> Iterator[FieldPath]:
    if isinstance(raw, _Object):
        yield from ((*path, key) for key in raw.duplicates)
    entries = raw.items() if isinstance(raw, dict) else enumerate(raw) if isinstance(raw, list) else ()
    for key, value in entries:
        yield from _duplicates(value, (*path, key))


_UNKNOWN_FIELD: Final = ("extra_forbidden", "unexpected_keyword_argument")
_NOT_AN_OBJECT: Final = ("model_type", "model_attributes_type", "dataclass_type", "dict_type")
_NOT_AN_ARRAY: Final = ("tuple_type", "list_type")


def _explain(error: Any) -> Iterator[str]:
    """The messages for one pydantic error."""
    path, kind, value, context = error["loc"], error["type"], error["input"], error.get("ctx", {})
    where = _path(path) or "the file"
    if kind in _UNKNOWN_FIELD:
        known = _field_names(path[:-1])
        yield f"{where}: is not a known field.{did_you_mean(path[-1], known)} Known fields: {', '.join(known)}"
    elif kind in ("missing", "missing_argument"):
        yield f"{where}: is required"
    elif kind in _NOT_AN_OBJECT:
        yield f"{where}: must be an object, got {json_type(value)}"
    elif kind in _NOT_AN_ARRAY:
        yield f"{where}: must be an array, got {json_type(value)}"
    elif kind == "too_long":
        yield f"{where}: at most {context['max_length']} entries, got {context['actual_length']}"
    elif kind in ("literal_error", "enum"):
        options = context["expected"].replace(" or ", ", ").replace("'", "")
        yield f"{where}: must be one of {options}, got {display_value(value)}"
    elif kind in ("union_tag_invalid", "union_tag_not_found"):
        tag = value.get("type")
        suggestion = did_you_mean(tag, model.COLLECTORS)
        got = f"got {display_value(tag)}" if "type" in value else "but is missing"
        yield f"{where}.type: must be one of {', '.join(model.COLLECTORS)}, {got}.{suggestion}".rstrip(".")
    elif kind == "value_error":
        for problem in context["error"].args:
            yield f"{where if path else ''}{problem}".lstrip(".") if problem[0] in ".[" else f"{where}: {problem}"
    else:
        yield f"{where}: {error['msg']}"


def _path(path: FieldPath) -> str:
    """`pillars[2].metrics[0].target`. Drops what pydantic adds to the path: the collector's type and `[key]`."""
    return field_path(
        part
        for index, part in enumerate(path)
        if part != "[key]" and not (index > 4 and path[index - 1] == "collector")
    )


def _field_names(path: FieldPath) -> list[str]:
    """The names of the fields that the object at `path` can have."""
    match [part for part in path if isinstance(part, str)]:
        case []:
            owner: Any = MissionConfig
        case ["todo"]:
            owner = TodoPolicy
        case ["cadence"]:
            owner = Cadence
        case ["pillars"]:
            owner = model.PillarConfig
        case ["pillars", "metrics"]:
            owner = model.MetricConfig
        case ["pillars", "strategies"]:
            owner = model.StrategyConfig
        case ["templates"]:
            owner = model.TodoTemplate
        case ["pillars", "metrics", "collector", kind]:
            return list(model.COLLECTORS[kind].__annotations__)
        case _:
            return list(model.CommandCheck.__annotations__)
    if hasattr(owner, "model_fields"):
        return [camel_case(name) for name in owner.model_fields]
    return [camel_case(field.name) for field in fields(owner)]


def _cross_reference_problems(config: MissionConfig) -> list[str]:
    """Limits, unique slugs and references across the whole file."""
    metrics = [
        (f"pillars[{row}].metrics[{column}]", metric.slug)
        for row, pillar in enumerate(config.pillars)
        for column, metric in enumerate(pillar.metrics)
    ]
    strategies = sum(len(pillar.strategies) for pillar in config.pillars)
    problems = []
    if len(metrics) > MAX_METRICS:
        problems.append(f"pillars: at most {MAX_METRICS} metrics in total, got {len(metrics)}")
    if strategies > MAX_STRATEGIES:
        problems.append(f"pillars: at most {MAX_STRATEGIES} strategies in total, got {strategies}")
    pillars = [(f"pillars[{index}]", pillar.slug) for index, pillar in enumerate(config.pillars)]
    templates = [(f"templates[{index}]", template.slug) for index, template in enumerate(config.templates)]
    for what, slugs in (("pillar", pillars), ("metric", metrics), ("template", templates)):
        problems += _duplicate_slugs(what, slugs)
    known = {"name": ("check", set(config.checks)), "metric": ("metric", {slug for _, slug in metrics})}
    for index, template in enumerate(config.templates):
        for key, (what, names) in known.items():
            name = (template.check or {}).get(key)
            if name is not None and name not in names:
                problems.append(f"templates[{index}].check.{key}: this file has no {what} {display_value(name)}")
    return problems


def _duplicate_slugs(what: str, slugs: Sequence[tuple[str, str]]) -> Iterator[str]:
    first: dict[str, str] = {}
    for where, slug in slugs:
        if slug in first:
            yield f"{where}.slug: {slug!r} is already the slug of {first[slug]}; each {what} of a mission needs its own"
        first.setdefault(slug, where)
