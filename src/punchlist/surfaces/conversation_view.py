"""A conversation as a tree: turns with their messages, calls with their results, turns of workers inside.

Pure function from stored rows to values. A damaged message is shown as text; `db check` reports it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from punchlist.agent.message_kinds import CONTINUATION, RESULT, TEXT
from punchlist.agent.transcript import from_stored
from punchlist.conversations.model import Message, StoredTurn
from punchlist.errors import StoreDamaged
from punchlist.models.model import CallReturn, Reply, Usage
from punchlist.models.model import Message as ModelMessage

DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class MessageStep:
    """A message to the agent, or a note of the loop. `kind` is the kind of the stored message."""

    role: str
    kind: str
    text: str

    @property
    def is_request(self) -> bool:
        """Whether it is a request, not a prompt or note of the loop."""
        return self.role == "user" and self.kind == TEXT


@dataclass(frozen=True, slots=True)
class CallStep:
    """A call; `result` is None until it has ended."""

    tool: str
    arguments: str
    result: str | None
    failed: bool


@dataclass(frozen=True, slots=True)
class ReplyStep:
    text: str
    calls: tuple[CallStep, ...]


@dataclass(slots=True)
class TurnView:
    turn: StoredTurn
    steps: list[Step] = field(default_factory=list)
    iterations: int = 0
    continuations: int = 0
    usage: Usage = field(default_factory=Usage)

    @property
    def state(self) -> str:
        """`open`, or `ended` with the reason."""
        return "open" if self.turn.open else f"ended: {self.turn.end_reason or 'no reason given'}"


Step = MessageStep | ReplyStep | TurnView


def build_view(turns: Sequence[StoredTurn], messages: Sequence[Message]) -> list[TurnView | MessageStep]:
    """The turns and the messages outside of turns, in order. A worker's turn is inside its parent's."""
    views = {turn.id: TurnView(turn) for turn in turns}
    by_turn: dict[str | None, list[Message]] = defaultdict(list)
    for message in messages:
        by_turn[message.turn_id if message.turn_id in views else None].append(message)
    # A turn has the position of its first message; turns without messages come last.
    places = {
        id: by_turn[id][0].position if by_turn[id] else len(messages) + number for number, id in enumerate(views, 1)
    }
    outer: list[tuple[int, TurnView | MessageStep]] = [
        (message.position, _message_step(message)) for message in by_turn[None]
    ]
    inner: dict[str, list[tuple[int, Step]]] = defaultdict(list)
    for id, view in views.items():
        parent = view.turn.parent_turn_id
        if parent in views and parent is not None:
            inner[parent].append((places[id], view))
        else:
            outer.append((places[id], view))
    for id, view in views.items():
        _fill(view, by_turn[id], inner[id])
    return [step for _, step in sorted(outer, key=lambda placed: placed[0])]


def all_turns(steps: Iterable[Step]) -> Iterator[TurnView]:
    """All turns of a tree, each before the turns of its workers."""
    for step in steps:
        if isinstance(step, TurnView):
            yield step
            yield from all_turns(step.steps)


def _fill(view: TurnView, messages: Sequence[Message], workers: Sequence[tuple[int, Step]]) -> None:
    steps: list[tuple[int, Step]] = list(workers)
    # Backwards, since models reuse call ids: each reply takes the results that directly follow it.
    results: dict[str, CallReturn] = {}
    for message in reversed(messages):
        match _parse(message):
            case CallReturn() as returned:
                results[returned.call_id] = returned
            case Reply() as reply:
                view.iterations += 1
                view.usage += reply.usage
                steps.append((message.position, _reply_step(reply, results)))
                results = {}
            case _:
                view.continuations += message.kind == CONTINUATION
                steps.append((message.position, _message_step(message)))
    view.steps = [step for _, step in sorted(steps, key=lambda placed: placed[0])]


def _parse(message: Message) -> ModelMessage | None:
    try:
        return from_stored(message)
    except StoreDamaged:
        return None


def _reply_step(reply: Reply, results: dict[str, CallReturn]) -> ReplyStep:
    return ReplyStep(
        reply.text, tuple(_call_step(call.tool, call.arguments, results.get(call.id)) for call in reply.calls)
    )


def _call_step(tool: str, arguments: object, result: CallReturn | None) -> CallStep:
    written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, default=repr)
    return CallStep(tool, written, result.text if result else None, bool(result and result.failed))


def _message_step(message: Message) -> MessageStep:
    # It claims to be a reply or a result but could not be parsed: damaged.
    damaged = message.role in ("assistant", "tool") and message.kind in ("reply", RESULT)
    return MessageStep(message.role, DAMAGED if damaged else message.kind, message.content)
