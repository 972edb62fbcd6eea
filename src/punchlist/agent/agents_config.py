"""Agents in `punchlist.toml`.

[agent]                          # settings for every agent
model = "anthropic:NAME"
max_cost = 2.5

[agents.coder]                   # changes a built-in agent
max_iterations = 80

[agents.reviewer]                # adds a worker
description = "reads a change and says what is wrong with it"
prompt_file = "prompts/reviewer.md"
tools = ["read_file", "search_*", "run_command"]

Precedence, first wins: `[agents.NAME]` of the project's file, of the user's file, `[agent]` of the project's
file, of the user's file, the built-in definition. A project's file can come from a stranger, and the author
of an agent's prompt, model or tools decides what runs with the person's key. Until the person trusts the
file, only limits that are stricter than without it take effect. A prompt file is trusted together with the
project's file, and must be trusted again after a change.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from punchlist.agent.definitions import (
    BUILT_IN,
    DELEGATE,
    LISTS,
    PLAN_TOOLS,
    READ_TOOLS,
    STRATEGIES,
    SUPERVISOR_TOOLS,
    AgentDefinition,
    cap_iterations,
)
from punchlist.config import Settings, SettingsTables
from punchlist.errors import NotFound
from punchlist.kernel.settings_table import MAX_NUMBER, SettingsTable
from punchlist.kernel.text import block_problem, did_you_mean, excerpt, line_problem
from punchlist.trust import Trust, UnsafeFile, read_regular

MAX_AGENTS: Final = 50
MAX_PROMPT_LENGTH: Final = 50_000
_MAX_LINE_LENGTH: Final = 200
_MAX_FILE_SIZE: Final = 200_000
_SMALLEST_WINDOW: Final = 1_000
_HIGHEST_TEMPERATURE: Final = 2
_SMALLEST_SHARE: Final = 0.1
_LARGEST_SHARE: Final = 0.85
"""Turns end at 0.9 of the context window."""
_MILLISECONDS: Final = 1_000
_NO_PROMPT: Final = "is a new agent and needs a prompt or a prompt_file"
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")


@dataclass(frozen=True, slots=True)
class AgentsConfig:
    definitions: Mapping[str, AgentDefinition]
    default_model: str | None = None
    """The model of a run that names none."""
    origins: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    """The files whose settings apply to an agent."""
    distrusted: tuple[str, ...] = ()
    """Settings of the project's file that are ignored because the file is not trusted."""

    def get(self, name: str) -> AgentDefinition:
        if name not in self.definitions:
            names = ", ".join(self.definitions)
            hint = did_you_mean(name, self.definitions)
            raise NotFound(f"There is no agent {excerpt(name)!r}.{hint} There are: {names}.")
        return self.definitions[name]


def load_agents(settings: Settings, trust: Trust) -> AgentsConfig:
    user, project = _settings(settings.user), _settings(settings.project)
    project_file = settings.project
    trusted = project_file is not None and trust.trusts(project_file.path, project_file.source)
    accepted = [entry for entry in project if (entry.is_trusted(trust) if trusted else _tightens(entry, user))]
    ignored = [entry for entry in project if entry not in accepted]
    entries = [*user, *accepted]
    definitions: dict[str, AgentDefinition] = {}
    origins: dict[str, tuple[Path, ...]] = {}
    for name in dict.fromkeys((*BUILT_IN, *(entry.agent for entry in entries if entry.agent is not None))):
        own = _for_agent(name, entries)
        if name not in BUILT_IN and "prompt" not in own and any(entry.agent == name for entry in ignored):
            # Its prompt is not trusted, so the agent does not exist.
            continue
        definitions[name] = _checked(name, own)
        origins[name] = tuple({entry.table.path: None for entry in own.values()})
    models = [entry.value for entry in entries if entry.agent is None and entry.key.name == "model"]
    return AgentsConfig(definitions, models[-1] if models else None, origins, tuple(map(str, ignored)))


