"""Agents as they stand in `punchlist.toml`.

[agent]                          # for every agent
model = "anthropic:NAME"
max_cost = 2.5

[agents.coder]                   # changes one that is built in
max_iterations = 80

[agents.reviewer]                # a worker more
description = "reads a change and says what is wrong with it"
prompt_file = "prompts/reviewer.md"
tools = ["read_file", "search_*", "run_command"]

What counts, first wins: `[agents.NAME]` of the project's file, of the user's, `[agent]` of the project's,
of the user's, and what is built in. A project's file comes from anybody, and whoever writes an agent's
prompt, model or tools decides what runs with the person's key. So until the person trusts it, nothing of
it counts but limits that are tighter than without it. A prompt in a file of its own is trusted with it,
and has to be trusted again when it changes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from punchlist.agent.config_keys import GENERAL, OWN, ConfigKey, PromptFile
from punchlist.agent.definitions import (
    BUILT_IN,
    DELEGATE,
    PLAN_TOOLS,
    READ_TOOLS,
    SUPERVISOR_TOOLS,
    AgentDefinition,
    cap_iterations,
)
from punchlist.config import Settings, SettingsTables
from punchlist.errors import NotFound
from punchlist.kernel.settings_table import MAX_NUMBER, SettingsTable, suggestion
from punchlist.kernel.text import excerpt
from punchlist.trust import Trust

MAX_AGENTS: Final = 50
_NO_PROMPT: Final = "is a new agent, and needs a prompt or a prompt_file"
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")


@dataclass(frozen=True, slots=True)
class AgentsConfig:
    definitions: Mapping[str, AgentDefinition]
    default_model: str | None = None
    """For a run that names none."""
    origins: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    """The files that say something about an agent, and are heard."""
    distrusted: tuple[str, ...] = ()
    """What the project's file asks for and does not get, since nobody has trusted it."""

    def get(self, name: str) -> AgentDefinition:
        if name not in self.definitions:
            there = ", ".join(self.definitions)
            raise NotFound(
                f"There is no agent {excerpt(name)!r}.{suggestion(name, self.definitions)} There are: {there}."
            )
        return self.definitions[name]


def load_agents(settings: Settings, trust: Trust) -> AgentsConfig:
    user, project = _said(settings.user), _said(settings.project)
    trusted = settings.project is not None and trust.trusts(settings.project.path)
    heard = [one for one in project if (one.is_trusted(trust) if trusted else _tightens(one, user))]
    left_out = [one for one in project if one not in heard]
    said = [*user, *heard]
    definitions: dict[str, AgentDefinition] = {}
    origins: dict[str, tuple[Path, ...]] = {}
    for name in dict.fromkeys((*BUILT_IN, *(one.agent for one in said if one.agent is not None))):
        about = _about(name, said)
        if name not in BUILT_IN and "prompt" not in about and any(one.agent == name for one in left_out):
            # Nobody has trusted what it should be told.
            continue
        definitions[name] = _checked(name, about)
        origins[name] = tuple({one.table.path: None for one in about.values()})
    models = [one.value for one in said if one.agent is None and one.key.name == "model"]
    return AgentsConfig(definitions, models[-1] if models else None, origins, tuple(map(str, left_out)))


def untrusted_settings(settings: Settings) -> list[str]:
    """What the project's file asks for that needs a person's trust."""
    user = _said(settings.user)
    return [str(one) for one in _said(settings.project) if not _tightens(one, user)]


def prompt_files(settings: Settings) -> list[Path]:
    """The files besides the project's settings that are trusted with them."""
    return [one.value.path for one in _said(settings.project) if isinstance(one.value, PromptFile)]


def agent_settings(agent: AgentDefinition) -> dict[str, Any]:
    """An agent's settings by the keys that they have in a file; None where nothing is set."""
    return {key.name: key.shown(agent) for key in GENERAL if key.name != "model"}


# --- what files say ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Setting:
    """One key of one table. `agent` is None for what is said of all of them."""

    agent: str | None
    key: ConfigKey
    value: Any
    table: SettingsTable

    def __str__(self) -> str:
        written = json.dumps(self.table.content[self.key.name], ensure_ascii=False, default=str)
        return f"{self.table.name}.{self.key.name} = {excerpt(written, 80)}"

    def is_trusted(self, trust: Trust) -> bool:
        """In a file that is: a prompt of its own file must be trusted as well."""
        return not isinstance(self.value, PromptFile) or trust.trusts(self.value.path)


def _said(tables: SettingsTables | None) -> list[_Setting]:
    if tables is None:
        return []
    general = SettingsTable.top_level(tables.path, "agent", tables.content.get("agent", {}))
    named = SettingsTable.top_level(tables.path, "agents", tables.content.get("agents", {}))
    if len(named.content) > MAX_AGENTS:
        raise named.error(None, f"at most {MAX_AGENTS} are possible, got {len(named.content)}")
    return [
        *_read(None, general, GENERAL),
        *(one for name in named.content for one in _read(name, named.table(name), OWN)),
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


def _about(agent: str, said: Sequence[_Setting]) -> dict[str, _Setting]:
    """By field: an agent's own over what is said of all; of these, what comes last.

    The model for all is not here: it is for a run that names none, and a flag would have to beat it.
    """
    general = [one for one in said if one.agent is None and one.key.name != "model"]
    own = [one for one in said if one.agent == agent]
    return {one.key.field: one for one in (*general, *own)}


def _tightens(one: _Setting, without: Sequence[_Setting]) -> bool:
    """Whether it only lets less happen than all that is said without it."""
    known = {*BUILT_IN, *(other.agent for other in without), None}
    if not one.key.limit or one.agent not in known:
        return False
    present = one.key.of(_made(one.agent or "", _about(one.agent or "", without)))
    return present is None or one.value <= present


# --- from what is said to an agent ------------------------------------------------------------------------


def _made(name: str, about: Mapping[str, _Setting]) -> AgentDefinition:
    agent = BUILT_IN.get(name) or AgentDefinition(name, "", READ_TOOLS)
    for one in about.values():
        agent = one.key.applied(agent, one.value.text() if isinstance(one.value, PromptFile) else one.value)
    if "limits.max_iterations" in about:
        agent = replace(agent, limits=cap_iterations(agent.limits, agent.limits.max_iterations))
    if agent.delegates and not agent.may_call(DELEGATE):
        usual = () if "tools" in about else PLAN_TOOLS
        agent = replace(agent, tools=(*agent.tools, *usual, DELEGATE))
    return agent


def _checked(name: str, about: Mapping[str, _Setting]) -> AgentDefinition:
    agent = _made(name, about)
    if not agent.prompt:
        table = next(one.table for one in about.values() if one.agent == name)
        raise table.error(None, _NO_PROMPT)
    tools = about.get("tools")
    if (
        tools is not None
        and not agent.delegates
        and (wrong := [tool for tool in tools.value if tool in SUPERVISOR_TOOLS])
    ):
        raise tools.table.error(
            "tools",
            f"{wrong[0]} is not for {name}: an agent that does not delegate is a worker, and the plan is its "
            "supervisor's. Leave it out, or set delegates = true",
        )
    return agent
