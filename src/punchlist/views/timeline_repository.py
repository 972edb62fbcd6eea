"""SQL of timelines: the calls of some turns to models and tools. The caller owns the transaction.

A run can have tens of thousands of calls, so the database counts them and selects the page. `turn_ids` is a JSON list.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from punchlist.storage.statements import SelectAll, SelectOne


class CallTimes(NamedTuple):
    """A call to a model or a tool, without its texts."""

    number: int
    """Counted from 1 in the order of their starts."""
    turn_id: str
    id: str
    kind: str
    name: str
    started_at: str
    ended_at: str | None
    failed: int
    asked_at: str | None = None
    """When a person was asked to approve the call."""
    answered_at: str | None = None
    waits: int = 0
    """Whether the approval is still open."""


class CallFigures(NamedTuple):
    calls: int
    failures: int
    models: int
    first: str | None
    last: str | None
    """The end of the call that ended last; `now` if one waits."""


_IDS: Final = "SELECT value FROM json_each(:turn_ids)"
_POSTGRESQL_IDS: Final = "SELECT json_array_elements_text(CAST(:turn_ids AS json))"


def _calls(turn_ids: str) -> str:
    return (
        f"WITH chosen (id) AS ({turn_ids}), calls AS ("
        "SELECT turn_id, id, kind, name, started_at, ended_at, CASE WHEN error IS NULL THEN 0 ELSE 1 END AS failed, "
        "CAST(NULL AS TEXT) AS asked_at, CAST(NULL AS TEXT) AS answered_at, 0 AS waits "
        "FROM traces WHERE turn_id IN (SELECT id FROM chosen) AND kind = 'model' "
        "UNION ALL SELECT turn_id, tool_calls.id, 'tool', tool, coalesce(started_at, created_at), ended_at, "
        "CASE WHEN tool_calls.status = 'error' THEN 1 ELSE 0 END, asked_at, answered_at, "
        "CASE WHEN approvals.status IN ('pending', 'escalated') THEN 1 ELSE 0 END "
        "FROM tool_calls LEFT JOIN approvals ON approvals.call_id = tool_calls.id "
        "WHERE turn_id IN (SELECT id FROM chosen))"
    )


def _texts(select: str, postgresql: str | None = None) -> dict[str, Any]:
    return {
        "sql": f"{_calls(_IDS)} {select}",
        "postgresql": f"{_calls(_POSTGRESQL_IDS)} {postgresql or select}",
    }


_COLUMNS: Final = "turn_id, id, kind, name, started_at, ended_at, failed, asked_at, answered_at, waits"
figures: Final = SelectOne(
    CallFigures._make,
    **_texts(
        "SELECT count(*), coalesce(sum(failed), 0), coalesce(sum(CASE WHEN kind = 'model' THEN 1 ELSE 0 END), 0), "
        "min(coalesce(asked_at, started_at)), "
        "max(CASE WHEN waits = 1 THEN :now ELSE coalesce(ended_at, started_at) END) FROM calls"
    ),
)
page: Final = SelectAll(
    CallTimes._make,
    **_texts(
        f"SELECT :skip + row_number() OVER (ORDER BY started_at, id), {_COLUMNS} FROM "
        f"(SELECT {_COLUMNS} FROM calls ORDER BY started_at, id LIMIT :most OFFSET :skip) AS chosen_calls "
        "ORDER BY started_at, id"
    ),
)
failed_page: Final = SelectAll(
    CallTimes._make,
    **_texts(
        f"SELECT number, {_COLUMNS} FROM (SELECT row_number() OVER (ORDER BY started_at, id) AS number, {_COLUMNS} "
        "FROM calls) AS numbered WHERE failed = 1 AND number > :after ORDER BY number LIMIT :most OFFSET :skip"
    ),
)
bins: Final = SelectAll[tuple[int, int, int]](
    tuple,
    **_texts(
        "SELECT max(0, min(:bins - 1, CAST((julianday(started_at) - julianday(:first)) * 86400.0 / :seconds * :bins "
        "AS INTEGER))) AS bin, count(*), sum(failed) FROM calls GROUP BY bin",
        "SELECT greatest(0, least(:bins - 1, CAST(floor(extract(epoch FROM CAST(started_at AS timestamptz) "
        "- CAST(:first AS timestamptz)) / CAST(:seconds AS double precision) * :bins) AS integer))) AS bin, "
        "count(*), sum(failed) FROM calls GROUP BY bin",
    ),
)
"""Number of an interval of equal length, its calls and its failures."""
texts: Final = {
    "model": SelectOne[tuple[str, str]](tuple, "SELECT name, coalesce(error, output) FROM traces WHERE id = :id"),
    "tool": SelectOne[tuple[str, str]](
        tuple,
        "SELECT substr(arguments, 1, 1000), substr(coalesce(explanation, result, ''), 1, 1000) "
        "FROM tool_calls WHERE id = :id",
    ),
}
"""What was given to a call, with secrets redacted, and what it returned or why it failed."""
