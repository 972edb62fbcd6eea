"""The `[notify]` table of the user's settings. A project's file cannot set it.

[notify]
window = 60                       # seconds; requests within it are one message
quiet_hours = "22:00-07:00"       # nothing is sent then
timezone = "Europe/Berlin"        # of the quiet hours
sessions = false                  # also requests of sessions, which ask at a terminal

[[notify.channels]]
name = "desktop"
command = ["notify-send", "--", "Punchlist"]      # gets the message as JSON on stdin
# or: webhook = "https://example.org/hook" and secret_env = "HOOK_SECRET"
# or: service = "ntfy://${NTFY_TOPIC}"            # any address of apprise; needs the extra `notify`
kinds = ["approval", "question"]  # default: all
urgency = "normal"                # the least urgency: low, normal or high
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from enum import StrEnum
from typing import Final
from zoneinfo import ZoneInfo

from punchlist.config import Settings
from punchlist.kernel.settings_table import SettingsTable
from punchlist.missions.planning.cadence import timezone_problem
from punchlist.views.inbox_model import RequestKind

DEFAULT_WINDOW: Final = 60.0
_HOURS: Final = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-3]):([0-5][0-9])")
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


class Urgency(StrEnum):
    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"


URGENCY: Final = {
    RequestKind.APPROVAL: Urgency.HIGH,
    RequestKind.QUESTION: Urgency.HIGH,
    RequestKind.WORKER: Urgency.HIGH,
    RequestKind.BUDGET: Urgency.NORMAL,
    RequestKind.ESCALATION: Urgency.NORMAL,
    RequestKind.FAILURE: Urgency.NORMAL,
    RequestKind.EVENT: Urgency.LOW,
    RequestKind.TIME: Urgency.LOW,
}


@dataclass(frozen=True, slots=True)
class NotifyChannel:
    """One of `command`, `webhook`, `service` and `push` is set."""

    name: str
    command: tuple[str, ...] = ()
    webhook: str = ""
    secret_env: str = ""
    service: str = ""
    kinds: frozenset[RequestKind] = frozenset(RequestKind)
    urgency: Urgency = Urgency.LOW
    push: bool = False
    """The browsers in which it was turned on."""

    def wants(self, kind: RequestKind) -> bool:
        order = list(Urgency)
        return kind in self.kinds and order.index(URGENCY[kind]) >= order.index(self.urgency)


PUSH: Final = NotifyChannel("web.push", push=True)
"""Its name cannot be that of a channel of the settings."""


@dataclass(frozen=True, slots=True)
class NotifySettings:
    channels: tuple[NotifyChannel, ...] = ()
    window: timedelta = timedelta(seconds=DEFAULT_WINDOW)
    quiet: tuple[time, time] | None = None
    timezone: str = "UTC"
    sessions: bool = False

    def send_at(self, now: datetime) -> datetime:
        """When a message about a request that was found now is due: after the window, and not in quiet hours."""
        return self.after_quiet_hours(now + self.window)

    def after_quiet_hours(self, at: datetime) -> datetime:
        if self.quiet is None:
            return at
        begin, end = self.quiet
        local = at.astimezone(ZoneInfo(self.timezone))
        clock = local.time()
        is_quiet = begin <= clock < end if begin <= end else clock >= begin or clock < end
        if not is_quiet:
            return at
        day = local.date() if clock < end else local.date() + timedelta(days=1)
        return datetime.combine(day, end, local.tzinfo).astimezone(at.tzinfo)


def load_notify(settings: Settings) -> NotifySettings:
    """From the user's file only: a project must not send messages in a person's name."""
    if settings.user is None:
        return NotifySettings()
    table = SettingsTable.top_level(settings.user.path, "notify", settings.user.content.get("notify", {}))
    table.check_keys("channels", "window", "quiet_hours", "timezone", "sessions")
    zone = table.text("timezone", "UTC")
    if problem := timezone_problem(zone):
        raise table.error("timezone", problem)
    channels = tuple(map(_channel, table.tables("channels")))
    names = [channel.name for channel in channels]
    if len(set(names)) < len(names):
        raise table.error("channels", "must have different names")
    window = timedelta(seconds=table.number("window", DEFAULT_WINDOW))
    return NotifySettings(channels, window, _quiet_hours(table), zone, table.flag("sessions"))


def _channel(table: SettingsTable) -> NotifyChannel:
    table.check_keys("name", "command", "webhook", "secret_env", "service", "kinds", "urgency")
    name = table.text("name")
    if not _NAME.fullmatch(name):
        raise table.error("name", "is required: lower-case letters, digits and hyphens, at most 40")
    if sum(key in table.content for key in ("command", "webhook", "service")) != 1:
        raise table.error(None, "needs one of command, webhook and service")
    known = [kind.value for kind in RequestKind]
    kinds = table.text_list("kinds")
    for kind in kinds:
        if kind not in known:
            raise table.error("kinds", f"must be of {', '.join(known)}")
    return NotifyChannel(
        name,
        tuple(table.text_list("command")),
        table.text("webhook"),
        table.text("secret_env"),
        table.text("service"),
        frozenset(map(RequestKind, kinds or known)),
        Urgency(table.text("urgency", Urgency.LOW, one_of=list(Urgency))),
    )


def _quiet_hours(table: SettingsTable) -> tuple[time, time] | None:
    text = table.text("quiet_hours")
    if not text:
        return None
    found = _HOURS.fullmatch(text)
    if found is None:
        raise table.error("quiet_hours", 'must be two times, such as "22:00-07:00"')
    hours = [int(part) for part in found.groups()]
    return time(hours[0], hours[1]), time(hours[2], hours[3])
