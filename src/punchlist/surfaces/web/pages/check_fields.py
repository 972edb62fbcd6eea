"""The check of a mission todo as fields of a form: a select for its kind, and the fields of that kind.

The fields have the names that the todo service uses in its messages, so that the page shows a message at its field.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from punchlist.errors import InvalidInput
from punchlist.kernel.events import canonical_json
from punchlist.surfaces.web.pages.formats import plain_number
from punchlist.surfaces.web.pages.mission_edits import number_in

if TYPE_CHECKING:
    from punchlist.surfaces.web.pages.page import PageRequest

KIND: Final = "check.kind"
BOUNDS: Final = {"atMost": "at most", "atLeast": "at least"}
_KINDS: Final = ("name", "metric", "file", "command")


def check_fields(stored: str | None) -> dict[str, str]:
    """The values of the fields, without `check.`; `kind` is empty without a check."""
    check: Mapping[str, Any] = json.loads(stored) if stored else {}
    kind = next((each for each in _KINDS if each in check), "")
    bound = next((each for each in BOUNDS if each in check), "atMost")
    return {
        "kind": kind,
        "name": check.get("name", ""),
        "metric": check.get("metric", ""),
        "bound": bound,
        "limit": plain_number(check.get(bound)),
        "file": check.get("file", ""),
        "contains": check.get("contains") or "",
        "command": shlex.join(check.get("command", ())),
    }


def check_text(stored: str | None) -> str:
    """The check in one text, as the fields give it back: equal if a person changes none of them."""
    fields = check_fields(stored)
    return json_text(parse_check({name: text.strip() for name, text in fields.items()}))


def posted_check(request: PageRequest) -> dict[str, Any] | None:
    """The check that the form describes. The service decides whether it is valid, and who may give a command."""
    return parse_check({name: request.posted(f"check.{name}") for name in check_fields(None)})


def parse_check(fields: Mapping[str, str]) -> dict[str, Any] | None:
    match fields["kind"]:
        case "":
            return None
        case "name":
            return {"name": _chosen(fields, "name", "choose a check of the mission")}
        case "metric":
            if fields["bound"] not in BOUNDS:
                raise InvalidInput("check.bound: choose “at most” or “at least”")
            limit = number_in("check.limit", _chosen(fields, "limit", "a metric needs a limit"), whole=True)
            return {"metric": _chosen(fields, "metric", "choose a metric"), fields["bound"]: limit}
        case "file":
            file = {"file": _chosen(fields, "file", "name a file of the project")}
            return {**file, "contains": fields["contains"]} if fields["contains"] else file
        case "command":
            return {"command": _words(_chosen(fields, "command", "write a command, such as make test"))}
    raise InvalidInput(f"{KIND}: choose what decides")


def _chosen(fields: Mapping[str, str], name: str, problem: str) -> str:
    if not fields[name]:
        raise InvalidInput(f"check.{name}: {problem}")
    return fields[name]


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        raise InvalidInput("check.command: a quotation is not closed") from None


def json_text(check: Mapping[str, Any] | None) -> str:
    return canonical_json(dict(check)) if check is not None else ""
