"""Validation rules for single fields of a mission file, used as `Annotated[str, line(...)]`.

A rule carries both the check and its JSON Schema, so that validation and schema cannot disagree. The module does not
import pydantic: `policy.py` uses the rules and is read on paths where pydantic is too slow to load.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from punchlist.kernel.text import block_problem, display_value, excerpt, json_type, line_problem, raw_problem
from punchlist.missions.todos.validation import parse_check

if TYPE_CHECKING:
    from pydantic_core import CoreSchema

MAX_BLOCK_LENGTH: Final = 20_000
MAX_SLUG_LENGTH: Final = 63
MAX_NUMBER: Final = 1e300
"""The sum or difference of two such numbers is still finite."""
MAX_COMMAND_WORDS: Final = 100
MAX_WORD_LENGTH: Final = 10_000
MAX_PATH_LENGTH: Final = 1_000
MAX_URL_LENGTH: Final = 2_000
MAX_PATTERN_LENGTH: Final = 500
MAX_HEADERS: Final = 20
MAX_HEADER_LENGTH: Final = 4_000

SLUG: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}", re.ASCII)
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}", re.ASCII)
_ENTRY_POINT: Final = re.compile(
    r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*|[A-Za-z_][\w-]*", re.ASCII
)
_POINTER: Final = re.compile(r"(/([^/~]|~[01])*)*")
_ONE_LINE: Final = r"^[^\n\r]*\S[^\n\r]*$"

Problems = str | list[str] | None
"""What is wrong with a value. A text that starts with `.` or `[` continues the path of the field."""


@dataclass(frozen=True, slots=True)
class FieldRule:
    check: Callable[[Any], Problems]
    schema: Mapping[str, Any]
    clean: Callable[[Any], Any] = lambda value: value

    def parse(self, value: Any) -> Any:
        if problems := self.check(value):
            raise ValueError(*([problems] if isinstance(problems, str) else problems))
        return self.clean(value)

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(self.parse)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return dict(self.schema)


def line(
    description: str, max_length: int, *, min_length: int = 1, check: Callable[[str], Problems] | None = None
) -> FieldRule:
    """One line of text; `check` adds a further condition."""

    def problem(value: Any) -> Problems:
        found = line_problem(value, max_length=max_length, min_length=min_length)
        return found or (check(value.strip()) if check else None)

    schema = {"description": description, "type": "string", "maxLength": max_length}
    return FieldRule(problem, schema | ({"pattern": _ONE_LINE} if min_length else {}), str.strip)


def block(description: str, *, min_length: int = 0) -> FieldRule:
    """Text of several lines."""
    schema = {"description": description, "type": "string", "maxLength": MAX_BLOCK_LENGTH}
    return FieldRule(
        lambda value: block_problem(value, max_length=MAX_BLOCK_LENGTH, min_length=min_length),
        schema | ({"pattern": r"\S"} if min_length else {}),
        str.strip,
    )


def _matching(description: str, max_length: int, pattern: str, problem: Callable[[Any], Problems]) -> FieldRule:
    return FieldRule(
        problem, {"description": description, "type": "string", "pattern": pattern, "maxLength": max_length}
    )


def slug(description: str) -> FieldRule:
    def problem(value: Any) -> Problems:
        if isinstance(value, str) and SLUG.fullmatch(value):
            return None
        return (
            f"must be 1 to {MAX_SLUG_LENGTH} of a-z, 0-9 and -, beginning with a letter or digit, "
            f"got {display_value(value)}"
        )

    return FieldRule(problem, {"description": description, "type": "string", "pattern": f"^{SLUG.pattern}$"})


def number(description: str, minimum: float = -MAX_NUMBER, maximum: float = MAX_NUMBER) -> FieldRule:
    bounded = maximum < MAX_NUMBER

    def problem(value: Any) -> Problems:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return f"must be a number, got {json_type(value)}"
        if isinstance(value, float) and not math.isfinite(value):
            return "must be a finite number"
        if minimum <= value <= maximum:
            return None
        if bounded:
            return f"must be a number from {minimum:g} to {maximum:,.0f}, got {display_value(value)}"
        return "is too large a number"

    limits = {"minimum": plain_number(minimum), "maximum": plain_number(maximum)} if bounded else {}
    return FieldRule(problem, {"description": description, "type": "number"} | limits, plain_number)


def whole_number(description: str, minimum: int, maximum: int) -> FieldRule:
    def problem(value: Any) -> Problems:
        # JSON does not distinguish 10.0 from 10.
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        if whole and not isinstance(value, bool) and minimum <= value <= maximum:
            return None
        return f"must be a whole number from {minimum:,} to {maximum:,}, got {display_value(value)}"

    schema = {"description": description, "type": "integer", "minimum": minimum, "maximum": maximum}
    return FieldRule(problem, schema, int)


def plain_number(value: float) -> float:
    """60.0 as 60, the way people write it."""
    return int(value) if float(value).is_integer() and abs(value) < 2**53 else value


# --- commands and collectors ------------------------------------------------------------------------------


def _command_problems(value: Any) -> Problems:
    if not isinstance(value, list) or not value or not all(isinstance(word, str) for word in value):
        return f'must be a non-empty array of text such as ["make", "count"], got {display_value(value)}'
    if len(value) > MAX_COMMAND_WORDS:
        return f"at most {MAX_COMMAND_WORDS} entries, got {len(value)}"
    problems = [(index, raw_problem(word, max_length=MAX_WORD_LENGTH)) for index, word in enumerate(value)]
    if not value[0].strip():
        problems[0] = (0, "must not be empty")
    return [f"[{index}]: {problem}" for index, problem in problems if problem]


COMMAND: Final = FieldRule(
    _command_problems,
    {
        "description": "A program and its arguments. No shell is involved.",
        "type": "array",
        "items": {"type": "string", "maxLength": MAX_WORD_LENGTH},
        "minItems": 1,
        "maxItems": MAX_COMMAND_WORDS,
    },
)


def _pattern_problem(pattern: str) -> Problems:
    try:
        groups = re.compile(pattern).groups
    except (re.error, OverflowError, RecursionError) as error:
        return f"is not a valid regular expression ({excerpt(str(error))})"
    return None if groups == 1 else f"must have exactly one group in parentheses, for the number; it has {groups}"


PATTERN: Final = line(
    "A regular expression with one group, which matches the number.", MAX_PATTERN_LENGTH, check=_pattern_problem
)


def _path_problem(path: str) -> Problems:
    # The author's operating system may differ from the one that applies the file: check both path styles.
    windows = PureWindowsPath(path)
    if PurePosixPath(path).is_absolute() or windows.drive or windows.root or path.startswith("~"):
        return f"must be relative to the project folder, got {display_value(path)}"
    return f"must stay inside the project folder, got {display_value(path)}" if ".." in windows.parts else None


_PATH_LINE: Final = line("A path inside the project folder.", MAX_PATH_LENGTH, check=_path_problem)
PATH: Final = FieldRule(
    _PATH_LINE.check,
    {**_PATH_LINE.schema, "not": {"pattern": r"^([/\\~]|[A-Za-z]:)|(^|[/\\])\.\.([/\\]|$)"}},
    str.strip,
)


def _url_problem(value: Any) -> Problems:
    if problem := line_problem(value, max_length=MAX_URL_LENGTH):
        return problem
    try:
        parts = urlsplit(value)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        valid = False
    if not valid or re.search(r"\s", value):
        return f"must be an http:// or https:// address, got {display_value(value)}"
    return "must not contain a user name or password" if parts.username or parts.password is not None else None


URL: Final = _matching(
    "An http:// or https:// address.",
    MAX_URL_LENGTH,
    r"^[Hh][Tt][Tt][Pp][Ss]?://[^/?#\s@]+([/?#][^\s]*)?$",
    _url_problem,
)


def _pointer_problem(value: Any) -> Problems:
    if problem := line_problem(value, max_length=MAX_PATTERN_LENGTH, min_length=0):
        return problem
    if _POINTER.fullmatch(value):
        return None
    return f'must be a JSON pointer such as "/data/0/value", got {display_value(value)}'


POINTER: Final = _matching(
    "A JSON pointer to the number, such as /data/0/value.",
    MAX_PATTERN_LENGTH,
    f"^{_POINTER.pattern}$",
    _pointer_problem,
)


def _header_problems(value: Any) -> Problems:
    if not isinstance(value, dict) or len(value) > MAX_HEADERS:
        return f"must be an object with at most {MAX_HEADERS} texts, got {json_type(value)}"
    problems = []
    for name, text in value.items():
        if not _HEADER_NAME.fullmatch(name):
            problems.append(f".{excerpt(name)}: is not a valid header name")
        elif problem := line_problem(text, max_length=MAX_HEADER_LENGTH, min_length=0):
            problems.append(f".{excerpt(name)}: {problem}")
    return problems


HEADERS: Final = FieldRule(
    _header_problems,
    {
        "description": "Request headers. ${NAME} is replaced by an environment variable.",
        "type": "object",
        "maxProperties": MAX_HEADERS,
        "additionalProperties": {"type": "string", "maxLength": MAX_HEADER_LENGTH},
    },
    dict,
)


def _entry_point_problem(value: Any) -> Problems:
    if isinstance(value, str) and len(value) <= MAX_PATTERN_LENGTH and _ENTRY_POINT.fullmatch(value):
        return None
    return f'must be "module:function" or the name of an entry point, got {display_value(value)}'


ENTRY_POINT: Final = _matching(
    "module:function, or the name of an entry point in the group punchlist.collectors.",
    MAX_PATTERN_LENGTH,
    f"^({_ENTRY_POINT.pattern})$",
    _entry_point_problem,
)


def _template_check_problems(value: Any) -> Problems:
    if isinstance(value, dict) and "command" in value:
        return (
            '.command: define the command under "checks" and refer to it here with {"name": "…"}; it runs once the '
            "mission is trusted"
        )
    problems: list[str] = []
    parse_check(value if value is not None else "null", "", problems)
    return [problem.removeprefix(": ") for problem in problems]


_LIMIT: Final = {"description": "The limit.", "type": "number"}
TEMPLATE_CHECK: Final = FieldRule(
    _template_check_problems,
    {
        "description": "The condition for completing such a todo.",
        "oneOf": [
            {
                "type": "object",
                "properties": {"name": slug("A check of this mission.").schema},
                "required": ["name"],
                "additionalProperties": False,
            },
            {
                "type": "object",
                "properties": {"metric": slug("A metric of this mission.").schema, "atMost": _LIMIT, "atLeast": _LIMIT},
                "required": ["metric"],
                "minProperties": 2,
                "maxProperties": 2,
                "additionalProperties": False,
            },
        ],
    },
    dict,
)
