"""What a todo needs before it can be worked on, as a planner says it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from punchlist.errors import InvalidInput
from punchlist.kernel import text
from punchlist.plan.lifecycle import OPEN, ConditionKind
from punchlist.plan.model import NewCondition

MAX_CONDITIONS: Final = 20
"""Things that one todo can wait for, and things that it can claim."""

MAX_SUBJECT_LENGTH: Final = {
    ConditionKind.PERSON: 1_000,
    ConditionKind.TIME: 100,
    ConditionKind.EVENT: 200,
    ConditionKind.TODO: 500,
    ConditionKind.RESOURCE: 500,
}
FORMS: Final = {kind.value: kind for kind in ConditionKind if kind is not ConditionKind.RESOURCE}


def parse_conditions(raw: Any, where: str, problems: list[str]) -> tuple[NewCondition, ...]:
    found = [
        _parse_need(each, f"{where}[{index}]", problems) for index, each in enumerate(_array(raw, where, problems))
    ]
    return tuple(need for need in found if need is not None)


def parse_condition(raw: Any, where: str) -> NewCondition:
    """One thing to wait for, or an error that says what is wrong with it."""
    problems: list[str] = []
    need = _parse_need(raw, where, problems)
    if need is None:
        raise InvalidInput(problems)
    return need


def parse_resources(raw: Any, where: str, problems: list[str]) -> tuple[str, ...]:
    claimed = []
    for index, each in enumerate(_array(raw, where, problems)):
        if problem := text.line_problem(each, max_length=MAX_SUBJECT_LENGTH[ConditionKind.RESOURCE]):
            problems.append(f"{where}[{index}]: {problem}")
        else:
            claimed.append(each.strip())
    return tuple(dict.fromkeys(claimed))


def _array(raw: Any, where: str, problems: list[str]) -> list[Any]:
    if raw is None:
        return []
    if not isinstance(raw, list):
        problems.append(f"{where}: must be an array, got {text.json_type(raw)}")
    elif len(raw) > MAX_CONDITIONS:
        problems.append(f"{where}: at most {MAX_CONDITIONS} entries, got {len(raw)}")
    else:
        return raw
    return []


def _parse_need(raw: Any, where: str, problems: list[str]) -> NewCondition | None:
    if isinstance(raw, dict) and len(raw) == 1 and next(iter(raw)) in FORMS:
        ((form, subject),) = raw.items()
        kind, where = FORMS[form], f"{where}.{form}"
    elif isinstance(raw, str):
        kind, subject = ConditionKind.TODO, raw
    else:
        got = f"an object with {len(raw)} keys" if isinstance(raw, dict) and len(raw) != 1 else text.json_type(raw)
        problems.append(
            f"{where}: must be a todo's id or title, or an object with one of {', '.join(FORMS)}, got {got}"
        )
        return None
    if problem := text.line_problem(subject, max_length=MAX_SUBJECT_LENGTH[kind]):
        problems.append(f"{where}: {problem}")
        return None
    subject = subject.strip()
    if kind is ConditionKind.TIME:
        time = _time(subject)
        if time is None:
            problems.append(
                f"{where}: must be a time with its zone, such as 2026-11-20T09:00:00Z, got {text.excerpt(subject)!r}"
            )
            return None
        subject = time
    return NewCondition(kind, subject)


def _time(written: str) -> str | None:
    """A time in UTC as it is stored; None when it is none, or its zone is not said."""
    try:
        time = datetime.fromisoformat(written)
        if time.tzinfo is None:
            return None
        return time.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"
    except (ValueError, OverflowError):
        return None


@lru_cache(maxsize=2048)
def normalized_title(title: str) -> str:
    """What two titles have in common that a person would take for one."""
    return " ".join(str(title).casefold().split())


class TodoReferences:
    """The todos that a planner can mean: any of the turn by its id, one by its title if only one has it."""

    def __init__(self, known: Iterable[Sequence[Any]], new: Iterable[tuple[str, str]] = ()) -> None:
        """`known` are id, status and title of those on the plan, `new` id and title of those of the same call."""
        self._ids: set[str] = set()
        self._new: dict[str, list[str]] = {}
        self._open: dict[str, list[str]] = {}
        self._ended: dict[str, list[str]] = {}
        for todo_id, status, title in known:
            self._ids.add(todo_id)
            (self._open if status in OPEN else self._ended).setdefault(normalized_title(title), []).append(todo_id)
        for todo_id, title in new:
            self._ids.add(todo_id)
            self._new.setdefault(normalized_title(title), []).append(todo_id)

    def find(self, said: str, own: str, where: str, problems: list[str]) -> str | None:
        """The id of the todo that is meant by the todo `own`."""
        if said in self._ids and said != own:
            return said
        title = normalized_title(said)
        for group in (self._new, self._open):
            others = [todo_id for todo_id in group.get(title, ()) if todo_id != own]
            if len(others) > 1:
                problems.append(f"{where}: {_quoted(said)} is the title of {len(others)} todos; it must be of one")
                return None
            if others:
                return others[0]
        if title in self._ended:
            # Whichever it is, it holds nothing up any more.
            return self._ended[title][-1]
        if said == own or own in (*self._new.get(title, ()), *self._open.get(title, ())):
            problems.append(f"{where}: a todo cannot wait for itself")
        else:
            problems.append(
                f"{where}: this turn has no todo {_quoted(said)}; give the id of one, or the exact title of another"
            )
        return None


def _quoted(said: str) -> str:
    return f"“{text.excerpt(said)}”"
