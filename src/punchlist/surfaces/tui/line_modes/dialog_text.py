"""The dialogs of slash commands as text, for modes without screens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from punchlist.errors import NotFound
from punchlist.kernel.text import excerpt, visible, visible_block
from punchlist.surfaces.tui.backend import Backend
from punchlist.surfaces.tui.key_table import KEYS, KeyScope
from punchlist.surfaces.tui.slash_commands.builtin import MODES
from punchlist.surfaces.tui.slash_commands.model import DialogName
from punchlist.surfaces.tui.theme import SIGNS
from punchlist.views.board import read_board
from punchlist.views.conversations import read_conversations
from punchlist.views.runs import read_runs

if TYPE_CHECKING:
    from punchlist.views.todos import NumberedTodo

SHOWN: Final = 20
MAX_SESSIONS: Final = 200
"""Sessions that are compared with the words."""


def dialog_text(backend: Backend, session: str, dialog: DialogName, argument: str) -> str:
    show = _DIALOGS.get(dialog)
    if show is None:
        return "Not available in this mode. `punchlist chat` shows it in full screen."
    return "\n".join(show(backend, session, argument))


def _approvals(backend: Backend, session: str, _: str) -> Iterator[str]:
    waiting = backend.approvals(session)
    yield from (f"{visible(one.tool)}: {visible_block(one.question)}" for one in waiting)
    if not waiting:
        yield "Nothing waits for approval."


def _queue(backend: Backend, session: str, _: str) -> Iterator[str]:
    queued = backend.conversation(session).queued
    yield from (f"{number} {visible_block(one.content)}" for number, one in enumerate(queued, 1))
    if not queued:
        yield "Nothing is queued."


def _runs(backend: Backend, _: str, __: str) -> Iterator[str]:
    runs = read_runs(backend.services.store, limit=SHOWN).runs
    yield from (f"{run.id[-8:]} {run.status} {run.kind} {visible(run.why)}" for run in runs)
    if not runs:
        yield "There are no runs."


def _mode(backend: Backend, _: str, __: str) -> Iterator[str]:
    yield f"The mode is {backend.options.mode}. /mode NAME sets it: {', '.join(MODES)}."


def _model(backend: Backend, _: str, __: str) -> Iterator[str]:
    yield f"The model is {backend.model or 'not set'}. /model NAME sets it."


def _keys(_: Backend, __: str, ___: str) -> Iterator[str]:
    yield from (f"{' '.join(each.keys):<24} {each.description}" for each in KEYS if each.scope is KeyScope.COMPOSER)


def todo_text(backend: Backend, session: str, _: str = "") -> Iterator[str]:
    todos = backend.todos(session)
    if not todos.items:
        yield "The list is empty."
        return
    yield from (todo_line(item) for item in todos.items)
    summary = todos.summary
    yield f"{summary['completed']} of {summary['total']} completed."


def todo_line(item: NumberedTodo) -> str:
    mark = f" ({item.mark})" if item.mark else ""
    return f"{SIGNS.get(item.status, '?')} {item.number} {visible(item.label)}{mark}"


def _plans(backend: Backend, session: str, _: str) -> Iterator[str]:
    turns = backend.services.conversations.turns(session)
    shown = [turn for turn in turns if turn.parent_turn_id is None]
    for turn in reversed(shown[:SHOWN]):
        items = backend.services.todos.list(backend.scope(session), turn.id).items
        planned = [item for item in items if item.list == "plan"]
        if planned:
            yield f"Turn {turn.id[-8:]} {visible(turn.end_reason or 'running')}"
            yield from (f"  {todo_line(item)}" for item in planned)


def _sessions(backend: Backend, _: str, words: str) -> Iterator[str]:
    wanted = words.lower().split()
    rows = [
        f"{visible(one.id)}  {visible(excerpt(one.title))}".rstrip()
        for one in read_conversations(backend.services.store, limit=MAX_SESSIONS).conversations
        if all(word in f"{one.id} {one.title}".lower() for word in wanted)
    ]
    yield from rows[:SHOWN] or ["No session fits."]
    yield "/resume ID opens one."


def _board(backend: Backend, _: str, slug: str) -> Iterator[str]:
    missions = backend.services.missions.list()
    if not missions:
        raise NotFound("There is no mission. `punchlist mission init` writes a mission.json to begin with.")
    for mission in missions:
        if slug and mission.slug != slug:
            continue
        board = read_board(backend.services.store, mission.slug, limit=SHOWN)
        counts = ", ".join(f"{count} {status.value}" for status, count in board.counts.items() if count)
        yield f"{visible(mission.name)} ({mission.slug}): {counts or 'no todos'}"
        if slug or len(missions) == 1:
            yield from (
                f"  {SIGNS.get(one.status, '?')} {one.status.value} {visible(one.title)}" for one in board.todos.items
            )


_DIALOGS: Final[Mapping[DialogName, Callable[[Backend, str, str], Iterator[str]]]] = {
    DialogName.TODOS: todo_text,
    DialogName.APPROVALS: _approvals,
    DialogName.QUEUE: _queue,
    DialogName.PLANS: _plans,
    DialogName.RESUME: _sessions,
    DialogName.MISSIONS: _board,
    DialogName.RUNS: _runs,
    DialogName.MODE: _mode,
    DialogName.MODEL: _model,
    DialogName.KEYS: _keys,
}
"""By dialog: from the backend, the session and the argument to lines."""
