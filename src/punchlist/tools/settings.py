"""Reads the settings of tools: workspace, MCP servers and policy. A project file that is not trusted can only
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

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from punchlist.config import Settings, SettingsTables
from punchlist.errors import ConfigError
from punchlist.kernel.settings_table import SettingsTable
from punchlist.toolcalls import policy_config
from punchlist.toolcalls.policy_config import PolicySettings
from punchlist.tools.mcp.settings import McpServer
from punchlist.trust import Trust


@dataclass(frozen=True, slots=True)
class ToolSettings:
    policy: PolicySettings
    extra_folders: tuple[Path, ...] = ()
    servers: tuple[McpServer, ...] = ()
    untrusted_requests: tuple[str, ...] = ()
    """What the project file asks for and does not get, because it is not trusted."""


@dataclass(frozen=True, slots=True)
class _Layer:
    policy: PolicySettings
    extra_folders: tuple[Path, ...]
    servers: tuple[McpServer, ...]

    @property
    def permissions(self) -> list[str]:
        """The settings that allow more than the default does."""
        return [
            *self.policy.permissions,
            *(f"tools may use {folder}" for folder in self.extra_folders),
            *(f"start MCP server {server.name}: {' '.join(server.command) or server.url}" for server in self.servers),
        ]


def load_tool_settings(settings: Settings, trust: Trust) -> ToolSettings:
    layers: list[_Layer] = []
    distrusted: list[str] = []
    if settings.project is not None:
        project = _read(settings.project)
        if project.permissions and not trust.trusts(settings.project.path):
            distrusted = project.permissions
            project = _Layer(project.policy.without_permissions(), (), ())
        layers.append(project)
    if settings.user is not None:
        layers.append(_read(settings.user))
    servers = {server.name: server for layer in reversed(layers) for server in layer.servers}
    return ToolSettings(
        policy_config.merge_layers([layer.policy for layer in layers]),
        tuple(folder for layer in layers for folder in layer.extra_folders),
        tuple(servers.values()),
        tuple(distrusted),
    )


def requests_needing_trust(settings: Settings) -> Sequence[str]:
    """What the project file asks for that needs a person's trust."""
    return _read(settings.project).permissions if settings.project is not None else ()


def _read(tables: SettingsTables) -> _Layer:
    def table(name: str) -> SettingsTable:
        return SettingsTable.top_level(tables.path, name, tables.content.get(name, {}))

    workspace, mcp = table("workspace"), table("mcp")
    workspace.check_keys("also")
    mcp.check_keys("servers")
    servers = mcp.table("servers")
    return _Layer(
        policy_config.read_policy(table("policy")),
        tuple(tables.path.parent / Path(folder).expanduser() for folder in workspace.text_list("also")),
        tuple(_server(name, servers.table(name)) for name in servers.content),
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
