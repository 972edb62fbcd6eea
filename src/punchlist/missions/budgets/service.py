"""Budgets of a mission per day and per todo (M19).

A request to a model is charged with an estimate before it is sent and with the difference afterwards, each in one
transaction that has locked the mission: concurrent runs cannot exceed a budget together. A request that would exceed a
budget is not sent. Its run waits, and continues on the next day or when the mission file allows more.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final, NamedTuple

from punchlist.conversations.model import Scope
from punchlist.kernel.clock import parse_timestamp
from punchlist.kernel.events import SYSTEM
from punchlist.missions import repository as mission_repository
from punchlist.missions.budgets import repository
from punchlist.missions.budgets.repository import BudgetStop, Spend, SpendPlace
from punchlist.missions.changes import MissionAction, MissionWrite
from punchlist.missions.config.policy import MissionLimits, cadence_of, limits_of
from punchlist.missions.model import Mission
from punchlist.missions.planning.cadence import time_zone
from punchlist.storage.store import Store, Transaction

REACHED: Final = "Budget reached:"
"""How the reason of a wait for a budget begins."""


class BudgetExcess(NamedTuple):
    """A budget that a request would exceed."""

    limit: str
    """Its name in the mission file, such as costPerDay."""
    explanation: str


def exceeded(limits: MissionLimits, day: Spend, todo: Spend | None, next: Spend) -> BudgetExcess | None:
    """The first budget that the next request would exceed. A spent budget is exceeded by any request."""
    checks = [
        ("costPerDay", limits.cost_per_day, day.cost, next.cost, "$"),
        ("tokensPerDay", limits.tokens_per_day, day.tokens, next.tokens, ""),
    ]
    if todo is not None:
        checks += [
            ("costPerTodo", limits.cost_per_todo, todo.cost, next.cost, "$"),
            ("tokensPerTodo", limits.tokens_per_todo, todo.tokens, next.tokens, ""),
        ]
    for name, limit, spent, more, unit in checks:
        if limit is not None and (spent >= limit or spent + more > limit):
            shown = f"${spent:.2f} of ${limit:.2f}" if unit else f"{spent:,} of {limit:,} tokens"
            return BudgetExcess(name, f"{shown} used ({name})")
    return None


class Budgets:
    def __init__(self, store: Store) -> None:
        self._store = store

    def now(self) -> datetime:
        return self._store.clock()

    def reserve(self, place: SpendPlace, estimate: Spend, at: datetime) -> str | None:
        """Charge a request before it is sent; if it would exceed a budget, the reason why it must wait instead."""
        with self._store.write() as tx:
            mission = mission_repository.lock_mission(tx, place.mission_id)
            if mission is None:
                return None
            excess = _excess(tx, mission, place.todo_id, estimate, at)
            if excess is not None:
                return _stop(tx, mission, place.todo_id, excess)
            _add(tx, mission, place, estimate, at)
            return None

    def settle(self, place: SpendPlace, estimate: Spend, used: Spend, at: datetime) -> None:
        """Replace the estimate of a request by what it used; `used` is empty if the request failed.

        `at` is when it was charged: a request that ends after midnight belongs to the day before.
        """
        difference = used.minus(estimate)
        with self._store.write() as tx:
            mission = mission_repository.lock_mission(tx, place.mission_id)
            if mission is not None:
                _add(tx, mission, place, difference, at)

    def is_available(self, mission_id: str, todo_id: str | None) -> bool:
        """Whether work that a budget stopped can continue. Ends the stops that are over."""
        with self._store.read() as tx:
            mission = mission_repository.mission(tx, mission_id)
            stops = repository.open_stops(tx, mission_id)
            now = tx.now()
        if mission is not None and any(_holds(mission, stop, now) for stop in stops if stop.todo_id in (None, todo_id)):
            return False
        self.end_stops(mission_id)
        return True

    def end_stops(self, mission_id: str) -> None:
        """End the stops of budgets that allow work again."""
        with self._store.read() as tx:
            if not repository.open_stops(tx, mission_id):
                return
        with self._store.write() as tx:
            mission = mission_repository.lock_mission(tx, mission_id)
            for stop in repository.open_stops(tx, mission_id):
                if mission is None or not _holds(mission, stop, tx.now()):
                    tx.run(repository.END_STOP, id=stop.id, at=tx.now())

    def today(self, mission: Mission) -> Spend:
        with self._store.read() as tx:
            return spent_today(tx, mission)

    def stops(self, mission_id: str) -> list[BudgetStop]:
        with self._store.read() as tx:
            return repository.open_stops(tx, mission_id)


def spent_today(tx: Transaction, mission: Mission) -> Spend:
    return _spent_on_day(tx, mission, parse_timestamp(tx.now()))


def _spent_on_day(tx: Transaction, mission: Mission, at: datetime) -> Spend:
    return repository.spend_of_day(tx, mission.id, local_day(mission, at)) or Spend()


def local_day(mission: Mission, now: datetime) -> str:
    """The day in the mission's time zone."""
    return now.astimezone(time_zone(cadence_of(mission).timezone)).date().isoformat()


