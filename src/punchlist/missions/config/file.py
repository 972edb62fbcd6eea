"""mission.json: from a file of a stranger to values, or to every problem it has.

A problem names its field the way programs do, `pillars[2].metrics[0].target`. What the file leaves open is
filled in, so that a configuration that was read is complete. Nothing that it names is run or looked for here.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

from punchlist.errors import InvalidInput, NotFound
from punchlist.kernel.text import excerpt
from punchlist.missions.config.collector import (
    COMMAND_SECONDS,
    LEAST_SECONDS,
    LONGEST_SECONDS,
    LONGEST_WORD,
    MOST_WORDS,
    RUNS,
    parse_collector,
)
from punchlist.missions.config.fields import SLUG, Fields, Object, shown
from punchlist.missions.config.model import (
    STALE_METRIC_HOURS,
    Cadence,
    MetricConfig,
    MissionConfig,
    OverduePending,
    PillarConfig,
    StaleBacklog,
    StrategyConfig,
    TodoPolicy,
    TodoTemplate,
)
from punchlist.missions.model import Mission
from punchlist.missions.todos.lifecycle import TodoPriority

LARGEST_FILE: Final = 1_000_000
LONGEST_NAME: Final = 200
LONGEST_BLOCK: Final = 20_000
LONGEST_UNIT: Final = 40
LONGEST_CADENCE: Final = 200
MOST_PILLARS: Final = 50
MOST_METRICS: Final = 200
MOST_STRATEGIES: Final = 100
MOST_TEMPLATES: Final = 50
MOST_CHECKS: Final = 50
MOST_ACTIVE: Final = 1_000
MOST_BACKLOG: Final = 10_000
MOST_DAYS: Final = 36_500
MOST_HOURS: Final = MOST_DAYS * 24
LEAST_HOURS: Final = 0.01
MOST_TIMES_REVIEWED: Final = 100
MOST_STARTS: Final = 100_000
MOST_COST: Final = 1_000_000

DIRECTIONS: Final = ("up", "down")
STRATEGY_STATES: Final = ("proposed", "active", "paused", "done", "dropped")
PRIORITIES: Final = tuple(priority.value for priority in TodoPriority)

MISSION_FIELDS: Final = ("name", "slug", "description", "todo", "cadence", "pillars", "templates", "checks")
TODO_FIELDS: Final = (
    *("activeTodoLimit", "backlogTodoLimit", "archiveAfterDays", "staleBacklogAfterDays"),
    *("staleBacklogPolicy", "overduePendingPolicy", "reminderHours", "maxReviews"),
    *("maxStartsPerDay", "maxCostPerDay"),
)
PILLAR_FIELDS: Final = ("name", "slug", "description", "metrics", "strategies")
METRIC_FIELDS: Final = ("name", "slug", "unit", "target", "warning", "direction", "collector", "staleAfterHours")
TEMPLATE_FIELDS: Final = (
    *("slug", "title", "description", "justification", "completionCriteria", "priority", "check"),
)


# --- text -------------------------------------------------------------------------------------------------


def read(path: Path) -> str:
    """The text of a file; `-` is what comes on stdin."""
    if str(path) == "-":
        return _text(sys.stdin.buffer, "stdin")
    try:
        if path.is_dir():
            raise InvalidInput(f"{path}: is a folder, not a mission file.")
        with path.open("rb") as file:
            return _text(file, str(path))
    except FileNotFoundError:
        raise NotFound(f"{path}: there is no such file. `punchlist mission init {path}` writes one.") from None
    except (OSError, ValueError) as error:
        told = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InvalidInput(f"{excerpt(str(path), 200)}: cannot be read ({told}).") from error


def _text(file: BinaryIO, where: str) -> str:
    content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise InvalidInput(f"{where}: is larger than {LARGEST_FILE:,} bytes; that is no mission file.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{where}: is not UTF-8 (byte {error.start + 1:,}). Save it as UTF-8.") from None


def parse(source: str, where: str = "mission.json") -> MissionConfig:
    """What a file says."""
    if len(source) > LARGEST_FILE:
        raise InvalidInput(f"{where}: is larger than {LARGEST_FILE:,} characters; that is no mission file.")
    try:
        raw = json.loads(source, object_pairs_hook=Object.of_pairs)
    except json.JSONDecodeError as error:
        raise InvalidInput(
            f"{where}, line {error.lineno}, column {error.colno}: is not JSON "
            f"({error.msg[:1].lower()}{error.msg[1:]}).{_hint(source, error.pos)}"
        ) from None
    except RecursionError:
        raise InvalidInput(f"{where}: is nested too deeply; a mission file needs no more than six levels.") from None
    except ValueError:
        raise InvalidInput(f"{where}: has a number with thousands of digits.") from None
    try:
        return parse_value(raw)
    except InvalidInput as error:
        raise InvalidInput([f"{where}: {problem}" for problem in error.problems]) from None


def _hint(source: str, position: int) -> str:
    """What people write that JSON does not know."""
    rest, before = source[position : position + 2], source[:position].rstrip()
    if rest in ("//", "/*") or rest.startswith("#"):
        return " JSON has no comments: leave them out, or say it in a description."
    if rest.startswith("'"):
        return " JSON wants double quotes."
    if rest[:1] in ("}", "]") and before.endswith(","):
        return " Leave out the comma before it."
    if before.endswith(",") and rest[:1] == ",":
        return " There is a comma too many."
    return ""


# --- values -----------------------------------------------------------------------------------------------


parse_mission = parse
"""By this name for whoever has it among other names."""


def stored(mission: Mission) -> MissionConfig:
    """The configuration of a mission that was applied."""
    return parse_value(mission.config)


def parse_value(raw: Any) -> MissionConfig:
    """A mission from JSON that was read, or every problem that it has."""
    problems: list[str] = []
    file = Fields.of(raw, "", problems, *MISSION_FIELDS)
    if not isinstance(raw, dict):
        raise InvalidInput(problems)
    name = _name(file)
    config = MissionConfig(
        name=name,
        slug=file.slug(name=name),
        description=file.block("description", longest=LONGEST_BLOCK),
        todo=_policy(Fields.of(raw.get("todo", {}), "todo", problems, *TODO_FIELDS)),
        cadence=_cadence(Fields.of(raw.get("cadence", {}), "cadence", problems, "cron", "timezone")),
        pillars=tuple(
            _pillar(Fields.of(item, where, problems, *PILLAR_FIELDS))
            for where, item in file.array("pillars", most=MOST_PILLARS)
        ),
        checks=_checks(file),
        templates=tuple(
            _template(Fields.of(item, where, problems, *TEMPLATE_FIELDS))
            for where, item in file.array("templates", most=MOST_TEMPLATES)
        ),
    )
    _check_together(config, problems)
    if problems:
        raise InvalidInput(problems)
    return config


def _name(fields: Fields) -> str:
    return fields.line("name", longest=LONGEST_NAME, shortest=1) if fields.require("name") else ""


def _policy(fields: Fields) -> TodoPolicy:
    usual = TodoPolicy()
    return TodoPolicy(
        active_limit=fields.whole("activeTodoLimit", usual.active_limit, least=1, most=MOST_ACTIVE),
        backlog_limit=fields.whole("backlogTodoLimit", usual.backlog_limit, least=0, most=MOST_BACKLOG),
        archive_after_days=fields.number("archiveAfterDays", usual.archive_after_days, least=0, most=MOST_DAYS),
        stale_backlog_after_days=fields.number(
            "staleBacklogAfterDays", usual.stale_backlog_after_days, least=0, most=MOST_DAYS
        ),
        stale_backlog=StaleBacklog(fields.choice("staleBacklogPolicy", list(StaleBacklog), usual.stale_backlog)),
        overdue_pending=OverduePending(
            fields.choice("overduePendingPolicy", list(OverduePending), usual.overdue_pending)
        ),
        reminder_hours=fields.number("reminderHours", usual.reminder_hours, least=LEAST_HOURS, most=MOST_HOURS),
        most_reviews=fields.whole("maxReviews", usual.most_reviews, least=0, most=MOST_TIMES_REVIEWED),
        starts_per_day=fields.whole("maxStartsPerDay", usual.starts_per_day, least=0, most=MOST_STARTS),
        cost_per_day=fields.number("maxCostPerDay", usual.cost_per_day, least=0, most=MOST_COST),
    )


def _cadence(fields: Fields) -> Cadence:
    from punchlist.missions.planning import cadence

    before = len(fields.problems)
    cron = fields.line("cron", longest=LONGEST_CADENCE, shortest=1)
    timezone = fields.line("timezone", longest=LONGEST_CADENCE, shortest=1, default="UTC")
    if len(fields.problems) > before:
        return Cadence()
    # Without a cron there is still a time zone, which deadlines are read in.
    if problem := cadence.problem(cron or "* * * * *", timezone):
        fields.problems.append(f"{fields.where}.{problem}")
        return Cadence()
    return Cadence(cron or None, timezone)


def _pillar(fields: Fields) -> PillarConfig:
    name = _name(fields)
    return PillarConfig(
        name=name,
        slug=fields.slug(name=name),
        description=fields.block("description", longest=LONGEST_BLOCK),
        metrics=tuple(
            _metric(Fields.of(item, where, fields.problems, *METRIC_FIELDS))
            for where, item in fields.array("metrics", most=MOST_METRICS)
        ),
        strategies=tuple(
            _strategy(Fields.of(item, where, fields.problems, "description", "status"))
            for where, item in fields.array("strategies", most=MOST_STRATEGIES)
        ),
    )


def _metric(fields: Fields) -> MetricConfig:
    name = _name(fields)
    fields.require("target", "direction")
    before = len(fields.problems)
    target = fields.number("target", 0.0)
    warning = fields.number("warning", 0.0) if "warning" in fields else None
    direction = fields.choice("direction", DIRECTIONS, "down") if "direction" in fields else "down"
    if len(fields.problems) == before and {"target", "direction"} <= fields.content.keys() and warning is not None:
        # Between the target and this, a value is a warning; past it, it is off target.
        if direction == "down" and warning < target:
            fields.wrong("warning", f"must not be below the target ({target:g}) when less is better")
        elif direction == "up" and warning > target:
            fields.wrong("warning", f"must not be above the target ({target:g}) when more is better")
    return MetricConfig(
        name=name,
        slug=fields.slug(name=name),
        target=target,
        direction=direction,
        unit=fields.line("unit", longest=LONGEST_UNIT),
        warning=warning,
        collector=parse_collector(fields.content.get("collector", {"type": "manual"}), fields),
        stale_after_hours=fields.number("staleAfterHours", STALE_METRIC_HOURS, least=LEAST_HOURS, most=MOST_HOURS),
    )


def _strategy(fields: Fields) -> StrategyConfig:
    description = ""
    if fields.require("description"):
        description = fields.block("description", longest=LONGEST_BLOCK, shortest=1)
    return StrategyConfig(description, fields.choice("status", STRATEGY_STATES, "active"))


def _checks(file: Fields) -> dict[str, Mapping[str, Any]]:
    raw = file.content.get("checks", {})
    checks: dict[str, Mapping[str, Any]] = {}
    if not isinstance(raw, dict):
        Fields.of(raw, "checks", file.problems)
        return checks
    if len(raw) > MOST_CHECKS:
        file.wrong("checks", f"at most {MOST_CHECKS} are possible, got {len(raw)}")
        return checks
    for name, said in raw.items():
        check = Fields.of(said, f"checks.{excerpt(name)}", file.problems, "command", "timeoutSeconds")
        if not SLUG.fullmatch(name):
            file.problems.append(f"checks.{excerpt(name)}: a check's name must be of a-z, 0-9 and -, 63 at most")
        command = check.words("command", most=MOST_WORDS, longest=LONGEST_WORD)
        seconds = check.number("timeoutSeconds", COMMAND_SECONDS, least=LEAST_SECONDS, most=LONGEST_SECONDS)
        checks[name] = {"command": command, "timeoutSeconds": int(seconds) if seconds.is_integer() else seconds}
    return checks


def _template(fields: Fields) -> TodoTemplate:
    title = fields.line("title", longest=LONGEST_NAME)
    if "slug" not in fields and not title:
        fields.require("slug")
    return TodoTemplate(
        slug=fields.slug(name=title),
        title=title,
        description=fields.block("description", longest=LONGEST_BLOCK),
        justification=fields.block("justification", longest=LONGEST_BLOCK),
        completion_criteria=fields.block("completionCriteria", longest=LONGEST_BLOCK),
        priority=fields.choice("priority", PRIORITIES, "medium") if "priority" in fields else None,
        check=_template_check(fields) if "check" in fields else None,
    )


def _template_check(fields: Fields) -> dict[str, Any] | None:
    raw, where = fields.content["check"], fields.way("check")
    if isinstance(raw, dict) and "command" in raw:
        fields.problems.append(
            f'{where}.command: name the command under "checks", and say {{"name": "…"}} here; then it runs when the '
            "mission is trusted"
        )
        return None
    check = Fields.of(raw, where, fields.problems, "name", "metric", "atMost", "atLeast")
    if not isinstance(raw, dict):
        return None
    shape = frozenset(raw)
    if shape == {"name"}:
        return {"name": check.slug("name")}
    if shape in ({"metric", "atMost"}, {"metric", "atLeast"}):
        limit = "atMost" if "atMost" in raw else "atLeast"
        value = check.number(limit, 0.0)
        return {"metric": check.slug("metric"), limit: int(value) if value.is_integer() else value}
    if not shape - {"name", "metric", "atMost", "atLeast"}:
        fields.problems.append(f'{where}: must be {{"name": …}}, or {{"metric": …, "atMost" or "atLeast": …}}')
    return None


def wants(config: MissionConfig) -> list[str]:
    """What it would run or ask, once the person has trusted it."""
    collectors = [(metric.slug, metric.collector) for pillar in config.pillars for metric in pillar.metrics]
    return [
        *(f"metric {slug}: {_wanted(collector)}" for slug, collector in collectors if collector["type"] in RUNS),
        *(f"check {name}: runs {shlex.join(check['command'])}" for name, check in config.checks.items()),
    ]


def _wanted(collector: Mapping[str, Any]) -> str:
    match collector["type"]:
        case "command":
            return f"runs {shlex.join(collector['command'])}"
        case "http":
            return f"asks {collector['url']}{_sent(collector.get('headers', {}))}"
    return f"calls {collector['entryPoint']}"


def _sent(headers: Mapping[str, str]) -> str:
    """What an address is told besides: above all, which of the person's secrets."""
    secrets = [name for value in headers.values() for name in re.findall(r"\$\{(\w+)\}", value)]
    if secrets:
        return f", sending it your {', '.join(secrets)} (headers {', '.join(headers)})"
    return f", with the headers {', '.join(headers)}" if headers else ""


