"""Our own format: every field of our lists, named as in our tools."""

from __future__ import annotations

import json
from typing import Any, Final

from punchlist.errors import InvalidInput
from punchlist.import_export.format_limits import FormatLimits
from punchlist.import_export.item import FIELDS, ExchangeItem, ParsedFile
from punchlist.import_export.reader import Reader, parse_json
from punchlist.kernel import text
from punchlist.kernel.camel_json import camel_case
from punchlist.missions.todos.validation import unknown_field

NAME: Final = "punchlist"
VERSION: Final = 1
LIMITS: Final = FormatLimits("json", frozenset(FIELDS))
WAITS: Final = ("person", "time", "event")
KEYS: Final = {camel_case(name): name for name in FIELDS}


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
        if record := reader.object(where, raw):
            for key in raw:
                if key not in KEYS:
                    reader.problem(where, unknown_field(key, KEYS))
            for key in ("extra", "check"):
                if raw.get(key) is not None:
                    reader.object(f"{where}.{key}", raw[key])
            extra, check = raw.get("extra"), raw.get("check")
            item = ExchangeItem(
                **record.fields(**{name: key for key, name in KEYS.items() if key not in ("waits", "check", "extra")}),
                waits=record.read(_parse_waits, "waits"),
                check=check if isinstance(check, dict) and check else None,
                extra=extra if isinstance(extra, dict) else {},
            )
            reader.add(where, item)
    return reader.result()


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