def untrusted_settings(settings: Settings) -> list[str]:
    """The settings of the project's file that need a person's trust."""
    user = _settings(settings.user)
    return [str(entry) for entry in _settings(settings.project) if not _tightens(entry, user)]


def prompt_files(settings: Settings) -> list[PromptFile]:
    """The prompt files that are trusted together with the project's settings."""
    return [entry.value for entry in _settings(settings.project) if isinstance(entry.value, PromptFile)]


def agent_settings(agent: AgentDefinition) -> dict[str, Any]:
    """The settings of an agent by their keys in a file."""
    return {key.name: key.shown(agent) for key in GENERAL if key.name != "model"}


# --- keys and their values --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ConfigKey:
    name: str
    field: str
    """A field of `AgentDefinition`, or `limits.` and a field of `Limits`."""
    read: Callable[[SettingsTable, str], Any]
    limit: bool = False
    """A smaller value is stricter."""
    show: Callable[[Any], Any] = lambda value: value

    def value_of(self, agent: AgentDefinition) -> Any:
        group, _, name = self.field.rpartition(".")
        return getattr(agent.limits if group else agent, name)

    def shown(self, agent: AgentDefinition) -> Any:
        return self.show(self.value_of(agent))

    def apply(self, agent: AgentDefinition, value: Any) -> AgentDefinition:
        group, _, name = self.field.rpartition(".")
        if group:
            return replace(agent, limits=replace(agent.limits, **{name: value}))
        return replace(agent, **{name: value})


@dataclass(frozen=True)
class PromptFile:
    path: Path
    table: SettingsTable

    @cached_property
    def content(self) -> bytes:
        """Read once, so that the trusted text is the one that is used."""
        try:
            return read_regular(self.path, _MAX_FILE_SIZE)
        except FileNotFoundError:
            raise self.table.error("prompt_file", f"there is no such file ({self.path})") from None
        except UnsafeFile as problem:
            raise self.table.error("prompt_file", str(problem)) from None
        except OSError as error:
            raise self.table.error("prompt_file", f"cannot be read ({error})") from error

    def text(self) -> str:
        try:
            text = self.content.decode()
        except UnicodeDecodeError as error:
            raise self.table.error("prompt_file", f"cannot be read ({error})") from error
        if problem := block_problem(text, max_length=MAX_PROMPT_LENGTH, min_length=1):
            raise self.table.error("prompt_file", f"its text {problem}")
        return text.strip()


def _line(table: SettingsTable, key: str) -> str:
    if problem := line_problem(table.text(key), max_length=_MAX_LINE_LENGTH):
        raise table.error(key, problem)
    return table.text(key).strip()


def _prompt(table: SettingsTable, key: str) -> str:
    if problem := block_problem(table.text(key), max_length=MAX_PROMPT_LENGTH, min_length=1):
        raise table.error(key, problem)
    return table.text(key).strip()


def _prompt_file(table: SettingsTable, key: str) -> PromptFile:
    if "prompt" in table.content:
        raise table.error(key, "cannot be combined with prompt; remove one of them")
    folder = table.path.parent.resolve()
    try:
        path = (folder / _line(table, key)).resolve()
    except (OSError, RuntimeError) as error:
        raise table.error(key, f"cannot be found ({error})") from error
    if not path.is_relative_to(folder):
        raise table.error(key, f"must be inside {folder}")
    return PromptFile(path, table)


def _tools(table: SettingsTable, key: str) -> tuple[str, ...]:
    found = table.text_list(key)
    for tool in found:
        if problem := line_problem(tool, max_length=_MAX_LINE_LENGTH):
            raise table.error(key, f"a name or pattern {problem}")
    return tuple(tool.strip() for tool in found)


def _integer(minimum: int, **bounds: int) -> Callable[[SettingsTable, str], int]:
    return lambda table, key: table.integer(key, minimum=minimum, **bounds)


