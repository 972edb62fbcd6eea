"""How a competent model keeps the list that it is offered: none, the plan tools, TodoWrite, or a single item.

Each keeper reads the state of the items from the request, and writes the calls that change it. It does what the request
asks for: where the instructions allow it, an item is completed in the same reply as its last work call, and it is
started only where they mention that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from bench.finish.request_reader import MadeCall, RequestReader
from bench.finish.task import Step, WorkCall

_LINE: Final = re.compile(r"^\s*(?:(\d+)\. )?\[(.)\] (.*)$", re.MULTILINE)
_ITEM: Final = re.compile(r"^Your item: (.*)$", re.MULTILINE)
FINISH: Final = "finish_item"
_OPEN_MARKS: Final = " >!"
_EXISTS: Final = re.compile(r"^Plan: |called create_todo|create_todo returned", re.MULTILINE)
"""The plan is in view, or a summary of older messages mentions it."""
ALREADY: Final = ("already", "completed")


class ListKeeper(Protocol):
    def in_view(self, steps: Sequence[Step]) -> Sequence[Step]:
        """The steps that this request is about."""

    def planned(self, steps: Sequence[Step]) -> list[WorkCall]:
        """The calls that write the list; empty if it exists or there is none."""

    def ended(self, step: Step) -> bool: ...

    def since(self, step: Step) -> int:
        """The position in the transcript from which work on the step counts: the last refusal of its completion."""

    def update(self, finished: Sequence[Step], current: Step | None) -> list[WorkCall]:
        """The calls that mark `finished` as completed and `current` as in progress."""


class _AllSteps:
    def in_view(self, steps: Sequence[Step]) -> Sequence[Step]:
        return steps


class NoList(_AllSteps):
    """Without a list, the model remembers what it has said."""

    def __init__(self, reader: RequestReader) -> None:
        self._reader = reader

    def planned(self, steps: Sequence[Step]) -> list[WorkCall]:
        del steps
        return []

    def ended(self, step: Step) -> bool:
        return claim(step) in self._reader.own_text

    def since(self, step: Step) -> int:
        del step
        return 0

    def update(self, finished: Sequence[Step], current: Step | None) -> list[WorkCall]:
        del finished, current
        return []


def claim(step: Step) -> str:
    return f"“{step.title}” is done."


def outcome(step: Step) -> str:
    """What a model reports about a finished step."""
    changed = dict.fromkeys(str(call.arguments["path"]) for call in step.work if "path" in call.arguments)
    return f"Changed {', '.join(changed)}." if changed else "Ran the command."


class PlanKeeper(_AllSteps):
    def __init__(self, reader: RequestReader) -> None:
        self._reader = reader
        self._lines: dict[str, tuple[str, str]] = {
            text: (mark, number) for number, mark, text in _LINE.findall(reader.state)
        }
        named = [*self._listed("create_todo", "created"), *self._listed("list_todo", "items")]
        self._names = {item["title"]: _names(item) for item in named}
        self._was_listed = any(reader.called("list_todo"))

    def _listed(self, tool: str, field: str) -> Iterator[Mapping[str, Any]]:
        for call in self._reader.called(tool):
            if call.succeeded:
                yield from call.data.get(field, ())

    def planned(self, steps: Sequence[Step]) -> list[WorkCall]:
        if self._names or self._lines or self._was_listed:
            return []
        if _EXISTS.search(self._reader.user_text):
            # Nothing is open, or the messages with the ids are gone.
            return [] if self._reader.state else [WorkCall("list_todo", {})]
        schema = self._reader.tools["create_todo"].input_schema
        offered = schema["properties"]["items"]["items"]["properties"]
        items = []
        for step in steps:
            fields = {"title": step.title, "context": self._context(step), "check": step.check}
            items.append({name: value for name, value in fields.items() if value and name in offered})
        return [WorkCall("create_todo", {"items": items})]

    def _context(self, step: Step) -> str:
        """The files that the request names for the step, where the planner is told that others see only their item."""
        if "into context" not in self._reader.request.system:
            return ""
        named = [path for path in step.uses if path in self._reader.user_text]
        return f"Uses {', '.join(named)}" if named else ""

    def _line(self, step: Step) -> str | None:
        return next((text for text in self._lines if step.title in text), None)

    def _reference(self, step: Step) -> str:
        """The number of the item, else its id."""
        line = self._line(step)
        if line is not None and self._lines[line][1]:
            return self._lines[line][1]
        return next(iter(self._names.get(step.title, ())), "")

    def _made(self, tool: str, step: Step) -> list[MadeCall]:
        names = {self._reference(step), *self._names.get(step.title, ())}
        return [call for call in self._reader.called(tool) if str(call.arguments.get("todoId")) in names]

    def ended(self, step: Step) -> bool:
        if (line := self._line(step)) is not None:
            return self._lines[line][0] not in _OPEN_MARKS
        if self._reader.state or not self._reference(step):
            # Not in the list: it has ended and is no longer shown, or was forgotten when the list was written.
            return True
        return any(_is_ended(call) for call in self._made("complete_todo", step))

    def since(self, step: Step) -> int:
        refused = [call.position + 1 for call in self._made("complete_todo", step) if not _is_ended(call)]
        return max(refused, default=0)

    def update(self, finished: Sequence[Step], current: Step | None) -> list[WorkCall]:
        calls = [
            WorkCall("complete_todo", {"todoId": self._reference(step), "outcome": outcome(step)}) for step in finished
        ]
        if current is not None and "start_todo" in self._reader.request.system and not self._is_started(current):
            calls.append(WorkCall("start_todo", {"todoId": self._reference(current)}))
        return calls

    def _is_started(self, step: Step) -> bool:
        if (line := self._line(step)) is not None:
            return self._lines[line][0] == ">"
        return any(call.succeeded for call in self._made("start_todo", step))


def _names(item: Mapping[str, Any]) -> list[str]:
    """What a call can name the item by: its number in the plan, its id."""
    number = item.get("order", item["priority"] + 1 if "priority" in item else None)
    return [str(name) for name in (number, item["id"]) if name is not None]


def _is_ended(call: MadeCall) -> bool:
    """The item has ended, by this call or before it."""
    if call.succeeded:
        return bool(call.data.get("status", "completed") == "completed")
    return bool(call.failed) and all(word in call.result.lower() for word in ALREADY)


class ChecklistKeeper(_AllSteps):
    def __init__(self, reader: RequestReader) -> None:
        self._reader = reader
        written = [call for call in reader.called("TodoWrite") if call.succeeded]
        self._last: Sequence[Mapping[str, Any]] = written[-1].arguments.get("todos", ()) if written else ()
        self._lines = {text: mark for _, mark, text in _LINE.findall(reader.state)}

    def planned(self, steps: Sequence[Step]) -> list[WorkCall]:
        if self._last or self._lines:
            return []
        return [self._write([(step, "in_progress" if step is steps[0] else "pending") for step in steps])]

    def _write(self, items: Sequence[tuple[Step, str]]) -> WorkCall:
        offered = self._reader.tools["TodoWrite"].input_schema["properties"]["todos"]["items"]["properties"]
        todos = [
            {
                "content": step.title,
                "status": status,
                "activeForm": f"Working: {step.title}",
                **({"check": step.check} if step.check is not None and "check" in offered else {}),
            }
            for step, status in items
        ]
        return WorkCall("TodoWrite", {"todos": todos})

    def _status(self, step: Step) -> str | None:
        mark = next((mark for text, mark in self._lines.items() if step.title in text), None)
        if mark is not None:
            return {"x": "completed", ">": "in_progress", "-": "cancelled"}.get(mark, "pending")
        return next((str(item["status"]) for item in self._last if item["content"] == step.title), None)

    def ended(self, step: Step) -> bool:
        return self._status(step) in ("completed", "cancelled", None)

    def since(self, step: Step) -> int:
        claimed = [
            call.position + 1
            for call in self._reader.called("TodoWrite")
            if any(
                item["content"] == step.title and item["status"] == "completed"
                for item in call.arguments.get("todos", ())
            )
        ]
        return max(claimed, default=0)

    def update(self, finished: Sequence[Step], current: Step | None) -> list[WorkCall]:
        done = {step.title for step in finished}
        if not done and (current is None or self._status(current) == "in_progress"):
            return []
        items = []
        for item in self._last:
            step = Step(str(item["content"]), (), check=item.get("check"))
            status = "completed" if step.title in done or self.ended(step) else "pending"
            if current is not None and step.title == current.title:
                status = "in_progress"
            items.append((step, status))
        return [self._write(items)]


class ItemKeeper:
    """One item of a list that the loop owns, in a context of its own."""

    def __init__(self, reader: RequestReader) -> None:
        self._reader = reader
        self._titles = _ITEM.findall(reader.user_text)

    def in_view(self, steps: Sequence[Step]) -> Sequence[Step]:
        return [step for step in steps if step.title in self._titles]

    def planned(self, steps: Sequence[Step]) -> list[WorkCall]:
        del steps
        return []

    def ended(self, step: Step) -> bool:
        del step
        return any(call.succeeded for call in self._reader.called(FINISH))

    def since(self, step: Step) -> int:
        del step
        return max((call.position + 1 for call in self._reader.called(FINISH) if call.failed), default=0)

    def update(self, finished: Sequence[Step], current: Step | None) -> list[WorkCall]:
        del current
        return [WorkCall(FINISH, {"outcome": outcome(step)}) for step in finished]


def keeper_for(reader: RequestReader) -> ListKeeper:
    if FINISH in reader.tools:
        return ItemKeeper(reader)
    if "create_todo" in reader.tools:
        return PlanKeeper(reader)
    return ChecklistKeeper(reader) if "TodoWrite" in reader.tools else NoList(reader)
