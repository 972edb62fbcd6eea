"""What the latest events of a session say about the host agent that works in it. Pure.

There are no stored counters: they are derived from the event log, so that neither a crash nor a second process loses
count (adr/0011).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from punchlist.agent.message_kinds import CONTINUATION, REMINDER
from punchlist.checklist.lifecycle import ChecklistStatus
from punchlist.conversations.lifecycle import TurnAction
from punchlist.kernel.events import Event, Role

NEW_PROMPT: Final = "a new prompt"
"""The reason for which a prompt begins a turn and ends the previous one."""
SESSION_STARTED: Final = "host_session"
"""The kind of the message that records the start of a host session."""

# Keys of event data.
FINGERPRINT_KEY: Final = "mark"
EARLIER_LIST_KEY: Final = "aside"
"""Set on a continuation to a list that an earlier session left."""
PROMPT_KEY: Final = "prompt"
"""Set on the first prompt of a turn that a person began before."""
GOAL_KEY: Final = "goal"
"""Set on a continuation for the goal of the session: which failures it was about."""
CONFIRMATION: Final = "confirmation"
"""The goal's checks pass, and the agent is asked to confirm the criteria."""
VERDICT_KEY: Final = "verdict"
"""A judge found that something is missing."""
REVISION_KEY: Final = "revision"
SESSION_KEY: Final = "host_session"


@dataclass(frozen=True, slots=True)
class SessionHistory:
    continuations: tuple[str, ...] = ()
    """The lists' fingerprint at each continuation since the last prompt, newest first."""
    reminded: str | None = None
    """The fingerprint at the last reminder since the last prompt."""
    ended_by_person: str | None = None
    """The reason for which a person ended the turn since the last prompt."""
    initial_revision: int | None = None
    """The checklist's revision when the host session started; None if it was resumed."""
    continuations_in_session: int = 0
    skipped: frozenset[str] = frozenset()
    """Fingerprints at which sessions were pointed to an earlier session's list."""
    turn_of_person: str | None = None
    """The newest turn that a person began."""
    completions: tuple[tuple[str, str], ...] = ()
    """When which item of the checklist was completed: the time and its id."""
    starts: tuple[tuple[str, str], ...] = ()
    """When which item of the checklist was started: the time and its id."""
    added_completed: tuple[tuple[str, str], ...] = ()
    """When which item was added that was completed already: the time and its id."""
    goal_keys: tuple[str, ...] = ()
    """The failures for which the agent was sent back to its goal since the last prompt, newest first."""

    def unchanged(self, fingerprint: str) -> int:
        """The number of latest continuations in a row with this fingerprint."""
        return next((n for n, seen in enumerate(self.continuations) if seen != fingerprint), len(self.continuations))


def read_history(events: Sequence[Event], session: str | None) -> SessionHistory:
    """Read events from the newest backwards to the last prompt and to the start of the host session.

    Older events count only for `skipped`.
    """
    continuations: list[str] = []
    reminded: str | None = None
    ended_by_person: str | None = None
    initial_revision: int | None = None
    turn_of_person: str | None = None
    skipped = set[str]()
    in_session = 0
    prompt_seen = start_seen = False
    for event in reversed(events):
        data = event.payload()
        kind = _message_kind(data)
        if EARLIER_LIST_KEY in data:
            skipped.add(data[FINGERPRINT_KEY])
        if prompt_seen and start_seen:
            continue
        if kind == CONTINUATION and FINGERPRINT_KEY in data:
            continuations += [] if prompt_seen else [data[FINGERPRINT_KEY]]
            in_session += not start_seen
        elif kind == REMINDER and FINGERPRINT_KEY in data:
            reminded = reminded if prompt_seen or reminded else data[FINGERPRINT_KEY]
        elif kind == SESSION_STARTED and data.get(SESSION_KEY) == session and not start_seen:
            start_seen, initial_revision = True, data.get(REVISION_KEY)
        elif _is_prompt(event, data):
            prompt_seen = True
        elif event.action == TurnAction.BEGIN and is_by_person(event):
            turn_of_person = turn_of_person or event.subject
        elif event.action == TurnAction.END and is_by_person(event) and not prompt_seen:
            ended_by_person = ended_by_person or event.reason
    return SessionHistory(
        tuple(continuations),
        reminded,
        ended_by_person,
        initial_revision,
        in_session if start_seen else 0,
        frozenset(skipped),
        turn_of_person,
        tuple(_steps_to(events, ChecklistStatus.COMPLETED)),
        tuple(_steps_to(events, ChecklistStatus.IN_PROGRESS, also_new=True)),
        tuple(_steps_to(events, ChecklistStatus.COMPLETED, only_new=True)),
        tuple(_goal_keys(events)),
    )


def _is_prompt(event: Event, data: dict[str, Any]) -> bool:
    return PROMPT_KEY in data or (event.action == TurnAction.BEGIN and event.reason == NEW_PROMPT)


def _goal_keys(events: Sequence[Event]) -> Iterator[str]:
    for event in reversed(events):
        data = event.payload()
        if _is_prompt(event, data):
            return
        if GOAL_KEY in data:
            yield data[GOAL_KEY]


def _steps_to(
    events: Sequence[Event], status: ChecklistStatus, *, also_new: bool = False, only_new: bool = False
) -> Iterator[tuple[str, str]]:
    """The time and the item of each step to a status; by default without items that were added with it."""
    for event in events:
        steps = event.payload().get("steps")
        for step in steps if isinstance(steps, list) else ():
            before, is_new = step["from_status"], step["from_status"] is None
            if step["to_status"] == status != before and (also_new or is_new is only_new):
                yield event.at, step["id"]


def is_by_person(event: Event) -> bool:
    return event.actor.startswith(f"{Role.PERSON}:")


def is_by_agent(event: Event) -> bool:
    return not event.actor.startswith((f"{Role.PERSON}:", f"{Role.SYSTEM}:"))


def _message_kind(data: dict[str, Any]) -> str | None:
    message = data.get("message")
    return message.get("kind") if isinstance(message, dict) else None
