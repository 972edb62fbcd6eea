"""`punchlist tools`: list and call the tools of an agent."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from punchlist.kernel.text import excerpt, visible
from punchlist.surfaces.cli.agent_guard import refuse_looser_mode_for_agents
from punchlist.surfaces.cli.context import (
    CliContext,
    ListByDefault,
    SessionOption,
    echo,
    echo_error,
    echo_json,
    format_time,
    terminal_width,
    warn_untrusted,
)

if TYPE_CHECKING:
    from punchlist.tools.tool_session import ToolSite

app = typer.Typer(help="List and call the tools that an agent has in this project.", cls=ListByDefault)


class ModeChoice(StrEnum):
    PLAN = "plan"
    DEFAULT = "default"
    AUTO_EDIT = "auto-edit"
    YOLO = "yolo"


ModeOption = Annotated[
    ModeChoice | None,
    typer.Option(
        "--mode", help="plan: only read; default: ask before changes; auto-edit: ask before commands; yolo: never ask."
    ),
]


def _names(incomplete: str) -> list[str]:
    """Completion of built-in tools. MCP servers are not started for it."""
    from punchlist.tools.tool_session import native_tools
    from punchlist.tools.workspace import Workspace

    return [tool.name for tool in native_tools(Workspace(Path.cwd())) if tool.name.startswith(incomplete)]


ToolArgument = Annotated[
    str, typer.Argument(metavar="TOOL", help="The tool's name.", show_default=False, autocompletion=_names)
]


@app.command("list")
def list_tools(cli: CliContext, session: SessionOption = None) -> None:
    """List the tools, including those of MCP servers."""
    import asyncio

    services = cli.in_session(session)
    site = services.site(cli.user_scope(services), Path.cwd())
    warn_untrusted(services)
    tools, notes = asyncio.run(_tools(site))
    width = max(len(tool["name"]) for tool in tools)
    lines = [
        f"{visible(tool['name']):<{width}}  {tool['effect']:<7}  {visible(' '.join(tool['description'].split()))}"
        for tool in tools
    ]
    cli.show({"tools": tools, "notes": notes}, [excerpt(line, max(terminal_width(), 40)) for line in lines])
    for note in () if cli.json else notes:
        echo_error(note)


async def _tools(site: ToolSite) -> tuple[list[dict[str, Any]], list[str]]:
    from punchlist.tools.tool_session import available_tools

    async with available_tools(site) as (tools, notes):
        told = [
            {
                "name": tool.name,
                "effect": tool.effect.value,
                "server": tool.server,
                "description": tool.description,
                "inputSchema": tool.input_schema,
            }
            for tool in sorted(tools.values(), key=lambda tool: (tool.server or "", tool.name))
        ]
        return told, list(notes)


@app.command()
def call(
    cli: CliContext,
    name: ToolArgument,
    arguments: Annotated[
        str, typer.Argument(metavar="JSON", help="Its arguments as a JSON object; - reads them from stdin.")
    ] = "{}",
    mode: ModeOption = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="S", min=0.01, help="End the call after this many seconds.")
    ] = None,
    session: SessionOption = None,
) -> None:
    """Run one call like an agent's: validated, approved, executed and recorded.

    The current folder is the workspace. Approval is asked at the terminal; without one the call waits, and
    `punchlist inbox` answers it. Exit code: 0 success, 1 error, 2 usage, 3 cancelled or denied,
    4 waiting for approval.
    """
    from punchlist.surfaces.cli.tool_call import run_call
    from punchlist.toolcalls.model import ToolCallRequest
    from punchlist.toolcalls.policy import Mode

    refuse_looser_mode_for_agents(mode)
    parsed = parse_arguments(arguments)
    services = cli.in_session(session)
    warn_untrusted(services)
    site = services.site(cli.user_scope(services), Path.cwd())
    request = ToolCallRequest(name, parsed, timeout=timeout)
    raise typer.Exit(run_call(site, request, Mode(mode) if mode else None, as_json=cli.json))


@app.command()
def history(
    cli: CliContext,
    most: Annotated[int, typer.Option("--last", "-n", metavar="N", min=1, max=10_000, help="How many.")] = 20,
    session: SessionOption = None,
) -> None:
    """List the last calls of a session, oldest first."""
    from punchlist.toolcalls.repository import newest_calls

    services = cli.in_session(session)
    with services.store.read() as tx:
        calls = newest_calls(tx, services.settings.session, most)[::-1]
    if cli.json:
        echo_json(
            [{**call.as_json(), "arguments": json.loads(call.arguments), "at": call.created_at} for call in calls]
        )
        return
    if not calls:
        echo("This session has no calls.")
    for call in calls:
        told = visible(f"{call.tool} {call.arguments}")
        echo(f"{format_time(call.created_at)}  {call.status:<17}  {call.id[-8:]}  {told[:120]}")


def parse_arguments(written: str) -> Any:
    """Parse arguments given as JSON; other text is a usage error."""
    source = sys.stdin.read() if written == "-" else written
    try:
        return json.loads(source)
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(
            f'is not JSON ({error}). Example: \'{{"path": "README.md"}}\'', param_hint="JSON"
        ) from None
