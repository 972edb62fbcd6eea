"""The running summary of a mission's chat for one agent: pure values and decisions (M10).

A chat runs for months. Its newest messages stay as they are; older ones are folded into this summary, which is stored
beside the chat. It is built from the messages without a model (adr/0031), so it cannot invent anything, and it is
cumulative: folding more messages keeps what earlier ones brought. Only about a todo a later report replaces an earlier
one of the same kind. The stored chat is never changed.

The rendered text is bounded. Over the limit the oldest lines become shorter, then they are counted instead of shown:
first notices, then the agent's own answers, then todos. What people said is the last to go.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from punchlist.agent.context_summary import MAX_ENTRIES, SummarySection
from punchlist.conversations.model import NoticeKind
from punchlist.kernel.text import one_line

MAX_REQUEST: Final = 800
MAX_ANSWER: Final = 400
MAX_NOTICE: Final = 300
NOTICE_KINDS: Final = frozenset(kind.value for kind in NoticeKind)
_TODO: Final = re.compile(r"\A\[TODO ([0-9A-Za-z-]{8,64})")
_ABOUT_TODOS: Final = frozenset({NoticeKind.TODO_RESULT, NoticeKind.TODO_ERROR, NoticeKind.TODO_FEEDBACK})
_FORM: Final = 1
"""Of the stored JSON."""


class FoldedEntry(NamedTuple):
    """A turn or a notice, as the summary receives it."""

    at: str
    kind: str
    """Of the request or the notice."""
    request: str
    """What a person wrote, or the notice; empty for a prompt that the program wrote."""
    answer: str = ""


@dataclass(frozen=True, slots=True)
class ChatSummary:
    entries: int = 0
    """How many turns and notices it replaces."""
    since: str = ""
    people: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    todos: Mapping[str, str] = field(default_factory=dict)
    """The newest report of each kind about each todo."""
    notices: tuple[str, ...] = ()

    def extended(self, folded: Sequence[FoldedEntry]) -> ChatSummary:
        people, answers, todos, notices = list(self.people), list(self.answers), dict(self.todos), list(self.notices)
        for entry in folded:
            day = entry.at[:10]
            if entry.kind not in NOTICE_KINDS:
                people.append(f"{day}: {one_line(entry.request, MAX_REQUEST)}")
            elif entry.request and entry.kind in _ABOUT_TODOS and (about := _TODO.match(entry.request)):
                key = f"{about[1]} {entry.kind}"
                todos.pop(key, None)
                todos[key] = f"{day}: {_notice(entry)}"
            elif entry.request:
                notices.append(f"{day} {entry.kind}: {_notice(entry)}")
            if entry.answer:
                answers.append(f"{day}: {one_line(entry.answer, MAX_ANSWER)}")
        return ChatSummary(
            self.entries + len(folded),
            self.since or (folded[0].at[:10] if folded else ""),
            tuple(people[-MAX_ENTRIES:]),
            tuple(answers[-MAX_ENTRIES:]),
            dict(list(todos.items())[-MAX_ENTRIES:]),
            tuple(notices[-MAX_ENTRIES:]),
        )

    def text(self, limit: int) -> str:
        """Of about `limit` weighted length at most; empty if nothing was folded."""
        if not self.entries:
            return ""
        sections = [
            SummarySection("Notices", list(self.notices)),
            SummarySection("What you answered", list(self.answers)),
            SummarySection("Todos", list(self.todos.values())),
            SummarySection("Messages of people", list(self.people)),
        ]
        heading = f"Summary of the {self.entries} earlier turns and notices of this chat, since {self.since}:"
        over = sum(section.length for section in sections) + len(heading) - limit
        for section in sections:
            over = section.shorten(over)
        for section in sections:
            over = section.drop(over)
        return "\n\n".join([heading, *(section.text for section in reversed(sections) if section.lines)])

    def encode(self) -> str:
        values = {
            "form": _FORM,
            "entries": self.entries,
            "since": self.since,
            "people": self.people,
            "answers": self.answers,
            "todos": dict(self.todos),
            "notices": self.notices,
        }
        return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


def decode_summary(stored: str) -> ChatSummary | None:
    """None if the text cannot be read: the chat is then summarised again from its start."""
    try:
        found = json.loads(stored)
        if found["form"] != _FORM:
            return None
        lists = {name: tuple(map(str, found[name])) for name in ("people", "answers", "notices")}
        todos = {str(key): str(value) for key, value in found["todos"].items()}
        return ChatSummary(int(found["entries"]), str(found["since"]), todos=todos, **lists)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _notice(entry: FoldedEntry) -> str:
    return one_line(entry.request.replace("\n> ", " "), MAX_NOTICE)


class Span(NamedTuple):
    """The positions and the length of one turn or notice in the chat."""

    first: int
    last: int
    length: int


def entries_to_fold(spans: Sequence[Span], limit: int, before: int | None = None) -> int:
    """How many of the oldest entries to fold: none while all are within `limit`, else down to half of it.

    The cut never lies inside an entry: notices are posted while a turn runs, so entries can overlap. Entries that
    reach `before`, the start of the current turn, are not folded.
    """
    if sum(span.length for span in spans) <= limit:
        return 0
    rest, count = sum(span.length for span in spans), 0
    while count < len(spans) and rest > limit // 2:
        rest -= spans[count].length
        count += 1
    while 0 < count < len(spans) and max(span.last for span in spans[:count]) > spans[count].first:
        count += 1
    while count and before is not None and max(span.last for span in spans[:count]) >= before:
        count -= 1
    return clean_cut(spans, count)


def clean_cut(spans: Sequence[Span], count: int) -> int:
    """At most `count`, so that no entry that stays begins before the end of one that is folded."""
    while 0 < count < len(spans) and max(span.last for span in spans[:count]) > spans[count].first:
        count -= 1
    return count
