"""The keys of `[agent]` and `[agents.NAME]`: how each is read, and what of an agent it sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from punchlist.agent.definitions import AgentDefinition
from punchlist.kernel.settings_table import SettingsTable
from punchlist.kernel.text import block_problem, line_problem

LONGEST_PROMPT: Final = 50_000
_LONGEST_LINE: Final = 200
_LARGEST_FILE: Final = 200_000
_MILLISECONDS: Final = 1_000


@dataclass(frozen=True, slots=True)
class ConfigKey:
    name: str
    field: str
    """Of an agent's definition, or of its `limits.`"""
    read: Callable[[SettingsTable, str], Any]
    limit: bool = False
    """A smaller value lets less happen."""
    show: Callable[[Any], Any] = lambda value: value

    def of(self, agent: AgentDefinition) -> Any:
        group, _, name = self.field.rpartition(".")
        return getattr(agent.limits if group else agent, name)

    def shown(self, agent: AgentDefinition) -> Any:
        return self.show(self.of(agent))

    def applied(self, agent: AgentDefinition, value: Any) -> AgentDefinition:
        group, _, name = self.field.rpartition(".")
        if group:
            return replace(agent, limits=replace(agent.limits, **{name: value}))
        return replace(agent, **{name: value})


@dataclass(frozen=True, slots=True)
class PromptFile:
    path: Path
    table: SettingsTable

    def text(self) -> str:
        try:
            if not self.path.is_file():
                raise self.table.error("prompt_file", f"there is no such file ({self.path})")
            if self.path.stat().st_size > _LARGEST_FILE:
                raise self.table.error("prompt_file", f"is larger than {_LARGEST_FILE:,} bytes; that is no prompt")
            text = self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise self.table.error("prompt_file", f"cannot be read ({error})") from error
        if problem := block_problem(text, max_length=LONGEST_PROMPT, min_length=1):
            raise self.table.error("prompt_file", f"its text {problem}")
        return text.strip()


def _line(table: SettingsTable, key: str) -> str:
    if problem := line_problem(table.text(key), max_length=_LONGEST_LINE):
        raise table.error(key, problem)
    return table.text(key).strip()


def _prompt(table: SettingsTable, key: str) -> str:
    if problem := block_problem(table.text(key), max_length=LONGEST_PROMPT, min_length=1):
        raise table.error(key, problem)
    return table.text(key).strip()


def _prompt_file(table: SettingsTable, key: str) -> PromptFile:
    if "prompt" in table.content:
        raise table.error(key, "and prompt are two prompts; one of them must go")
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
        if problem := line_problem(tool, max_length=_LONGEST_LINE):
            raise table.error(key, f"a name or pattern {problem}")
    return tuple(tool.strip() for tool in found)


def _whole(minimum: int, **bounds: int) -> Callable[[SettingsTable, str], int]:
    return lambda table, key: table.integer(key, minimum=minimum, **bounds)


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
    ConfigKey("max_todo_continuations", "limits.continuations", _whole(0), limit=True),
    ConfigKey(
        "todo_check_interval_ms",
        "check_interval",
        lambda table, key: table.integer(key) / _MILLISECONDS,
        show=lambda seconds: round(seconds * _MILLISECONDS),
    ),
    ConfigKey("base_iterations", "limits.base_iterations", _whole(1), limit=True),
    ConfigKey("more_iterations", "limits.more_iterations", _whole(0), limit=True),
    ConfigKey("max_iterations", "limits.max_iterations", _whole(1), limit=True),
    ConfigKey("max_tokens", "limits.tokens", _whole(1), limit=True),
    ConfigKey("max_seconds", "limits.seconds", lambda table, key: table.number(key, 0), limit=True),
    ConfigKey("max_cost", "limits.cost", lambda table, key: table.number(key, 0), limit=True),
    ConfigKey("history", "history", _whole(0, maximum=10_000)),
    ConfigKey("compact_after", "compact_after", _whole(10)),
    ConfigKey("remind_after", "remind_after", _reminder, show=lambda after: False if after is None else after),
    ConfigKey("delegation_depth", "delegation_depth", _whole(0, maximum=10), limit=True),
)
OWN: Final = (
    *GENERAL,
    ConfigKey("description", "description", _line),
    ConfigKey("prompt", "prompt", _prompt),
    ConfigKey("prompt_file", "prompt", _prompt_file),
    ConfigKey("tools", "tools", _tools),
    ConfigKey("delegates", "delegates", SettingsTable.flag),
)
