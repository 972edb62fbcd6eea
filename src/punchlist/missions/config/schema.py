"""mission.json for editors: a JSON Schema, from the same numbers and names that the reading goes by.

It tells the shape. What takes more than a shape, that no slug is there twice or that a cron expression can be
read, only `file.py` knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from punchlist.missions.config import collector as collectors
from punchlist.missions.config import file
from punchlist.missions.config import model as config_model
from punchlist.missions.config.fields import LARGEST_NUMBER, SLUG
from punchlist.missions.config.json import plain, policy_json
from punchlist.missions.config.model import OverduePending, StaleBacklog, TodoPolicy

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_SLUG: Final = f"^{SLUG.pattern}$"
_ONE_LINE: Final = r"^[^\n\r]*\S[^\n\r]*$"
_NOT_BLANK: Final = r"\S"

Schema = dict[str, Any]


def mission_schema() -> Schema:
    return {
        "$schema": DIALECT,
        "title": "A Punchlist mission",
        **_object(
            file.MISSION_FIELDS,
            {
                "name": _line("What the mission is called.", file.LONGEST_NAME),
                "slug": _slug("Its name in commands and tools. Left out, it is made from the name."),
                "description": _block("What is to be reached, and why."),
                "todo": _policy(),
                "cadence": _cadence(),
                "pillars": _array("The parts that the mission stands on.", _pillar(), file.MOST_PILLARS),
                "templates": _array(
                    "Kinds of todos: what is said here stands in for what their maker leaves out.",
                    _template(),
                    file.MOST_TEMPLATES,
                ),
                "checks": {
                    "description": "Commands by name, for the checks of todos. They run once the file is trusted.",
                    "type": "object",
                    "propertyNames": {"pattern": _SLUG},
                    "maxProperties": file.MOST_CHECKS,
                    "additionalProperties": _check(),
                },
            },
            "name",
        ),
    }


def _policy() -> Schema:
    usual = policy_json(TodoPolicy())
    numbers: dict[str, tuple[str, str, float, float]] = {
        "activeTodoLimit": ("integer", "How many todos may be pending or in progress at once.", 1, file.MOST_ACTIVE),
        "backlogTodoLimit": ("integer", "How many todos may wait in the backlog.", 0, file.MOST_BACKLOG),
        "archiveAfterDays": ("number", "When ended todos leave the usual views.", 0, file.MOST_DAYS),
        "staleBacklogAfterDays": ("number", "When a todo has been in the backlog for too long.", 0, file.MOST_DAYS),
        "reminderHours": ("number", "How often a question is repeated.", file.LEAST_HOURS, file.MOST_HOURS),
        "maxReviews": (
            "integer",
            "How often work may be sent back before a person is asked.",
            0,
            file.MOST_TIMES_REVIEWED,
        ),
        "maxStartsPerDay": ("integer", "Todos that agents may start within a day.", 0, file.MOST_STARTS),
        "maxCostPerDay": ("number", "Dollars within a day, after which agents start nothing.", 0, file.MOST_COST),
    }
    choices: dict[str, tuple[str, Sequence[str]]] = {
        "staleBacklogPolicy": ("What becomes of such a todo.", list(StaleBacklog)),
        "overduePendingPolicy": ("What becomes of a todo that was not started in time.", list(OverduePending)),
    }
    fields: dict[str, Schema] = {
        name: {"description": said, "type": kind, "minimum": plain(least), "maximum": plain(most)}
        for name, (kind, said, least, most) in numbers.items()
    }
    fields |= {name: _choice(said, options) for name, (said, options) in choices.items()}
    for name, value in usual.items():
        fields[name]["default"] = value
    return {"description": "How many todos there may be, and for how long.", **_object(file.TODO_FIELDS, fields)}


def _cadence() -> Schema:
    fields = {
        "cron": _line("When the mission is planned: minute, hour, day, month, weekday.", file.LONGEST_CADENCE),
        "timezone": {**_line("The time zone of the cadence and of deadlines.", file.LONGEST_CADENCE), "default": "UTC"},
    }
    return {"description": "When the mission is planned and its deadlines looked at.", **_object(tuple(fields), fields)}


def _pillar() -> Schema:
    strategy = {
        "description": _block("What is done to get there.", shortest=1),
        "status": {**_choice("How it stands.", file.STRATEGY_STATES), "default": "active"},
    }
    return _object(
        file.PILLAR_FIELDS,
        {
            "name": _line("What the pillar is called.", file.LONGEST_NAME),
            "slug": _slug("Left out, it is made from the name."),
            "description": _block("Its goal."),
            "metrics": _array("How its goal is measured.", _metric(), file.MOST_METRICS),
            "strategies": _array(
                "How its goal is to be reached.",
                _object(("description", "status"), strategy, "description"),
                file.MOST_STRATEGIES,
            ),
        },
        "name",
    )


def _metric() -> Schema:
    return _object(
        file.METRIC_FIELDS,
        {
            "name": _line("What is measured.", file.LONGEST_NAME),
            "slug": _slug("Unique in the mission. Left out, it is made from the name."),
            "unit": _line("Such as s, % or €.", file.LONGEST_UNIT, shortest=0),
            "target": _number("The value to reach."),
            "warning": _number("Between the target and this, a value is a warning; past it, it is off target."),
            "direction": _choice("Whether more is better, or less.", file.DIRECTIONS),
            "collector": {
                "description": "Where readings come from.",
                "oneOf": [_collector(kind) for kind in collectors.FIELDS],
                "default": {"type": "manual"},
            },
            "staleAfterHours": {
                **_number("Without a reading for so long, it is stale.", file.LEAST_HOURS, file.MOST_HOURS),
                "default": plain(config_model.STALE_METRIC_HOURS),
            },
        },
        *("name", "target", "direction"),
    )


def _collector(kind: str) -> Schema:
    described = {
        "manual": "Somebody enters them.",
        "command": "A program prints them. It runs once the file is trusted.",
        "file": "A file of the project holds the present one.",
        "http": "A JSON address tells it. It is asked once the file is trusted.",
        "python": "A function of Python returns it. It is called once the file is trusted.",
    }
    parts: dict[str, Schema] = {
        "type": {"const": kind},
        "command": _command(),
        "pattern": _line("A regular expression with one group, which finds the number.", collectors.LONGEST_PATTERN),
        "timeoutSeconds": _seconds(),
        "path": {
            **_line("A path in the project's folder.", collectors.LONGEST_PATH),
            "not": {"pattern": r"^([/\\~]|[A-Za-z]:)|(^|[/\\])\.\.([/\\]|$)"},
        },
        "pointer": {
            "description": "A JSON pointer to the number, such as /data/0/value.",
            "type": "string",
            "pattern": f"^{collectors.POINTER.pattern}$",
            "maxLength": collectors.LONGEST_PATTERN,
        },
        "url": {
            "description": "An http:// or https:// address.",
            "type": "string",
            "pattern": r"^[Hh][Tt][Tt][Pp][Ss]?://[^/?#\s@]+([/?#][^\s]*)?$",
            "maxLength": collectors.LONGEST_URL,
        },
        "headers": {
            "description": "Sent with the request.",
            "type": "object",
            "maxProperties": collectors.MOST_HEADERS,
            "additionalProperties": {"type": "string", "maxLength": collectors.LONGEST_HEADER},
        },
        "entryPoint": {
            "description": "As module:function, or the name of an entry point in the group punchlist.collectors.",
            "type": "string",
            "pattern": f"^({collectors.ENTRY_POINT.pattern})$",
        },
    }
    fields = collectors.FIELDS[kind]
    made = _object(fields, {name: parts[name] for name in fields}, "type", *collectors.REQUIRED[kind])
    if {"pointer", "pattern"} <= set(fields):
        made["not"] = {"required": ["pointer", "pattern"]}
    return {"description": described[kind], **made}


def _template() -> Schema:
    limit = {name: _number("The limit.") for name in ("atMost", "atLeast")}
    metric = {"metric": _slug("A metric of this mission."), **limit}
    made = _object(
        file.TEMPLATE_FIELDS,
        {
            "slug": _slug("Left out, it is made from the title."),
            "title": _line("What such a todo is called.", file.LONGEST_NAME, shortest=0),
            "description": _block("What is to be done."),
            "justification": _block("Why, from the metrics."),
            "completionCriteria": _block("When it is done."),
            "priority": _choice("How urgent it is.", file.PRIORITIES),
            "check": {
                "description": "What must hold before such a todo can be completed.",
                "oneOf": [
                    _object(("name",), {"name": _slug("One of the checks of this mission.")}, "name"),
                    {**_object(tuple(metric), metric, "metric"), "minProperties": 2, "maxProperties": 2},
                ],
            },
        },
    )
    return {**made, "anyOf": [{"required": ["slug"]}, {"required": ["title"]}]}


def _check() -> Schema:
    fields = {"command": _command(), "timeoutSeconds": {**_seconds(), "default": plain(collectors.COMMAND_SECONDS)}}
    return _object(tuple(fields), fields, "command")


# --- the small ones ---------------------------------------------------------------------------------------


def _object(names: tuple[str, ...], fields: dict[str, Schema], *required: str) -> Schema:
    made: Schema = {
        "type": "object",
        "properties": {name: fields[name] for name in names},
        "additionalProperties": False,
    }
    return {**made, "required": list(required)} if required else made


def _array(said: str, items: Schema, most: int) -> Schema:
    return {"description": said, "type": "array", "items": items, "maxItems": most}


def _line(said: str, longest: int, *, shortest: int = 1) -> Schema:
    made: Schema = {"description": said, "type": "string", "maxLength": longest}
    return {**made, "pattern": _ONE_LINE} if shortest else made


def _block(said: str, *, shortest: int = 0) -> Schema:
    made: Schema = {"description": said, "type": "string", "maxLength": file.LONGEST_BLOCK}
    return {**made, "pattern": _NOT_BLANK} if shortest else made


def _slug(said: str) -> Schema:
    return {"description": said, "type": "string", "pattern": _SLUG}


def _choice(said: str, options: Sequence[str]) -> Schema:
    return {"description": said, "enum": [str(one) for one in options]}


def _number(said: str, least: float = -LARGEST_NUMBER, most: float = LARGEST_NUMBER) -> Schema:
    made: Schema = {"description": said, "type": "number"}
    return made if most == LARGEST_NUMBER else {**made, "minimum": plain(least), "maximum": plain(most)}


def _seconds() -> Schema:
    return _number("How long it may take.", collectors.LEAST_SECONDS, collectors.LONGEST_SECONDS)


def _command() -> Schema:
    return {
        "description": "A program and its arguments; there is no shell.",
        "type": "array",
        "items": {"type": "string", "maxLength": collectors.LONGEST_WORD},
        "minItems": 1,
        "maxItems": collectors.MOST_WORDS,
    }
