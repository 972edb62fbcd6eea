"""`punchlist todos`: the session's checklist."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from punchlist.checklist import render
from punchlist.checklist.lifecycle import ChecklistAction
from punchlist.checklist.model import item_json
from punchlist.checklist.render import render_box
from punchlist.surfaces.cli.context import (
    JsonOption,
    ReasonOption,
    SessionOption,
    cli_context,
    echo,
    echo_json,
    supports_ansi,
    supports_color,
    terminal_width,
    to_json_text,
)

if TYPE_CHECKING:
    from punchlist.checklist.model import Checklist, ChecklistChange
    from punchlist.checklist.service import Checklists
    from punchlist.conversations.model import Scope
    from punchlist.surfaces.services import Services

app = typer.Typer(help="Show and change the session's checklist.", invoke_without_command=True)

Item = Annotated[str, typer.Argument(metavar="ITEM", help="Its number in the box, or its id.")]
Doing = Annotated[
    str | None, typer.Option("--doing", metavar="TEXT", help='What it is called while it runs ("Running the tests").')
]
LOOK_AGAIN = 1.0
"""Seconds after which a watched list is drawn again anyway: the terminal may have been resized."""

Change = Callable[["Checklists", "Scope"], "ChecklistChange"]


@app.callback()
def show(
    context: typer.Context,
    session: SessionOption = None,
    as_json: JsonOption = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Keep showing it as it changes.")] = False,
) -> None:
    """Show the session's checklist; the subcommands change it."""
    if context.invoked_subcommand:
        context.obj = {"session": session, "json": as_json}
        return
    services = cli_context(context).services(session, as_json=as_json)
    if watch:
        follow(services, as_json=as_json)
    else:
        _print(services, services.checklists.get(services.settings.session), as_json=as_json)


@app.command()
def add(
    context: typer.Context,
    content: Annotated[str, typer.Argument(metavar="TEXT", help="What is to be done.")],
    doing: Doing = None,
    session: SessionOption = None,
    as_json: JsonOption = False,
    why: ReasonOption = None,
) -> None:
    """Add an item at the end."""
    _change(
        context,
        session,
        as_json,
        lambda lists, scope: lists.add(scope, content, active_form=doing, reason=why or "todos add"),
    )


def _step(action: ChecklistAction) -> Callable[..., None]:
    """A command that takes one item one step along its lifecycle."""

    def command(
        context: typer.Context,
        item: Item,
        session: SessionOption = None,
        as_json: JsonOption = False,
        why: ReasonOption = None,
    ) -> None:
        reason = why or f"todos {context.info_name}"
        _change(context, session, as_json, lambda lists, scope: lists.advance(scope, item, action, reason=reason))

    return command


app.command("start", help="Mark an item as in progress.")(_step(ChecklistAction.START))
app.command("done", help="Mark an item as completed.")(_step(ChecklistAction.COMPLETE))
app.command("reopen", help="Put an item back to pending.")(_step(ChecklistAction.REOPEN))


@app.command()
def edit(
    context: typer.Context,
    item: Item,
    content: Annotated[str, typer.Argument(metavar="TEXT", help="The new wording.")],
    doing: Doing = None,
    session: SessionOption = None,
    as_json: JsonOption = False,
    why: ReasonOption = None,
) -> None:
    """Change the wording of an item; it keeps its state and id."""
    _change(
        context,
        session,
        as_json,
        lambda lists, scope: lists.edit(scope, item, content, active_form=doing, reason=why or "todos edit"),
    )


@app.command()
def cancel(
    context: typer.Context,
    item: Item,
    session: SessionOption = None,
    as_json: JsonOption = False,
    why: ReasonOption = None,
) -> None:
    """Take an item off the list; `undo` brings it back."""
    _change(context, session, as_json, lambda lists, scope: lists.remove(scope, item, reason=why or "todos cancel"))


@app.command()
def clear(
    context: typer.Context, session: SessionOption = None, as_json: JsonOption = False, why: ReasonOption = None
) -> None:
    """Empty the list; `undo` brings it back."""
    _change(context, session, as_json, lambda lists, scope: lists.clear(scope, reason=why or "todos clear"))


@app.command()
def undo(
    context: typer.Context, session: SessionOption = None, as_json: JsonOption = False, why: ReasonOption = None
) -> None:
    """Take back the last change, whoever made it; again for the one before."""
    _change(context, session, as_json, lambda lists, scope: lists.undo(scope, reason=why or "todos undo"))


def _change(context: typer.Context, session: str | None, as_json: bool, change: Change) -> None:
    """Make one change and show what came of it. Options may stand before the subcommand too."""
    outer: dict[str, Any] = context.obj
    as_json = as_json or outer["json"]
    entry = cli_context(context)
    services = entry.services(session or outer["session"], as_json=as_json)
    rewrite = change(services.checklists, entry.scope(services))
    _print(services, rewrite.checklist, rewrite, as_json=as_json)


def _print(services: Services, checklist: Checklist, rewrite: ChecklistChange | None = None, *, as_json: bool) -> None:
    if as_json:
        echo_json(_json(services, checklist, rewrite))
        return
    for line in render_box(checklist, terminal_width()):
        echo(_painted(line))


def _json(services: Services, checklist: Checklist, rewrite: ChecklistChange | None) -> dict[str, Any]:
    return {
        "session": services.settings.session,
        "todos": [item_json(item) for item in checklist.items],
        "progress": checklist.progress,
        "revision": checklist.revision,
        "updatedAt": checklist.updated_at,
        "dropped": [item_json(item) for item in rewrite.dropped] if rewrite else [],
    }


def follow(services: Services, *, as_json: bool) -> None:
    """Show the list whenever it changes, until the person has seen enough."""
    from punchlist.storage.change_watch import ChangeWatch, PollBackoff

    draw, patience = _drawer(services, as_json=as_json), PollBackoff()
    with ChangeWatch(services.store) as watch:
        while True:
            with patience:
                draw(services.checklists.get(services.settings.session))
            watch.wait(LOOK_AGAIN)


def _drawer(services: Services, *, as_json: bool) -> Callable[[Checklist], None]:
    """On a terminal the box is drawn over the last one; elsewhere each change is printed."""
    last: list[str] = []
    shown: Checklist | None = None

    def draw(checklist: Checklist) -> None:
        nonlocal last, shown
        if as_json:
            if checklist != shown:
                echo(to_json_text(_json(services, checklist, None)))
        elif not supports_ansi(sys.stdout):
            if checklist != shown:
                echo(render.update_message(checklist) if checklist.items else render.NO_TODOS)
        else:
            size = shutil.get_terminal_size()
            # One line stays free for the cursor: a box that scrolls could not be drawn over.
            lines = [_painted(line) for line in render_box(checklist, size.columns)][: size.lines - 1]
            if lines != last:
                up = f"\x1b[{len(last)}F\x1b[J" if last else ""
                echo(up + "\n".join(lines))
                last = lines
        shown = checklist

    return draw


_COLOURS = {"✓": "32", "▶": "33;1", "○": "2"}


def _painted(line: str) -> str:
    """Colour for the icon, where a terminal wants it."""
    if not supports_color():
        return line
    for icon, colour in _COLOURS.items():
        if line.startswith(f"│ {icon} "):
            return f"│ \x1b[{colour}m{icon}\x1b[0m{line[3:]}"
    return line
