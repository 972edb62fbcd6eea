"""Directives: add, list and end the standing instructions of people to a mission (M17).

A directive holds until its end date or until a person ends it. The agents of the mission get all that hold in every
request, so their number and length are limited.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from datetime import datetime

from punchlist.errors import IllegalTransition, InvalidInput, NotFound
from punchlist.kernel.clock import parse_timestamp
from punchlist.kernel.ids import new_id
from punchlist.kernel.lifecycle import NEW
from punchlist.kernel.text import excerpt, line_problem, visible
from punchlist.kernel.token_estimate import CHARACTERS_PER_TOKEN
from punchlist.missions.changes import find_mission, lock_mission
from punchlist.missions.config.policy import cadence_of
from punchlist.missions.directives import repository as directive_repository
from punchlist.missions.directives.model import (
    DIRECTIVE,
    MAX_IN_FORCE,
    MAX_LENGTH,
    MAX_TOTAL_LENGTH,
    Directive,
    DirectiveAction,
    shown_length,
)
from punchlist.missions.model import Mission, MissionScope
from punchlist.missions.todos.deadlines import is_overdue, parse_deadline
from punchlist.missions.todos.validation import check_mission
from punchlist.storage.store import Store, Transaction


class Directives:
    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, scope: MissionScope, mission_slug: str, text: str, *, until: str | None = None) -> Directive:
        """Add an instruction that holds until the end of the day `until`, or until a person ends it."""
        status = DIRECTIVE.advance(NEW, DirectiveAction.ADD, scope.actor.role)
        check_mission(scope, mission_slug)
        if problem := line_problem(text, max_length=MAX_LENGTH):
            raise InvalidInput(f"text: {problem}")
        if len(visible(text)) > MAX_LENGTH:
            # Agents get it with invisible characters escaped.
            raise InvalidInput(f"text: has too many invisible characters to be shown in {MAX_LENGTH} characters")
        with self._store.write() as tx:
            write = lock_mission(tx, scope, mission_slug)
            now = parse_timestamp(tx.now())
            holds_until = _parse_end(until, write.mission, now) if until is not None else None
            _check_room(in_force(tx, write.mission, now), text, mission_slug)
            earlier = directive_repository.all_in_mission(tx, write.mission.id)
            directive = Directive(
                id=new_id(),
                mission_id=write.mission.id,
                number=earlier[-1].number + 1 if earlier else 1,
                content=text.strip(),
                holds_until=holds_until,
                status=status.value,
                created_by=scope.actor.name,
                created_at=tx.now(),
            )
            directive_repository.insert_directive(tx, directive)
            write.append(DirectiveAction.ADD, directive.id, "a directive", directive._asdict(), to=status)
            return directive

    def list(self, mission_slug: str, *, ended: bool = False) -> builtins.list[Directive]:
        """The directives that hold, oldest first; `ended` includes those that no longer do."""
        with self._store.read() as tx:
            mission = find_mission(tx, mission_slug)
            if ended:
                return directive_repository.all_in_mission(tx, mission.id)
            return in_force(tx, mission, self._store.clock())

    def end(self, scope: MissionScope, mission_slug: str, number: int) -> Directive:
        check_mission(scope, mission_slug)
        with self._store.write() as tx:
            write = lock_mission(tx, scope, mission_slug)
            directive = directive_repository.by_number(tx, write.mission.id, number)
            if directive is None:
                raise NotFound(
                    f"Mission {mission_slug!r} has no directive {number}. List them with "
                    f"`punchlist mission directive list {mission_slug}`."
                )
            return write.advance(
                DIRECTIVE,
                directive,
                DirectiveAction.END,
                "ended by a person",
                update=directive_repository.update_row,
                data={"number": number},
                changes={"ended_at": tx.now()},
            )


def in_force(tx: Transaction, mission: Mission, now: datetime) -> builtins.list[Directive]:
    """Oldest first."""
    zone = cadence_of(mission).timezone
    directives = directive_repository.open_in_mission(tx, mission.id)
    return [directive for directive in directives if not is_overdue(directive.holds_until, zone, now)]


def _check_room(holding: Sequence[Directive], text: str, mission_slug: str) -> None:
    end = f"with `punchlist mission directive end {mission_slug} N`"
    if len(holding) >= MAX_IN_FORCE:
        raise IllegalTransition(
            f"Mission {mission_slug!r} has {MAX_IN_FORCE} directives, the limit. End one first, {end}."
        )
    total = sum(map(shown_length, (text, *(directive.content for directive in holding))))
    if total > MAX_TOTAL_LENGTH:
        tokens, limit = total // CHARACTERS_PER_TOKEN, MAX_TOTAL_LENGTH // CHARACTERS_PER_TOKEN
        raise IllegalTransition(
            f"The directives of mission {mission_slug!r} would have about {tokens:,} tokens; {limit:,} is the limit, "
            f"because they are in every request. Shorten it, or end another one {end}."
        )


def _parse_end(until: str, mission: Mission, now: datetime) -> str:
    try:
        end = parse_deadline(until, cadence_of(mission).timezone, now)
    except InvalidInput as error:
        raise InvalidInput(str(error).replace("deadline:", "until:", 1)) from None
    if end.passed:
        raise InvalidInput(f"until: {excerpt(end.stored)} has already passed; give a date in the future.")
    return end.stored
