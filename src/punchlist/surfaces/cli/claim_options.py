"""Options of the commands that claim todos."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from punchlist.claims.lifecycle import MAX_LEASE_SECONDS, MIN_LEASE_SECONDS
from punchlist.errors import InvalidInput
from punchlist.kernel.text import line_problem

SecondsOption = Annotated[
    int,
    typer.Option(
        "--seconds", min=MIN_LEASE_SECONDS, max=MAX_LEASE_SECONDS, metavar="N", help="How long the claim lasts."
    ),
]
AsOption = Annotated[
    str, typer.Option("--as", metavar="NAME", help="Tells claims of the same user apart, such as those of scripts.")
]

TERMINAL: Final = "terminal"
MAX_NAME_LENGTH: Final = 100


def claim_place(name: str) -> str:
    """The name that --as gives, or an error."""
    if problem := line_problem(name, max_length=MAX_NAME_LENGTH):
        raise InvalidInput(f"--as: {problem}")
    return name.strip()