# --- what only the whole file can tell --------------------------------------------------------------------


def _check_together(config: MissionConfig, problems: list[str]) -> None:
    metrics = [
        (f"pillars[{row}].metrics[{column}]", metric.slug)
        for row, pillar in enumerate(config.pillars)
        for column, metric in enumerate(pillar.metrics)
    ]
    strategies = sum(len(pillar.strategies) for pillar in config.pillars)
    if len(metrics) > MOST_METRICS:
        problems.append(f"pillars: at most {MOST_METRICS} metrics in all, got {len(metrics)}")
    if strategies > MOST_STRATEGIES:
        problems.append(f"pillars: at most {MOST_STRATEGIES} strategies in all, got {strategies}")
    pillars = [(f"pillars[{index}]", pillar.slug) for index, pillar in enumerate(config.pillars)]
    templates = [(f"templates[{index}]", template.slug) for index, template in enumerate(config.templates)]
    for what, named in (("pillar", pillars), ("metric", metrics), ("template", templates)):
        problems += _twice(what, named)
    for (where, _), template in zip(templates, config.templates, strict=True):
        check = template.check or {}
        for key, known in (("name", config.checks), ("metric", dict.fromkeys(slug for _, slug in metrics))):
            if check.get(key) and check[key] not in known:
                problems.append(f"{where}.check.{key}: there is no {_CALLED[key]} {shown(check[key])} in this file")


_CALLED: Final = {"name": "check", "metric": "metric"}


def _twice(what: str, named: Sequence[tuple[str, str]]) -> Iterable[str]:
    first: dict[str, str] = {}
    for where, slug in named:
        if slug and slug in first:
            yield f"{where}.slug: {slug!r} is the slug of {first[slug]} already; each {what} of a mission needs its own"
        first.setdefault(slug, where)
