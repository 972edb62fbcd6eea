"""Checks arguments against the schema of a server, which is untrusted input.

The check gives the model early feedback; the server decides. So arguments pass where a check is not safe: for
an invalid schema, for a reference to another document (nothing is fetched), and for a schema that takes too
many steps or refers to itself without end. Regular expressions are not checked: in Python they have no time
limit and a different dialect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from punchlist.kernel.text import excerpt, field_path, json_type
from punchlist.toolcalls.tool import Schema

_MAX_PROBLEMS: Final = 10
_MAX_STEPS: Final = 10_000
_MAX_DEPTH: Final = 100
"""Nested keywords, about five Python frames each. Python's own recursion limit is no substitute: when it is reached
inside the native code of `referencing`, that code panics with a BaseException."""
_MAX_PROBLEM_LENGTH: Final = 300
_MAX_ALTERNATIVES: Final = 3
_UNCHECKED: Final = {"pattern", "patternProperties", "unevaluatedProperties", "format"}

Keyword = Callable[[Any, Any, Any, Any], Any]


class _TooManySteps(Exception):
    pass


class ArgumentCheck:
    """One schema, compiled once."""

    def __init__(self, schema: Schema) -> None:
        self._steps = 0
        self._depth = 0
        try:
            self._validator = self._compile(dict(schema))
        except Exception:  # untrusted data can fail in any way
            self._validator = None

    def problems(self, arguments: Mapping[str, Any]) -> Sequence[str]:
        if self._validator is None:
            return []
        self._steps = 0
        self._depth = 0
        try:
            return [_describe(error) for error in islice(self._validator.iter_errors(dict(arguments)), _MAX_PROBLEMS)]
        except Exception:  # as above; also dangling references
            return []

    def _compile(self, schema: dict[str, Any]) -> Any:
        from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
        from jsonschema.validators import extend, validator_for  # type: ignore[import-untyped]
        from referencing import Registry

        draft = validator_for(schema, default=Draft202012Validator)
        # Without a format checker: it would reject patterns that only Python does not support.
        draft.check_schema(schema, format_checker=None)
        kind = extend(draft, {name: self._counted(name, keyword) for name, keyword in draft.VALIDATORS.items()})
        # With an empty registry, since the default one fetches references from the network.
        return kind(schema, registry=Registry())

    def _counted(self, name: str, keyword: Keyword) -> Keyword:
        """Count the keyword as a step: a short schema can need 2⁶⁰ steps."""

        def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
            self._steps += 1
            if self._steps > _MAX_STEPS or self._depth >= _MAX_DEPTH:
                raise _TooManySteps
            if name in _UNCHECKED or (name == "additionalProperties" and "patternProperties" in schema):
                return
            self._depth += 1
            try:
                yield from keyword(validator, value, instance, schema) or ()
            finally:  # a validator that needs only the first error abandons the rest
                self._depth -= 1

        return check


def _describe(error: Any) -> str:
    path = list(error.absolute_path)
    if error.validator == "required" and isinstance(error.validator_value, list):
        # Only the message says which property is missing.
        path += [name for name in error.validator_value if error.message.startswith(repr(name))][:1]
        return f"{field_path(path) or 'arguments'}: is required"
    return f"{field_path(path) or 'arguments'}: {_reason(error)}"


def _reason(error: Any) -> str:
    match error.validator:
        case "type":
            expected = error.validator_value
            kinds = [expected] if isinstance(expected, str) else expected
            return f"must be {excerpt(' or '.join(map(str, kinds)))}, got {json_type(error.instance)}"
        case "anyOf" | "oneOf" if error.context:
            reasons = dict.fromkeys(_reason(each) for each in error.context[:_MAX_ALTERNATIVES])
            return excerpt("; or ".join(reasons), _MAX_PROBLEM_LENGTH)
    # The message of the library repeats the value, which can be long.
    return excerpt(error.message, _MAX_PROBLEM_LENGTH)
