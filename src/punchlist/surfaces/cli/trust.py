"""`punchlist trust`: trust the settings of a project."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from punchlist.errors import NotAllowed
from punchlist.kernel.text import visible
from punchlist.surfaces.cli.agent_guard import refuse_for_agents
from punchlist.surfaces.cli.context import CliContext, echo


def trust(
    cli: CliContext,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Withdraw the trust.")] = False,
) -> None:
    """Trust the current content of this project's punchlist.toml: its allow rules, MCP servers, folders and agents.

    Without trust only its ask and deny rules and its limits apply. A changed file must be trusted again.
    """
    from punchlist.agent import agents_config
    from punchlist.tools import settings as tools

    refuse_for_agents("trust")
    services = cli.services()
    settings = services.settings
    file = settings.project.path if settings.project else settings.external_database_file
    elsewhere = (
        [f"database = {settings.database}, for the hooks and servers of agents"]
        if settings.external_database_file
        else []
    )
    wanted = [
        visible(want)
        for want in (*elsewhere, *tools.requests_needing_trust(settings), *agents_config.untrusted_settings(settings))
    ]
    files = [file, *agents_config.prompt_files(settings)] if file is not None else []
    trusted = bool(files) and all(map(services.trust.trusts, files))
    if files and forget:
        for one in files:
            services.trust.forget(one)
        trusted = False
    elif file is not None and wanted and not trusted:
        if not cli.json or not yes:
            echo(f"{visible(file)} asks for:", error=True)
            echo("\n".join(f"  - {want}" for want in wanted), error=True)
        _agree(yes)
        for one in files:
            services.trust.trust(one)
        trusted = True
    text = "This project's settings contain nothing that needs trust."
    if file is not None and wanted:
        text = f"{visible(file)} is {'trusted' if trusted else 'not trusted'}."
    cli.show({"file": str(file) if file else None, "asksFor": wanted, "trusted": trusted}, text)


def _agree(yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise NotAllowed("There is no terminal to ask. Read the file, then run `punchlist trust --yes`.")
    typer.confirm("Trust it?", abort=True, err=True)
