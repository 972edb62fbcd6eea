"""Arguments checked against a schema that a stranger wrote.

The check is a courtesy to the model; the server has the last word. So whatever cannot be checked
safely passes: a schema that is no schema, one that refers to another document (nothing is fetched),
one that takes too many steps. Regular expressions are left to the server as well: Python's have no
time limit, and another dialect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from punchlist.kernel.text import excerpt, json_type
from punchlist.toolcalls.tool import Schema

_MOST_PROBLEMS: Final = 10
_MOST_STEPS: Final = 10_000
_LONGEST_PROBLEM: Final = 300
_ALTERNATIVES_TOLD: Final = 3
_BY_PATTERN: Final = {"pattern", "patternProperties", "unevaluatedProperties", "format"}

Keyword = Callable[[Any, Any, Any, Any], Any]


class _TooManySteps(Exception):
    pass


class ArgumentCheck:
    """One schema, compiled once."""

    def __init__(self, schema: Schema) -> None:
        self._steps = 0
        try:
            self._validator = self._compiled(dict(schema))
        except Exception:  # a stranger's data can go wrong in any way
            self._validator = None

    def problems(self, arguments: Mapping[str, Any]) -> Sequence[str]:
        if self._validator is None:
            return []
        self._steps = 0
        try:
            return [_told(error) for error in islice(self._validator.iter_errors(dict(arguments)), _MOST_PROBLEMS)]
        except Exception:  # as above; also RecursionError and references that lead nowhere
            return []

    def _compiled(self, schema: dict[str, Any]) -> Any:
        from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
        from jsonschema.validators import extend, validator_for  # type: ignore[import-untyped]
        from referencing import Registry

        draft = validator_for(schema, default=Draft202012Validator)
        # Without a format checker: it would refuse patterns that only Python cannot read.
        draft.check_schema(schema, format_checker=None)
        kind = extend(draft, {name: self._counted(name, keyword) for name, keyword in draft.VALIDATORS.items()})
        # A registry of our own, or references would be fetched from the network.
        return kind(schema, registry=Registry())

    def _counted(self, name: str, keyword: Keyword) -> Keyword:
        """A few lines of schema can ask for 2⁶⁰ steps, each keyword being one."""

        def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
            self._steps += 1
            if self._steps > _MOST_STEPS:
                raise _TooManySteps
            if name in _BY_PATTERN or (name == "additionalProperties" and "patternProperties" in schema):
                return
            yield from keyword(validator, value, instance, schema) or ()

        return check


def _told(error: Any) -> str:
    path = list(error.absolute_path)
    if error.validator == "required" and isinstance(error.validator_value, list):
        # Which one is missing is told by the message only.
        path += [name for name in error.validator_value if error.message.startswith(repr(name))][:1]
        return f"{_path(path)}: is required"
    return f"{_path(path)}: {_reason(error)}"


def _reason(error: Any) -> str:
    match error.validator:
        case "type":
            wanted = error.validator_value
            kinds = [wanted] if isinstance(wanted, str) else wanted
            return f"must be {excerpt(' or '.join(map(str, kinds)))}, got {json_type(error.instance)}"
        case "anyOf" | "oneOf" if error.context:
            reasons = dict.fromkeys(_reason(each) for each in error.context[:_ALTERNATIVES_TOLD])
            return excerpt("; or ".join(reasons), _LONGEST_PROBLEM)
    # The library's words repeat the value, which may be long.
    return excerpt(error.message, _LONGEST_PROBLEM)


def _path(steps: Sequence[str | int]) -> str:
    path = ""
    for step in steps:
        if isinstance(step, int):
            path += f"[{step}]"
        else:
            path += f".{excerpt(step)}" if path else excerpt(step)
    return path or "arguments"
