"""Reads the settings of tools: workspace, sandbox, MCP servers and policy. A project file that is not trusted can only
restrict.

[workspace]
also = ["../common"]          # further folders that tools may use

[mcp.servers.github]
command = ["github-mcp-server", "stdio"]
env = { GITHUB_TOKEN = "$GITHUB_TOKEN" }

[mcp.servers.docs]
url = "https://docs.example/mcp"
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Final

from punchlist.config import Settings, SettingsTables
from punchlist.errors import ConfigError
from punchlist.kernel.settings_table import SettingsTable
from punchlist.toolcalls.approvals import ApprovalExpiry, OnExpiry
from punchlist.toolcalls.policy import Mode, Rule, Verdict
from punchlist.tools.mcp.settings import McpServer
from punchlist.tools.sandbox import SandboxSettings, merge_sandbox, read_sandbox
from punchlist.trust import Trust


@dataclass(frozen=True, slots=True)
class ToolSettings:
    policy: PolicySettings
    extra_folders: tuple[Path, ...] = ()
    servers: tuple[McpServer, ...] = ()
    sandbox: SandboxSettings = field(default_factory=SandboxSettings)
    untrusted_requests: tuple[str, ...] = ()
    """What the project file asks for and does not get, because it is not trusted."""

    @property
    def permissions(self) -> list[str]:
        """The settings that allow more than the default does."""
        return [
            *self.policy.permissions,
            *(f"tools may use {folder}" for folder in self.extra_folders),
            *(f"start MCP server {server.name}: {' '.join(server.command) or server.url}" for server in self.servers),
            *self.sandbox.permissions,
        ]


def load_tool_settings(settings: Settings, trust: Trust) -> ToolSettings:
    layers: list[ToolSettings] = []
    distrusted: list[str] = []
    if settings.project is not None:
        project = _read(settings.project)
        if project.permissions and not trust.trusts(settings.project.path, settings.project.source):
            distrusted = project.permissions
            project = ToolSettings(project.policy.without_permissions(), sandbox=project.sandbox.without_permissions())
        # The paths in the rules of a project start from the folder of its file, wherever the workspace is.
        folder = str(settings.project.path.resolve().parent)
        rules = tuple(replace(rule, folder=folder) for rule in project.policy.rules)
        layers.append(replace(project, policy=replace(project.policy, rules=rules)))
    if settings.user is not None:
        layers.append(_read(settings.user))
    if not layers:
        return ToolSettings(PolicySettings())
    servers = {server.name: server for layer in reversed(layers) for server in layer.servers}
    return ToolSettings(
        merge_layers([layer.policy for layer in layers]),
        tuple(folder for layer in layers for folder in layer.extra_folders),
        tuple(servers.values()),
        merge_sandbox([layer.sandbox for layer in layers]),
        tuple(distrusted),
    )


def requests_needing_trust(settings: Settings) -> Sequence[str]:
    """What the project file asks for that needs a person's trust."""
    return _read(settings.project).permissions if settings.project is not None else ()


def _read(tables: SettingsTables) -> ToolSettings:
    def table(name: str) -> SettingsTable:
        return SettingsTable.top_level(tables.path, name, tables.content.get(name, {}))

    workspace, mcp = table("workspace"), table("mcp")
    workspace.check_keys("also")
    mcp.check_keys("servers")
    servers = mcp.table("servers")
    return ToolSettings(
        read_policy(table("policy")),
        tuple(tables.path.parent / Path(folder).expanduser() for folder in workspace.text_list("also")),
        tuple(_server(name, servers.table(name)) for name in servers.content),
        read_sandbox(tables),
    )


def _server(name: str, table: SettingsTable) -> McpServer:
    table.check_keys("command", "env", "cwd", "url", "headers", "start_timeout", "call_timeout")
    folder = table.text("cwd")
    values = (
        tuple(table.text_list("command")),
        table.text_map("env"),
        table.path.parent / Path(folder).expanduser() if folder else table.path.parent,
        table.text("url") or None,
        table.text_map("headers"),
        table.number("start_timeout", 20),
        table.number("call_timeout", 120),
    )
    try:
        return McpServer(name, *values)
    except ConfigError as problem:
        # Add the file, which the server does not know.
        raise table.error(None, str(problem).removesuffix(".")) from None


_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
MAX_RULES: Final = 1_000


@dataclass(frozen=True, slots=True)
class PolicySettings:
    mode: Mode | None = None
    expiry: ApprovalExpiry | None = None
    rules: tuple[Rule, ...] = ()

    @property
    def permissions(self) -> list[str]:
        """The settings that allow more than the default does."""
        allowing = [str(rule) for rule in self.rules if rule.verdict is Verdict.ALLOW]
        return [*allowing, f"mode {self.mode}"] if self.mode in (Mode.AUTO_EDIT, Mode.YOLO) else allowing

    def without_permissions(self) -> PolicySettings:
        """Without the rules that allow: the part that applies from an untrusted file."""
        kept = tuple(rule for rule in self.rules if rule.verdict is not Verdict.ALLOW)
        return replace(self, rules=kept, mode=Mode.PLAN if self.mode is Mode.PLAN else None)


def merge_layers(layers: Sequence[PolicySettings]) -> PolicySettings:
    """The first mode and expiry that are set, and the rules of all layers in order."""
    return PolicySettings(
        mode=next((layer.mode for layer in layers if layer.mode is not None), None),
        expiry=next((layer.expiry for layer in layers if layer.expiry is not None), None),
        rules=tuple(rule for layer in layers for rule in layer.rules),
    )


def read_policy(table: SettingsTable) -> PolicySettings:
    table.check_keys("mode", "expiry", "on_expiry", "rules")
    rules = table.tables("rules")
    if len(rules) > MAX_RULES:
        raise table.error("rules", f"at most {MAX_RULES} allowed, got {len(rules)}")
    mode = Mode(table.text("mode", one_of=list(Mode))) if "mode" in table.content else None
    return PolicySettings(mode, _expiry(table), tuple(map(_rule, rules)))


def _expiry(table: SettingsTable) -> ApprovalExpiry | None:
    if "expiry" not in table.content:
        if "on_expiry" in table.content:
            raise table.error("on_expiry", 'needs an expiry, such as "24h"')
        return None
    written = table.text("expiry")
    found = re.fullmatch(r"(\d{1,6})\s*([smhd])", written.strip())
    if not found or not int(found[1]):
        raise table.error("expiry", 'must be a time such as "30m", "24h" or "7d"')
    then = OnExpiry(table.text("on_expiry", OnExpiry.DENY, one_of=list(OnExpiry)))
    return ApprovalExpiry(then, timedelta(**{_UNITS[found[2]]: int(found[1])}))


def _rule(table: SettingsTable) -> Rule:
    table.check_keys("decision", "tool", "command", "arguments", "mode", "why")
    if "decision" not in table.content:
        raise table.error("decision", f"is required, one of {', '.join(Verdict)}")
    commands = tuple(tuple(command.split()) for command in table.text_list("command"))
    if not all(commands):
        raise table.error("command", "must not be empty")
    modes = table.text_list("mode")
    if unknown := [mode for mode in modes if mode not in list(Mode)]:
        raise table.error("mode", f"must be of {', '.join(Mode)}, got {unknown[0]!r}")
    return Rule(
        Verdict(table.text("decision", one_of=list(Verdict))),
        table.text("tool", "*"),
        commands,
        arguments=table.text_map("arguments"),
        modes=frozenset(map(Mode, modes)) or frozenset(Mode),
        why=table.text("why"),
        source=f"{table.path.name}, {table.name}",
    )
