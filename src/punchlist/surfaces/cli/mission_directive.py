"""`punchlist mission directive`: standing instructions to the agents of a mission."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.text import visible
from punchlist.surfaces.cli.agent_guard import refuse_for_agents
from punchlist.surfaces.cli.context import CliContext
from punchlist.surfaces.cli.options import MissionArgument, mission_scope

if TYPE_CHECKING:
    from punchlist.missions.directives.model import Directive

app = typer.Typer(help="Standing instructions that a mission's agents get in every request.", no_args_is_help=True)


@app.command()
def add(
    cli: CliContext,
    mission: MissionArgument,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="One line of at most 500 characters.", show_default=False)
    ],
    until: Annotated[
        str | None, typer.Option("--until", metavar="DATE", help="The last day on which it holds, such as 2026-03-31.")
    ] = None,
) -> None:
    """Add a directive. At most 20 hold at a time."""
    refuse_for_agents("mission directive add")
    services = cli.services()
    added = services.directives.add(mission_scope(cli, services), mission, text, until=until)
    cli.show(camel_json(added), f"Added directive {added.number}.")


@app.command("list")
def list_directives(
    cli: CliContext,
    mission: MissionArgument,
    ended: Annotated[bool, typer.Option("--all", help="Include those that no longer hold.")] = False,
) -> None:
    """List the directives of a mission."""
    found = cli.services().directives.list(mission, ended=ended)
    cli.show(
        [camel_json(one) for one in found], [directive_line(one) for one in found], empty="There are no directives."
    )


@app.command()
def end(
    cli: CliContext,
    mission: MissionArgument,
    number: Annotated[int, typer.Argument(metavar="N", help="The directive's number.", show_default=False)],
) -> None:
    """End a directive."""
    refuse_for_agents("mission directive end")
    services = cli.services()
    ended = services.directives.end(mission_scope(cli, services), mission, number)
    cli.show(camel_json(ended), f"Ended directive {ended.number}.")


def directive_line(directive: Directive) -> str:
    until = f" (until {visible(directive.holds_until)})" if directive.holds_until else ""
    ended = " (ended)" if directive.ended_at else ""
    return f"{directive.number}. {visible(directive.content)}{until}{ended}"
