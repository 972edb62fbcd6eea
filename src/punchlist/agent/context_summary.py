"""The summary that replaces the older messages of a long turn (C7).

It is built from the messages themselves, without a model, so it cannot invent anything, and it is cumulative:
`extended` keeps what earlier messages brought. Text that the loop wrote (continuations, reminders) is dropped,
and so are the list tools, whose result is the list at the end of each request. That list has no outcomes of items
that have ended, so the summary keeps them.

The rendered text is bounded. Over the limit, the oldest findings, commands and failures become shorter, then
they are left out; outcomes, the agent's own texts, the person's messages and open questions follow only if that is
not enough.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from punchlist.agent.work_log import LIST_TOOLS, result_fields
from punchlist.kernel.text import one_line, visible
from punchlist.kernel.token_estimate import weighted_length
from punchlist.models.model import CallReturn, Message, Reply, RequestedCall, UserText
from punchlist.plan.lifecycle import PlanStatus

MAX_ENTRIES: Final = 1_000
"""Of one section."""
_MAX_TEXT: Final = 800
"""Characters of a text of the agent or of a worker's report."""
_MAX_RESULT: Final = 400
_MAX_SOURCE: Final = 200
_SHORT: Final = 100
_WRITES: Final = ("write_file", "edit_file")
_COMMAND: Final = "run_command"
_REPORTS: Final = ("delegate",)
_EXIT: Final = re.compile(
    r"^The command (?:ended with (exit code -?\d+)|was ended by (signal \w+)|exceeded (its time limit))"
)
_UNINFORMATIVE: Final = re.compile(r"[\W_]*")


@dataclass(frozen=True, slots=True)
class ContextSummary:
    messages: int = 0
    """How many messages it replaces."""
    requests: tuple[str, ...] = ()
    """Messages of the person after the request."""
    notes: tuple[str, ...] = ()
    """Texts of the agent: decisions and reports."""
    findings: Mapping[str, str] = field(default_factory=dict)
    """What a call has returned, by call. A call that is repeated replaces its earlier result."""
    files: tuple[str, ...] = ()
    commands: Mapping[str, str] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)
    outcomes: Mapping[str, str] = field(default_factory=dict)
    """How items of the plan ended, by id."""
    questions: tuple[str, ...] = ()

    def extended(self, messages: Sequence[Message]) -> ContextSummary:
        builder = _Builder(self)
        calls = {call.id: call for message in messages if isinstance(message, Reply) for call in message.calls}
        for message in messages:
            match message:
                case UserText() if message.from_person:
                    builder.requests.append(one_line(message.text, _MAX_TEXT))
                    # The person has read the questions.
                    builder.questions.clear()
                case Reply(text=text) if text.strip():
                    builder.add_text(text)
                case CallReturn():
                    builder.add_result(calls.get(message.call_id), message)
        return builder.build(len(messages))

    def text(self, limit: int) -> str:
        """Of about `limit` weighted length at most."""
        sections = [
            SummarySection("Findings", [f"{source}: {found}" for source, found in self.findings.items()]),
            SummarySection("Failed", [f"{source}: {why}" for source, why in self.failures.items()]),
            SummarySection("Commands", [f"{command}: {ended}" for command, ended in self.commands.items()]),
            SummarySection("Files changed", list(self.files)),
            SummarySection("Items that have ended", list(self.outcomes.values())),
            SummarySection("What you said", list(self.notes)),
            SummarySection("Messages of the person", list(self.requests)),
            SummarySection("Open questions", list(self.questions)),
        ]
        over = sum(section.length for section in sections) - limit
        for section in sections:
            over = section.shorten(over)
        for section in sections:
            over = section.drop(over)
        heading = f"Summary of the {self.messages} earlier messages of this turn:"
        return "\n\n".join([heading, *(section.text for section in reversed(sections) if section.lines)])


class SummarySection:
    """Lines of the summary, oldest first."""

    def __init__(self, title: str, lines: list[str]) -> None:
        self.title = title
        self.lines = lines
        self.dropped = 0

    @property
    def length(self) -> int:
        return sum(weighted_length(line) + 3 for line in self.lines) + len(self.title)

    @property
    def text(self) -> str:
        left_out = [f"- ({self.dropped} older ones are left out)"] if self.dropped else []
        return "\n".join([f"{self.title}:", *left_out, *(f"- {line}" for line in self.lines)])

    def shorten(self, over: int) -> int:
        """Shorten the oldest lines until `over` is saved; returns what is still over."""
        for number, line in enumerate(self.lines):
            if over <= 0:
                break
            self.lines[number] = one_line(line, _SHORT)
            over -= weighted_length(line) - weighted_length(self.lines[number])
        return over

    def drop(self, over: int) -> int:
        while over > 0 and len(self.lines) > 1:
            over -= weighted_length(self.lines.pop(0)) + 3
            self.dropped += 1
        return over


