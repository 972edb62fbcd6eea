"""`punchlist policy`: the rules for tool calls."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from punchlist.kernel.text import excerpt, visible
from punchlist.surfaces.cli.context import CliContext, SessionOption, echo_error, warn_untrusted
from punchlist.surfaces.cli.tools import ModeOption, ToolArgument, parse_arguments

if TYPE_CHECKING:
    from punchlist.toolcalls.policy import Mode
    from punchlist.tools.tool_session import ToolSite

app = typer.Typer(help="Show the rules for tool calls and explain decisions.", no_args_is_help=True)


@app.command()
def show(cli: CliContext, mode: ModeOption = None, session: SessionOption = None) -> None:
    """Show the mode and the rules in the order in which they apply."""
    from punchlist.tools.tool_session import session_policy

    services = cli.in_session(session)
    warn_untrusted(services)
    site = services.site(cli.user_scope(services), Path.cwd())
    policy = session_policy(site, _mode(mode), site.call_service())
    rules = [*(("settings", rule) for rule in policy.rules), *(("session", rule) for rule in policy.session_rules)]
    cli.show(
        {"mode": policy.mode.value, "rules": [{"rule": str(rule), "from": origin} for origin, rule in rules]},
        [f"mode {policy.mode}", *(f"{number:>3}. {visible(rule)}" for number, (_, rule) in enumerate(rules, start=1))],
    )


@app.command()
def explain(
    cli: CliContext,
    tool: ToolArgument,
    arguments: Annotated[str, typer.Argument(metavar="ARGS", help="Its arguments as JSON; - reads them from stdin.")],
    mode: ModeOption = None,
    session: SessionOption = None,
) -> None:
    """Explain whether a call is allowed, asked about or denied, and by which rule. Nothing runs."""
    import asyncio

    parsed = parse_arguments(arguments)
    services = cli.in_session(session)
    warn_untrusted(services)
    site = services.site(cli.user_scope(services), Path.cwd())
    told, notes = asyncio.run(_explain(site, tool, parsed, _mode(mode)))
    for note in notes:
        echo_error(note)
    lines = [f"{told['decision']}: {visible(told['why'])}"]
    if len(told["parts"]) > 1:
        for part in told["parts"]:
            lines.append(f"  {part['decision']:<5}  {excerpt(part['part'], 40):<40}  {visible(part['why'])}")
    if told["sandbox"]:
        lines.append(visible(told["sandbox"]))
    cli.show(told, lines)


async def _explain(site: ToolSite, name: str, arguments: Any, mode: Mode | None) -> tuple[dict[str, Any], list[str]]:
    from punchlist.errors import InvalidInput, NotFound
    from punchlist.kernel.tool import parse_arguments as checked
    from punchlist.toolcalls.policy import strictest
    from punchlist.toolcalls.validation import unknown_tool
    from punchlist.tools.sandbox import describe
    from punchlist.tools.tool_session import available_tools, session_policy

    async with available_tools(site) as (tools, notes):
        tool = tools.get(name)
        if tool is None:
            raise NotFound(unknown_tool(name, tools).message)
        if problems := tool.problems(checked(arguments)):
            raise InvalidInput(list(problems))
        policy = session_policy(site, mode, site.call_service())
        parts = policy.judge(tool, arguments)
        decision = strictest(parts)
        runs_command = tool.command(arguments) is not None
    told = [{"part": one.part, "decision": one.decision.verdict.value, "why": one.decision.why} for one in parts]
    return {
        "tool": name,
        "mode": policy.mode.value,
        "decision": decision.verdict.value,
        "why": decision.why,
        "rule": str(decision.rule) if decision.rule else None,
        "parts": told,
        "sandbox": describe(site.settings.sandbox, site.root) if runs_command else None,
    }, list(notes)


def _mode(chosen: Any) -> Mode | None:
    from punchlist.toolcalls.policy import Mode

    return Mode(chosen) if chosen else None
