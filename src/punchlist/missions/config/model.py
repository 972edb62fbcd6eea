"""The pydantic models of mission.json. `file.py` validates with them; the JSON Schema is generated from them.

Only `file.py` imports this module at run time: pydantic belongs to the extra `missions` and is slow to load.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Annotated, Any, ClassVar, Final, Literal, NotRequired

from punchlist.errors import MissingExtra
from punchlist.kernel.camel_json import camel_case
from punchlist.kernel.text import excerpt
from punchlist.missions.config.field_rules import (
    COMMAND,
    ENTRY_POINT,
    HEADERS,
    MAX_SLUG_LENGTH,
    PATH,
    PATTERN,
    POINTER,
    TEMPLATE_CHECK,
    URL,
    block,
    line,
    number,
    slug,
)
from punchlist.missions.config.policy import (
    CHECK_TIMEOUT_SECONDS,
    MAX_HOURS,
    MAX_TIMEOUT_SECONDS,
    MIN_HOURS,
    Cadence,
    MissionLimits,
    TodoPolicy,
)
from punchlist.missions.todos.lifecycle import TodoPriority

try:
    from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator, with_config
    from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12
except ModuleNotFoundError as error:
    raise MissingExtra("Support for mission files", "missions") from error

MAX_NAME_LENGTH: Final = 200
MAX_METRICS: Final = 200
MAX_STRATEGIES: Final = 100

TimeoutSeconds = Annotated[float, number("The time limit in seconds.", 0.1, MAX_TIMEOUT_SECONDS)]


class FieldError(ValueError):
    """A problem of one field that a model-level validator finds."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f".{field}: {problem}")


# --- collectors and checks: kept as JSON objects, exactly as written --------------------------------------


@with_config(extra="forbid")
class ManualCollector(TypedDict):
    """A person records readings."""

    type: Literal["manual"]


@with_config(extra="forbid")
class CommandCollector(TypedDict):
    """A program prints the value. Runs only after the file is trusted."""

    type: Literal["command"]
    command: Annotated[list[str], COMMAND]
    pattern: NotRequired[Annotated[str, PATTERN]]
    timeoutSeconds: NotRequired[TimeoutSeconds]


@with_config(extra="forbid", json_schema_extra={"not": {"required": ["pointer", "pattern"]}})
class FileCollector(TypedDict):
    """A file in the project contains the value."""

    type: Literal["file"]
    path: Annotated[str, PATH]
    pointer: NotRequired[Annotated[str, POINTER]]
    pattern: NotRequired[Annotated[str, PATTERN]]


@with_config(extra="forbid")
class HttpCollector(TypedDict):
    """A JSON response contains the value. The request is sent only after the file is trusted."""

    type: Literal["http"]
    url: Annotated[str, URL]
    pointer: Annotated[str, POINTER]
    headers: NotRequired[Annotated[dict[str, str], HEADERS]]
    timeoutSeconds: NotRequired[TimeoutSeconds]


@with_config(extra="forbid")
class PythonCollector(TypedDict):
    """A Python function returns the value. It is called only after the file is trusted."""

    type: Literal["python"]
    entryPoint: Annotated[str, ENTRY_POINT]
    timeoutSeconds: NotRequired[TimeoutSeconds]


def _check_file_collector(collector: FileCollector) -> FileCollector:
    if "pointer" in collector and "pattern" in collector:
        raise FieldError("pattern", "cannot be combined with a pointer; remove one of them")
    return collector


Collector = Annotated[
    ManualCollector
    | CommandCollector
    | Annotated[FileCollector, AfterValidator(_check_file_collector)]
    | HttpCollector
    | PythonCollector,
    Field(discriminator="type", description="How readings are taken."),
]
COLLECTORS: Final[dict[str, type]] = {
    "manual": ManualCollector,
    "command": CommandCollector,
    "file": FileCollector,
    "http": HttpCollector,
    "python": PythonCollector,
}


@with_config(extra="forbid")
class CommandCheck(TypedDict):
    command: Annotated[list[str], COMMAND]
    timeoutSeconds: NotRequired[TimeoutSeconds]


def _with_timeout(check: CommandCheck) -> CommandCheck:
    return {"command": check["command"], "timeoutSeconds": check.get("timeoutSeconds", CHECK_TIMEOUT_SECONDS)}


# --- the mission ------------------------------------------------------------------------------------------


def _no_default(schema: dict[str, Any]) -> None:
    schema.pop("default", None)


