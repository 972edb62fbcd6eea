"""Notifications: a row for each request and channel, sent once by whichever process is first (I2).

A request is found by the periodic task of a worker or server, or by `punchlist notify run`. It waits for the window in
which requests are merged, and is left out if it was answered meanwhile. A process claims all rows of a channel that are
due and sends one message about them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from punchlist.errors import NotFound
from punchlist.kernel.clock import parse_timestamp, timestamp
from punchlist.kernel.ids import new_id
from punchlist.kernel.secrets import Redactor
from punchlist.kernel.text import excerpt, visible
from punchlist.notify import repository
from punchlist.notify.channels import SECONDS, NotSent, send
from punchlist.notify.repository import Notification
from punchlist.notify.settings import PUSH, URGENCY, NotifyChannel, NotifySettings
from punchlist.views.inbox_model import InboxItem

if TYPE_CHECKING:
    from punchlist.notify.push import WebPush
    from punchlist.storage.store import Store
    from punchlist.views.inbox import Inbox

RETRIES: Final = (timedelta(minutes=1), timedelta(minutes=5), timedelta(minutes=30), timedelta(hours=2))
"""How long to wait after each failure. After the last one the notification has failed."""
MAX_SHOWN: Final = 20
"""Requests in the text of one message; the rest is counted."""
NO_CHANNELS: Final = "Your settings have no [[notify.channels]]. docs/notifications.md has examples."


class Notifier:
    def __init__(
        self,
        store: Store,
        inbox: Inbox,
        settings: NotifySettings,
        environment: Mapping[str, str],
        *,
        allow_private: bool = False,
        web_push: WebPush | None = None,
    ) -> None:
        self._store = store
        self._web_push = web_push
        self._inbox = inbox
        self._settings = settings
        self._environment = environment
        self._redactor = Redactor(environment)
        self._allow_private = allow_private

    def run(self) -> int:
        """Find new requests, and send the messages that are due. Returns the number of messages sent."""
        channels = self._channels()
        if not channels:
            return 0
        items = {item.id: item for item in self._inbox.list()}
        self._update_rows(channels, items)
        return sum(self._send_due(channel, items) for channel in channels)

    def run_once(self) -> int:
        """As `run`, for a person: raises without a channel."""
        if not self._channels():
            raise NotFound(NO_CHANNELS)
        return self.run()

    def _channels(self) -> tuple[NotifyChannel, ...]:
        has_push = self._web_push is not None and self._web_push.subscriptions()
        return (*self._settings.channels, PUSH) if has_push else self._settings.channels

    def test(self, name: str | None = None) -> list[NotifyChannel]:
        """Send a test message through one channel or all of them, at once."""
        chosen = [channel for channel in self._settings.channels if name in (None, channel.name)]
        if not chosen:
            raise NotFound(f"There is no channel {excerpt(name)!r} in your settings." if name else NO_CHANNELS)
        message = {"title": "Punchlist: a test", "body": "Notifications of Punchlist arrive here.", "requests": []}
        for channel in chosen:
            self._send(channel, message)
        return chosen

    def _update_rows(self, channels: Sequence[NotifyChannel], items: Mapping[str, InboxItem]) -> None:
        """Rows for new requests; those of answered ones are withdrawn."""
        now = self._store.clock()
        with self._store.read() as tx:
            known = set(repository.known(tx, since=timestamp(now - timedelta(days=400))))
            gone = [row for row in repository.pending(tx) if row.request_id not in items]
        new = [
            (channel, item)
            for channel in channels
            for item in items.values()
            if self._concerns(channel, item) and (channel.name, item.id) not in known
        ]
        if not new and not gone:
            return
        with self._store.write() as tx:
            for channel, item in new:
                row = Notification(
                    *(new_id(), channel.name, item.id, item.kind.value, URGENCY[item.kind].value, "pending", 0),
                    *(timestamp(self._settings.send_at(now)), None, None, None, timestamp(now), None),
                )
                tx.run(repository.INSERT, **row._asdict())
            for row in gone:
                tx.run(repository.END, **_ended(row, "withdrawn", timestamp(now)))

    def _concerns(self, channel: NotifyChannel, item: InboxItem) -> bool:
        """Never what a person did: their own run that failed, or a session that asks at their terminal."""
        own = (item.requester or "").startswith("person:") or (item.mission is None and not self._settings.sessions)
        return channel.wants(item.kind) and not own

    def _send_due(self, channel: NotifyChannel, items: Mapping[str, InboxItem]) -> int:
        now = self._store.clock()
        if self._settings.after_quiet_hours(now) > now:
            return 0
        claim, until = new_id(), timestamp(now + timedelta(seconds=2 * SECONDS))
        with self._store.read() as tx:
            if not any(row.channel == channel.name and row.due_at <= timestamp(now) for row in repository.pending(tx)):
                return 0
        with self._store.write() as tx:
            values = {"channel": channel.name, "now": timestamp(now), "claim": claim, "until": until}
            rows = repository.claimed(tx, claim) if tx.run(repository.CLAIM, **values) else []
        if not rows:
            return 0
        try:
            self._send(channel, message_about([items[row.request_id] for row in rows if row.request_id in items], now))
        except NotSent as error:
            self._end(rows, error)
            return 0
        self._end(rows, None)
        return 1

    def _send(self, channel: NotifyChannel, message: dict[str, Any]) -> None:
        safe = self._redactor.value(message)
        if channel.push:
            assert self._web_push is not None
            if problems := self._web_push.send(safe):
                raise NotSent("; ".join(problems))
            return
        at = timestamp(self._store.clock())
        send(channel, safe, at, self._environment, allow_private=self._allow_private)

    def _end(self, rows: Sequence[Notification], error: NotSent | None) -> None:
        with self._store.write() as tx:
            for row in rows:
                ended = _ended(row, "sent", tx.now())
                if error is not None:
                    ended = _failed(row, self._redactor.text(excerpt(str(error), 500)), tx.now())
                tx.run(repository.END, **ended)


def message_about(items: Sequence[InboxItem], now: Any) -> dict[str, Any]:
    """One message about one or many requests."""
    lines = [f"{item.number}  {item.kind}  {_place(item)}: {excerpt(item.question, 200)}" for item in items[:MAX_SHOWN]]
    if len(items) > MAX_SHOWN:
        lines.append(f"… and {len(items) - MAX_SHOWN} more")
    title = f"{len(items)} requests need you" if len(items) != 1 else f"{items[0].kind} in {_place(items[0])}"
    body = "\n".join([*lines, "Answer with: punchlist inbox"])
    return {"title": f"Punchlist: {title}", "body": body, "requests": [item.as_json(now) for item in items]}


def _place(item: InboxItem) -> str:
    place = f"mission {item.mission}" if item.mission else f"session {item.session}"
    return visible(f"{place}, {item.todo_title}" if item.todo_title else place)


def _ended(row: Notification, status: str, at: str) -> dict[str, Any]:
    return {
        "id": row.id,
        "status": status,
        "attempts": row.attempts + (status == "sent"),
        "error": None,
        "due_at": row.due_at,
        "ended_at": at,
    }


def _failed(row: Notification, error: str, now: str) -> dict[str, Any]:
    """Retried later, or failed for good."""
    final = row.attempts >= len(RETRIES)
    later = now if final else timestamp(parse_timestamp(now) + RETRIES[row.attempts])
    return {
        "id": row.id,
        "status": "failed" if final else "pending",
        "attempts": row.attempts + 1,
        "error": error,
        "due_at": later,
        "ended_at": now if final else None,
    }
