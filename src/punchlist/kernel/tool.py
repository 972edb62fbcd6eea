"""The description of a list's tool: name, schema, allowed roles and the function that runs it.

Lists define their tools with `ListToolSpec`; surfaces and the agent offer them. `C` is the caller's context, which the
surface passes and the model cannot set.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from punchlist.errors import InvalidInput
from punchlist.kernel.events import Role
from punchlist.kernel.text import json_type

C = TypeVar("C")

Schema = dict[str, Any]
Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool, from the tool itself to the message that the model reads.

    The scheduler redacts and bounds it on the way; nothing wraps it.
    """

    text: str
    data: Any = None
    """The same result as structured data, for programs."""
    output_file: str | None = None
    """The file with the full text, when `text` had to be shortened."""


def json_result(data: dict[str, Any]) -> ToolResult:
    return ToolResult(json.dumps(data, ensure_ascii=False), data)


@dataclass(frozen=True, slots=True)
class ListToolSpec(Generic[C]):
    name: str
    title: str
    description: str
    input_schema: Schema
    output_schema: Schema
    roles: Collection[Role]
    read_only: bool
    run: Callable[[C, Arguments], ToolResult]
    idempotent: bool = False
    """A repeated call changes nothing, so that a call with an unknown result can be retried."""
    request_field: str | None = None
    """The argument that carries the idempotency key."""


def parse_arguments(raw: object) -> Arguments:
    """The arguments of a call, which must be an object."""
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise InvalidInput(f"arguments: must be an object, got {json_type(raw)}")
    return raw


def schema(required: Collection[str] = (), **properties: Schema) -> Schema:
    """A JSON Schema for an object."""
    return {"type": "object", "properties": properties, "required": list(required)}
