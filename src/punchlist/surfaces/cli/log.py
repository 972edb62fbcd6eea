"""`punchlist log`: who changed what, when and why."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Annotated, Any

import typer

from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.lifecycle import NEW
from punchlist.kernel.text import visible
from punchlist.surfaces.cli.context import (
    CliContext,
    SessionOption,
    echo,
    echo_error,
    format_time,
    to_json_text,
)

if TYPE_CHECKING:
    from punchlist.kernel.events import Event
    from punchlist.storage.store import Transaction

POLL_SECONDS = 1.0
MAX_REMEMBERED = 500
"""How many shown events are remembered to notice that the database was replaced by an older copy."""


def log(
    cli: CliContext,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=100_000, metavar="N", help="How many of the newest.")
    ] = 50,
    everything: Annotated[bool, typer.Option("--all", help="Show all sessions.")] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing new events.")] = False,
    session: SessionOption = None,
) -> None:
    """Show the event log, oldest first; with --json one object per line."""
    from punchlist.storage import event_log
    from punchlist.storage.change_watch import ChangeWatch, PollBackoff

    services = cli.in_session(session)
    chosen = None if everything else services.settings.session
    with services.store.read() as tx:
        events = event_log.newest(tx, limit, chosen)
    for event in events:
        _print(event, as_json=cli.json)
    if not follow:
        return
    seen = deque(events, maxlen=MAX_REMEMBERED)
    backoff = PollBackoff()
    with ChangeWatch(services.store) as watch:
        while True:
            events = []
            with backoff, services.store.read() as tx:
                last = _resume_point(tx, seen)
                events = event_log.after(tx, last.seq if last else 0, conversation_id=chosen)
            for event in events:
                _print(event, as_json=cli.json)
            seen.extend(events)
            if not events:
                watch.wait(POLL_SECONDS)


def _resume_point(tx: Transaction, seen: deque[Event]) -> Event | None:
    """The last shown event that the database still has. Later events are new."""
    from punchlist.storage import event_log

    last = event_log.last_surviving(tx, seen)
    if seen and last != seen[-1]:
        echo_error("The database was replaced: events shown above may not exist any more. Continuing with new events.")
        while seen and seen[-1] != last:
            seen.pop()
        if last is not None and not seen:
            seen.append(last)
    return last


def _print(event: Event, *, as_json: bool) -> None:
    if as_json:
        echo(to_json_text({**camel_json(event), "data": _data(event)}))
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
        if data.get("steps"):
            return ", ".join(f"{visible(step['action'])} “{visible(step['content'])}”" for step in data["steps"])
    except (ValueError, TypeError, KeyError, AttributeError):
        # `db check` reports damaged events; the log stays readable.
        return f"{visible(event.subject)} (damaged)"
    return visible(event.subject)
