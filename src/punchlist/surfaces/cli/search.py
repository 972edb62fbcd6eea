"""`punchlist search`: find words in requests, messages and the items of all lists."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from punchlist.kernel.text import visible
from punchlist.surfaces.cli.context import CliContext, echo_error, format_time, supports_color
from punchlist.views.search import DEFAULT_LIMIT, MAX_LIMIT, SearchHit, read_search

BOLD, PLAIN = "\x1b[1m", "\x1b[0m"


class KindChoice(StrEnum):
    REQUEST = "request"
    MESSAGE = "message"
    PLAN_TODO = "plan_todo"
    CHECKLIST_ITEM = "checklist_item"
    MISSION_TODO = "mission_todo"


def search(
    cli: CliContext,
    text: Annotated[
        list[str], typer.Argument(metavar="TEXT...", help="Words, or their beginnings; all of them must occur.")
    ],
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=MAX_LIMIT, metavar="N", help="How many results.")
    ] = DEFAULT_LIMIT,
    kind: Annotated[KindChoice | None, typer.Option("--kind", help="Only results of this kind.")] = None,
    mission: Annotated[str | None, typer.Option("--mission", metavar="SLUG", help="Only of this mission.")] = None,
    cursor: Annotated[str | None, typer.Option("--cursor", metavar="TEXT", help="The next page of results.")] = None,
) -> None:
    """Find words in requests, messages and the items of all lists, best match first."""
    services = cli.services()
    page = read_search(services.store, " ".join(text), kind=kind, mission=mission, limit=limit, cursor=cursor)
    color = supports_color()
    lines = [
        f"{hit.kind.replace('_', ' ')}  {visible(hit.conversation_id)}  {format_time(hit.at)}\n  {_text(hit, color)}"
        for hit in page.hits
    ]
    cli.show(page.as_json(), lines, empty="Nothing found.")
    if page.cursor is not None and not cli.json:
        echo_error(f"there are more: --cursor {page.cursor}")
    if not page.complete:
        echo_error("the index is still being filled; a later search may find more")


def _text(hit: SearchHit, color: bool) -> str:
    excerpt = _marked(hit.excerpt, hit.matches if color else ())
    return f"{_marked(hit.title, hit.title_matches if color else ())}: {excerpt}" if hit.title else excerpt


def _marked(line: str, matches: Sequence[tuple[int, int]]) -> str:
    """A line with its matches in bold."""
    text, at = "", 0
    for start, end in matches:
        text += f"{visible(line[at:start])}{BOLD}{visible(line[start:end])}{PLAIN}"
        at = end
    return text + visible(line[at:])
