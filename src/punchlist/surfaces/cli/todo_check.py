"""The options that give a mission todo its check."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

import typer

from punchlist.errors import InvalidInput

CheckNameOption = Annotated[
    str | None, typer.Option("--check-name", metavar="NAME", help="Require a check of the mission to pass.")
]
CheckMetricOption = Annotated[
    str | None, typer.Option("--check-metric", metavar="SLUG", help="Require a metric to reach a level.")
]
AtMostOption = Annotated[float | None, typer.Option("--at-most", metavar="X", help="The metric's upper bound.")]
AtLeastOption = Annotated[float | None, typer.Option("--at-least", metavar="X", help="The metric's lower bound.")]
CheckCommandOption = Annotated[
    str | None, typer.Option("--check-command", metavar="COMMAND", help="Require a command to exit with 0.")
]
CheckFileOption = Annotated[
    str | None, typer.Option("--check-file", metavar="PATH", help="Require a file of the project to exist.")
]
CheckContainsOption = Annotated[
    str | None, typer.Option("--contains", metavar="TEXT", help="Require the file to contain a text.")
]


def parse_check_options(
    name: str | None,
    metric: str | None,
    at_most: float | None,
    at_least: float | None,
    command: str | None,
    file: str | None,
    contains: str | None,
) -> dict[str, Any] | None:
    levels = {key: value for key, value in (("atMost", at_most), ("atLeast", at_least)) if value is not None}
    if sum(given is not None for given in (name, metric, command, file)) > 1:
        raise InvalidInput("A todo has one check. Use --check-name, --check-metric, --check-command or --check-file.")
    if (metric is not None) != (len(levels) == 1):
        raise InvalidInput("--check-metric needs either --at-most or --at-least.")
    if contains is not None and file is None:
        raise InvalidInput("--contains needs --check-file.")
    if name is not None:
        return {"name": name}
    if metric is not None:
        return {"metric": metric, **levels}
    if file is not None:
        return {"file": file, **({"contains": contains} if contains is not None else {})}
    return _parse_command(command) if command is not None else None


def _parse_command(command: str) -> dict[str, Any]:
    try:
        return {"command": shlex.split(command)}
    except ValueError as error:
        raise InvalidInput(f"--check-command: cannot be parsed ({error}). Close its quotes.") from None
