"""`punchlist notify`: try the channels of the user's settings, and send what is due without a worker or a server."""

from __future__ import annotations

from typing import Annotated

import typer

from punchlist.surfaces.cli.agent_guard import refuse_for_agents
from punchlist.surfaces.cli.context import CliContext

app = typer.Typer(help="Try your notification channels, or send what is due.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Try your notification channels, or send what is due."""


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


@app.command("run")
def send_due(cli: CliContext) -> None:
    """Look for new requests once and send the messages that are due, for example from cron.

    A worker and `punchlist serve` do this every five seconds.
    """
    refuse_for_agents("notify run")
    from punchlist.surfaces.cli.context import plural

    sent = cli.services().notifier.run_once()
    cli.show({"sent": sent}, f"Sent {plural(sent, 'message')}." if sent else "No message is due.")
