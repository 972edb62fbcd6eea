"""`punchlist policy`: the rules for tool calls."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from punchlist.kernel.text import excerpt, visible
from punchlist.surfaces.cli.agent_guard import refuse_for_agents
from punchlist.surfaces.cli.context import CliContext, ListByDefault, SessionOption, echo_error, warn_untrusted
from punchlist.surfaces.cli.tools import ModeOption, ToolArgument, parse_arguments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from punchlist.app import Services
    from punchlist.toolcalls.policy import Mode, Policy, Rule
    from punchlist.tools.tool_session import ToolSite

app = typer.Typer(help="List and revoke the rules for tool calls, and explain decisions.", cls=ListByDefault)


@app.command("list")
@app.command("rules", hidden=True)
def list_rules(cli: CliContext, mode: ModeOption = None, session: SessionOption = None) -> None:
    """List the mode and every rule that applies: of the settings and of "always" answers, and what each covers."""
    from punchlist.toolcalls.always import describe

    services = cli.in_session(session)
    warn_untrusted(services)
    policy, listed = _rules(cli, services, _mode(mode))
    shown = [
        {
            "number": number,
            "id": rule.id,
            "decision": rule.verdict.value,
            "covers": describe(rule, of_settings=rule.lifetime is None),
            "lifetime": rule.lifetime.value if rule.lifetime else None,
            "source": rule.source,
            "why": rule.why or None,
        }
        for number, rule in enumerate(listed, start=1)
    ]
    lines = [
        f"{one['number']:>3}. {one['decision']:<5}  {visible(one['covers'])}\n            {visible(_origin(rule))}"
        for one, rule in zip(shown, listed, strict=True)
    ]
    if any(rule.id for rule in listed):
        lines.append("Revoke an always rule with: punchlist policy revoke N")
    cli.show({"mode": policy.mode.value, "rules": shown}, [f"mode {policy.mode}", *lines])


@app.command()
def revoke(
    cli: CliContext,
    wanted: Annotated[str, typer.Argument(metavar="N", help="The rule's number in `policy list`, or its id.")],
    session: SessionOption = None,
) -> None:
    """Revoke an "always" rule. Running agents follow from the next reply of their model on."""
    from punchlist.errors import InvalidInput
    from punchlist.toolcalls.always import describe

    refuse_for_agents("policy revoke")
    services = cli.in_session(session)
    _, listed = _rules(cli, services, None)
    rule = _find(listed, wanted)
    if rule.id is None:
        raise InvalidInput(f"Rule {wanted} is in {rule.source}. Edit that file to change it.")
    scope = cli.user_scope(services)
    services.site(scope, Path.cwd()).call_service().rules.revoke(rule, scope.actor)
    cli.show({"id": rule.id, "revoked": True}, f"Revoked: {visible(describe(rule))}.")


def _rules(cli: CliContext, services: Services, mode: Mode | None) -> tuple[Policy, list[Rule]]:
    from punchlist.tools.tool_session import session_policy

    site = services.site(cli.user_scope(services), Path.cwd())
    calls = site.call_service()
    policy = session_policy(site, mode, calls)
    return policy, [*policy.rules, *calls.rules.listed()]


def _find(listed: Sequence[Rule], wanted: str) -> Rule:
    from punchlist.errors import NotFound

    if wanted.isdecimal() and 0 < int(wanted) <= len(listed):
        return listed[int(wanted) - 1]
    found = [rule for rule in listed if rule.id is not None and rule.id.endswith(wanted) and wanted]
    if len(found) != 1:
        problem = "There is no rule" if not found else f"{len(found)} rules have the id"
        raise NotFound(f"{problem} {excerpt(wanted)!r}. `punchlist policy list` lists them.")
    return found[0]


def _origin(rule: Rule) -> str:
    from punchlist.toolcalls.always import describe_lifetime

    if rule.lifetime is None:
        return f"{rule.source}{f': {rule.why}' if rule.why else ''}"
    return f'"always" {rule.source}, {describe_lifetime(rule.lifetime)}, id {(rule.id or "")[-8:]}'


@app.command()
def explain(
    cli: CliContext,
    tool: ToolArgument,
    arguments: Annotated[str, typer.Argument(metavar="JSON", help="Its arguments as JSON; - reads them from stdin.")],
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
