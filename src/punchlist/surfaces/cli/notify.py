"""`punchlist notify`: try the channels of the user's settings."""

from __future__ import annotations

from typing import Annotated

import typer

from punchlist.surfaces.cli.agent_guard import refuse_for_agents
from punchlist.surfaces.cli.context import CliContext

app = typer.Typer(help="Try the notification channels of your settings.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Try the notification channels of your settings."""


@app.command("test")
def send_test(
    cli: CliContext,
    channel: Annotated[
        str | None, typer.Argument(metavar="[CHANNEL]", help="Only this channel.", show_default=False)
    ] = None,
) -> None:
    """Send a test message through your channels at once, without regard to quiet hours."""
    refuse_for_agents("notify test")
    sent = cli.services().notifier.test(channel)
    cli.show({"sent": [each.name for each in sent]}, [f"Sent to {each.name}." for each in sent])
