"""Our own format: every field of our lists, named as in our tools."""

from __future__ import annotations

import json
from typing import Any, Final

from punchlist.errors import InvalidInput
from punchlist.import_export.format_limits import FormatLimits
from punchlist.import_export.item import FIELDS, ExchangeItem, ParsedFile
from punchlist.import_export.reader import Reader, parse_json
from punchlist.kernel import text
from punchlist.missions.todos.validation import unknown_field

NAME: Final = "punchlist"
VERSION: Final = 1
LIMITS: Final = FormatLimits("json", frozenset(FIELDS))
WAITS: Final = ("person", "time", "event")


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


KEYS: Final = {_camel(name): name for name in FIELDS}


def write(items: list[ExchangeItem]) -> str:
    document = {"format": NAME, "version": VERSION, "items": [_item_json(item) for item in items]}
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _item_json(item: ExchangeItem) -> dict[str, Any]:
    """Empty fields are omitted."""
    values = {key: getattr(item, name) for key, name in KEYS.items()}
    values["waits"] = [{kind: subject} for kind, subject in item.waits]
    return {key: value for key, value in values.items() if value or key in ("title", "status")}


def read(written: str) -> ParsedFile:
    document = parse_json(written)
    match document:
        case {"format": "punchlist", "version": 1, "items": list(items)}:
            pass
        case {"format": "punchlist", "version": int(version), **_rest} if version > VERSION:
            raise InvalidInput(f"It was written by a newer Punchlist (version {version} of the format).")
        case _:
            raise InvalidInput('It must be an object with "format": "punchlist", "version": 1 and "items".')
    reader = Reader()
    for index, raw in enumerate(items):
        where = f"items[{index}]"
        if reader.object(where, raw):
            reader.add(where, _parse_item(reader, where, raw))
    return reader.result()


def _parse_item(reader: Reader, where: str, raw: dict[str, Any]) -> ExchangeItem:
    for key in raw:
        if key not in KEYS:
            reader.problem(where, unknown_field(key, KEYS))
    extra, check = raw.get("extra"), raw.get("check")
    for name, value in (("extra", extra), ("check", check)):
        if value is not None:
            reader.object(f"{where}.{name}", value)
    return ExchangeItem(
        title=reader.title(f"{where}.title", raw.get("title")),
        id=reader.id(f"{where}.id", raw.get("id")),
        details=reader.block(f"{where}.details", raw.get("details")),
        status=reader.status(f"{where}.status", raw.get("status")),
        priority=reader.priority(f"{where}.priority", raw.get("priority")),
        blocked_by=reader.ids(f"{where}.blockedBy", raw.get("blockedBy")),
        parent=reader.id(f"{where}.parent", raw.get("parent")),
        acceptance=reader.block(f"{where}.acceptance", raw.get("acceptance")),
        active_form=reader.line(f"{where}.activeForm", raw.get("activeForm"), max_length=500),
        labels=reader.lines(f"{where}.labels", raw.get("labels")),
        owner=reader.line(f"{where}.owner", raw.get("owner")),
        outcome=reader.block(f"{where}.outcome", raw.get("outcome")),
        justification=reader.block(f"{where}.justification", raw.get("justification")),
        deadline=reader.line(f"{where}.deadline", raw.get("deadline")),
        waits=_parse_waits(reader, f"{where}.waits", raw.get("waits")),
        resources=reader.lines(f"{where}.resources", raw.get("resources")),
        also_affects=reader.lines(f"{where}.alsoAffects", raw.get("alsoAffects")),
        check=check if isinstance(check, dict) and check else None,
        created_at=reader.time(f"{where}.createdAt", raw.get("createdAt")),
        started_at=reader.time(f"{where}.startedAt", raw.get("startedAt")),
        ended_at=reader.time(f"{where}.endedAt", raw.get("endedAt")),
        extra=extra if isinstance(extra, dict) else {},
    )


def _parse_waits(reader: Reader, where: str, raw: Any) -> tuple[tuple[str, str], ...]:
    waits = []
    for index, each in enumerate(reader.array(where, raw)):
        at = f"{where}[{index}]"
        if isinstance(each, dict) and len(each) == 1 and next(iter(each)) in WAITS:
            kind = str(next(iter(each)))
            waits.append((kind, reader.line(f"{at}.{kind}", each[kind], max_length=1_000, required=True)))
        else:
            reader.problem(at, f"must be an object with one of {', '.join(WAITS)}, got {text.json_type(each)}")
    return tuple(waits)