def _positive(table: SettingsTable, key: str) -> float:
    return table.number(key, 0)


def _share(table: SettingsTable, key: str) -> float:
    share = table.number(key, 0)
    if not _SMALLEST_SHARE <= share <= _LARGEST_SHARE:
        raise table.error(key, f"must be between {_SMALLEST_SHARE} and {_LARGEST_SHARE}")
    return share


def _temperature(table: SettingsTable, key: str) -> float:
    value = table.content[key]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _HIGHEST_TEMPERATURE:
        raise table.error(key, f"must be a number from 0 to {_HIGHEST_TEMPERATURE}")
    return float(value)


def _choice(*names: str) -> Callable[[SettingsTable, str], str]:
    def read(table: SettingsTable, key: str) -> str:
        if table.text(key) not in names:
            raise table.error(key, f"must be one of {', '.join(names)}")
        return table.text(key)

    return read


def _reminder(table: SettingsTable, key: str) -> int | None:
    if table.content[key] is False:
        return None
    if table.content[key] is True:
        raise table.error(key, "must be a whole number from 1 up, or false for none")
    return table.integer(key, minimum=1)


GENERAL: Final = (
    ConfigKey("model", "model", _line),
    ConfigKey("fallback_model", "fallback", _line),
    ConfigKey("todo_driven_execution", "todo_driven", SettingsTable.flag, limit=True),
    ConfigKey("max_todo_continuations", "limits.continuations", _integer(0), limit=True),
    ConfigKey(
        "todo_check_interval_ms",
        "check_interval",
        lambda table, key: table.integer(key) / _MILLISECONDS,
        show=lambda seconds: round(seconds * _MILLISECONDS),
    ),
    ConfigKey("stall_after", "limits.stall_after", _integer(1), limit=True),
    ConfigKey("lists", "lists", _choice(*LISTS)),
    ConfigKey("strategy", "strategy", _choice(*STRATEGIES)),
    ConfigKey("judge_model", "judge_model", _line),
    ConfigKey("verify", "verify", SettingsTable.flag),
    ConfigKey("base_iterations", "limits.base_iterations", _integer(1), limit=True),
    ConfigKey("more_iterations", "limits.more_iterations", _integer(0), limit=True),
    ConfigKey("max_iterations", "limits.max_iterations", _integer(1), limit=True),
    ConfigKey("max_tokens", "limits.tokens", _integer(1), limit=True),
    ConfigKey("max_seconds", "limits.seconds", _positive, limit=True),
    ConfigKey("max_cost", "limits.cost", _positive, limit=True),
    ConfigKey("max_calls_per_reply", "limits.calls_per_reply", _integer(1), limit=True),
    ConfigKey("history", "history", _integer(0, maximum=10_000)),
    ConfigKey("compact_after", "compact_after", _integer(10)),
    ConfigKey("context_window", "context_window", _integer(_SMALLEST_WINDOW)),
    ConfigKey("temperature", "temperature", _temperature),
    ConfigKey("compact_at", "compact_at", _share),
    ConfigKey("project_instructions", "project_instructions", SettingsTable.flag, limit=True),
    ConfigKey("remind_after", "remind_after", _reminder, show=lambda after: False if after is None else after),
    ConfigKey("delegation_depth", "delegation_depth", _integer(0, maximum=10), limit=True),
)
OWN: Final = (
    *GENERAL,
    ConfigKey("description", "description", _line),
    ConfigKey("prompt", "prompt", _prompt),
    ConfigKey("prompt_file", "prompt", _prompt_file),
    ConfigKey("tools", "tools", _tools),
    ConfigKey("delegates", "delegates", SettingsTable.flag),
)