OptionalSlug = Annotated[
    str, slug("The name in commands and tools. Default: derived from the name."), Field(json_schema_extra=_no_default)
]
CheckName = Annotated[str, slug("The name of a check.")]
Name = Annotated[str, line("The name people see.", MAX_NAME_LENGTH)]
Description = Annotated[str, block("Details, in Markdown.")]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=camel_case)


class _Slugged(_Model):
    """Derives a missing slug from `name`, or from the field that `slug_source` names."""

    slug_source: ClassVar[str] = "name"

    @model_validator(mode="before")
    @classmethod
    def _derive_slug(cls, raw: Any) -> Any:
        if not isinstance(raw, dict) or "slug" in raw:
            return raw
        source = raw.get(cls.slug_source)
        derived = slug_of(source) if isinstance(source, str) else ""
        return {**raw, "slug": derived} if derived else raw

    @model_validator(mode="after")
    def _require_slug(self) -> _Slugged:
        slug, source = (getattr(self, name) for name in ("slug", self.slug_source))
        if not slug:
            reason = f", because {excerpt(source)!r} contains no letters a to z or digits" if source else ""
            raise FieldError("slug", f"is required{reason}")
        return self


class MetricConfig(_Slugged):
    name: Name
    slug: OptionalSlug = ""
    unit: Annotated[str, line("Such as s, % or €.", 40, min_length=0)] = ""
    target: Annotated[float, number("The value to reach.")]
    warning: Annotated[
        float | None, number("A value between target and warning level is a warning, beyond it off target.")
    ] = None
    direction: Annotated[Literal["up", "down"], Field(description="Whether a higher or a lower value is better.")]
    collector: Collector = Field(default_factory=lambda: ManualCollector(type="manual"))
    stale_after_hours: Annotated[
        float, number("Hours after which the newest reading is stale.", MIN_HOURS, MAX_HOURS)
    ] = 7 * 24

    @model_validator(mode="after")
    def _check_warning(self) -> MetricConfig:
        if self.warning is not None:
            if self.direction == "down" and self.warning < self.target:
                raise FieldError("warning", f"must not be below the target ({self.target:g}) when lower is better")
            if self.direction == "up" and self.warning > self.target:
                raise FieldError("warning", f"must not be above the target ({self.target:g}) when higher is better")
        return self


class StrategyConfig(_Model):
    description: Annotated[str, block("What is done to reach the goal.", min_length=1)]
    status: Literal["proposed", "active", "paused", "done", "dropped"] = "active"


class PillarConfig(_Slugged):
    name: Name
    slug: OptionalSlug = ""
    description: Description = ""
    metrics: Annotated[tuple[MetricConfig, ...], Field(max_length=MAX_METRICS)] = ()
    strategies: Annotated[tuple[StrategyConfig, ...], Field(max_length=MAX_STRATEGIES)] = ()


class TodoTemplate(_Slugged):
    """Default values for the todos of one kind."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["slug"]}, {"required": ["title"]}]})
    slug_source: ClassVar[str] = "title"

    slug: OptionalSlug = ""
    title: Annotated[str, line("The title of such a todo.", MAX_NAME_LENGTH, min_length=0)] = ""
    description: Description = ""
    justification: Annotated[str, block("The reason, with reference to metrics.")] = ""
    completion_criteria: Annotated[str, block("When the todo counts as done.")] = ""
    priority: TodoPriority | None = None
    check: Annotated[dict[str, Any] | None, TEMPLATE_CHECK] = None


class MissionConfig(_Slugged):
    name: Name
    slug: OptionalSlug = ""
    description: Annotated[str, block("The goal, and the reason for it.")] = ""
    todo: TodoPolicy = TodoPolicy()
    cadence: Cadence = Cadence()
    limits: MissionLimits = MissionLimits()
    pillars: Annotated[tuple[PillarConfig, ...], Field(max_length=50)] = ()
    templates: Annotated[tuple[TodoTemplate, ...], Field(max_length=50)] = ()
    checks: Annotated[
        dict[CheckName, Annotated[CommandCheck, AfterValidator(_with_timeout)]],
        Field(
            max_length=50,
            description="Commands that the checks of todos can name. They run only after the file is trusted.",
            json_schema_extra={"additionalProperties": False},
        ),
    ] = Field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The complete configuration, defaults included, with the field names of the file."""
        dumped = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        dumped["templates"] = [
            {name: value for name, value in template.items() if value != ""} for template in dumped["templates"]
        ]
        return dumped


def slug_of(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:MAX_SLUG_LENGTH].rstrip("-")


def mission_schema() -> dict[str, Any]:
    """The JSON Schema of mission.json, for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **MissionConfig.model_json_schema(),
        "title": "A Punchlist mission",
    }
