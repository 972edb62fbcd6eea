"""Ids are valid, unique and, for rows, in the order of time."""

from __future__ import annotations

import time
from uuid import RFC_4122, UUID

import pytest

from punchlist.kernel.ids import new_id, short_id


def _milliseconds() -> int:
    return time.time_ns() // 1_000_000


def _moment(id: str) -> int:
    return UUID(id).int >> 80


def test_a_row_id_is_a_uuid_of_version_7_in_its_usual_form() -> None:
    for _ in range(100):
        made = new_id()
        assert str(UUID(made)) == made
        assert (UUID(made).version, UUID(made).variant) == (7, RFC_4122)


def test_row_ids_are_unique() -> None:
    assert len({new_id() for _ in range(20_000)}) == 20_000


def test_a_row_id_starts_with_the_moment_it_was_made() -> None:
    before = _milliseconds()
    made = new_id()
    assert before <= _moment(made) <= _milliseconds()


def test_row_ids_of_a_process_grow_also_within_a_millisecond() -> None:
    made = [new_id() for _ in range(20_000)]
    assert made == sorted(made)


def test_row_ids_grow_when_the_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    first, later = new_id(), time.time_ns() - 86_400 * 10**9
    monkeypatch.setattr(time, "time_ns", lambda: later)
    assert new_id() > first


def test_a_short_id_is_six_letters_and_never_looks_like_a_position() -> None:
    made = {short_id() for _ in range(1_000)}
    assert all(len(id) == 6 and id.isascii() and id.isalpha() and id.islower() for id in made)
    assert len(made) > 990