# --- from files to settings -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Setting:
    """One key of one table. `agent` is None in `[agent]`, which applies to all."""

    agent: str | None
    key: ConfigKey
    value: Any
    table: SettingsTable

    def __str__(self) -> str:
        written = json.dumps(self.table.content[self.key.name], ensure_ascii=False, default=str)
        return f"{self.table.name}.{self.key.name} = {excerpt(written, 80)}"

    def is_trusted(self, trust: Trust) -> bool:
        """Whether a setting of a trusted file is trusted: a prompt file needs trust of its own."""
        return not isinstance(self.value, PromptFile) or trust.trusts(self.value.path, self.value.content)


def _settings(tables: SettingsTables | None) -> list[_Setting]:
    if tables is None:
        return []
    general = SettingsTable.top_level(tables.path, "agent", tables.content.get("agent", {}))
    named = SettingsTable.top_level(tables.path, "agents", tables.content.get("agents", {}))
    if len(named.content) > MAX_AGENTS:
        raise named.error(None, f"at most {MAX_AGENTS} are possible, got {len(named.content)}")
    return [
        *_read(None, general, GENERAL),
        *(entry for name in named.content for entry in _read(name, named.table(name), OWN)),
    ]


def _read(agent: str | None, table: SettingsTable, keys: Sequence[ConfigKey]) -> Iterator[_Setting]:
    if agent is not None and not _NAME.fullmatch(agent):
        raise table.error(None, "an agent's name must be 1 to 40 letters, digits, - and _, beginning with a letter")
    if agent is not None and agent not in BUILT_IN and not table.content:
        raise table.error(None, _NO_PROMPT)
    table.check_keys(*(key.name for key in keys))
    for key in keys:
        if key.name in table.content:
            yield _Setting(agent, key, key.read(table, key.name), table)
    written = table.content
    if written.get("base_iterations", 0) > written.get("max_iterations", MAX_NUMBER):
        raise table.error("base_iterations", f"must not be above max_iterations ({written['max_iterations']})")


def _for_agent(agent: str, entries: Sequence[_Setting]) -> dict[str, _Setting]:
    """The settings that apply to an agent, by field: its own before the general ones, later before earlier.

    The general model is left out: it is the default of a run, and a flag must override it.
    """
    general = [entry for entry in entries if entry.agent is None and entry.key.name != "model"]
    own = [entry for entry in entries if entry.agent == agent]
    return {entry.key.field: entry for entry in (*general, *own)}


def _tightens(entry: _Setting, others: Sequence[_Setting]) -> bool:
    """Whether the setting is at least as strict as the result of all others."""
    known = {*BUILT_IN, *(other.agent for other in others), None}
    if not entry.key.limit or entry.agent not in known:
        return False
    name = entry.agent or ""
    current = entry.key.value_of(_definition(name, _for_agent(name, others)))
    return current is None or entry.value <= current


# --- from settings to agents ------------------------------------------------------------------------------


def _definition(name: str, own: Mapping[str, _Setting]) -> AgentDefinition:
    agent = BUILT_IN.get(name) or AgentDefinition(name, "", READ_TOOLS)
    for entry in own.values():
        agent = entry.key.apply(agent, entry.value.text() if isinstance(entry.value, PromptFile) else entry.value)
    if "limits.max_iterations" in own:
        agent = replace(agent, limits=cap_iterations(agent.limits, agent.limits.max_iterations))
    if agent.delegates and not agent.may_call(DELEGATE):
        added = () if "tools" in own else PLAN_TOOLS
        agent = replace(agent, tools=(*agent.tools, *added, DELEGATE))
    return agent


def _checked(name: str, own: Mapping[str, _Setting]) -> AgentDefinition:
    agent = _definition(name, own)
    if not agent.prompt:
        table = next(entry.table for entry in own.values() if entry.agent == name)
        raise table.error(None, _NO_PROMPT)
    tools = own.get("tools")
    if tools is not None and not agent.delegates:
        for tool in tools.value:
            if tool in SUPERVISOR_TOOLS:
                raise tools.table.error(
                    "tools",
                    f"{tool} is for agents that delegate, and {name} is a worker. Remove it, or set delegates = true",
                )
    return agent
