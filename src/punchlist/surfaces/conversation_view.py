"""A conversation as people read it: turns, what was said in them, calls with their results, workers inside.

Pure: stored messages in, a tree of values out. A message that is not as it was written is told as it
stands; `db check` says what is wrong with it.
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
from punchlist.models.model import Message as Heard

DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class MessageStep:
    """Something that was said to the agent, or noted beside the work. `kind` is that of the message."""

    role: str
    kind: str
    text: str

    @property
    def asked(self) -> bool:
        """Whether somebody asked for something, as opposed to what the loop says and notes."""
        return self.role == "user" and self.kind == TEXT


@dataclass(frozen=True, slots=True)
class CallStep:
    """A call, and what came of it; no result while there is none."""

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
        """Open, or ended and why."""
        return "open" if self.turn.open else f"ended: {self.turn.end_reason or 'no reason given'}"


Step = MessageStep | ReplyStep | TurnView


def build_view(turns: Sequence[StoredTurn], messages: Sequence[Message]) -> list[TurnView | MessageStep]:
    """The turns of a conversation, each worker's inside the one that it works for, and what was said outside of any."""
    stories = {turn.id: TurnView(turn) for turn in turns}
    told: dict[str | None, list[Message]] = defaultdict(list)
    for message in messages:
        told[message.turn_id if message.turn_id in stories else None].append(message)
    # A turn stands where its first message does; one without any, at the end.
    places = {id: told[id][0].position if told[id] else len(messages) + number for number, id in enumerate(stories, 1)}
    outer: list[tuple[int, TurnView | MessageStep]] = [(one.position, _said(one)) for one in told[None]]
    inner: dict[str, list[tuple[int, Step]]] = defaultdict(list)
    for id, story in stories.items():
        parent = story.turn.parent_turn_id
        if parent in stories and parent is not None:
            inner[parent].append((places[id], story))
        else:
            outer.append((places[id], story))
    for id, story in stories.items():
        _fill(story, told[id], inner[id])
    return [one for _, one in sorted(outer, key=lambda placed: placed[0])]


def all_turns(told: Iterable[Step]) -> Iterator[TurnView]:
    """The turns of a story, each before its workers'."""
    for one in told:
        if isinstance(one, TurnView):
            yield one
            yield from all_turns(one.steps)


def _fill(story: TurnView, messages: Sequence[Message], workers: Sequence[tuple[int, Step]]) -> None:
    steps: list[tuple[int, Step]] = list(workers)
    # From the end, so that each reply meets its own results: models number their calls alike every time.
    results: dict[str, CallReturn] = {}
    for message in reversed(messages):
        match _heard(message):
            case CallReturn() as returned:
                results[returned.call_id] = returned
            case Reply() as reply:
                story.iterations += 1
                story.usage += reply.usage
                steps.append((message.position, _replied(reply, results)))
                results = {}
            case _:
                story.continuations += message.kind == CONTINUATION
                steps.append((message.position, _said(message)))
    story.steps = [step for _, step in sorted(steps, key=lambda placed: placed[0])]


def _heard(message: Message) -> Heard | None:
    try:
        return from_stored(message)
    except StoreDamaged:
        return None


def _replied(reply: Reply, results: dict[str, CallReturn]) -> ReplyStep:
    return ReplyStep(
        reply.text, tuple(_called(call.tool, call.arguments, results.get(call.id)) for call in reply.calls)
    )


def _called(tool: str, arguments: object, result: CallReturn | None) -> CallStep:
    written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, default=repr)
    return CallStep(tool, written, result.text if result else None, bool(result and result.failed))


def _said(message: Message) -> MessageStep:
    # Stored as a reply or a result, and yet neither: not what was written.
    damaged = message.role in ("assistant", "tool") and message.kind in ("reply", RESULT)
    return MessageStep(message.role, DAMAGED if damaged else message.kind, message.content)
