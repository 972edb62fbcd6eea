"""`punchlist log`: who changed what, when and why."""

from __future__ import annotations

from collections import deque
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from punchlist.kernel.lifecycle import NEW
from punchlist.kernel.text import visible
from punchlist.surfaces.cli.context import (
    JsonOption,
    SessionOption,
    cli_context,
    echo,
    echo_error,
    format_time,
    to_json_text,
)

if TYPE_CHECKING:
    from punchlist.kernel.events import Event
    from punchlist.storage.store import Transaction

LOOK_AGAIN = 1.0
REMEMBERED = 500
"""Events that were shown last; where a database goes back further than these, only their time tells what is new."""


def log(
    context: typer.Context,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="How many of the newest.")] = 50,
    everything: Annotated[bool, typer.Option("--all", help="Of all sessions.")] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what happens from now.")] = False,
    session: SessionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the event trail, oldest first; with --json one object a line."""
    from punchlist.storage import event_log
    from punchlist.storage.change_watch import ChangeWatch, PollBackoff

    services = cli_context(context).in_session(session, as_json=as_json)
    chosen = None if everything else services.settings.session
    with services.store.read() as tx:
        events = event_log.newest(tx, limit, chosen)
    for event in events:
        _print(event, as_json=as_json)
    if not follow:
        return
    seen = deque(events, maxlen=REMEMBERED)
    patience = PollBackoff()
    with ChangeWatch(services.store) as watch:
        while True:
            events = []
            with patience, services.store.read() as tx:
                last = _going_on_from(tx, seen)
                events = event_log.after(tx, last.seq if last else 0, conversation_id=chosen)
            for event in events:
                _print(event, as_json=as_json)
            seen.extend(events)
            if not events:
                watch.wait(LOOK_AGAIN)


def _going_on_from(tx: Transaction, seen: deque[Event]) -> Event | None:
    """The last event that was seen and is still there: what comes after it was not seen."""
    from punchlist.storage import event_log

    last = event_log.last_surviving(tx, seen)
    if seen and last != seen[-1]:
        echo_error(
            "The database is no longer as it was: events shown above may be gone. Going on with what came since."
        )
        while seen and seen[-1] != last:
            seen.pop()
        if last is not None and not seen:
            seen.append(last)
    return last


def _print(event: Event, *, as_json: bool) -> None:
    if as_json:
        echo(to_json_text({**asdict(event), "data": _data(event)}))
        return
    step = f" {visible(event.from_status or NEW)} → {visible(event.to_status)}" if event.to_status else ""
    change = f"{visible(event.action)}{step}  {_subject(event)}"
    echo(f"{format_time(event.at)}  {visible(event.actor)}  {change}  — {visible(event.reason)}")


def _data(event: Event) -> Any:
    try:
        return event.payload()
    except (ValueError, TypeError):
        return event.data


def _subject(event: Event) -> str:
    """The title or contents of the changed items, else the id."""
    try:
        data = event.payload()
        if data.get("title"):
            return f"“{visible(data['title'])}”"
        if "steps" in data:
            return ", ".join(f"{visible(step['action'])} “{visible(step['content'])}”" for step in data["steps"])
    except (ValueError, TypeError, KeyError, AttributeError):
        # Not as we wrote it: `db check` says what is wrong, the trail still has to be readable.
        return f"{visible(event.subject)} (damaged)"
    return visible(event.subject)
