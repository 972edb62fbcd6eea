"""The SQL of what missions spend, and of the budgets that they have reached. The caller owns the transaction."""

from __future__ import annotations

from typing import Final, NamedTuple

from punchlist.storage.statements import SelectAll, SelectOne, Statement, select


class Spend(NamedTuple):
    """What requests to models used."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0
    """Requests to models whose price is unknown."""

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def minus(self, other: Spend) -> Spend:
        return Spend(
            self.requests - other.requests,
            self.input_tokens - other.input_tokens,
            self.output_tokens - other.output_tokens,
            self.cost - other.cost,
            self.unpriced - other.unpriced,
        )


class SpendPlace(NamedTuple):
    """Whose work a request to a model belongs to."""

    mission_id: str
    todo_id: str | None = None
    pillar_id: str | None = None


class BudgetStop(NamedTuple):
    """A row of `budget_stops`: a budget that was reached."""

    id: str
    mission_id: str
    todo_id: str | None
    explanation: str
    reached_at: str
    ended_at: str | None = None


_SUMS: Final = (
    "SELECT coalesce(sum(requests), 0), coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0), "
    "coalesce(sum(cost), 0), coalesce(sum(unpriced), 0) FROM mission_spending"
)


def _spend(row: tuple[int, int, int, float, int]) -> Spend:
    return Spend(int(row[0]), int(row[1]), int(row[2]), float(row[3]), int(row[4]))


ADD_SPEND: Final = Statement(
    "INSERT INTO mission_spending "
    "(mission_id, day, todo_id, pillar_id, requests, input_tokens, output_tokens, cost, unpriced) "
    "VALUES (:mission_id, :day, :todo_id, :pillar_id, :requests, :input_tokens, :output_tokens, :cost, :unpriced) "
    "ON CONFLICT (mission_id, day, todo_id, pillar_id) DO UPDATE SET "
    "requests = mission_spending.requests + excluded.requests, "
    "input_tokens = mission_spending.input_tokens + excluded.input_tokens, "
    "output_tokens = mission_spending.output_tokens + excluded.output_tokens, "
    "cost = mission_spending.cost + excluded.cost, unpriced = mission_spending.unpriced + excluded.unpriced"
)
spend_of_day: Final = SelectOne(_spend, f"{_SUMS} WHERE mission_id = :mission_id AND day = :day")
spend_of_todo: Final = SelectOne(_spend, f"{_SUMS} WHERE todo_id = :todo_id")

# A limit can be raised and lowered again on the same day.
OPEN_STOP: Final = Statement(
    "INSERT INTO budget_stops (id, mission_id, todo_id, explanation, reached_at, ended_at) "
    "VALUES (:id, :mission_id, :todo_id, :explanation, :reached_at, :ended_at) ON CONFLICT (id) DO UPDATE SET "
    "explanation = excluded.explanation, reached_at = excluded.reached_at, ended_at = NULL"
)
_STOP: Final = select("budget_stops", BudgetStop._fields)
open_stops: Final = SelectAll(
    BudgetStop._make, f"{_STOP} WHERE mission_id = :mission_id AND ended_at IS NULL ORDER BY reached_at, id"
)
END_STOP: Final = Statement("UPDATE budget_stops SET ended_at = :at WHERE id = :id AND ended_at IS NULL")