class _Builder:
    def __init__(self, before: ContextSummary) -> None:
        self._messages = before.messages
        self.requests = list(before.requests)
        self.questions = list(before.questions)
        self._notes = list(before.notes)
        self._findings = dict(before.findings)
        self._files = dict.fromkeys(before.files)
        self._commands = dict(before.commands)
        self._failures = dict(before.failures)
        self._outcomes = dict(before.outcomes)

    def add_text(self, text: str) -> None:
        self._notes.append(one_line(text, _MAX_TEXT))
        lines = [line.strip() for line in text.splitlines()]
        self.questions += [one_line(line, _MAX_RESULT) for line in lines if line.endswith("?")]

    def add_result(self, call: RequestedCall | None, result: CallReturn) -> None:
        if result.tool == "complete_todo" and not result.failed:
            self._add_outcome(result_fields(result.text))
        if result.tool in LIST_TOOLS:
            return
        arguments: Mapping[str, Any] | str = call.arguments if call is not None else {}
        source = f"{visible(result.tool)} {_shown(arguments)}".strip()
        if result.tool == _COMMAND:
            _replace(self._commands, _shown(arguments), _command_end(result))
        elif result.failed:
            _replace(self._failures, source, _first_lines(result.text, _MAX_RESULT))
        elif result.tool in _WRITES and isinstance(arguments, Mapping):
            path = one_line(str(arguments.get("path", "")), _MAX_SOURCE)
            self._failures.pop(source, None)
            self._files.pop(path, None)
            self._files[path] = None
        else:
            self._failures.pop(source, None)
            limit = _MAX_TEXT if result.tool in _REPORTS else _MAX_RESULT
            _replace(self._findings, source, _first_lines(result.text, limit))

    def _add_outcome(self, ended: Mapping[str, Any]) -> None:
        how = {PlanStatus.COMPLETED: "", PlanStatus.CANCELLED: " (cancelled)"}.get(ended.get("status", ""))
        # A failed item that is tried again has not ended.
        if how is not None:
            line = f"{one_line(str(ended.get('title')))}{how}: {one_line(str(ended.get('outcome')), _MAX_RESULT)}"
            _replace(self._outcomes, str(ended.get("id")), line)

    def build(self, added: int) -> ContextSummary:
        return ContextSummary(
            self._messages + added,
            tuple(self.requests[-MAX_ENTRIES:]),
            tuple(self._notes[-MAX_ENTRIES:]),
            _newest(self._findings),
            tuple(list(self._files)[-MAX_ENTRIES:]),
            _newest(self._commands),
            _newest(self._failures),
            _newest(self._outcomes),
            tuple(self.questions[-MAX_ENTRIES:]),
        )


def _replace(entries: dict[str, str], key: str, value: str) -> None:
    """Set a value and make it the newest."""
    entries.pop(key, None)
    entries[key] = value


def _newest(entries: dict[str, str]) -> dict[str, str]:
    return dict(list(entries.items())[-MAX_ENTRIES:])


def _shown(arguments: Mapping[str, Any] | str) -> str:
    """`src/app.py`, or `pattern=TODO path=src`."""
    if isinstance(arguments, str):
        return one_line(arguments, _MAX_SOURCE)
    values = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        for name, value in arguments.items()
    }
    if len(values) == 1:
        return one_line(next(iter(values.values())), _MAX_SOURCE)
    return one_line(" ".join(f"{name}={value}" for name, value in values.items()), _MAX_SOURCE)


def _command_end(result: CallReturn) -> str:
    """The exit status and the last lines, which usually have the outcome."""
    problem = _EXIT.match(result.text)
    status = next(filter(None, problem.groups()), "failed") if problem else "failed" if result.failed else "exit code 0"
    lines = list(_informative(result.text.splitlines()))
    rest = lines[1:] if problem else lines
    chosen = rest if len(rest) <= 3 else [rest[0], "…", *rest[-2:]]
    return f"{status}; {one_line(' / '.join(chosen), _MAX_RESULT)}" if chosen else status


def _first_lines(text: str, limit: int) -> str:
    return one_line(" / ".join(_informative(text.splitlines())), limit) or "(nothing)"


def _informative(lines: Iterable[str]) -> Iterable[str]:
    """Lines with at least one letter or digit."""
    return (line.strip() for line in lines if not _UNINFORMATIVE.fullmatch(line))
