"""`punchlist token`: named tokens for `punchlist serve` and `punchlist mcp --http`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from punchlist.kernel.text import visible
from punchlist.surfaces.cli.agent_guard import refuse_for_agents
from punchlist.surfaces.cli.context import CliContext, ListByDefault, echo, format_time

app = typer.Typer(help="Create, list and revoke tokens for `serve` and `mcp --http`.", cls=ListByDefault)


class TokenRole(StrEnum):
    PERSON = "person"
    SUPERVISOR = "supervisor"
    LEAD = "lead"
    OWNER = "owner"
    WORKER = "worker"
    VIEWER = "viewer"


@app.command()
def create(
    cli: CliContext,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name for the list of tokens and the event log.")],
    role: Annotated[TokenRole, typer.Option(help="What a client with this token may do.")],
    expires: Annotated[str, typer.Option(metavar="TIME", help="12h, 30d, 8w or never.")] = "90d",
    webhook: Annotated[
        bool, typer.Option("--webhook", help="For a program that sends signed webhooks to `punchlist serve`.")
    ] = False,
) -> None:
    """Create a token and print it, once. Only its hash is stored.

    With --webhook, the path of a webhook and the secret that signs its requests are printed instead.
    """
    refuse_for_agents("token create")
    from punchlist.kernel.events import Role
    from punchlist.tokens.validation import parse_lifetime, webhook_secret

    services = cli.in_session()
    issued = services.tokens.create(cli.user_scope(services), name, Role(role.value), parse_lifetime(expires))
    if webhook:
        secret = webhook_secret(services.trust, issued.token.id)
        path = f"/webhooks/{issued.token.id}"
        cli.show({**issued.token.as_json(), "path": path, "secret": secret}, f"{path}\n{secret}")
    else:
        cli.show({**issued.token.as_json(), "token": issued.text}, issued.text)
    if not cli.json:
        until = f"until {format_time(issued.token.expires_at)}" if issued.token.expires_at else "until it is revoked"
        echo(f"Token {name} for the role {role.value}, valid {until}. It is not shown again.", error=True)


@app.command("list")
def list_(cli: CliContext) -> None:
    """List all tokens of this database."""
    listed = cli.services().tokens.list()
    rows = [
        (
            token.name,
            token.role.value,
            validity.value,
            format_time(token.expires_at) if token.expires_at else "never",
            token.id,
        )
        for token, validity in listed
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    cli.show(
        [{**token.as_json(), "validity": validity.value} for token, validity in listed],
        map(visible, lines),
        empty="There are no tokens. `punchlist token create NAME --role ROLE` creates one.",
    )


@app.command()
def revoke(cli: CliContext, token: Annotated[str, typer.Argument(metavar="NAME|ID", help="The token.")]) -> None:
    """Revoke a token. Clients that use it are refused from their next request on."""
    refuse_for_agents("token revoke")
    services = cli.in_session()
    revoked = services.tokens.revoke(cli.user_scope(services), token)
    cli.show(revoked.as_json(), f"Revoked {visible(revoked.name)} ({visible(revoked.id)}).")
