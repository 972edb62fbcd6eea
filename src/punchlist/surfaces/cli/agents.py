"""`punchlist agents`: the agents of this project and their settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from punchlist.kernel.text import excerpt, visible, visible_block
from punchlist.surfaces.cli.context import CliContext, ListByDefault, echo_error, terminal_width

if TYPE_CHECKING:
    from punchlist.agent.agents_config import AgentsConfig
    from punchlist.agent.definitions import AgentDefinition

_MAX_SHOWN: Final = 10

app = typer.Typer(help="List and show the agents of this project.", cls=ListByDefault)


def _names(incomplete: str) -> list[str]:
    """Completion of built-in names. Agents of the project need trust first."""
    from punchlist.agent.definitions import BUILT_IN

    return [name for name in BUILT_IN if name.startswith(incomplete)]


@app.command("list")
def list_agents(cli: CliContext) -> None:
    """List the built-in agents and those of punchlist.toml."""
    found = _agents(cli)
    agents = found.definitions.values()
    names = max(map(len, found.definitions))
    models = max(len(_model(found, agent)) for agent in agents)
    lines = [
        f"{agent.name:<{names}}  {_model(found, agent):<{models}}  "
        f"{visible(agent.description or ' '.join(agent.prompt.split()))}"
        for agent in agents
    ]
    cli.show([_json(found, agent) for agent in agents], [excerpt(line, max(terminal_width(), 40)) for line in lines])


@app.command()
def show(
    cli: CliContext,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The agent's name.", show_default=False, autocompletion=_names)
    ],
) -> None:
    """Show an agent: where it is defined, its model, tools, settings and prompt."""
    from punchlist.agent.agents_config import agent_settings

    found = _agents(cli)
    agent = found.get(name)
    rows = {
        "defined": ", changed by ".join(map(visible, _origins(found, agent))),
        "model": _model(found, agent),
        "tools": visible(", ".join(agent.tools)) or "none",
        "delegates": _told(agent.delegates),
        **{key: _told(value) for key, value in agent_settings(agent).items()},
    }
    width = max(map(len, rows))
    lines = [
        f"{agent.name}: {visible(agent.description)}" if agent.description else agent.name,
        *(f"  {label:<{width}}  {told}" for label, told in rows.items()),
        "",
        *(f"  │ {line}" for line in visible_block(agent.prompt).splitlines()),
    ]
    cli.show(_json(found, agent), lines)


def _agents(cli: CliContext) -> AgentsConfig:
    found = cli.services().agents
    if left_out := found.distrusted:
        told = [f"  - {wanted}" for wanted in left_out[:_MAX_SHOWN]]
        more = [f"  … and {len(left_out) - _MAX_SHOWN} more"] if len(left_out) > _MAX_SHOWN else []
        echo_error("\n".join(["these settings are ignored until you trust them with `punchlist trust`:", *told, *more]))
    return found


def _json(found: AgentsConfig, agent: AgentDefinition) -> dict[str, Any]:
    from punchlist.agent.agents_config import agent_settings

    return {
        "name": agent.name,
        "description": agent.description,
        "definedIn": _origins(found, agent),
        "model": agent.model or found.default_model,
        "tools": list(agent.tools),
        "delegates": agent.delegates,
        "settings": agent_settings(agent),
        "prompt": agent.prompt,
    }


def _origins(found: AgentsConfig, agent: AgentDefinition) -> list[str]:
    from punchlist.agent.definitions import BUILT_IN

    built_in = ["built in"] if agent.name in BUILT_IN else []
    return [*built_in, *map(str, found.origins[agent.name])]


def _model(found: AgentsConfig, agent: AgentDefinition) -> str:
    return visible(agent.model or found.default_model or "model of the run")


def _told(value: Any) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
    return visible(value)