def limit_lines(limits: MissionLimits) -> Iterator[str]:
    """The limits that are set, for people."""
    if limits.mode is not None:
        yield f"mode {limits.mode}"
    for value, unit, per in (
        (limits.cost_per_day, "$", "day"),
        (limits.cost_per_todo, "$", "todo"),
        (limits.tokens_per_day, "", "day"),
        (limits.tokens_per_todo, "", "todo"),
    ):
        if value is not None:
            yield f"${value:.2f} per {per}" if unit else f"{value:,} tokens per {per}"


def _excess(tx: Transaction, mission: Mission, todo_id: str | None, next: Spend, at: datetime) -> BudgetExcess | None:
    limits = limits_of(mission)
    todo = repository.spend_of_todo(tx, todo_id) if todo_id is not None else None
    return exceeded(limits, _spent_on_day(tx, mission, at), todo, next)


def _stop(tx: Transaction, mission: Mission, todo_id: str | None, excess: BudgetExcess) -> str:
    """Record that a budget was reached, once per day or todo."""
    of_todo = todo_id if excess.limit.endswith("Todo") else None
    now = tx.now()
    stop = BudgetStop(_stop_id(mission, of_todo, excess.limit, now), mission.id, of_todo, excess.explanation, now)
    if stop.id not in {each.id for each in repository.open_stops(tx, mission.id)}:
        tx.run(repository.OPEN_STOP, **stop._asdict())
        write = MissionWrite(tx, Scope(mission.conversation_id, SYSTEM), mission)
        data = {"limit": excess.limit, "todo": of_todo}
        write.append(MissionAction.REACH_BUDGET, of_todo or mission.id, excess.explanation, data)
    return f"{REACHED} {excess.explanation}"


def _stop_id(mission: Mission, todo_id: str | None, limit: str, now: str) -> str:
    """Names the day or the todo, and the limit with its value: a stop is over when one of them is another."""
    key = todo_id or f"{mission.slug}-{local_day(mission, parse_timestamp(now))}"
    return f"budget-{key}-{limit}-{limits_of(mission).value_of(limit)}"


def _holds(mission: Mission, stop: BudgetStop, now: str) -> bool:
    limit = stop.id.rsplit("-", 2)[1]
    return stop.id == _stop_id(mission, stop.todo_id, limit, now)


def _add(tx: Transaction, mission: Mission, place: SpendPlace, spend: Spend, at: datetime) -> None:
    whose = {"mission_id": mission.id, "todo_id": place.todo_id or "", "pillar_id": place.pillar_id or ""}
    tx.run(repository.ADD_SPEND, **whose, day=local_day(mission, at), **spend._asdict())
